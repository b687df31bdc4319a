// SPDX-License-Identifier: Apache-2.0

/// The bytes of a body that is text, and how they are encoded.
///
/// A byte order mark has precedence (Encoding Standard, section 6), then the charset of the content type (RFC 9110, section 8.3.2), then
/// the declaration of an XML document (XML 1.0, section 4.3.3). Without any of them, text is UTF-8.
package struct EncodedText {
    /// The encoding; UTF-8 also for an unknown charset.
    package private(set) var encoding = String.Encoding.utf8
    /// The name of a charset, or of a declared encoding, that is unknown; its first 40 bytes.
    package private(set) var unknownCharset: String?
    /// Whether nothing names an encoding, the type and the document included.
    private var isUnspecified = false
    /// Without the mark.
    private let bytes: Data

    /// Determines the encoding of a body with a content type.
    package init(_ body: Data, contentType: String?) {
        self.init(body, encoding: .utf8) { text in
            let charset = contentType?.fieldParameters["charset"].map { String($0.trimmingScalars { $0 == "'" || $0 == " " }) }
            if let charset, !charset.isEmpty {
                text.name(charset)
            } else if body.starts(with: "<?xml".utf8) {
                Self.declaredEncoding(of: body).map { text.name($0) }
            } else {
                text.isUnspecified = !(contentType.flatMap { MediaType($0) }?.isUTF8 ?? false)
            }
        }
    }

    /// Text in a known encoding, or in that of its byte order mark.
    package init(_ body: Data, encoding: String.Encoding) {
        self.init(body, encoding: encoding) { _ in }
    }

    private init(_ body: Data, encoding: String.Encoding, withoutMark: (inout EncodedText) -> Void) {
        let mark = ByteOrderMark(body)
        bytes = body.dropFirst(mark?.length ?? 0)
        self.encoding = mark?.encoding ?? encoding
        if mark == nil { withoutMark(&self) }
    }

    /// The text; `nil` if the bytes are invalid in its encoding.
    package var text: String? { text(withoutLast: 0) }

    /// The text without its last bytes, which a cut may have left of a character.
    package func text(withoutLast count: Int) -> String? { String(bytes.dropLast(count), in: encoding) }

    /// The text in ISO 8859-1; `nil` if something names another encoding: also the type, where that requires UTF-8.
    package var latin1Text: String? { isUnspecified ? String(bytes, in: .isoLatin1) : nil }

    private mutating func name(_ charset: String) {
        if let known = String.Encoding(charset: charset) {
            encoding = known
        } else {
            unknownCharset = String(decoding: charset.utf8.prefix(Charset.longestName), as: UTF8.self)
        }
    }

    /// The encoding that an XML declaration names.
    private static func declaredEncoding(of document: Data) -> String? {
        let head = String(decoding: document.prefix(256), as: UTF8.self)
        guard let end = head.firstScalarRange(of: "?>"), let name = head[..<end.lowerBound].firstScalarRange(of: "encoding") else {
            return nil
        }
        func isSpace(_ scalar: Unicode.Scalar) -> Bool { [" ", "\t", "\r", "\n"].contains(scalar) }
        var rest = head[name.upperBound..<end.lowerBound].dropScalars(while: isSpace)
        guard rest.unicodeScalars.first == "=" else { return nil }
        rest = rest.dropFirstScalars().dropScalars(while: isSpace)
        guard let quote = rest.unicodeScalars.first, quote == "\"" || quote == "'" else { return nil }
        let encoding = rest.dropFirstScalars().prefixScalars { $0 != quote }.lowercased()
        // A declaration that was read as ASCII is neither in UTF-16 nor in UTF-32.
        return encoding.hasBytePrefix("utf-16") || encoding.hasBytePrefix("utf-32") ? "utf-8" : encoding
    }
}

/// The mark with which a text in a Unicode encoding begins.
private struct ByteOrderMark {
    let encoding: String.Encoding
    /// In bytes.
    let length: Int

    /// `nil` without a mark.
    init?(_ text: Data) {
        let head = [UInt8](text.prefix(4))
        // The marks of UTF-32 first: UTF-16's is the beginning of one.
        let marks: [([UInt8], String.Encoding)] = [
            ([0xEF, 0xBB, 0xBF], .utf8), ([0, 0, 0xFE, 0xFF], .utf32BigEndian), ([0xFF, 0xFE, 0, 0], .utf32LittleEndian),
            ([0xFE, 0xFF], .utf16BigEndian), ([0xFF, 0xFE], .utf16LittleEndian),
        ]
        guard let (mark, encoding) = marks.first(where: { head.starts(with: $0.0) }) else { return nil }
        self.encoding = encoding
        length = mark.count
    }
}
