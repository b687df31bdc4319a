// SPDX-License-Identifier: Apache-2.0
import Curlew

extension NestedJSON {
    /// Reads JSON text (RFC 8259), with or without a byte order mark; `nil` for any other text, and for one that is nested more than 512
    /// levels deep.
    init?(parsing bytes: [UInt8]) {
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        // The grammar is checked first, so that what follows need not.
        guard JSONReindenter.isValid(bytes[start...]), let value = JSONTreeReader(bytes, from: start).read() else { return nil }
        self = value
    }

    /// The text of a string, without its escapes; `nil` for any other value.
    var string: String? {
        guard case .text(let text) = self, text.utf8.first == UInt8(ascii: "\"") else { return nil }
        return Self.unescaped(text.dropFirstScalars().dropLastScalars())
    }

    var number: Double? {
        guard case .text(let text) = self, let first = text.utf8.first, first == UInt8(ascii: "-") || first.isASCIIDigit else { return nil }
        return Double(text)
    }

    /// How two numbers compare; `nil` for other values. Whole ones are not rounded.
    func order(to other: NestedJSON) -> (isEqual: Bool, isLess: Bool)? {
        guard case .text(let a) = self, case .text(let b) = other, let first = number, let second = other.number else { return nil }
        if let first = Int64(a), let second = Int64(b) { return (first == second, first < second) }
        return (first == second, first < second)
    }

    /// Whether both are the same value: numbers by their size, objects in any order.
    func isEqual(to other: NestedJSON) -> Bool {
        switch (self, other) {
        case (.text(let a), .text(let b)):
            if let order = order(to: other) { return order.isEqual }
            if let first = string, let second = other.string { return first.utf8.elementsEqual(second.utf8) }
            return a == b
        case (.array(let a), .array(let b)): return a.count == b.count && zip(a, b).allSatisfy { $0.isEqual(to: $1) }
        case (.object(let a), .object(let b)):
            let (first, second) = (Self.byName(a), Self.byName(b))
            return first.count == second.count && first.allSatisfy { second[$0.key]?.isEqual(to: $0.value) ?? false }
        default: return false
        }
    }

    /// The members of an object by the bytes of their names: names that are only canonically equivalent differ (RFC 8259, section 8.3). The
    /// last one of a name counts.
    static func byName(_ members: [(name: String, value: NestedJSON)]) -> [[UInt8]: NestedJSON] {
        Dictionary(members.map { (Array($0.name.utf8), $0.value) }) { $1 }
    }

    private static func unescaped(_ text: Substring) -> String {
        guard text.utf8.contains(UInt8(ascii: "\\")) else { return String(text) }
        var units: [UInt16] = []
        var rest = Array(text.utf16)[...]
        while let unit = rest.popFirst() {
            guard unit == 0x5C, let next = rest.popFirst() else {
                units.append(unit)
                continue
            }
            switch UInt8(truncatingIfNeeded: next) {
            case UInt8(ascii: "n"): units.append(0x0A)
            case UInt8(ascii: "t"): units.append(0x09)
            case UInt8(ascii: "r"): units.append(0x0D)
            case UInt8(ascii: "b"): units.append(0x08)
            case UInt8(ascii: "f"): units.append(0x0C)
            case UInt8(ascii: "u"):
                units.append(UInt16(String(decoding: rest.prefix(4), as: UTF16.self), radix: 16) ?? 0xFFFD)
                rest = rest.dropFirst(4)
            default: units.append(next)
            }
        }
        return String(decoding: units, as: UTF16.self)
    }
}

/// Reads valid JSON text.
private struct JSONTreeReader {
    private let bytes: [UInt8]
    private var position: Int

    init(_ bytes: [UInt8], from start: Int) {
        self.bytes = bytes
        position = start
    }

    consuming func read() -> NestedJSON? { value() }

    private mutating func skipSpace() {
        while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
    }

    private mutating func value() -> NestedJSON? {
        skipSpace()
        guard position < bytes.count else { return nil }
        switch bytes[position] {
        case UInt8(ascii: "{"):
            var members: [(name: String, value: NestedJSON)] = []
            while next(until: UInt8(ascii: "}")) {
                guard let name = NestedJSON.text(token()).string else { return nil }
                skipSpace()
                position += 1
                guard let value = value() else { return nil }
                members.append((name, value))
            }
            return .object(members)
        case UInt8(ascii: "["):
            var elements: [NestedJSON] = []
            while next(until: UInt8(ascii: "]")) {
                guard let value = value() else { return nil }
                elements.append(value)
            }
            return .array(elements)
        default: return .text(token())
        }
    }

    /// Skips a bracket or a comma. Returns whether there is another element.
    private mutating func next(until end: UInt8) -> Bool {
        skipSpace()
        guard position < bytes.count else { return false }
        guard bytes[position] != end else {
            position += 1
            return false
        }
        position += 1
        skipSpace()
        guard position < bytes.count, bytes[position] == end else { return position < bytes.count }
        position += 1
        return false
    }

    /// Reads a string, a number or a word.
    private mutating func token() -> String {
        skipSpace()
        let start = position
        if position < bytes.count, bytes[position] == UInt8(ascii: "\"") {
            position += 1
            while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
                position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1
            }
            position = min(position + 1, bytes.count)
        } else {
            while position < bytes.count, !" \t\r\n,]}:".utf8.contains(bytes[position]) { position += 1 }
        }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }
}
