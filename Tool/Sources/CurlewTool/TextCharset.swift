// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The charset of a text that may not be UTF-8.
struct TextCharset {
    private let type: String?
    /// Whether a byte 0x0A is a line feed and nothing else, and each line can be read without the one before it.
    let hasPlainLines: Bool

    /// The type without the charset.
    var contentType: String? { type?.splitScalars(separator: ";").first.map(String.init) }

    /// - Parameter beginning: may have a byte order mark of UTF-16.
    /// - Returns: `nil` for UTF-8, and for a type that names no charset.
    init?(contentType: String?, beginning: Data) {
        type = contentType
        guard !beginning.starts(with: [0xFF, 0xFE]), !beginning.starts(with: [0xFE, 0xFF]) else {
            hasPlainLines = false
            return
        }
        let fields = (contentType ?? "").splitScalars(separator: ";").map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
        guard let parameter = fields.dropFirst().first(where: { $0.hasBytePrefix("charset=") }) else { return nil }
        let name = parameter.dropFirstScalars(8).trimmingScalars { $0 == "\"" || $0 == "'" }
        if ["utf-8", "utf8", "us-ascii", "ascii", ""].contains(name) { return nil }
        // Those of the Encoding Standard with units of two bytes, or with states.
        hasPlainLines = !["utf-16", "utf-32", "ucs-2", "unicode", "iso-10646", "csunicode", "iso-2022", "csiso2022", "hz-gb"].contains {
            name.hasBytePrefix($0)
        }
    }

    /// The text, as the library decodes it; `nil` for bytes that are none in the charset, and for a charset that is not known.
    func text(of bytes: Data) -> String? {
        guard let url = URL(string: "http://localhost/"),
            let response = HTTPURLResponse(
                url: url, statusCode: 200, httpVersion: nil, headerFields: type.map { ["Content-Type": $0] } ?? [:])
        else { return nil }
        return try? DataResponseSerializer<String>.string().serializeResponse(nil, response, bytes, nil).get()
    }
}
