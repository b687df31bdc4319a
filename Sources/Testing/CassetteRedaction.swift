// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewLoopback
import CurlewTransport

/// What a ``Cassette`` leaves out: the rules by which secrets are redacted before anything is written.
///
/// Redacted are, with the placeholder `<hidden>`:
/// - what `Redaction` hides: credentials, cookies, user info of URLs, marked header fields and query items;
/// - header fields, query items, items of forms, fields of multipart forms, keys of JSON objects and elements of XML whose names are usual for
///   secrets, such as `X-Api-Key`, `refreshToken`, `client_secret` or `password`; case, `-` and `_` don't count;
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

    /// Names that are secret everywhere.
    private static let usualNames: Set<String> = Set(
        [
            "authorization", "proxy-authorization", "cookie", "set-cookie", "authentication-info", "proxy-authentication-info", "api-key",
            "x-api-key", "x-auth-token", "x-access-token", "x-refresh-token", "x-session-token", "x-session-id", "x-csrf-token",
            "x-xsrf-token", "x-amz-security-token", "x-amz-signature", "x-amz-credential", "x-goog-api-key", "x-goog-signature",
            "x-goog-credential", "x-vault-token", "private-token", "job-token", "x-gitlab-token", "x-shopify-access-token",
            "x-functions-key", "ocp-apim-subscription-key", "subscription-key", "x-hub-signature", "x-hub-signature-256",
            "x-twilio-signature", "x-slack-signature", "x-forwarded-access-token", "x-ms-token-aad-access-token", "dpop", "access-token",
            "refresh-token", "id-token", "auth-token", "session-token", "device-code", "client-secret", "client-assertion", "assertion",
            "secret", "secret-key", "secret-access-key", "access-key", "password", "passwd", "pwd", "passphrase", "new-password",
            "old-password", "otp", "code-verifier", "session-id", "csrf-token", "signature", "private-key", "credential", "credentials",
            "jwt", "bearer", "token",
        ].map { normalized($0) })

    /// Names that are secret in queries and forms, and too usual elsewhere.
    private static let itemNames: Set<String> = Set(["key", "sig", "code", "auth", "sid", "pin", "session", "state", "nonce", "user-code"])

    private static func normalized(_ name: some StringProtocol) -> String { name.lowercased().filter { $0 != "-" && $0 != "_" } }

    private func hides(_ name: some StringProtocol, isItem: Bool = false) -> Bool {
        let plain = Self.normalized(name)
        if exceptions.contains(where: { Self.normalized($0) == plain }) { return false }
        if names.contains(where: { Self.normalized($0) == plain }) { return true }
        return Self.usualNames.contains(plain) || isItem && Self.itemNames.contains(plain)
    }

    // MARK: Parts of an exchange

    func headers(_ headers: HTTPHeaders) -> HTTPHeaders {
        let redaction = Redaction.current
        return HTTPHeaders(
            headers.map { header in
                guard !hides(header.name), !redaction.hides(header: header.name) else {
                    return HTTPHeader(name: header.name, value: Redaction.placeholder)
                }
                // A value may be a URL, as in Location and Referer.
                return HTTPHeader(
                    name: header.name, value: header.value.contains("=") ? url(header.value) : text(header.value.withoutUserInfo))
            })
    }

    func url(_ url: String) -> String {
        let plain = Redaction.current.url(url)
        guard let start = plain.firstIndex(where: { $0 == "?" || $0 == "#" }) else { return text(plain) }
        return text(String(plain[..<start])) + items(of: String(plain[start...]))
    }

    func body(_ body: Data, type: String?) -> Data {
        guard !body.isEmpty else { return body }
        guard let whole = String(data: body, encoding: .utf8) else { return withoutValues(body) }
        let type = type?.prefix { $0 != ";" }.lowercased() ?? ""
        let redacted: String
        if type == "application/x-www-form-urlencoded" {
            redacted = items(of: whole)
        } else if type == "multipart/form-data" {
            redacted = text(multipart(whole))
        } else if let json = json(body) {
            redacted = text(json)
        } else {
            redacted = text(Self.replacing(in: whole) { hidesElement($0) })
        }
        return redacted == whole ? body : Data(redacted.utf8)
    }

    /// Returns the text without values, and without what has the form of a secret.
    func text(_ text: String) -> String {
        var result = text
        for value in values where !value.isEmpty { result = result.replacing(value, with: Redaction.placeholder) }
        return SecretForms.replacing(in: result, with: Redaction.placeholder)
    }

    // MARK: Kinds of bodies

    /// Returns a query or a form without the values of secret items.
    private func items(of query: String) -> String {
        var result = ""
        var rest = query[...]
        while !rest.isEmpty {
            let item = rest.prefix { !"?&#;".contains($0) }
            rest = rest[item.endIndex...]
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 {
                let name = String(parts[0]).removingPercentEncoding ?? String(parts[0])
                let value = String(parts[1])
                if hides(name.prefix { $0 != "[" }, isItem: true) {
                    result += "\(parts[0])=\(value.isEmpty ? "" : Redaction.placeholder)"
                } else {
                    // A value may be a secret, or a URL with one, under its percent-encoding.
                    let decoded = value.replacing("+", with: " ").removingPercentEncoding ?? value
                    result += "\(parts[0])=\(hasSecret(decoded) ? Redaction.placeholder : text(value))"
                }
            } else {
                result += text(String(item))
            }
            if let separator = rest.popFirst() { result.append(separator) }
        }
        return result
    }

    private func hasSecret(_ text: String) -> Bool {
        text != self.text(text) || text.contains("://") && url(text) != text
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
            let redacted = string.contains("://") ? url(string) : text(string)
            if redacted != string { isChanged = true }
            return redacted
        default: return value
        }
    }

    /// Returns a multipart form without the contents of secret fields.
    private func multipart(_ body: String) -> String {
        var result = ""
        var rest = body[...]
        while let field = rest.firstRange(of: "name=\"") {
            let name = rest[field.upperBound...].prefix { $0 != "\"" }
            guard hides(name, isItem: true), let start = rest[name.endIndex...].firstRange(of: "\r\n\r\n"),
                let end = rest[start.upperBound...].firstRange(of: "\r\n--")
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
    private func hidesElement(_ name: Substring) -> Bool { hides(name.split(separator: ":").last ?? name) }

    /// Replaces the texts of XML elements whose name a closure hides.
    private static func replacing(in text: String, _ hides: (Substring) -> Bool) -> String {
        var result = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "<") {
            let name = rest[rest.index(after: open)...].prefix { $0.isLetter || $0.isNumber || "_-:.".contains($0) }
            guard !name.isEmpty, hides(name), let close = rest[name.endIndex...].firstIndex(of: ">"),
                let end = rest[close...].firstRange(of: "</\(name)>")
            else {
                result += rest[...open]
                rest = rest[rest.index(after: open)...]
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

/// Texts that are secrets by their form.
enum SecretForms {
    /// Replaces them. Regular expressions are not `Sendable`, so they are made for each text.
    static func replacing(in text: String, with placeholder: String) -> String {
        guard text.utf8.count >= 16 else { return text }
        var result = text
        // The prefix is looked for first, because that is faster than an expression.
        if result.contains("eyJ") { result.replace(#/eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{4,}(\.[A-Za-z0-9_\-]*)*/#, with: placeholder) }
        if result.contains("AKIA") || result.contains("ASIA") { result.replace(#/(AKIA|ASIA)[A-Z0-9]{16}/#, with: placeholder) }
        if result.contains("gh") { result.replace(#/gh[pousr]_[A-Za-z0-9]{20,}/#, with: placeholder) }
        if result.contains("github_pat_") { result.replace(#/github_pat_[A-Za-z0-9_]{20,}/#, with: placeholder) }
        if result.contains("glpat-") { result.replace(#/glpat-[A-Za-z0-9_\-]{16,}/#, with: placeholder) }
        if result.contains("xox") { result.replace(#/xox[abeoprs]-[A-Za-z0-9\-]{10,}/#, with: placeholder) }
        if result.contains("k_") { result.replace(#/[sr]k_(live|test)_[A-Za-z0-9]{10,}/#, with: placeholder) }
        if result.contains("AIza") { result.replace(#/AIza[A-Za-z0-9_\-]{30,}/#, with: placeholder) }
        if result.contains("ya29.") { result.replace(#/ya29\.[A-Za-z0-9_\-]{10,}/#, with: placeholder) }
        if result.contains("npm_") { result.replace(#/npm_[A-Za-z0-9]{30,}/#, with: placeholder) }
        if result.contains("pypi-") { result.replace(#/pypi-[A-Za-z0-9_\-]{16,}/#, with: placeholder) }
        if result.contains("sk-") { result.replace(#/sk-[A-Za-z0-9_\-]{20,}/#, with: placeholder) }
        if result.contains("SG.") { result.replace(#/SG\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}/#, with: placeholder) }
        if result.contains("hooks.slack.com") { result.replace(#/hooks\.slack\.com\/services\/[A-Za-z0-9\/]+/#, with: placeholder) }
        if result.contains("earer ") { result.replace(#/[Bb]earer [A-Za-z0-9._~+\/=\-]{6,}/#, with: placeholder) }
        if result.contains("asic ") { result.replace(#/[Bb]asic [A-Za-z0-9+\/]{8,}=*/#, with: placeholder) }
        if result.contains("PRIVATE KEY") {
            result.replace(#/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/#, with: placeholder)
        }
        return result
    }
}
