// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What an entry of a cache is found by: some texts, in their order.
///
/// Two keys are equal if they have the same texts, byte by byte. How texts are divided counts: `("a", "bc")` is another key than
/// `("ab", "c")`.
public struct CacheKey: Sendable, Hashable {
    /// The texts, each in UTF-8 behind its length in bytes (`5:hello,`), so that no two lists of texts give the same.
    public let bytes: Data

    /// Makes a key of texts.
    public init(_ parts: String...) {
        self.init(parts)
    }

    /// Makes a key of texts.
    public init(_ parts: [String]) {
        var bytes = Data()
        for part in parts {
            bytes.append(contentsOf: "\(part.utf8.count):".utf8)
            bytes.append(contentsOf: part.utf8)
            bytes.append(UInt8(ascii: ","))
        }
        self.bytes = bytes
    }

    /// The SHA-256 digest of the bytes, in 64 hexadecimal digits: a name that file systems take.
    public var digest: String { SHA256.digest(of: bytes).hexDigits }
}
