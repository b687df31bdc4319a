// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// The beginning of a refused response's body, as text for an error.
enum BodyExcerpt {
    /// Returns the body as text, cut between two characters if it is longer than a limit in bytes, or is cut already; `nil` if it is empty
    /// or no text.
    ///
    /// Text is valid in its encoding (see `EncodedText`), and has no control characters but tabs and line breaks, so that the excerpt of
    /// a binary body can't garble a log. A `text` type that names no encoding may also be in ISO 8859-1.
    static func text(of body: Data, limit: Int, isCut: Bool = false, contentType: String?) -> String? {
        guard !body.isEmpty else { return nil }
        let bytes = body.prefix(limit)
        let excerpt = EncodedText(bytes, contentType: contentType)
        let isText = contentType.flatMap { MediaType($0) }?.type.equalsIgnoringASCIICase("text") ?? false
        // A character has at most four bytes, of which the cut may have left three.
        let cuts = 0...(isCut || bytes.count < body.count ? min(3, bytes.count) : 0)
        let text = cuts.lazy.compactMap { excerpt.text(withoutLast: $0) }.first ?? (isText ? excerpt.latin1Text : nil)
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
