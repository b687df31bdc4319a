// SPDX-License-Identifier: Apache-2.0

// Bodies in texts: the data of a cURL command, bodies in logs. They may be cut, so that no parser reads them.

extension Redaction {
    /// Returns the text of a body, which may be cut, with the placeholder for the values of secret members of JSON, also within lines and
    /// events, and of secret items of a form; tokens of well-known services are replaced.
    package func body(_ text: String) -> String {
        let items = Self.isJSON(text.utf8) ? text : form(text)
        return UsualSecrets.replacingForms(in: Self.json(items, hides: { hides(member: $0) }, shown: { url($0) }))
    }

    /// Whether a text begins as a JSON object or array does.
    private static func isJSON(_ text: some Sequence<UInt8>) -> Bool {
        // A byte order mark may come first.
        let first = text.first { !$0.isSpace && ![0xEF, 0xBB, 0xBF].contains($0) }
        return first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    }

    /// Returns a text with the placeholder for the values of members of JSON, wherever they are in it; the rest is unchanged.
    ///
    /// - Parameters:
    ///   - depth: the number of strings in which this text is.
    ///   - hides: whether the values of members of a name are secret.
    ///   - shown: returns a string without the secrets in it.
    package static func json(
        _ text: String, depth: Int = 0, hides: (String) -> Bool, shown: (String) -> String
    ) -> String {
        // In other texts a quotation mark may have no second one: there a string ends with its line.
        let json = JSONBytes(text, isMultiline: isJSON(text.utf8))
        var result: [UInt8] = []
        var (copied, position) = (0, 0)
        func replace(_ range: Range<Int>, with replacement: String) {
            result += json.bytes[copied..<range.lowerBound] + replacement.utf8
            copied = range.upperBound
        }
        while let start = json.bytes[position...].firstIndex(of: UInt8(ascii: "\"")) {
            let end = json.endOfString(at: start)
            let colon = json.skippingSpace(from: end)
            guard colon < json.bytes.count, json.bytes[colon] == UInt8(ascii: ":") else {
                let content = json.content(start..<end)
                if let shown = string(content, of: json, depth, hides, shown) { replace(content, with: shown) }
                position = end
                continue
            }
            position = json.skippingSpace(from: colon + 1)
            guard hides(json.decoded(json.content(start..<end))) else { continue }
            let value = position..<json.endOfValue(at: position)
            if !value.isEmpty, !json.bytes[value].elementsEqual("null".utf8) { replace(value, with: "\"\(placeholder)\"") }
            position = value.upperBound
        }
        return String(decoding: result + json.bytes[copied...], as: UTF8.self)
    }

    /// Returns the content of a string without secrets, or the placeholder for it if what it escapes has one, as JSON in a string does;
    /// `nil` if there is none.
    private static func string(
        _ content: Range<Int>, of json: JSONBytes, _ depth: Int, _ hides: (String) -> Bool, _ shown: (String) -> String
    ) -> String? {
        let text = json.decoded(content)
        // As deep as URLs in items are looked for.
        let result = depth < 3 && isJSON(text.utf8) ? self.json(text, depth: depth + 1, hides: hides, shown: shown) : shown(text)
        guard result != text else { return nil }
        return json.bytes[content].contains(UInt8(ascii: "\\")) ? placeholder : result
    }
}

/// The bytes of JSON that may be cut or invalid.
private struct JSONBytes {
    let bytes: [UInt8]
    /// Whether strings may have line feeds, which valid ones have not.
    private let isMultiline: Bool

    init(_ text: String, isMultiline: Bool) {
        bytes = Array(text.utf8)
        self.isMultiline = isMultiline
    }

    func skippingSpace(from start: Int) -> Int { bytes[start...].firstIndex { !$0.isSpace } ?? bytes.count }

    /// The end of the string that begins with a quotation mark, after its second one.
    func endOfString(at start: Int) -> Int {
        var position = start + 1
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""): return position + 1
            case UInt8(ascii: "\\"): position += 2
            case UInt8(ascii: "\n") where !isMultiline: return position
            default: position += 1
            }
        }
        return bytes.count
    }

    /// The content of a string without its quotation marks.
    func content(_ string: Range<Int>) -> Range<Int> {
        let start = string.lowerBound + 1
        // A string that was cut has no second mark.
        let isWhole =
            string.count > 1 && bytes[string.upperBound - 1] == UInt8(ascii: "\"")
            && endOfString(at: string.lowerBound) == string.upperBound
        return start..<max(start, isWhole ? string.upperBound - 1 : string.upperBound)
    }

    /// The text of the content of a string; the content itself if an escape is invalid.
    func decoded(_ content: Range<Int>) -> String {
        guard bytes[content].contains(UInt8(ascii: "\\")) else { return String(decoding: bytes[content], as: UTF8.self) }
        let quoted = Data([UInt8(ascii: "\"")] + bytes[content] + [UInt8(ascii: "\"")])
        return (try? JSONDecoder().decode(String.self, from: quoted)) ?? String(decoding: bytes[content], as: UTF8.self)
    }

    /// The end of the value that begins at a position: a string, an object or an array up to its closing bracket, or one word.
    func endOfValue(at start: Int) -> Int {
        var (position, depth) = (start, 0)
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                position = endOfString(at: position)
                if depth == 0 { return position }
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                position += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                guard depth > 0 else { return position }
                depth -= 1
                position += 1
                if depth == 0 { return position }
            case let byte:
                if depth == 0, byte == UInt8(ascii: ",") || byte.isSpace { return position }
                position += 1
            }
        }
        return bytes.count
    }
}
