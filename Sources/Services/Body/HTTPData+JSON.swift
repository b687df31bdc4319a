// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension HTTPData {
    /// A value encoded as JSON (RFC 8259).
    public struct JSON<Value: Encodable & Sendable>: HTTPBody {
        private let value: Value
        private let encoder: JSONEncoder

        /// Makes a body of a value.
        ///
        /// - Parameters:
        ///   - value: the value, encoded again for each attempt.
        ///   - encoder: encodes the value, and must not be changed afterwards; `nil`, the default, for one that writes property names in
        ///     snake case.
        public init(_ value: Value, encoder: JSONEncoder? = nil) {
            self.value = value
            self.encoder = encoder ?? .forServices(toSnakeCase: true)
        }

        /// Sets the request's body to the JSON, and its `Content-Type`.
        public func add(to request: inout URLRequest) throws {
            request.httpBody = try encoder.encode(value)
            request.setValue(MIMEType.json.rawValue, forHTTPHeaderField: "Content-Type")
        }

        /// The JSON, indented, with sorted keys, redacted (``/CurlewHTTP/Redaction``), truncated to 1000 characters.
        public var description: String {
            (try? encoder.encode(value)).map { BodyText.describe($0) } ?? "<a value that is not encoded>"
        }
    }
}

/// Reflection shows no more than the description does.
extension HTTPData.JSON: RedactedReflectable {}

/// Describes bodies for the log.
enum BodyText {
    static let limit = 1000

    /// Returns JSON indented, other text as it is, both redacted and truncated to 1000 characters; for anything else, the number of bytes.
    static func describe(_ data: Data) -> String {
        // Formatting a larger body costs more than its first 1000 characters are worth.
        guard data.count <= 1 << 20 else { return "<\(data.count) bytes>" }
        if let object = try? JSONSerialization.jsonObject(with: data),
            let pretty = try? JSONSerialization.data(
                withJSONObject: object, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
        {
            let text = Redaction.current.body(String(decoding: pretty, as: UTF8.self))
            // Strings escape their line feeds, so each line feed here separates members or elements.
            let lines = text.splitScalars(separator: "\n", omittingEmptySubsequences: false)
            return truncated(lines.map { Redaction.escaped(String($0)) }.joined(separator: "\n"))
        }
        guard let text = String(data: data, encoding: .utf8) else { return "<\(data.count) bytes>" }
        return truncated(Redaction.escaped(Redaction.current.body(text)))
    }

    private static func truncated(_ text: String) -> String {
        let end = text.index(text.startIndex, offsetBy: limit, limitedBy: text.endIndex) ?? text.endIndex
        return end == text.endIndex ? text : text[..<end] + "…"
    }
}
