// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension HTTPData {
    /// A value as JSON (RFC 8259).
    public struct JSON<Value: Encodable & Sendable>: HTTPBody {
        private let value: Value
        private let encoder: JSONEncoder

        /// Makes a body of a value.
        ///
        /// - Parameters:
        ///   - value: what is encoded, anew for each attempt.
        ///   - encoder: what writes the JSON, not to be changed afterwards; `nil`, the default, writes the names of properties in snake case.
        public init(_ value: Value, encoder: JSONEncoder? = nil) {
            self.value = value
            self.encoder = encoder ?? .forServices(toSnakeCase: true)
        }

        /// Puts the JSON into the request, with its type.
        public func add(to request: inout URLRequest) throws {
            request.httpBody = try encoder.encode(value)
            request.setValue(MIMEType.json.rawValue, forHTTPHeaderField: "Content-Type")
        }

        /// The JSON, indented, its names sorted, redacted (``/CurlewHTTP/Redaction``), cut after 1000 characters.
        public var description: String {
            (try? encoder.encode(value)).map { BodyText.describe($0) } ?? "<a value that is not encoded>"
        }
    }
}

/// Bodies as they stand in a log.
enum BodyText {
    static let limit = 1000

    /// JSON indented, other text in a line, both redacted and cut after 1000 characters; else the number of bytes.
    static func describe(_ data: Data) -> String {
        // Beyond this, formatting costs more than anybody reads.
        guard data.count <= 1 << 20 else { return "<\(data.count) bytes>" }
        if let object = try? JSONSerialization.jsonObject(with: data),
            let pretty = try? JSONSerialization.data(
                withJSONObject: Redaction.current.object(object), options: [.prettyPrinted, .sortedKeys])
        {
            // The only line feeds are those between members and elements.
            let lines = String(decoding: pretty, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            return cut(lines.map { Redaction.escaped(String($0)) }.joined(separator: "\n"))
        }
        guard let text = String(data: data, encoding: .utf8) else { return "<\(data.count) bytes>" }
        return cut(Redaction.escaped(Redaction.current.form(text)))
    }

    private static func cut(_ text: String) -> String {
        let end = text.index(text.startIndex, offsetBy: limit, limitedBy: text.endIndex) ?? text.endIndex
        return end == text.endIndex ? text : text[..<end] + "…"
    }
}
