// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The parts of a form as curl's `--form` writes them: `name=text`, `name=@file` or `name=<file`, each with `;type=` and `;filename=`,
/// where texts, files and values may stand in quotes.
enum CurlForm {
    /// Reads a part.
    static func part(_ word: String, isString: Bool) throws(UsageError) -> RequestItem {
        guard let equals = word.unicodeScalars.firstIndex(of: "="), equals > word.startIndex else {
            throw UsageError("the value of curl's option --form is no part of a form: it has no NAME=")
        }
        let name = String(word[..<equals])
        var rest = word.suffix(afterScalarAt: equals)
        if isString { return .field(name: name, value: String(rest)) }
        let kind = rest.unicodeScalars.first.flatMap { "@<".unicodeScalars.contains($0) ? $0 : nil }
        if kind == "@" { return try files(rest.dropFirstScalars(), of: name) }
        if kind != nil { rest = rest.dropFirstScalars() }
        let content = value(&rest, ends: ";")
        let (type, fileName) = try parameters(&rest, of: name, ends: ";")
        guard fileName == nil else { throw UsageError("the part \(name.quoted) is no file, so it has no file name") }
        if kind == "<" { return .data(name: name, data: try contents(content), type: type, fileName: nil) }
        return type.map { .typedField(name: name, value: content, type: $0) } ?? .field(name: name, value: content)
    }

    private static func contents(_ path: String) throws(UsageError) -> Data {
        guard let data = InputFile.contents(path) else { throw UsageError("\(path.quoted) can't be read") }
        return data
    }

    /// Reads a file's name, or several with commas between them, which are parts of a part.
    private static func files(_ text: Substring, of name: String) throws(UsageError) -> RequestItem {
        var files: [(path: String, type: String?, fileName: String?)] = []
        var rest = text
        repeat {
            if !files.isEmpty { rest = rest.dropFirstScalars().dropScalars { $0 == " " } }
            let path = value(&rest, ends: ";,")
            let (type, fileName) = try parameters(&rest, of: name, ends: ";,")
            files.append((path, type, fileName))
        } while rest.unicodeScalars.first == ","
        guard files.count > 1 else {
            let (path, type, fileName) = files[0]
            guard path == "-" else {
                return .file(name: name, path: path, type: type ?? Self.type(of: fileName ?? path), fileName: fileName)
            }
            // Only its own name says what standard input is.
            return .data(name: name, data: try contents(path), type: type, fileName: fileName ?? "-")
        }
        let boundary = "------------------------\(UUID().uuidString.filterScalars { $0 != "-" }.prefix(22))"
        var body = Data()
        for file in files {
            let plain = file.path.splitScalars(separator: "/").last.map(String.init) ?? file.path
            let type = file.type ?? Self.type(of: file.fileName ?? file.path)
            let shown = (file.fileName ?? plain).replacingScalars("\"", with: "%22").filterScalars { $0 != "\r" && $0 != "\n" }
            body += "--\(boundary)\r\nContent-Disposition: attachment; filename=\"\(shown)\"\r\nContent-Type: \(type)\r\n\r\n".utf8
            body += try contents(file.path) + Data("\r\n".utf8)
        }
        body += "--\(boundary)--\r\n".utf8
        return .data(name: name, data: body, type: "multipart/mixed; boundary=\(boundary)", fileName: nil)
    }

    /// The type that curl takes a file for.
    private static func type(of name: String) -> String {
        let types = [
            ".gif": "image/gif", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".svg": "image/svg+xml",
            ".txt": "text/plain", ".htm": "text/html", ".html": "text/html", ".pdf": "application/pdf", ".xml": "application/xml",
        ]
        let lower = name.lowercased()
        return types.first { lower.hasByteSuffix($0.key) }?.value ?? "application/octet-stream"
    }

    /// Reads a value in quotes, or up to one of the characters that end it.
    private static func value(_ rest: inout Substring, ends: String) -> String {
        func isInside(_ scalar: Unicode.Scalar) -> Bool { !ends.unicodeScalars.contains(scalar) }
        guard rest.unicodeScalars.first == "\"" else {
            let text = rest.prefixScalars(while: isInside)
            rest = rest[text.endIndex...]
            return String(text)
        }
        var text = String.UnicodeScalarView()
        var quoted = rest.dropFirstScalars().unicodeScalars
        while let scalar = quoted.popFirst() {
            if scalar == "\"" {
                rest = Substring(quoted).dropScalars(while: isInside)
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
        let all = rest.prefixScalars(while: isInside)
        rest = rest[all.endIndex...]
        return String(all)
    }

    private static func parameters(
        _ rest: inout Substring, of name: String, ends: String
    ) throws(UsageError) -> (type: String?, fileName: String?) {
        var type: String?
        var fileName: String?
        while rest.unicodeScalars.first == ";" {
            rest = rest.dropFirstScalars().dropScalars { $0 == " " }
            let key = rest.prefixScalars { $0 != "=" && !ends.unicodeScalars.contains($0) }
            rest = rest[key.endIndex...]
            if rest.unicodeScalars.first == "=" { rest = rest.dropFirstScalars() }
            let value = value(&rest, ends: ends)
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
        case .json(let name, let text): ["-F", "\(name)=\(quoted(text, always: true));type=application/json"]
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
