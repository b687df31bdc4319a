// SPDX-License-Identifier: Apache-2.0

/// The 64-bit cyclic redundancy check of the xz format: it detects every burst of errors up to 64 bits long, and misses one in 2⁶⁴ of all
/// others.
struct CRC64 {
    /// Eight tables of 256 entries, to process eight bytes at a time.
    private static let tables: [UInt64] = {
        var tables = [UInt64](repeating: 0, count: 8 * 256)
        for byte in 0..<256 {
            tables[byte] = (0..<8).reduce(UInt64(byte)) { value, _ in value & 1 == 0 ? value >> 1 : value >> 1 ^ 0xC96C_5795_D787_0F42 }
        }
        for index in 256..<tables.count {
            let above = tables[index - 256]
            tables[index] = above >> 8 ^ tables[Int(above & 0xFF)]
        }
        return tables
    }()

    private var state = ~UInt64(0)

    /// The checksum of all bytes so far.
    var value: UInt64 { ~state }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        state = Self.tables.withUnsafeBufferPointer { table in
            var state = state
            var index = 0
            while index + 8 <= bytes.count {
                let word = state ^ UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
                state = 0
                for place in 0..<8 { state ^= table[(7 - place) << 8 | Int(truncatingIfNeeded: word >> UInt64(8 * place)) & 0xFF] }
                index += 8
            }
            while index < bytes.count {
                state = state >> 8 ^ table[Int((state ^ UInt64(bytes[index])) & 0xFF)]
                index += 1
            }
            return state
        }
    }

    mutating func update(_ data: Data) {
        data.withUnsafeBytes { update($0) }
    }

    static func checksum(of data: Data) -> UInt64 {
        var crc = CRC64()
        crc.update(data)
        return crc.value
    }
}
