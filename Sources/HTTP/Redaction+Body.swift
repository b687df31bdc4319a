// SPDX-License-Identifier: Apache-2.0

// Bodies in texts: the data of a cURL command, bodies in logs. They may be cut, so that no parser reads them.

extension Redaction {
    /// Returns the text of a body, which may be cut, with the placeholder for the values of secret members of JSON, or of secret items of a
    /// form; tokens of well-known services are replaced.
    package func body(_ text: String) -> String {
        UsualSecrets.replacingForms(in: Self.isJSON(text.utf8) ? json(text, depth: 0) : form(text))
    }

    /// Whether a text begins as a JSON object or array does.
    private static func isJSON(_ text: some Sequence<UInt8>) -> Bool {
        // A byte order mark may come first.
        let first = text.first { !JSONBytes.isSpace($0) && ![0xEF, 0xBB, 0xBF].contains($0) }
        return first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    }

    /// - Parameter depth: the number of strings in which this text is.
    private func json(_ text: String, depth: Int) -> String {
        let json = JSONBytes(text)
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
                if let shown = string(content, of: json, depth: depth) { replace(content, with: shown) }
                position = end
                continue
            }
            position = json.skippingSpace(from: colon + 1)
            guard hides(member: json.decoded(json.content(start..<end))) else { continue }
            let value = position..<json.endOfValue(at: position)
            if !value.isEmpty, !json.bytes[value].elementsEqual("null".utf8) { replace(value, with: "\"\(Self.placeholder)\"") }
            position = value.upperBound
        }
        return String(decoding: result + json.bytes[copied...], as: UTF8.self)
    }

    /// Returns the content of a string with redacted URLs, or the placeholder for it if what it escapes has a secret, as JSON in a string
    /// does; `nil` if there is none.
    private func string(_ content: Range<Int>, of json: JSONBytes, depth: Int) -> String? {
        let text = json.decoded(content)
        // As deep as URLs in items are looked for.
        let shown = depth < 3 && Self.isJSON(text.utf8) ? self.json(text, depth: depth + 1) : url(text)
        guard shown != text else { return nil }
        return json.bytes[content].contains(UInt8(ascii: "\\")) ? Self.placeholder : shown
    }
}

/// The bytes of JSON that may be cut or invalid.
private struct JSONBytes {
    let bytes: [UInt8]

    init(_ text: String) { bytes = Array(text.utf8) }

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    func skippingSpace(from start: Int) -> Int { bytes[start...].firstIndex { !Self.isSpace($0) } ?? bytes.count }

    /// The end of the string that begins with a quotation mark, after its second one.
    func endOfString(at start: Int) -> Int {
        var position = start + 1
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""): return position + 1
            case UInt8(ascii: "\\"): position += 2
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
                if depth == 0, byte == UInt8(ascii: ",") || Self.isSpace(byte) { return position }
                position += 1
            }
        }
        return bytes.count
    }
}
