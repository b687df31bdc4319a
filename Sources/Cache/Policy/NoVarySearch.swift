// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Which parts of a URL's query do not distinguish responses: the field `No-Vary-Search` (draft-ietf-httpbis-no-vary-search).
///
/// A structured dictionary (RFC 9651) with `key-order`, `params` and `except`. A field that does not parse, or that has an unexpected type,
/// counts as absent, so that all of the query distinguishes.
package struct NoVarySearch: Sendable, Hashable {
    /// The parameters that do not distinguish.
    private enum Ignored: Hashable {
        case none
        case only(Set<String>)
        case allExcept(Set<String>)
    }

    private var ignoresOrder = false
    private var ignored = Ignored.none

    /// Parses the field of a response; `nil` without one that changes anything.
    package init?(_ headers: HTTPHeaders) {
        guard let text = headers.value(for: "No-Vary-Search") else { return nil }
        var parser = StructuredParser(text)
        guard let members = parser.dictionary() else { return nil }
        var except: Set<String>?
        var all = false
        for (key, value) in members {
            switch (key, value) {
            case ("key-order", .boolean(let flag)): ignoresOrder = flag
            case ("params", .boolean(let flag)):
                all = flag
                ignored = .none
            case ("params", .strings(let names)):
                all = false
                ignored = names.isEmpty ? .none : .only(Set(names.map(Self.decoded)))
            case ("except", .strings(let names)): except = Set(names.map(Self.decoded))
            case ("key-order", _), ("params", _), ("except", _): return nil
            default: break
            }
        }
        if all { ignored = .allExcept(except ?? []) } else if except != nil { return nil }
        guard ignoresOrder || ignored != .none else { return nil }
    }

    /// The URL without what does not distinguish: equal for URLs that share a response.
    package func normalized(_ url: String) -> String {
        guard let mark = url.utf8.firstIndex(of: UInt8(ascii: "?")) else { return url + "?" }
        let query = url[url.utf8.index(after: mark)...]
        var pairs = query.split(separator: "&", omittingEmptySubsequences: true).map { pair -> (key: String, value: String) in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (Self.decoded(String(parts[0])), parts.count > 1 ? Self.decoded(String(parts[1])) : "")
        }
        switch ignored {
        case .none: break
        case .only(let names): pairs.removeAll { names.contains($0.key) }
        case .allExcept(let names): pairs.removeAll { !names.contains($0.key) }
        }
        // Values of one key keep their order (section 4).
        if ignoresOrder {
            let sorted = pairs.enumerated().sorted { ($0.element.key, $0.offset) < ($1.element.key, $1.offset) }
            pairs = sorted.map(\.element)
        }
        // Lengths keep keys and values apart whatever they contain.
        return url[...mark] + pairs.map { "\($0.key.utf8.count):\($0.key)=\($0.value.utf8.count):\($0.value)" }.joined(separator: "&")
    }

    /// A key or value as `application/x-www-form-urlencoded` means it.
    private static func decoded(_ text: String) -> String {
        let spaced = text.replacing("+", with: " ")
        var bytes: [UInt8] = []
        let source = Array(spaced.utf8)
        var index = 0
        while index < source.count {
            if source[index] == UInt8(ascii: "%"), index + 2 < source.count, let high = hex(source[index + 1]),
                let low = hex(source[index + 2])
            {
                bytes.append(high << 4 | low)
                index += 3
            } else {
                bytes.append(source[index])
                index += 1
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func hex(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x37
        case 0x61...0x66: byte - 0x57
        default: nil
        }
    }
}

/// Parses a structured dictionary (RFC 9651, section 4.2.2), as far as its members are booleans or lists of strings.
struct StructuredParser {
    enum Value: Hashable {
        case boolean(Bool)
        case strings([String])
        /// Another type.
        case other
    }

    private let bytes: [UInt8]
    private var index = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    private var current: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func take(_ character: Character) -> Bool {
        guard let ascii = character.asciiValue, current == ascii else { return false }
        index += 1
        return true
    }

    private mutating func skip(tabs: Bool = false) {
        while current == 0x20 || tabs && current == 0x09 { index += 1 }
    }

    /// The members in order, with the last value of each key; `nil` if the text is no dictionary.
    mutating func dictionary() -> [(key: String, value: Value)]? {
        var members: [(key: String, value: Value)] = []
        skip()
        while current != nil {
            guard let key = key() else { return nil }
            var value = Value.boolean(true)
            if take("=") {
                guard let parsed = self.value() else { return nil }
                value = parsed
            }
            guard parameters() else { return nil }
            members.removeAll { $0.key == key }
            members.append((key, value))
            skip(tabs: true)
            guard current != nil else { return members }
            guard take(",") else { return nil }
            skip(tabs: true)
            // A trailing comma.
            guard current != nil else { return nil }
        }
        return members
    }

    private mutating func key() -> String? {
        guard let first = current, (0x61...0x7A).contains(first) || first == UInt8(ascii: "*") else { return nil }
        let start = index
        while let byte = current, (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || "_-.*".utf8.contains(byte) { index += 1 }
        return String(decoding: bytes[start..<index], as: UTF8.self)
    }

    private mutating func value() -> Value? {
        if take("(") { return innerList() }
        if take("?") {
            if take("1") { return .boolean(true) }
            return take("0") ? .boolean(false) : nil
        }
        if current == UInt8(ascii: "\"") { return string() == nil ? nil : .other }
        // A token, a number, a date, bytes: checked only as far as their end is found.
        let start = index
        while let byte = current, byte > 0x20, byte < 0x7F, !",;()\"".utf8.contains(byte) { index += 1 }
        return index > start ? .other : nil
    }

    private mutating func innerList() -> Value? {
        var strings: [String] = []
        var isOther = false
        while current != nil {
            skip()
            if take(")") { return isOther ? .other : .strings(strings) }
            if current == UInt8(ascii: "\"") {
                guard let text = string() else { return nil }
                strings.append(text)
            } else {
                guard value() != nil else { return nil }
                isOther = true
            }
            guard parameters() else { return nil }
            guard current == 0x20 || current == UInt8(ascii: ")") else { return nil }
        }
        return nil
    }

    private mutating func string() -> String? {
        guard take("\"") else { return nil }
        var text: [UInt8] = []
        while let byte = current {
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = current, escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\") else { return nil }
                text.append(escaped)
                index += 1
            case 0x20...0x7E: text.append(byte)
            default: return nil
            }
        }
        return nil
    }

    /// Skips the parameters of a member; `false` if they are invalid.
    private mutating func parameters() -> Bool {
        while take(";") {
            skip()
            guard key() != nil else { return false }
            if take("=") {
                guard current != UInt8(ascii: "("), value() != nil else { return false }
            }
        }
        return true
    }
}
