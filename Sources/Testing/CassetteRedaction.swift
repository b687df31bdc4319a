// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewLoopback
import CurlewTransport

/// What a ``Cassette`` leaves out: the rules by which secrets are redacted before anything is written.
///
/// Redacted are, with the placeholder `<hidden>`:
/// - what `Redaction` hides: credentials, cookies, user info of URLs, marked header fields and query items;
/// - header fields, query items, items of forms, fields of multipart forms, keys of JSON objects and elements of XML whose names are usual for
///   secrets, such as `X-Api-Key`, `refreshToken`, `client_secret` or `password`; case, spaces and punctuation don't count;
/// - texts in the form of a secret, anywhere: tokens of well-known services, JSON Web Tokens, private keys in PEM;
/// - the values that are given here, anywhere, also in bodies that are not text.
///
/// A body without a secret is stored byte by byte; JSON with one is serialized again.
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
                return HTTPHeader(
                    name: header.name,
                    value: header.value.unicodeScalars.contains("=") ? url(header.value) : text(header.value.withoutUserInfo))
            })
    }

    func url(_ url: String) -> String {
        let redaction = Redaction.current
        // Without the names that are usual for secrets: they may be excepted here.
        let plain = redaction.url(url) { redaction.marks(queryItem: $0) }
        guard let start = plain.unicodeScalars.firstIndex(where: { $0 == "?" || $0 == "#" }) else { return text(plain) }
        return text(String(plain[..<start])) + items(of: String(plain[start...]))
    }

    func body(_ body: Data, type: String?) -> Data {
        guard !body.isEmpty else { return body }
        guard let whole = String(data: body, encoding: .utf8) else { return withoutValues(body) }
        let type = type?.prefixScalars { $0 != ";" }.lowercased() ?? ""
        let redacted: String
        if type == "application/x-www-form-urlencoded" {
            redacted = items(of: whole)
        } else if type == "multipart/form-data" {
            redacted = text(multipart(whole))
        } else if let json = json(body) {
            redacted = text(json)
        } else {
            redacted = text(Self.redacting(in: whole) { hidesElement($0) })
        }
        return redacted == whole ? body : Data(redacted.utf8)
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

    /// Returns JSON with the placeholder for secret values; the text itself if there are none, and `nil` if it is no JSON.
    private func json(_ body: Data) -> String? {
        guard let value = try? JSONSerialization.jsonObject(with: body, options: [.fragmentsAllowed]) else { return nil }
        var isChanged = false
        let redacted = object(value, &isChanged)
        let options: JSONSerialization.WritingOptions = [.fragmentsAllowed, .sortedKeys, .withoutEscapingSlashes]
        guard isChanged, let bytes = try? JSONSerialization.data(withJSONObject: redacted, options: options) else {
            return String(decoding: body, as: UTF8.self)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func object(_ value: Any, _ isChanged: inout Bool) -> Any {
        switch value {
        case let items as [String: Any]:
            var result: [String: Any] = [:]
            for (key, item) in items {
                guard hides(key), !(item is NSNull) else {
                    result[key] = object(item, &isChanged)
                    continue
                }
                isChanged = true
                result[key] = Redaction.placeholder
            }
            return result
        case let elements as [Any]: return elements.map { object($0, &isChanged) }
        case let string as String:
            // Its escapes would hide a secret from a search in the text.
            let redacted = string.containsScalars(of: "://") ? url(string) : text(string)
            if redacted != string { isChanged = true }
            return redacted
        default: return value
        }
    }

    /// Returns a multipart form without the contents of secret fields.
    private func multipart(_ body: String) -> String {
        var result = ""
        var rest = body[...]
        while let field = rest.firstScalarRange(of: "name=\"") {
            let name = rest[field.upperBound...].prefixScalars { $0 != "\"" }
            guard hides(name, isItem: true), let start = rest[name.endIndex...].firstScalarRange(of: "\r\n\r\n"),
                let end = rest[start.upperBound...].firstScalarRange(of: "\r\n--")
            else {
                result += rest[..<name.endIndex]
                rest = rest[name.endIndex...]
                continue
            }
            result += rest[..<start.upperBound] + Redaction.placeholder
            rest = rest[end.lowerBound...]
        }
        return result + rest
    }

    /// Whether the element is hidden by its name, or by its local name (`ns:name`).
    private func hidesElement(_ name: Substring) -> Bool { hides(name.splitScalars(separator: ":").last ?? name) }

    /// Replaces the texts of XML elements whose name a closure hides.
    private static func redacting(in text: String, _ hides: (Substring) -> Bool) -> String {
        var result = ""
        var rest = text[...]
        while let open = rest.unicodeScalars.firstIndex(of: "<") {
            let name = rest.suffix(afterScalarAt: open).prefixScalars {
                $0.properties.isAlphabetic || $0.properties.numericType != nil || "_-:.".unicodeScalars.contains($0)
            }
            guard !name.isEmpty, hides(name), let close = rest[name.endIndex...].unicodeScalars.firstIndex(of: ">"),
                let end = rest[close...].firstScalarRange(of: "</\(name)>")
            else {
                result += rest[...open]
                rest = rest.suffix(afterScalarAt: open)
                continue
            }
            result += rest[...close] + Redaction.placeholder
            rest = rest[end.lowerBound...]
        }
        return result + rest
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
