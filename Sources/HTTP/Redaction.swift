// SPDX-License-Identifier: Apache-2.0

/// The values that are secret, and therefore redacted in descriptions, error messages, logs and reflection.
///
/// Always secret are the values of `Authorization`, `Proxy-Authorization`, `Cookie` and `Set-Cookie`, user names and passwords in URLs, the
/// query item `access_token` (RFC 6750, section 2.3), and header fields, items and members of JSON whose names are usual for secrets, such
/// as `X-Api-Key`, `refresh_token`, `client_secret`, `password` or `X-Amz-Signature`, and in queries and forms `key` and `code`; in header
/// fields also tokens of well-known services, which have a form of their own. A redaction marks more by their names. Because an error or a
/// header field doesn't know its session, the marks of a configuration apply to all texts of the process: they are part of ``current`` from
/// then on.
///
/// Properties keep their values; only texts are redacted. All of them use this type, so that what is secret is decided in one place.
/// Reflection (`Mirror`, `dump`) shows selected parts in redacted form, and never the state behind a lock.
public struct Redaction: Sendable, Hashable {
    /// The text that replaces a secret: `<hidden>`.
    package static let placeholder = "<hidden>"

    private static let standardHeaders = ["authorization", "proxy-authorization", "cookie", "set-cookie"]
    private static let standardQueryItems = ["access_token"]
    private static let marks = Lock(Redaction())

    /// The names of header fields whose values are secret, compared case-insensitively; none by default.
    public var headers: Set<String>
    /// The names of items in queries, fragments and forms whose values are secret; none by default.
    ///
    /// Compared case-insensitively and after percent-decoding. A name also matches the elements of an array or an object of that name, and
    /// the element of that name of another: `key` matches `key[]`, `key[a]` and `a[key]`.
    public var queryItems: Set<String>

    /// Creates a redaction that marks these names in addition to those that are always secret.
    public init(headers: Set<String> = [], queryItems: Set<String> = []) {
        self.headers = headers
        self.queryItems = queryItems
    }

    /// The marks of all configurations of this process so far. Thread-safe.
    public static var current: Redaction { marks.withLock { $0 } }

    /// Adds the marks to ``current``.
    package func register() {
        guard self != Redaction() else { return }
        Self.marks.withLock { $0 = $0.union(self) }
    }

    /// Returns the marks of both.
    func union(_ other: Redaction) -> Redaction {
        Redaction(headers: headers.union(other.headers), queryItems: queryItems.union(other.queryItems))
    }

    /// Whether the values of the header field are secret.
    package func hides(header name: String) -> Bool { marks(header: name) || UsualSecrets.contains(name) }

    /// Whether the values of items of that name are secret; the name may be percent-encoded, and one of several in brackets.
    package func hides(queryItem name: String) -> Bool {
        marks(queryItem: name) || Self.components(of: name).contains { UsualSecrets.contains(item: $0) }
    }

    /// Whether the values of members of JSON with that name are secret: those of items, but for names that are usual for other things.
    func hides(member name: String) -> Bool { marks(queryItem: name) || UsualSecrets.contains(name) }

    /// Whether the header field is marked, or always secret, apart from what is usual.
    package func marks(header name: String) -> Bool {
        Self.standardHeaders.contains { $0.equalsIgnoringASCIICase(name) } || headers.contains { $0.equalsIgnoringASCIICase(name) }
    }

    /// Whether items of that name are marked, or always secret, apart from what is usual; the name may be percent-encoded.
    package func marks(queryItem name: String) -> Bool {
        let decoded = Self.decoded(name)
        return ([name, decoded] + Self.components(of: decoded)).contains { name in
            Self.standardQueryItems.contains { $0.equalsIgnoringASCIICase(name) }
                || queryItems.contains { $0.equalsIgnoringASCIICase(name) }
        }
    }

    /// The names in the name of an item: `user` and `password` of `user[password]`.
    package static func components(of name: String) -> [String] {
        decoded(name).splitScalars { $0 == "[" || $0 == "]" }.map { String($0) }
    }
}

// MARK: - Texts

extension Redaction {
    /// Returns the URL without user name and password, and with the placeholder for the values of secret items.
    ///
    /// Accepts any text, including text that is not a URL or contains one: a secret item ends at the next `&` or `#`, or at the end of the
    /// text. An item with a URL that has a secret is one, and so is a token of a well-known service anywhere.
    public func url(_ text: String) -> String { UsualSecrets.replacingForms(in: url(text) { hides(queryItem: $0) }) }

    /// Returns the URL as by ``url(_:)``, where a closure decides whether items of a name are secret.
    package func url(_ text: String, hides: (String) -> Bool) -> String {
        hidingItems(text.withoutUserInfo, isInQuery: false, depth: 0, hides)
    }

    /// Returns the form (`application/x-www-form-urlencoded`) with the placeholder for the values of secret items.
    public func form(_ text: String) -> String { hidingItems(text, isInQuery: true, depth: 0) { hides(queryItem: $0) } }

    /// Returns the header field's value, or the placeholder if it is secret; URLs in it are redacted as by ``url(_:)``, tokens of well-known
    /// services replaced, control characters escaped.
    public func value(of header: HTTPHeader) -> String {
        hides(header: header.name) ? Self.placeholder : Self.escaped(url(header.value))
    }

    /// Returns the header field as a line, its value redacted as by ``value(of:)``.
    package func line(_ header: HTTPHeader) -> String { "\(Self.escaped(header.name)): \(value(of: header))" }

    /// Returns parameters, or JSON, with the placeholder for the values of secret items in their dictionaries, and without the secrets in
    /// texts; of a value whose parts have no known names, such as an `Encodable` one, the name of its type.
    package func object(_ object: Any) -> Any {
        switch object {
        case let items as [String: Any]:
            Dictionary(uniqueKeysWithValues: items.map { ($0, hides(queryItem: $0) ? Self.placeholder : self.object($1)) })
        case let elements as [Any]: elements.map { self.object($0) }
        case let text as String: url(body(text))
        case let link as URL: url(link.absoluteString)
        case is any Numeric, is Bool, is Date: object
        default: "<\(type(of: object))>"
        }
    }

    private func hidingItems(_ text: String, isInQuery: Bool, depth: Int, _ hides: (String) -> Bool) -> String {
        let bytes = text.utf8
        guard bytes.contains(UInt8(ascii: "=")) else { return text }
        var result = ""
        var copied = text.startIndex
        var position = isInQuery ? text.startIndex : Self.afterSeparator(in: text, from: text.startIndex)
        while let start = position {
            let nameEnd = bytes[start...].firstIndex { $0 == UInt8(ascii: "=") || Self.isSeparator($0) } ?? text.endIndex
            var end = nameEnd
            if nameEnd < text.endIndex, bytes[nameEnd] == UInt8(ascii: "=") {
                let valueStart = bytes.index(after: nameEnd)
                // A URL in a value is looked for only up to the next item, so that no byte is decoded as a part of two values.
                let next = bytes[valueStart...].firstIndex(where: Self.isSeparator) ?? text.endIndex
                if hides(String(text[start..<nameEnd])) {
                    end = bytes[next...].firstIndex { $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: "#") } ?? text.endIndex
                } else {
                    end = hasSecret(text[valueStart..<next], depth: depth, hides) ? next : nameEnd
                }
                if end > nameEnd {
                    result += text[copied..<valueStart] + (valueStart < end ? Self.placeholder : "")
                    copied = end
                }
            }
            position = Self.afterSeparator(in: text, from: end)
        }
        return result + text[copied...]
    }

    /// Whether the value of an item is a percent-encoded URL with a secret, or contains one; it may be encoded up to three times.
    private func hasSecret(_ value: Substring, depth: Int, _ hides: (String) -> Bool) -> Bool {
        var text = String(value)
        for depth in depth..<3 where text.utf8.contains(UInt8(ascii: "%")) {
            text = Self.decoded(text)
            if hidingItems(text.withoutUserInfo, isInQuery: false, depth: depth + 1, hides) != text { return true }
        }
        return false
    }

    /// Percent-decodes the name of an item; invalid escapes are kept.
    private static func decoded(_ name: String) -> String { String(decoding: name.utf8.formDecoded, as: UTF8.self) }

    private static func afterSeparator(in text: String, from start: String.Index) -> String.Index? {
        text.utf8[start...].firstIndex(where: isSeparator).map { text.utf8.index(after: $0) }
    }

    /// Whether an item may begin after the byte. Semicolons separate items in an older format.
    private static func isSeparator(_ byte: UInt8) -> Bool { "?&#;".utf8.contains(byte) }
}

// MARK: - Control characters

extension Redaction {
    /// Returns the text with control characters escaped as in Swift's literals, so that it stays on one line and can't control a terminal.
    ///
    /// These are C0, DEL and C1, the line and paragraph separators, and the controls of bidirectional text, by which one text can imitate
    /// another. For texts of peers: a reason, a field's value. Backslashes are kept.
    package static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: \.isControlInText) else { return text }
        return text.unicodeScalars.map { $0.isControlInText ? $0.escapeSequence : String($0) }.joined()
    }
}

extension Unicode.Scalar {
    /// Whether the character may break a line of a log, control a terminal, or change the order in which others are displayed.
    package var isControlInText: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    fileprivate var escapeSequence: String {
        switch self {
        case "\n": #"\n"#
        case "\r": #"\r"#
        case "\t": #"\t"#
        default: #"\u{"# + String(value, radix: 16, uppercase: true) + "}"
        }
    }
}

// MARK: - User info

extension String {
    /// The text without the user info between `//` and `@` in the authorities of its URLs (RFC 3986, section 3.2.1), which may contain a
    /// password.
    package var withoutUserInfo: String {
        let (slash, at) = (UInt8(ascii: "/"), UInt8(ascii: "@"))
        guard utf8.contains(at) else { return self }
        let bytes = Array(utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            result.append(bytes[index])
            index += 1
            let count = result.count
            // Elsewhere than at the beginning and after a scheme, two slashes are part of a path.
            guard count >= 2, result[count - 1] == slash, result[count - 2] == slash,
                count == 2 || result[count - 3] == UInt8(ascii: ":")
            else { continue }
            // Programs skip further slashes, but in the URL of a file.
            while index < bytes.count, bytes[index] == slash, !Self.isFileScheme(result.dropLast(3).suffix(5)) {
                result.append(slash)
                index += 1
            }
            while let end = Self.endOfUserInfo(bytes[index...]) { index = end + 1 }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The position of the `@` after the user info at the beginning of an authority; `nil` without.
    private static func endOfUserInfo(_ bytes: ArraySlice<UInt8>) -> Int? {
        let at = UInt8(ascii: "@")
        let authority = bytes.prefix { !"/?#".utf8.contains($0) }
        if let end = authority.lastIndex(of: at) { return end }
        // A password with one of these makes no URL: what is then at the place of a port is none.
        let port = authority.drop { $0 != UInt8(ascii: ":") }.dropFirst()
        guard authority.first != UInt8(ascii: "["), !port.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        let word = bytes.prefix(1024).prefix { $0 > 0x20 && !"\"'<>\\".utf8.contains($0) }
        return word.count > authority.count ? word.lastIndex(of: at) : nil
    }

    /// Whether the last five bytes before a colon are those of the scheme of files, and not of another one that ends so.
    private static func isFileScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard bytes.suffix(4).elementsEqual("file".utf8), bytes.count == 5, let before = bytes.first else {
            return bytes.elementsEqual("file".utf8)
        }
        let isLetter = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(before | 0x20)
        return !isLetter && !"0123456789+-.".utf8.contains(before)
    }

    /// The text redacted as by ``Redaction/url(_:)`` with all current marks, and with control characters escaped.
    package var redactedURL: String { Redaction.escaped(Redaction.current.url(self)) }
}

// MARK: - Reflection

extension Mirror {
    /// A mirror for a value with secrets: it has the given children only, also for subclasses.
    package static func redacted<Subject>(_ subject: Subject, _ children: KeyValuePairs<String, Any> = [:]) -> Mirror {
        Mirror(
            subject, children: children.map { (label: $0.key, value: $0.value) },
            displayStyle: Swift.type(of: subject as Any) is AnyClass ? .class : .struct, ancestorRepresentation: .suppressed)
    }
}
