// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewLoopback
import CurlewTransport

/// What a ``Cassette`` leaves out: the rules by which secrets are redacted before anything is written.
///
/// Redacted are, with the placeholder `<hidden>`:
/// - what `Redaction` hides: credentials, cookies, user info of URLs, marked header fields and items, in URLs and bodies;
/// - header fields, query items, items of forms, fields of multipart forms, keys of JSON objects, also of those in lines and events, elements
///   and attributes of XML and HTML whose names are usual for secrets, such as `X-Api-Key`, `refreshToken`, `client_secret` or `password`;
///   case, spaces and punctuation don't count;
/// - texts in the form of a secret, anywhere: tokens of well-known services, JSON Web Tokens, private keys in PEM;
/// - the values that are given here, anywhere, also in bodies that are not text.
///
/// The rest of a body is stored byte by byte. Bodies in UTF-16, and binary ones but for the text in them, are not looked into.
public struct CassetteRedaction: Sendable, Hashable {
    /// Further names, of header fields, items, fields, keys and elements alike; none by default.
    public var names: Set<String>
    /// Secrets themselves, such as a key from the environment; none by default. Empty ones are ignored.
    public var values: [String]
    /// Names that are not secret although they usually are; none by default.
    public var exceptions: Set<String>

    /// Creates rules in addition to those that always apply.
    public init(names: Set<String> = [], values: [String] = [], exceptions: Set<String> = []) {
        self.names = names
        self.values = values
        self.exceptions = exceptions
    }

    /// Names of items that are no secrets later, but would be of use to others while a login is in progress.
    private static let loginItems: Set<String> = ["state", "nonce"]

    private func hides(_ name: some StringProtocol, isItem: Bool = false) -> Bool {
        let plain = UsualSecrets.normalized(name)
        if exceptions.contains(where: { UsualSecrets.normalized($0) == plain }) { return false }
        if names.contains(where: { UsualSecrets.normalized($0) == plain }) { return true }
        if Redaction.current.marks(queryItem: String(name)) { return true }
        return isItem ? UsualSecrets.contains(item: plain) || Self.loginItems.contains(plain) : UsualSecrets.contains(plain)
    }

    // MARK: Parts of an exchange

    func headers(_ headers: HTTPHeaders) -> HTTPHeaders {
        let redaction = Redaction.current
        return HTTPHeaders(
            headers.map { header in
                guard !hides(header.name), !redaction.marks(header: header.name) else {
                    return HTTPHeader(name: header.name, value: Redaction.placeholder)
                }
                // A value may be a URL, as in Location and Referer.
                return HTTPHeader(name: header.name, value: url(header.value))
            })
    }

    func url(_ url: String) -> String {
        let redaction = Redaction.current
        // Without the names that are usual for secrets: they may be excepted here.
        let plain = redaction.url(url) { redaction.marks(queryItem: $0) }
        guard let start = plain.unicodeScalars.firstIndex(where: { "?#;".unicodeScalars.contains($0) }) else { return path(plain) }
        return path(String(plain[..<start])) + items(of: String(plain[start...]))
    }

    /// Returns a path without what is a secret in it, also under percent-encoding.
    private func path(_ path: String) -> String {
        text(path).splitScalars(separator: "/", omittingEmptySubsequences: false).map { segment in
            let decoded = segment.utf8.contains(UInt8(ascii: "%")) ? String(segment).removingPercentEncoding : nil
            return decoded.map { text($0) == $0 } == false ? Redaction.placeholder : String(segment)
        }.joined(separator: "/")
    }

    func body(_ body: Data, type: String?) -> Data {
        guard !body.isEmpty else { return body }
        let type = type ?? ""
        if let text = String(validating: body, as: UTF8.self) {
            let redacted = content(text, type: type)
            return redacted.utf8.elementsEqual(body) ? body : Data(redacted.utf8)
        }
        // Each byte as a scalar: what is text in a form with files, or ASCII in another charset, is found, and the rest stays as it is.
        let bytes = withoutValues(body)
        let scalars = content(String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) })), type: type).unicodeScalars
        return Data(scalars.map { UInt8(truncatingIfNeeded: $0.value) })
    }

    /// Returns the text of a body, or of a part of one.
    ///
    /// - Parameter depth: the number of forms in which it is.
    private func content(_ text: String, type: String, depth: Int = 0) -> String {
        let name = type.mediaType.lowercased()
        if name == "application/x-www-form-urlencoded" { return items(of: text) }
        if name.hasBytePrefix("multipart/"), depth < 3, let boundary = type.fieldParameters["boundary"], !boundary.isEmpty {
            return multipart(text, boundary, depth: depth)
        }
        let json = Redaction.json(text, hides: { hides($0) }) { string in
            let string = markup(string)
            return string.containsScalars(of: "://") ? url(string) : self.text(string)
        }
        return self.text(markup(json))
    }

    /// Returns the text without values, and without what has the form of a secret.
    func text(_ text: String) -> String {
        var result = text
        for value in values where !value.isEmpty { result = result.replacingScalars(value, with: Redaction.placeholder) }
        return UsualSecrets.replacingForms(in: result)
    }

    // MARK: Kinds of bodies

    /// Returns a query or a form without the values of secret items.
    private func items(of query: String) -> String {
        var result = ""
        var rest = query[...]
        while !rest.isEmpty {
            let item = rest.prefixScalars { !"?&#;".unicodeScalars.contains($0) }
            rest = rest[item.endIndex...]
            let parts = item.splitScalars(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 {
                let name = String(parts[0]).removingPercentEncoding ?? String(parts[0])
                let value = String(parts[1])
                if Redaction.components(of: name).contains(where: { hides($0, isItem: true) }) {
                    result += "\(parts[0])=\(value.isEmpty ? "" : Redaction.placeholder)"
                } else {
                    // A value may be a secret, or a URL with one, under its percent-encoding.
                    let decoded = value.replacingScalars("+", with: " ").removingPercentEncoding ?? value
                    result += "\(parts[0])=\(hasSecret(decoded) ? Redaction.placeholder : text(value))"
                }
            } else {
                result += text(String(item))
            }
            if let separator = rest.unicodeScalars.first {
                result.unicodeScalars.append(separator)
                rest = rest.dropFirstScalars()
            }
        }
        return result
    }

    private func hasSecret(_ text: String) -> Bool {
        text != self.text(text) || text.containsScalars(of: "://") && url(text) != text
    }

    /// Returns a multipart body without the contents of secret fields, and without the secrets in others.
    private func multipart(_ text: String, _ boundary: String, depth: Int) -> String {
        // At the beginning of a line, also of the first one.
        let (delimiter, whole) = ("\n--\(boundary)", "\n" + text)
        var (result, rest) = ("", whole[...])
        while let range = rest.firstScalarRange(of: delimiter) {
            result += part(rest[..<range.lowerBound], depth: depth) + delimiter
            rest = rest[range.upperBound...]
        }
        return String((result + part(rest, depth: depth)).dropFirstScalars())
    }

    /// Returns a part with the line break before it, up to the line feed of the delimiter.
    private func part(_ part: Substring, depth: Int) -> String {
        guard let start = ["\r\n\r\n", "\n\n"].lazy.compactMap({ part.firstScalarRange(of: $0)?.upperBound }).first else {
            return text(String(part))
        }
        func field(_ name: String) -> String? {
            let lines = part[..<start].splitScalars { $0 == "\r" || $0 == "\n" }
            let line = lines.first { String($0.prefixScalars { $0 != ":" }).equalsIgnoringASCIICase(name) }
            return line.map { String($0.dropScalars { $0 != ":" }.dropFirstScalars()) }
        }
        let end = max(start, part.dropLastScalars(part.hasByteSuffix("\r") ? 1 : 0).endIndex)
        let name = field("content-disposition")?.fieldParameters["name"] ?? ""
        let shown =
            if Redaction.components(of: name).contains(where: { hides($0, isItem: true) }) {
                start < end ? Redaction.placeholder : ""
            } else {
                content(String(part[start..<end]), type: field("content-type") ?? "", depth: depth + 1)
            }
        return text(String(part[..<start])) + shown + part[end...]
    }

    /// Returns XML or HTML without the contents of elements whose name is hidden, also in a property list and in other pairs of elements, and
    /// without such attributes; other texts as they are.
    private func markup(_ text: String) -> String {
        var (result, rest) = ("", text[...])
        // Names without an end, which is not looked for again.
        var open = Set<Substring>()
        // Whether the element before was the name of a secret: `<key>password</key><string>…</string>`.
        var isSecretNamed = false
        while let start = rest.unicodeScalars.firstIndex(of: "<") {
            let inside = rest.suffix(afterScalarAt: start)
            result += rest[..<start] + "<"
            rest = inside
            let name = inside.prefixScalars {
                $0.properties.isAlphabetic || $0.properties.numericType != nil || "_-:.".unicodeScalars.contains($0)
            }
            guard !name.isEmpty else { continue }
            let tag = inside[name.endIndex...].prefixScalars { $0 != ">" && $0 != "<" }
            result += name + attributes(tag)
            rest = inside[tag.endIndex...]
            guard rest.unicodeScalars.first == ">", !tag.hasByteSuffix("/") else { continue }
            result += ">"
            rest = rest.dropFirstScalars()
            let local = name.splitScalars(separator: ":").last ?? name
            let content = rest.prefixScalars { $0 != "<" }
            let isSecret = isSecretNamed || hides(local)
            isSecretNamed = ["key", "name"].contains(local.lowercased()) && hides(content)
            if isSecret {
                let end = open.contains(name) ? nil : rest.firstScalarRange(of: "</\(name)")?.lowerBound
                if end == nil { open.insert(name) }
                let secret = rest[..<(end ?? content.endIndex)]
                result += secret.isEmpty ? "" : Redaction.placeholder
                rest = rest[secret.endIndex...]
            }
        }
        return result + rest
    }

    /// Returns the attributes of a tag without the values of those that are hidden, and without the value or content of a tag that names a
    /// secret, as `<input name="token" value="…">` does.
    private func attributes(_ tag: Substring) -> String {
        var parts: [(name: Substring, value: Substring, before: Substring)] = []
        var rest = tag
        while let equals = rest.unicodeScalars.firstIndex(of: "=") {
            let words = rest[..<equals].splitScalars { $0.properties.isWhitespace || $0 == "\"" || $0 == "'" }
            let after = rest.suffix(afterScalarAt: equals).dropScalars { $0.properties.isWhitespace }
            let quote = after.unicodeScalars.first.flatMap { $0 == "\"" || $0 == "'" ? $0 : nil }
            let start = quote == nil ? after : after.dropFirstScalars()
            let value = start.prefixScalars { quote == nil ? !$0.properties.isWhitespace : $0 != quote }
            parts.append((words.last ?? "", value, rest[..<value.startIndex]))
            rest = rest[value.endIndex...]
        }
        guard !parts.isEmpty else { return String(tag) }
        let isSecretNamed = parts.contains { ["name", "id", "property"].contains($0.name.lowercased()) && hides($0.value) }
        return parts.map { part -> String in
            let isSecret = hides(part.name) || isSecretNamed && ["value", "content"].contains(part.name.lowercased())
            return part.before + (isSecret && !part.value.isEmpty ? Redaction.placeholder : String(part.value))
        }.joined() + rest
    }

    /// Replaces the values in a body that is no text.
    private func withoutValues(_ body: Data) -> Data {
        var result = body
        for value in values where !value.isEmpty {
            // From the back, as far as there was nothing replaced: the placeholder may contain the value.
            var end = result.endIndex
            while let range = result.range(of: Data(value.utf8), options: .backwards, in: result.startIndex..<end) {
                result.replaceSubrange(range, with: Data(Redaction.placeholder.utf8))
                end = range.lowerBound
            }
        }
        return result
    }
}

// MARK: - Descriptions

extension CassetteRedaction: CustomStringConvertible, CustomReflectable {
    /// The names, and the number of values, which are secrets.
    public var description: String {
        "CassetteRedaction(names: \(names.sorted()), values: \(values.count), exceptions: \(exceptions.sorted()))"
    }

    /// The names, without the values.
    public var customMirror: Mirror { .redacted(self, ["names": names, "exceptions": exceptions]) }
}
