// SPDX-License-Identifier: Apache-2.0

/// Validates UTF-8 incrementally (RFC 3629, section 4); fails at the first invalid byte.
struct UTF8Validator: Sendable {
    /// The number of bytes that the current character still lacks.
    private var missing = 0
    /// The valid range of the next continuation byte.
    private var next: ClosedRange<UInt8> = 0x80...0xBF

    /// Whether the bytes so far end at a character boundary.
    var isComplete: Bool { missing == 0 }

    /// Consumes bytes; returns `false` if they can't be UTF-8, regardless of what follows.
    mutating func consume(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        while index < bytes.count {
            if missing == 0 {
                index = Self.skipASCII(bytes, from: index)
                guard index < bytes.count else { return true }
                guard begin(bytes[index]) else { return false }
            } else {
                guard next.contains(bytes[index]) else { return false }
                missing &-= 1
                next = 0x80...0xBF
            }
            index &+= 1
        }
        return true
    }

    private static func skipASCII(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        while index &+ 8 <= bytes.count, bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0 {
            index &+= 8
        }
        while index < bytes.count, bytes[index] < 0x80 { index &+= 1 }
        return index
    }

    /// Consumes the first byte of a character that is not ASCII.
    private mutating func begin(_ byte: UInt8) -> Bool {
        switch byte {
        case 0xC2...0xDF: missing = 1
        case 0xE0...0xEF:
            missing = 2
            // Excludes overlong encodings and surrogates.
            if byte == 0xE0 { next = 0xA0...0xBF }
            if byte == 0xED { next = 0x80...0x9F }
        case 0xF0...0xF4:
            missing = 3
            // Excludes overlong encodings and code points beyond U+10FFFF.
            if byte == 0xF0 { next = 0x90...0xBF }
            if byte == 0xF4 { next = 0x80...0x8F }
        default: return false
        }
        return true
    }
}
