// SPDX-License-Identifier: Apache-2.0
import Curlew

/// An argument after the URL: a body field, a query item, or a header field.
enum RequestItem: Equatable {
    /// `name=value`, or `name=@file` for a file's text.
    case field(name: String, value: String)
    /// `name:=json`, or `name:=@file` for a file's JSON.
    case json(name: String, text: String)
    /// `name@file`, with `;type=…` and `;filename=…` behind it.
    case file(name: String, path: String, type: String?, fileName: String? = nil)
    /// A field of a multipart form with a type of its own, which only a command of curl can say.
    case typedField(name: String, value: String, type: String)
    /// A part of a multipart form that was read for a command of curl.
    case data(name: String, data: Data, type: String?, fileName: String?)
    /// `name==value`, or `name==@file`.
    case query(name: String, value: String)
    /// `Name:value`, `Name;` for an empty value, or `Name:@file`.
    case header(name: String, value: String)
    /// `Name:`
    case removedHeader(name: String)

    /// Splits a word at its first separator. A backslash escapes a separator or a backslash in the name; the value is taken verbatim.
    init(_ word: String) throws(UsageError) {
        var name = String.UnicodeScalarView()
        var rest = word.unicodeScalars[...]
        while let scalar = rest.first {
            if scalar == "\\", let next = rest.dropFirst().first, "=:;@\\".unicodeScalars.contains(next) {
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
        throw UsageError("\(word.quoted) is none of name=value, name:=json, name==value, name@file, Header:value, Header: and Header;")
    }

    private static let separators = [":=@", "==@", ":=", "==", "=@", ":@", "=", ":", "@"]

    private static func separator(at text: Substring.UnicodeScalarView) -> String? {
        if text.elementsEqual(";".unicodeScalars) { return ";" }
        return separators.first { text.starts(with: $0.unicodeScalars) }
    }

    private static func make(_ separator: String, _ name: String, _ value: String) throws(UsageError) -> RequestItem {
        // The text after the name may be a secret, so it is not printed.
        guard !name.isEmpty else { throw UsageError("a name is missing before \(separator.quoted)") }
        switch separator {
        case "@":
            let (path, type, fileName) = parameters(of: value)
            guard !path.isEmpty else { throw UsageError("the file of \(name.quoted) is missing") }
            return .file(name: name, path: path, type: type, fileName: fileName)
        case _ where separator.hasByteSuffix("@"): return try make(String(separator.dropLast()), name, try text(of: value))
        case "==": return .query(name: name, value: value)
        case ":=":
            guard JSONReindenter.isValid(value.utf8) else { throw UsageError("the value of \(name.quoted) is not JSON") }
            return .json(name: name, text: value)
        case "=": return .field(name: name, value: value)
        case ";": return .header(name: name, value: "")
        default: return value.isEmpty ? .removedHeader(name: name) : .header(name: name, value: value)
        }
    }

    /// Splits `path;type=text/csv;filename=name`, in either order.
    private static func parameters(of value: String) -> (path: String, type: String?, fileName: String?) {
        let found = [";type=", ";filename="].compactMap { key in value.firstScalarRange(of: key).map { (key: key, range: $0) } }
            .sorted { $0.range.lowerBound < $1.range.lowerBound }
        var values: [String: String] = [:]
        for (number, (key, range)) in found.enumerated() {
            let end = number + 1 < found.count ? found[number + 1].range.lowerBound : value.endIndex
            values[key] = String(value[range.upperBound..<end])
        }
        return (String(value[..<(found.first?.range.lowerBound ?? value.endIndex)]), values[";type="], values[";filename="])
    }

    private static func text(of path: String) throws(UsageError) -> String {
        guard let data = InputFile.contents(path) else { throw UsageError("\(path.quoted) can't be read") }
        guard let text = String(data: data, encoding: .utf8) else { throw UsageError("\(path.quoted) is not text in UTF-8") }
        return text.hasByteSuffix("\n") ? String(text.dropLast()) : text
    }

    var name: String {
        switch self {
        case .field(let name, _), .json(let name, _), .query(let name, _), .header(let name, _), .removedHeader(let name),
            .file(let name, _, _, _), .typedField(let name, _, _), .data(let name, _, _, _):
            name
        }
    }

    /// Whether it is part of the body.
    var isField: Bool {
        switch self {
        case .field, .json, .file, .typedField, .data: true
        case .query, .header, .removedHeader: false
        }
    }

    var isJSON: Bool {
        if case .json = self { true } else { false }
    }

    var isFile: Bool {
        if case .file = self { true } else { false }
    }
}
