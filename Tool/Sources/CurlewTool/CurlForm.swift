// SPDX-License-Identifier: Apache-2.0

/// The parts of a form as curl's `--form` writes them: `name=text`, `name=@file` or `name=<file`, each with `;type=` and `;filename=`,
/// where texts, files and values may stand in quotes.
enum CurlForm {
    /// Reads a part.
    static func part(_ word: String, isString: Bool) throws(UsageError) -> RequestItem {
        guard let equals = word.unicodeScalars.firstIndex(of: "="), equals > word.startIndex else {
            throw UsageError("\(word.quoted) is no part of a form")
        }
        let name = String(word[..<equals])
        var rest = word.suffix(afterScalarAt: equals)
        if isString { return .field(name: name, value: String(rest)) }
        let kind = rest.unicodeScalars.first.flatMap { "@<".unicodeScalars.contains($0) ? $0 : nil }
        if kind != nil { rest = rest.dropFirstScalars() }
        var content = value(&rest)
        let (type, fileName) = try parameters(rest, of: name)
        if kind == "@" { return .file(name: name, path: content, type: type, fileName: fileName) }
        guard fileName == nil else { throw UsageError("the part \(name.quoted) is no file, so it has no file name") }
        if kind == "<" {
            guard let data = InputFile.contents(content) else { throw UsageError("\(content.quoted) can't be read") }
            guard let text = String(data: data, encoding: .utf8) else { throw UsageError("\(content.quoted) is not text in UTF-8") }
            content = text
        }
        return type.map { .typedField(name: name, value: content, type: $0) } ?? .field(name: name, value: content)
    }

    /// Reads a value in quotes, or up to the next semicolon.
    private static func value(_ rest: inout Substring) -> String {
        guard rest.unicodeScalars.first == "\"" else {
            let text = rest.prefixScalars { $0 != ";" }
            rest = rest[text.endIndex...]
            return String(text)
        }
        var text = String.UnicodeScalarView()
        var quoted = rest.dropFirstScalars().unicodeScalars
        while let scalar = quoted.popFirst() {
            if scalar == "\"" {
                rest = Substring(quoted).dropScalars { $0 != ";" }
                return String(text)
            }
            if scalar == "\\", let next = quoted.first, next == "\\" || next == "\"" {
                text.append(next)
                quoted = quoted.dropFirst()
            } else {
                text.append(scalar)
            }
        }
        // Without an end, the quote is a character as others.
        let all = rest.prefixScalars { $0 != ";" }
        rest = rest[all.endIndex...]
        return String(all)
    }

    private static func parameters(_ text: Substring, of name: String) throws(UsageError) -> (type: String?, fileName: String?) {
        var rest = text
        var type: String?
        var fileName: String?
        while rest.unicodeScalars.first == ";" {
            rest = rest.dropFirstScalars().dropScalars { $0 == " " }
            let key = rest.prefixScalars { $0 != "=" && $0 != ";" }
            rest = rest[key.endIndex...]
            if rest.unicodeScalars.first == "=" { rest = rest.dropFirstScalars() }
            let value = value(&rest)
            switch key.lowercased() {
            case "type": type = value
            case "filename": fileName = value
            // A parameter of the type, as in text/html;charset=utf-8.
            case _ where type != nil && !["headers", "encoder"].contains(key.lowercased()): type = "\(type ?? "");\(key)=\(value)"
            default: throw UsageError("\(";\(key)=".quoted) of the part \(name.quoted) is not supported")
            }
        }
        return (type, fileName)
    }

    /// Returns a part in curl's form.
    static func words(_ item: RequestItem) -> [String] {
        switch item {
        case .field(let name, let value): ["--form-string", "\(name)=\(value)"]
        case .typedField(let name, let value, let type): ["-F", "\(name)=\(quoted(value, always: true));type=\(type)"]
        case .file(let name, let path, let type, let fileName):
            [
                "-F",
                "\(name)=@\(quoted(path))" + (type.map { ";type=\($0)" } ?? "")
                    + (fileName.map { ";filename=\(quoted($0, always: true))" } ?? ""),
            ]
        default: []
        }
    }

    private static func quoted(_ text: String, always: Bool = false) -> String {
        guard always || text.unicodeScalars.contains(where: { "\";,\\".unicodeScalars.contains($0) }) else { return text }
        return text.quotedString
    }
}
