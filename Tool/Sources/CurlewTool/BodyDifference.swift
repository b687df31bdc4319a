// SPDX-License-Identifier: Apache-2.0
import Curlew

/// How a body differs from one that was recorded.
enum BodyDifference {
    /// A body and the type that its header says.
    struct Body {
        let bytes: Data
        let type: String?

        /// The type without its parameters.
        fileprivate var media: String { (type ?? "").prefixScalars { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased() }

        /// The bytes, for a form of parts without its boundary, which is another one each time.
        fileprivate var comparable: Data {
            guard media == "multipart/form-data", let type, let start = type.firstScalarRange(of: "boundary=") else { return bytes }
            let value = type[start.upperBound...].prefixScalars { $0 != ";" }.trimmingScalars { $0 == "\"" || $0 == " " }
            let delimiter = Data("--\(value)".utf8)
            guard !value.isEmpty else { return bytes }
            var (result, rest) = (Data(), bytes[...])
            while let range = rest.firstRange(of: delimiter) {
                result += rest[..<range.lowerBound] + Data("--".utf8)
                rest = rest[range.upperBound...]
            }
            return result + rest
        }
    }

    /// Returns the first differences of type and content, in a line; `nil` if there are none. JSON is compared by value, other text by lines,
    /// the rest by bytes.
    static func text(recorded: Body, present: Body) -> String? {
        let types = recorded.media == present.media ? nil : "type: \(pair(recorded.media, present.media))"
        let found = [types, content(recorded.comparable, present.comparable)].compactMap { $0 }
        return found.isEmpty ? nil : found.joined(separator: "; ")
    }

    /// What was, and what is.
    static func pair(_ recorded: String, _ present: String) -> String {
        "recorded \(shown(recorded)), now \(shown(present))"
    }

    private static func shown(_ text: String) -> String { text.isEmpty ? "none" : SafeText.fitted(SafeText.escaped(text), columns: 60) }

    private static func content(_ recorded: Data, _ present: Data) -> String? {
        guard recorded != present else { return nil }
        guard !recorded.isEmpty, !present.isEmpty else { return "length: \(pair("\(recorded.count)", "\(present.count)"))" }
        if let first = NestedJSON(parsing: Array(recorded)), let second = NestedJSON(parsing: Array(present)) {
            return value(first, second, at: "$")
        }
        if let first = plain(recorded), let second = plain(present) { return lines(first, second) }
        let place = zip(recorded, present).enumerated().first { $0.element.0 != $0.element.1 }
        guard let place else { return "length: \(pair("\(recorded.count)", "\(present.count)"))" }
        func digits(_ byte: UInt8) -> String { "0x" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true) }
        return "byte \(place.offset + 1): \(pair(digits(place.element.0), digits(place.element.1)))"
    }

    /// The bytes as text, if they are some.
    private static func plain(_ bytes: Data) -> String? { bytes.contains(0) ? nil : String(data: bytes, encoding: .utf8) }

    private static func lines(_ recorded: String, _ present: String) -> String {
        func lines(_ text: String) -> [Substring] { text.splitScalars(separator: "\n", omittingEmptySubsequences: false) }
        let (first, second) = (lines(recorded), lines(present))
        let number = zip(first, second).prefix { $0.utf8.elementsEqual($1.utf8) }.count
        func line(_ lines: [Substring]) -> String { number < lines.count ? String(lines[number]).debugDescription : "no such line" }
        return "line \(number + 1): \(pair(line(first), line(second)))"
    }

    /// The first difference of two values of JSON, with its path; `nil` if they are equal.
    private static func value(_ recorded: NestedJSON, _ present: NestedJSON, at path: String) -> String? {
        switch (recorded, present) {
        case (.object(let first), .object(let second)):
            let (earlier, later) = (NestedJSON.byName(first), NestedJSON.byName(second))
            for name in first.map(\.name) {
                let (place, key) = ("\(path).\(name)", Array(name.utf8))
                guard let other = later[key] else { return "\(shown(place)): recorded, now missing" }
                if let difference = earlier[key].flatMap({ value($0, other, at: place) }) { return difference }
            }
            return second.first { earlier[Array($0.name.utf8)] == nil }.map { "\(shown("\(path).\($0.name)")): not recorded" }
        case (.array(let first), .array(let second)):
            for (index, (element, other)) in zip(first, second).enumerated() {
                if let difference = value(element, other, at: "\(path)[\(index)]") { return difference }
            }
            return first.count == second.count ? nil : "\(shown(path)): \(pair("\(first.count) elements", "\(second.count)"))"
        default: return recorded.isEqual(to: present) ? nil : "\(shown(path)): \(pair(kind(recorded), kind(present)))"
        }
    }

    private static func kind(_ value: NestedJSON) -> String {
        switch value {
        case .text(let text): text
        case .array: "an array"
        case .object: "an object"
        }
    }
}
