// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Which parts of a URL's query do not distinguish responses: the field `No-Vary-Search` (draft-ietf-httpbis-no-vary-search-10).
///
/// A structured dictionary (RFC 9651): `key-order`, a boolean, and one of `params` and `except`, lists of strings. Other keys are ignored. A
/// field that does not parse, or that breaks these rules, counts as absent, so that all of the query distinguishes.
package struct NoVarySearch: Sendable, Hashable {
    /// The parameters that do not distinguish. Names are bytes: no Unicode equivalence applies (section 5.1).
    private enum Ignored: Hashable {
        case only(Set<[UInt8]>)
        case allExcept(Set<[UInt8]>)
    }

    private struct Pair {
        let key: [UInt8]
        let value: [UInt8]
    }

    private var ignoresOrder = false
    private var ignored = Ignored.only([])

    /// Parses the field's value, all lines as one list; `nil` if it is invalid, or changes nothing.
    package init?(_ text: String) {
        var parser = StructuredParser(text)
        guard let members = parser.dictionary() else { return nil }
        var isLimited = false
        for (key, value) in members {
            switch (key, value) {
            case ("key-order", .boolean(let flag)): ignoresOrder = flag
            case ("params", .strings(let names)) where !isLimited:
                isLimited = true
                ignored = .only(Set(names.map(Self.decoded)))
            case ("except", .strings(let names)) where !isLimited:
                isLimited = true
                ignored = .allExcept(Set(names.map(Self.decoded)))
            // Another type, or both lists.
            case ("key-order", _), ("params", _), ("except", _): return nil
            default: break
            }
        }
        guard ignoresOrder || ignored != .only([]) else { return nil }
    }

    /// The longest field that is read, in bytes.
    private static let longest = 8 << 10

    /// Parses the field of a response; `nil` without a valid one that changes anything.
    package init?(_ headers: HTTPHeaders) {
        guard let text = headers.value(for: "No-Vary-Search"), text.utf8.count <= Self.longest else { return nil }
        self.init(text)
    }

    /// Whether two URLs without fragments differ in nothing that distinguishes responses (section 5).
    package func areEquivalent(_ first: String, _ second: String) -> Bool {
        normalized(first).utf8.elementsEqual(normalized(second).utf8)
    }

    /// The URL without what does not distinguish: the same bytes for equivalent URLs, and for no others.
    package func normalized(_ url: String) -> String {
        let path = Self.path(of: url)
        var pairs = pairs(url.utf8.dropFirst(path.utf8.count + 1))
        // Values of one key keep their order.
        if ignoresOrder {
            let sorted = pairs.enumerated().sorted {
                $0.element.key == $1.element.key
                    ? $0.offset < $1.offset : $0.element.key.lexicographicallyPrecedes($1.element.key)
            }
            pairs = sorted.map(\.element)
        }
        // Lengths keep keys and values apart that contain separators.
        var bytes = Array(path.utf8) + [UInt8(ascii: "?")]
        for pair in pairs {
            bytes += "\(pair.key.count):".utf8
            bytes += pair.key
            bytes += "=\(pair.value.count):".utf8
            bytes += pair.value
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The URL without its query.
    package static func path(of url: String) -> String {
        guard let mark = url.utf8.firstIndex(of: UInt8(ascii: "?")) else { return url }
        return String(url[..<mark])
    }

    /// The rule as text: the same for equal rules.
    package var canonical: String {
        let (kind, names) =
            switch ignored {
            case .only(let names): ("only", names)
            case .allExcept(let names): ("except", names)
            }
        let list = names.map { "\($0.count):" + String(decoding: $0, as: UTF8.self) }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        return (ignoresOrder ? "any-order " : "") + kind + " " + list.joined()
    }

    /// The parameters of a query that distinguish.
    private func pairs(_ query: some Collection<UInt8>) -> [Pair] {
        query.split(separator: UInt8(ascii: "&")).compactMap { pair in
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            let key = Self.decoded(parts[0])
            switch ignored {
            case .only(let names): if names.contains(key) { return nil }
            case .allExcept(let names): if !names.contains(key) { return nil }
            }
            return Pair(key: key, value: parts.count > 1 ? Self.decoded(parts[1]) : [])
        }
    }

    private static func decoded(_ text: String) -> [UInt8] { decoded(text.utf8) }

    /// A key or value as `application/x-www-form-urlencoded` means it, in valid UTF-8.
    private static func decoded(_ text: some Collection<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        let source = Array(text)
        var index = 0
        while index < source.count {
            if source[index] == UInt8(ascii: "%"), index + 2 < source.count, let high = hex(source[index + 1]),
                let low = hex(source[index + 2])
            {
                bytes.append(high << 4 | low)
                index += 3
            } else {
                bytes.append(source[index] == UInt8(ascii: "+") ? UInt8(ascii: " ") : source[index])
                index += 1
            }
        }
        return Array(String(decoding: bytes, as: UTF8.self).utf8)
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
        var places: [String: Int] = [:]
        skip()
        while current != nil {
            guard let key = key() else { return nil }
            var value = Value.boolean(true)
            if take("=") {
                guard let parsed = self.value() else { return nil }
                value = parsed
            }
            guard parameters() else { return nil }
            if let place = places[key] {
                members[place].value = value
            } else {
                places[key] = members.count
                members.append((key, value))
            }
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
        while let byte = current, (0x61...0x7A).contains(byte) || byte.isASCIIDigit || "_-.*".utf8.contains(byte) { index += 1 }
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
                // A list in a list is invalid (RFC 9651, section 3.1.1), and would be read by a recursion as deep as the text says.
                guard current != UInt8(ascii: "("), value() != nil else { return nil }
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
