// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text of an extended value: charset, language and percent-encoded bytes, as `UTF-8'en'%e2%82%ac` (RFC 8187, section 3.2). `nil` if
    /// it is none, has another charset, or bytes that are invalid in it.
    ///
    /// - Parameter allowsLatin1: whether ISO-8859-1 is decoded as well, which RFC 5987 demanded.
    package func decodedExtendedValue(allowsLatin1: Bool = false) -> String? {
        let parts = splitScalars(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = Self.percentDecoded(parts[2]) else { return nil }
        switch parts[0].lowercased() {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1" where allowsLatin1: return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default: return nil
        }
    }

    /// The text percent-encoded as the value of an extended parameter (RFC 8187, section 3.2.1), without charset and language.
    package var extendedValue: String {
        utf8.map { byte in
            let isPlain = HTTPToken.isTokenCharacter(byte) && !"*'%".utf8.contains(byte)
            return isPlain ? String(UnicodeScalar(byte)) : "%" + byte.hexDigits.uppercased()
        }.joined()
    }

    /// `nil` if a percent sign is not followed by two digits.
    private static func percentDecoded(_ text: Substring) -> [UInt8]? {
        var (bytes, rest) = ([UInt8](), text.utf8)
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst()?.hexValue, let low = rest.popFirst()?.hexValue else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}
