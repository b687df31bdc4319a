// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@testable import CurlewCaching

@Suite struct XXHash64Tests {
    @Test(
        "the hash has the values of its specification",
        arguments: [
            ("", 0xEF46_DB37_51D8_E999), ("a", 0xD24E_C4F1_A98C_6E5B), ("abc", 0x44BC_2CF5_AD77_0999),
            ("Nobody inspects the spammish repetition", 0xFBCE_A83C_8A37_8BF1),
        ] as [(String, UInt64)])
    func values(text: String, hash: UInt64) {
        #expect(XXHash64.hash(of: Data(text.utf8)) == hash)
    }

    @Test("the hash does not depend on the pieces")
    func pieces() {
        let data = Data((0..<200).map { UInt8(truncatingIfNeeded: $0 &* 37) })
        for size in 1...70 {
            var hash = XXHash64()
            for start in stride(from: 0, to: data.count, by: size) { hash.update(data[start..<min(start + size, data.count)]) }
            #expect(hash.value == XXHash64.hash(of: data), "pieces of \(size)")
        }
    }
}
