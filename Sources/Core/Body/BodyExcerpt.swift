// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// The beginning of a refused response's body, as text for an error.
enum BodyExcerpt {
    /// Returns the body as text, cut between two characters if it is longer than a limit in bytes; `nil` if it is empty or no text.
    ///
    /// Text is valid in its charset, by default UTF-8, and has no control characters but tabs and line breaks, so that the excerpt of a
    /// binary body can't garble a log. A `text` type without a charset may also be in ISO 8859-1.
    static func text(of body: Data, limit: Int, contentType: String?) -> String? {
        guard !body.isEmpty else { return nil }
        let bytes = body.prefix(limit)
        let given = contentType.flatMap { String.Encoding(contentType: $0) }
        let isText = contentType.flatMap { MediaType($0) }?.type.equalsIgnoringASCIICase("text") ?? false
        let encodings = given.map { [$0] } ?? (isText ? [.utf8, .isoLatin1] : [.utf8])
        // A character has at most four bytes, of which the cut may have left three.
        let cuts = 0...(bytes.count < body.count ? min(3, bytes.count) : 0)
        let text = encodings.lazy.compactMap { encoding in
            cuts.lazy.compactMap { String(data: bytes.dropLast($0), encoding: encoding) }.first
        }.first
        guard let text, !text.unicodeScalars.contains(where: \.isControl) else { return nil }
        return text
    }
}

extension Request {
    /// Returns the beginning of the request's or its response's body as text; `nil` if it is no text.
    package func text(of body: Data, upTo limit: Int, isResponse: Bool) -> String? {
        let type = isResponse ? responseHead?.value(for: "Content-Type") : request?.value(forHTTPHeaderField: "Content-Type")
        return BodyExcerpt.text(of: body, limit: limit, contentType: type)
    }
}

extension Unicode.Scalar {
    /// Whether this is a control character other than tab, line feed and carriage return.
    fileprivate var isControl: Bool {
        switch value {
        case 0x09, 0x0A, 0x0D: false
        case 0..<0x20, 0x7F..<0xA0: true
        default: false
        }
    }
}
