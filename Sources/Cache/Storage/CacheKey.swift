// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The key of a cache entry: an ordered list of strings.
///
/// Keys are equal if their strings are equal, byte by byte. The boundaries are significant: `("a", "bc")` and `("ab", "c")` are different
/// keys.
public struct CacheKey: Sendable, Hashable {
    /// The strings in UTF-8, each preceded by its length in bytes (`5:hello,`), so that different lists have different bytes.
    public let bytes: Data

    /// Creates a key of strings.
    public init(_ parts: String...) {
        self.init(parts)
    }

    /// Creates a key of strings.
    public init(_ parts: [String]) {
        var bytes = Data()
        for part in parts {
            bytes.append(contentsOf: "\(part.utf8.count):".utf8)
            bytes.append(contentsOf: part.utf8)
            bytes.append(UInt8(ascii: ","))
        }
        self.bytes = bytes
    }

    /// Creates a key of the bytes of another one.
    package init(bytes: Data) { self.bytes = bytes }

    /// The strings; `nil` if the bytes are not those of a key.
    package var parts: [String]? {
        var parts: [String] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            guard let colon = rest.firstIndex(of: UInt8(ascii: ":")), let length = Int(String(decoding: rest[..<colon], as: UTF8.self)),
                length >= 0, rest.endIndex - colon - 1 > length, rest[colon + 1 + length] == UInt8(ascii: ",")
            else { return nil }
            parts.append(String(decoding: rest[(colon + 1)..<(colon + 1 + length)], as: UTF8.self))
            rest = rest[(colon + 2 + length)...]
        }
        return parts
    }

    /// The SHA-256 digest of the bytes as 64 hexadecimal digits, which is a valid file name.
    public var digest: String { SHA256.digest(of: bytes).hexDigits }
}

// MARK: - CustomReflectable

extension CacheKey: CustomReflectable {
    /// The number of bytes only: the strings are URLs and values of fields.
    public var customMirror: Mirror { .redacted(self, ["count": bytes.count]) }
}
