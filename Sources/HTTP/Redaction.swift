// SPDX-License-Identifier: Apache-2.0

/// Which values are secret, and so left out of descriptions, error messages, logs and reflection.
///
/// The values of `Authorization`, `Proxy-Authorization`, `Cookie` and `Set-Cookie`, user names and passwords in URLs, and the query item
/// `access_token` (RFC 6750, section 2.3) are always secret; a redaction marks more by their names. An error or a header field does not
/// know its session, so what one configuration marks is left out of all texts of the process: it is part of ``current`` from then on.
///
/// Properties keep their values; only texts are redacted.
public struct Redaction: Sendable, Hashable {
    /// What is shown in place of a secret: `<hidden>`.
    public static let placeholder = "<hidden>"

    private static let standardHeaders = ["authorization", "proxy-authorization", "cookie", "set-cookie"]
    private static let standardQueryItems = ["access_token"]
    private static let marks = Lock(Redaction())

    /// The names of header fields whose values are secret, without regard to case; none by default.
    public var headers: Set<String>
    /// The names of items of queries, fragments and forms whose values are secret; none by default.
    ///
    /// Without regard to case and percent-encoding. A name counts for the elements of an array of that name too: `key` for `key[]`.
    public var queryItems: Set<String>

    /// Makes a redaction that marks these names beside those that are always secret.
    public init(headers: Set<String> = [], queryItems: Set<String> = []) {
        self.headers = headers
        self.queryItems = queryItems
    }

    /// What the configurations of this process have marked so far. Any thread.
    public static var current: Redaction { marks.withLock { $0 } }

    /// Adds the marks to ``current``.
    package func register() {
        guard self != Redaction() else { return }
        Self.marks.withLock { $0 = $0.union(self) }
    }

    /// The marks of both.
    func union(_ other: Redaction) -> Redaction {
        Redaction(headers: headers.union(other.headers), queryItems: queryItems.union(other.queryItems))
    }

    /// Whether the values of that header field are secret.
    public func hides(header name: String) -> Bool {
        Self.standardHeaders.contains { $0.equalsIgnoringASCIICase(name) } || headers.contains { $0.equalsIgnoringASCIICase(name) }
    }

    /// Whether the values of the items of that name are secret; the name as it stands in a URL, or decoded.
    public func hides(queryItem name: String) -> Bool {
        let decoded = Self.decoded(name)
        return [name, decoded, String(decoded.prefix { $0 != "[" })].contains { name in
            Self.standardQueryItems.contains { $0.equalsIgnoringASCIICase(name) }
                || queryItems.contains { $0.equalsIgnoringASCIICase(name) }
        }
    }
}

// MARK: - Texts

extension Redaction {
    /// The URL without user name and password, and with the placeholder for the values of secret items.
    ///
    /// Takes any text, also one that is no URL or has one in it: a secret item ends at the next `&` or `#`, or with the text.
    public func url(_ text: String) -> String { hidingItems(text.withoutUserInfo, isInQuery: false) }

    /// The form (`application/x-www-form-urlencoded`) with the placeholder for the values of secret items.
    public func form(_ text: String) -> String { hidingItems(text, isInQuery: true) }

    /// The header field's value, or the placeholder if it is secret; URLs in it as by ``url(_:)``, control characters escaped.
    public func value(of header: HTTPHeader) -> String {
        hides(header: header.name) ? Self.placeholder : Self.escaped(url(header.value))
    }

    /// The header field as a line, its value as by ``value(of:)``.
    public func line(_ header: HTTPHeader) -> String { "\(Self.escaped(header.name)): \(value(of: header))" }

    /// What JSON and parameters are made of, with the placeholder for the values of secret items in its dictionaries.
    package func object(_ object: Any) -> Any {
        switch object {
        case let items as [String: Any]:
            Dictionary(uniqueKeysWithValues: items.map { ($0, hides(queryItem: $0) ? Self.placeholder : self.object($1)) })
        case let elements as [Any]: elements.map { self.object($0) }
        default: object
        }
    }

    private func hidingItems(_ text: String, isInQuery: Bool) -> String {
        let bytes = text.utf8
        guard bytes.contains(UInt8(ascii: "=")) else { return text }
        var result = ""
        var copied = text.startIndex
        var position = isInQuery ? text.startIndex : Self.afterSeparator(in: text, from: text.startIndex)
        while let start = position {
            let nameEnd = bytes[start...].firstIndex { $0 == UInt8(ascii: "=") || Self.isSeparator($0) } ?? text.endIndex
            var end = nameEnd
            if nameEnd < text.endIndex, bytes[nameEnd] == UInt8(ascii: "="), hides(queryItem: String(text[start..<nameEnd])) {
                let valueStart = text.index(after: nameEnd)
                end = bytes[valueStart...].firstIndex { $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: "#") } ?? text.endIndex
                result += text[copied..<valueStart] + (valueStart < end ? Self.placeholder : "")
                copied = end
            }
            position = Self.afterSeparator(in: text, from: end)
        }
        return result + text[copied...]
    }

    /// A name of a query without its percent-encoding; what is no escape stays as it is.
    private static func decoded(_ name: String) -> String {
        var rest = Array(name.utf8)[...]
        var bytes: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2, let escaped = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) {
                bytes.append(escaped)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func afterSeparator(in text: String, from start: String.Index) -> String.Index? {
        text.utf8[start...].firstIndex(where: isSeparator).map { text.utf8.index(after: $0) }
    }

    /// Whether an item may begin behind the byte. Semicolons have separated items in older forms.
    private static func isSeparator(_ byte: UInt8) -> Bool { "?&#;".utf8.contains(byte) }
}

// MARK: - Control characters

extension Redaction {
    /// The text with control characters escaped as in Swift's literals, so that it stays in its line and steers no terminal.
    ///
    /// These are C0, DEL and C1, the line and paragraph separators, and the controls of bidirectional text, by which one text looks like
    /// another. For what peers have sent: a reason, a field's value. Backslashes stay as they are.
    public static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: \.isControlInText) else { return text }
        return text.unicodeScalars.map { $0.isControlInText ? $0.escapeSequence : String($0) }.joined()
    }
}

extension Unicode.Scalar {
    /// Whether the character may break a line of a log, steer a terminal, or change the order in which others are shown.
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
    /// The text without what stands between `//` and `@` in the authorities of its URLs (RFC 3986, section 3.2.1): it may be a password.
    package var withoutUserInfo: String {
        var result = ""
        var rest = self[...]
        while let slashes = rest.firstRange(of: "//") {
            result += rest[..<slashes.upperBound]
            rest = rest[slashes.upperBound...]
            // Elsewhere two slashes are part of a path.
            guard result == "//" || result.hasSuffix("://") else { continue }
            let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
            if let at = authority.lastIndex(of: "@") { rest = rest[rest.index(after: at)...] }
        }
        return result + rest
    }

    /// The text as by ``Redaction/url(_:)`` with all that is marked, and with control characters escaped.
    package var redactedURL: String { Redaction.escaped(Redaction.current.url(self)) }
}

// MARK: - Reflection

extension Mirror {
    /// What may be seen of a value that holds secrets: the given children only, for subclasses too.
    package static func redacted<Subject>(_ subject: Subject, _ children: KeyValuePairs<String, Any> = [:]) -> Mirror {
        Mirror(
            subject, children: children.map { (label: $0.key, value: $0.value) },
            displayStyle: Swift.type(of: subject as Any) is AnyClass ? .class : .struct, ancestorRepresentation: .suppressed)
    }
}
