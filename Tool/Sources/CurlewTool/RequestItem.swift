// SPDX-License-Identifier: Apache-2.0

/// An argument after the URL: a body field, a query item, or a header field.
enum RequestItem: Equatable {
    /// `name=value`
    case field(name: String, value: String)
    /// `name:=json`
    case json(name: String, text: String)
    /// `name==value`
    case query(name: String, value: String)
    /// `Name:value`, or `Name;` for an empty value.
    case header(name: String, value: String)
    /// `Name:`
    case removedHeader(name: String)

    /// Splits a word at its first separator. A backslash escapes a separator or a backslash in the name; the value is taken verbatim.
    init(_ word: String) throws(UsageError) {
        var name = String.UnicodeScalarView()
        var rest = word.unicodeScalars[...]
        while let scalar = rest.first {
            if scalar == "\\", let next = rest.dropFirst().first, "=:;\\".unicodeScalars.contains(next) {
                name.append(next)
                rest = rest.dropFirst(2)
            } else if let separator = Self.separator(at: rest) {
                let value = String(rest.dropFirst(separator.unicodeScalars.count))
                self = try Self.make(separator, String(name), value)
                return
            } else {
                name.append(scalar)
                rest = rest.dropFirst()
            }
        }
        throw UsageError("\(word.quoted) is none of name=value, name:=json, name==value, Header:value, Header: and Header;")
    }

    private static func separator(at text: Substring.UnicodeScalarView) -> String? {
        switch (text.first, text.dropFirst().first) {
        case ("=", "="): "=="
        case (":", "="): ":="
        case ("=", _): "="
        case (":", _): ":"
        case (";", nil): ";"
        default: nil
        }
    }

    private static func make(_ separator: String, _ name: String, _ value: String) throws(UsageError) -> RequestItem {
        // The text after the name may be a secret, so it is not printed.
        guard !name.isEmpty else { throw UsageError("a name is missing before \(separator.quoted)") }
        switch separator {
        case "==": return .query(name: name, value: value)
        case ":=":
            guard JSONReindenter.isValid(value.utf8) else { throw UsageError("the value of \(name.quoted) is not JSON") }
            return .json(name: name, text: value)
        case "=": return .field(name: name, value: value)
        case ";": return .header(name: name, value: "")
        default: return value.isEmpty ? .removedHeader(name: name) : .header(name: name, value: value)
        }
    }

    var name: String {
        switch self {
        case .field(let name, _), .json(let name, _), .query(let name, _), .header(let name, _), .removedHeader(let name): name
        }
    }

    /// Whether it is part of the body.
    var isField: Bool {
        switch self {
        case .field, .json: true
        case .query, .header, .removedHeader: false
        }
    }

    var isJSON: Bool {
        if case .json = self { true } else { false }
    }
}
