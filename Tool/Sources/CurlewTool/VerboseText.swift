// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The output of `--verbose`. Secrets are recognized by name, because the tool doesn't know the server.
enum VerboseText {
    private static let suspiciousWords = ["auth", "cookie", "credential", "key", "passw", "secret", "session", "sig", "token"]

    /// Whether the name of a header field or query item suggests that its value is a secret.
    static func isSuspicious(_ name: String) -> Bool {
        let name = name.lowercased()
        return name != "www-authenticate" && suspiciousWords.contains { name.contains($0) }
    }

    /// Returns a header field as a line, with secrets redacted. Of credentials, the scheme is kept.
    static func line(_ name: String, _ value: String) -> String {
        let header = HTTPHeader(name: name, value: value)
        guard isSuspicious(name) else { return shown(header, Redaction()) }
        let scheme =
            name.lowercased().hasByteSuffix("authorization")
            ? value.prefixScalars { $0.properties.isAlphabetic || $0.properties.numericType != nil || $0 == "-" } : ""
        let isScheme = !scheme.isEmpty && value[scheme.endIndex...].unicodeScalars.first == " "
        guard isScheme else { return shown(header, Redaction(headers: [name])) }
        return SafeText.escaped("\(name): \(scheme) \(SafeText.hidden)")
    }

    private static func shown(_ header: HTTPHeader, _ redaction: Redaction) -> String {
        "\(SafeText.escaped(header.name)): \(SafeText.escaped(redaction.value(of: header)))"
    }

    /// Returns a URL's path and query, as in a request line, with secrets redacted.
    static func target(_ url: String) -> String {
        let start = url.firstScalarRange(of: "//").map { url[$0.upperBound...] } ?? url[...]
        let target = start.dropScalars { $0 != "/" && $0 != "?" && $0 != "#" }.prefixScalars { $0 != "#" }
        let path = target.prefixScalars { $0 != "?" }
        let names = target[path.endIndex...].dropFirstScalars().splitScalars(separator: "&").map { item in
            String(item.prefixScalars { $0 != "=" })
        }
        let query = Redaction(queryItems: Set(names.filter(isSuspicious))).form(String(target.dropFirst(path.count + 1)))
        return SafeText.escaped((path.isEmpty ? "/" : path) + (target.count > path.count ? "?" : "") + query)
    }
}
