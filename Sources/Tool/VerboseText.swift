// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Keeps secrets out of what is shown.
enum Redaction {
    private static let placeholder = "<hidden>"
    private static let suspiciousWords = ["auth", "cookie", "credential", "key", "passw", "secret", "session", "sig", "token"]

    /// Whether a header field or an item of a query has a name by which its value may be a secret.
    static func isSuspicious(_ name: String) -> Bool {
        let name = name.lowercased()
        return name != "www-authenticate" && suspiciousWords.contains { name.contains($0) }
    }

    /// A header field as a line. Of credentials the scheme is left.
    static func line(_ name: String, _ value: String) -> String {
        guard isSuspicious(name) else { return "\(name): \(value)".printable }
        let scheme = name.lowercased().hasSuffix("authorization") ? value.prefix { $0.isLetter || $0.isNumber || $0 == "-" } : ""
        let isScheme = !scheme.isEmpty && value.dropFirst(scheme.count).first == " "
        return "\(name): \(isScheme ? "\(scheme) " : "")\(placeholder)".printable
    }

    /// A URL's path and query, as in a request line.
    static func target(_ url: String) -> String {
        let start = url.firstRange(of: "//").map { url[$0.upperBound...] } ?? url[...]
        let target = start.drop { $0 != "/" && $0 != "?" && $0 != "#" }.prefix { $0 != "#" }
        let path = target.prefix { $0 != "?" }
        let query = target.dropFirst(path.count + 1).split(separator: "&", omittingEmptySubsequences: false).map { item in
            let name = item.prefix { $0 != "=" }
            return isSuspicious(String(name)) ? "\(name)=\(placeholder)" : String(item)
        }
        return ((path.isEmpty ? "/" : path) + (target.count > path.count ? "?" : "") + query.joined(separator: "&")).printable
    }
}
