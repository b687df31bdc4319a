// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP

/// The name of an entry's file: 32 bytes, the digest of its key, in hexadecimal digits.
struct EntryName: Hashable, Comparable, Sendable {
    /// The bytes, the first of which is the highest of the first word.
    let words: [UInt64]

    /// Parses a file name; `nil` if it is no entry's.
    init?(_ digits: String) {
        var words: [UInt64] = []
        var (word, count) = (UInt64(0), 0)
        for byte in digits.utf8 {
            switch byte {
            case 0x30...0x39: word = word << 4 | UInt64(byte - 0x30)
            case 0x61...0x66: word = word << 4 | UInt64(byte - 0x61 + 10)
            default: return nil
            }
            count += 1
            if count % 16 == 0 {
                words.append(word)
                word = 0
            }
        }
        guard count == 64 else { return nil }
        self.words = words
    }

    /// The name of the file for a key.
    init(_ key: CacheKey) {
        let digest = SHA256.digest(of: key.bytes)
        words = digest.withUnsafeBytes { bytes in
            (0..<4).map { UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8 * $0, as: UInt64.self)) }
        }
    }

    /// - Parameter words: four.
    init(words: some Collection<UInt64>) { self.words = Array(words) }

    /// The file name.
    var digits: String { digits(after: "") }

    /// The file name after a prefix, such as its directory, as one string.
    func digits(after prefix: String) -> String {
        var prefix = prefix
        return prefix.withUTF8 { prefix in
            String(unsafeUninitializedCapacity: prefix.count + 64) { buffer in
                var index = buffer[..<prefix.count].initialize(fromContentsOf: prefix)
                for word in words {
                    for shift in stride(from: 60, through: 0, by: -4) {
                        let digit = UInt8(truncatingIfNeeded: word &>> UInt64(shift)) & 15
                        buffer[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
                        index += 1
                    }
                }
                return index
            }
        }
    }

    static func < (a: EntryName, b: EntryName) -> Bool { a.words.lexicographicallyPrecedes(b.words) }
}

/// Words in a file, little-endian, the last of which is a checksum of the others: a torn or damaged record is not taken for another one.
enum CheckedWords {
    /// The bytes of the words and their checksum.
    static func bytes(_ words: [UInt64]) -> Data {
        var bytes = Data(capacity: 8 * (words.count + 1))
        for word in words { withUnsafeBytes(of: word.littleEndian) { bytes.append(contentsOf: $0) } }
        withUnsafeBytes(of: check(words).littleEndian) { bytes.append(contentsOf: $0) }
        return bytes
    }

    /// The words before a checksum; `nil` if that is wrong.
    static func words(_ bytes: some Collection<UInt8>, count: Int) -> [UInt64]? {
        guard bytes.count == 8 * (count + 1) else { return nil }
        var words: [UInt64] = []
        words.reserveCapacity(count + 1)
        var (word, shift) = (UInt64(0), UInt64(0))
        for byte in bytes {
            word |= UInt64(byte) << shift
            shift += 8
            if shift == 64 {
                words.append(word)
                (word, shift) = (0, 0)
            }
        }
        guard let found = words.popLast(), found == check(words) else { return nil }
        return words
    }

    /// A multiplication for each word, which finds each damage of one word and misses one in 2⁶⁴ of others.
    private static func check(_ words: [UInt64]) -> UInt64 {
        words.reduce(0x9E37_79B1_85EB_CA87) { hash, word in
            let product = (hash ^ word) &* 0xC2B2_AE3D_27D4_EB4F
            return product ^ product >> 32
        }
    }
}
