// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

@testable import CurlewCaching

@Suite(.timeLimit(.minutes(1))) struct CRC64Tests {
    @Test func valueMatchesTheXZFormat() {
        #expect(CRC64.checksum(of: Data("123456789".utf8)) == 0x995D_C9BB_DF19_39FA)
        #expect(CRC64.checksum(of: Data()) == 0)
    }

    @Test func incrementalUpdatesMatchOneUpdate() {
        let data = Data((0..<100).map { UInt8($0 * 7 % 256) })
        for cut in data.indices {
            var crc = CRC64()
            crc.update(data[..<cut])
            crc.update(data[cut...])
            #expect(crc.value == CRC64.checksum(of: data))
        }
    }
}
