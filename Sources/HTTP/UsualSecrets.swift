// SPDX-License-Identifier: Apache-2.0

/// What is usual for secrets: the names of fields and items, and the forms of tokens.
package enum UsualSecrets {
    /// Names of header fields, items of queries and forms, keys of JSON and elements of XML, as ``normalized(_:)`` returns them.
    package static let names: Set<String> = Set(
        [
            "authorization", "proxy-authorization", "cookie", "set-cookie", "authentication-info", "proxy-authentication-info", "api-key",
            "x-api-key", "x-auth-token", "x-access-token", "x-refresh-token", "x-session-token", "x-session-id", "x-csrf-token",
            "x-xsrf-token", "x-amz-security-token", "x-amz-signature", "x-amz-credential", "x-goog-api-key", "x-goog-signature",
            "x-goog-credential", "x-vault-token", "private-token", "job-token", "x-gitlab-token", "x-shopify-access-token",
            "x-functions-key", "ocp-apim-subscription-key", "subscription-key", "x-hub-signature", "x-hub-signature-256",
            "x-twilio-signature", "x-slack-signature", "x-forwarded-access-token", "x-ms-token-aad-access-token", "dpop", "access-token",
            "refresh-token", "id-token", "auth-token", "session-token", "device-code", "client-secret", "client-assertion", "assertion",
            "secret", "secret-key", "secret-access-key", "access-key", "aws-access-key-id", "password", "passwd", "pwd", "passphrase",
            "new-password", "old-password", "otp", "code-verifier", "session-id", "csrf-token", "signature", "private-key", "credential",
            "credentials", "jwt", "bearer", "token", "sig",
        ].map { normalized($0) })

    /// Returns the name in the form in which names are compared: case, hyphens and underscores don't count.
    package static func normalized(_ name: some StringProtocol) -> String { name.lowercased().filter { $0 != "-" && $0 != "_" } }

    /// Returns the text with the placeholder for what has the form of a secret: tokens of well-known services, JSON Web Tokens, credentials
    /// of HTTP authentication, private keys in PEM.
    package static func replacingForms(in text: String) -> String {
        // Regular expressions are not `Sendable`, so they are made for each text.
        guard text.utf8.count >= 16, mayHaveForm(text) else { return text }
        var result = text.contains("eyJ") ? replacingWebTokens(in: text) : text
        // The prefix is looked for first, because that is faster than an expression.
        if result.contains("AKIA") || result.contains("ASIA") { result.replace(#/(AKIA|ASIA)[A-Z0-9]{16}/#, with: Redaction.placeholder) }
        if result.contains("gh") { result.replace(#/gh[pousr]_[A-Za-z0-9]{20,}/#, with: Redaction.placeholder) }
        if result.contains("github_pat_") { result.replace(#/github_pat_[A-Za-z0-9_]{20,}/#, with: Redaction.placeholder) }
        if result.contains("glpat-") { result.replace(#/glpat-[A-Za-z0-9_\-]{16,}/#, with: Redaction.placeholder) }
        if result.contains("xox") { result.replace(#/xox[abeoprs]-[A-Za-z0-9\-]{10,}/#, with: Redaction.placeholder) }
        if result.contains("k_") { result.replace(#/[sr]k_(live|test)_[A-Za-z0-9]{10,}/#, with: Redaction.placeholder) }
        if result.contains("AIza") { result.replace(#/AIza[A-Za-z0-9_\-]{30,}/#, with: Redaction.placeholder) }
        if result.contains("ya29.") { result.replace(#/ya29\.[A-Za-z0-9_\-]{10,}/#, with: Redaction.placeholder) }
        if result.contains("npm_") { result.replace(#/npm_[A-Za-z0-9]{30,}/#, with: Redaction.placeholder) }
        if result.contains("pypi-") { result.replace(#/pypi-[A-Za-z0-9_\-]{16,}/#, with: Redaction.placeholder) }
        if result.contains("sk-") { result.replace(#/sk-[A-Za-z0-9_\-]{20,}/#, with: Redaction.placeholder) }
        if result.contains("SG.") { result.replace(#/SG\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}/#, with: Redaction.placeholder) }
        if result.contains("hooks.slack.com") {
            result.replace(#/hooks\.slack\.com\/services\/[A-Za-z0-9\/]+/#, with: Redaction.placeholder)
        }
        if result.contains("earer ") { result.replace(#/[Bb]earer [A-Za-z0-9._~+\/=\-]{6,}/#, with: Redaction.placeholder) }
        if result.contains("asic ") { result.replace(#/[Bb]asic [A-Za-z0-9+\/]{8,}=*/#, with: Redaction.placeholder) }
        if result.contains("PRIVATE KEY") {
            result.replace(#/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/#, with: Redaction.placeholder)
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
            "sla", "are", "asi", "PRI",
        ].map { $0.utf8.reduce(0) { $0 << 8 | UInt32($1) } })

    /// Replaces JSON Web Tokens (RFC 7519): parts in base64url with dots between them, of which the first begins with the beginning of a JSON
    /// object. Not by a regular expression, which takes quadratic time for a text of beginnings without a dot.
    private static func replacingWebTokens(in text: String) -> String {
        var result = ""
        var rest = text[...]
        while !rest.isEmpty {
            let run = rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" || $0 == ".") }
            if run.isEmpty {
                result.append(rest.removeFirst())
                continue
            }
            rest = rest[run.endIndex...]
            let parts = run.split(separator: ".", omittingEmptySubsequences: false)
            let start = parts.indices.dropLast().lazy.compactMap { index -> Substring.Index? in
                guard parts[index + 1].count >= 4, let begin = parts[index].firstRange(of: "eyJ")?.lowerBound else { return nil }
                return parts[index][begin...].count >= 11 ? begin : nil
            }.first
            result += start.map { run[..<$0] + Redaction.placeholder } ?? run
        }
        return result
    }
}
