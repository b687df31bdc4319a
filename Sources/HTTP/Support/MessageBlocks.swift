// SPDX-License-Identifier: Apache-2.0

/// The blocks that the message digests share, and the padding of MD5: to whole blocks, with the length in bits at the end.
enum MessageBlocks {
    /// The size of a block in bytes.
    static let size = 64

    static func padded(_ message: some Sequence<UInt8>) -> [UInt8] {
        var bytes = Array(message)
        let bitCount = UInt64(bytes.count) &* 8
        bytes.append(0x80)
        while bytes.count % size != size - 8 { bytes.append(0) }
        return bytes + (0..<8).map { UInt8(truncatingIfNeeded: bitCount >> (8 * $0)) }
    }

    /// Splits a block into big-endian words.
    static func words(of block: ArraySlice<UInt8>) -> [UInt32] {
        stride(from: block.startIndex, to: block.endIndex, by: 4).map { start in
            block[start..<(start + 4)].reduce(0) { $0 << 8 | UInt32($1) }
        }
    }
}

extension Sequence<UInt8> {
    /// The bytes as hexadecimal digits in lower case.
    package var hexDigits: String {
        String(decoding: flatMap { [Self.hexDigit($0 >> 4), Self.hexDigit($0 & 15)] }, as: UTF8.self)
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}

extension FixedWidthInteger where Self: UnsignedInteger {
    /// The number as hexadecimal digits in lower case, two for each of its bytes.
    package var hexDigits: String { withUnsafeBytes(of: bigEndian) { $0.hexDigits } }
}
