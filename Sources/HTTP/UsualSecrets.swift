// SPDX-License-Identifier: Apache-2.0

/// What is usual for secrets: the names of fields and items, and the forms of tokens.
package enum UsualSecrets {
    /// Whether the values of header fields, keys of JSON and elements of XML with that name are usually secret. Case, spaces and punctuation
    /// don't count, nor does a number at the end.
    package static func contains(_ name: some StringProtocol) -> Bool {
        let whole = normalized(name)
        guard !names.contains(whole) else { return true }
        let digits = whole.utf8.reversed().prefix { $0.isASCIIDigit }.count
        let plain = String(whole.dropLastScalars(digits))
        guard !names.contains(plain) else { return true }
        return endings.contains { plain.hasByteSuffix($0) } && !positions.contains { plain.hasByteSuffix($0) }
    }

    /// Whether the values of items of queries and forms with that name are usually secret: also those of names that are too usual elsewhere.
    package static func contains(item name: some StringProtocol) -> Bool { itemNames.contains(normalized(name)) || contains(name) }

    /// Names that are usual for secrets, but for those with one of the endings.
    private static let names: Set<String> = Set(
        [
            "cookie", "set-cookie", "authentication", "authentication-info", "proxy-authentication-info", "auth", "x-auth", "x-api-auth",
            "x-user-auth", "x-sentry-auth", "x-zumo-auth", "x-tableau-auth", "fastly-key", "x-session-id", "session-id", "x-functions-key",
            "x-hub-signature-256", "x-honeycomb-team", "x-amzn-oidc-data", "x-ms-client-principal", "cf-access-client-id", "cb-access-sign",
            "aws-access-key-id", "x-access-key-id", "access-key-id",
            "dpop", "device-code", "assertion", "client-assertion", "code-verifier", "otp", "pass", "pwd", "x-pwd", "passcode", "jwt",
            "bearer", "sig", "x-jwt", "x-session", "impersonate-user", "impersonate-uid", "jsessionid", "phpsessid", "id-token-hint",
            "saml-response", "oauth-verifier", "totp", "password-confirmation", "password-confirm", "password-repeat",
        ].map { normalized($0) })

    /// Endings of names that are usual for secrets: `X-RapidAPI-Key`, `client_secret`, `secret_token`, `DD-APPLICATION-KEY`.
    private static let endings = [
        "authorization", "apikey", "secret", "token", "password", "passwd", "passphrase", "secretkey", "accesskey", "privatekey", "authkey",
        "applicationkey", "appkey", "subscriptionkey", "encryptionkey", "customerkey", "signature", "credential", "credentials",
        "jwtassertion", "masterkey", "sessionkey",
    ]

    /// Endings of names that have one of these endings, but whose values are places in a list.
    private static let positions = ["pagetoken", "nexttoken", "continuationtoken", "synctoken", "cursortoken", "paginationtoken"]

    /// Names of items that are usual for secrets, and elsewhere for other things.
    private static let itemNames: Set<String> = ["key", "code", "sid", "pin", "session", "usercode", "ticket", "hmac"]

    /// Returns the name in the form in which names are compared: in lower case, without `-`, `_`, `.`, `+` and spaces.
    package static func normalized(_ name: some StringProtocol) -> String {
        String(decoding: name.utf8.lazy.filter { !"-_.+ ".utf8.contains($0) }.map { $0.asciiLowercased }, as: UTF8.self)
    }

    /// Returns the text with the placeholder for what has the form of a secret: tokens of well-known services, JSON Web Tokens, credentials
    /// of HTTP authentication, private keys in PEM.
    package static func replacingForms(in text: String) -> String {
        // Regular expressions are not `Sendable`, so they are made for each text.
        guard text.utf8.count >= 16, mayHaveForm(text) else { return text }
        var result = text.containsScalars(of: "eyJ") ? replacingWebTokens(in: text) : text
        // The prefix is looked for first, because that is faster than an expression.
        if result.containsScalars(of: "AKIA") || result.containsScalars(of: "ASIA") {
            result.replace(#/(AKIA|ASIA)[A-Z0-9]{16}/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if result.containsScalars(of: "gh") {
            result.replace(#/gh[pousr]_[A-Za-z0-9]{20,}/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if result.containsScalars(of: "github_pat_") {
            result.replace(#/github_pat_[A-Za-z0-9_]{20,}/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if result.containsScalars(of: "glpat-") {
            result.replace(#/glpat-[A-Za-z0-9_\-]{16,}/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if result.containsScalars(of: "xox") {
            result.replace(#/xox[abeoprs]-[A-Za-z0-9\-]{10,}/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if result.containsScalars(of: "k_") {
            result.replace(#/[sr]k_(live|test)_[A-Za-z0-9]{10,}/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if result.containsScalars(of: "AIza") {
            result.replace(#/AIza[A-Za-z0-9_\-]{30,}/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if result.containsScalars(of: "ya29.") {
            result.replace(#/ya29\.[A-Za-z0-9_\-]{10,}/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if result.containsScalars(of: "npm_") {
            result.replace(#/npm_[A-Za-z0-9]{30,}/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if result.containsScalars(of: "pypi-") {
            result.replace(#/pypi-[A-Za-z0-9_\-]{16,}/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if result.containsScalars(of: "sk-") {
            result.replace(#/sk-[A-Za-z0-9_\-]{20,}/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if result.containsScalars(of: "SG.") {
            result.replace(#/SG\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if result.containsScalars(of: "hooks.slack.com") {
            result.replace(#/hooks\.slack\.com\/services\/[A-Za-z0-9\/]+/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if ["earer", "EARER"].contains(where: { result.containsScalars(of: $0) }) {
            result.replace(
                #/[Bb](earer|EARER)[ \t]+[A-Za-z0-9._~+\/=\-]{6,}/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if ["asic", "ASIC"].contains(where: { result.containsScalars(of: $0) }) {
            result.replace(#/[Bb](asic|ASIC)[ \t]+[A-Za-z0-9+\/]{8,}=*/#.matchingSemantics(.unicodeScalar), with: Redaction.placeholder)
        }
        if result.containsScalars(of: "PRIVATE KEY") {
            result.replace(
                #/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/#.matchingSemantics(.unicodeScalar),
                with: Redaction.placeholder)
        }
        return result
    }

    /// Whether one of the prefixes is in the text: one pass over its bytes, because nearly all texts have none.
    private static func mayHaveForm(_ text: String) -> Bool {
        var last: UInt32 = 0
        for byte in text.utf8 {
            last = last << 8 | UInt32(byte)
            if prefixes.contains(last & 0xFF_FFFF) { return true }
        }
        return false
    }

    /// Three bytes of each form.
    private static let prefixes: Set<UInt32> = Set(
        [
            "eyJ", "AKI", "ASI", "ghp", "gho", "ghu", "ghs", "ghr", "git", "glp", "xox", "sk_", "rk_", "AIz", "ya2", "npm", "pyp", "sk-",
            "SG.",
            "sla", "are", "ARE", "asi", "PRI",
        ].map { $0.utf8.reduce(0) { $0 << 8 | UInt32($1) } })

    /// Replaces JSON Web Tokens (RFC 7519): parts in base64url with dots between them, of which the first begins with the beginning of a JSON
    /// object. Not by a regular expression, which takes quadratic time for a text of beginnings without a dot.
    private static func replacingWebTokens(in text: String) -> String {
        var result = ""
        var rest = text[...]
        while !rest.isEmpty {
            let run = rest.prefixScalars {
                $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0) || "-_.".unicodeScalars.contains($0))
            }
            if run.isEmpty {
                let other = rest.unicodeScalars.removeFirst()
                result.unicodeScalars.append(other)
                continue
            }
            rest = rest[run.endIndex...]
            let parts = run.splitScalars(separator: ".", omittingEmptySubsequences: false)
            let start = parts.indices.dropLast().lazy.compactMap { index -> Substring.Index? in
                guard parts[index + 1].utf8.count >= 4, let begin = parts[index].firstScalarRange(of: "eyJ")?.lowerBound else { return nil }
                return parts[index][begin...].utf8.count >= 11 ? begin : nil
            }.first
            result += start.map { run[..<$0] + Redaction.placeholder } ?? run
        }
        return result
    }
}
