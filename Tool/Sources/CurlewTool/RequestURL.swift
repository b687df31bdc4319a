// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Creates URLs from user input.
enum RequestURL {
    /// Returns the URL with its scheme and the query items.
    static func make(_ text: String, items: [RequestItem]) throws(UsageError) -> String {
        let query = items.compactMap { item -> String? in
            guard case .query(let name, let value) = item else { return nil }
            return "\(escaped(name))=\(escaped(value))"
        }
        let url = adding(query, to: withScheme(text))
        guard let parsed = try? url.asURL() else { throw UsageError("invalid URL: \(shown(url))") }
        guard ["http", "https"].contains(parsed.scheme?.lowercased()) else {
            throw UsageError("the scheme is not http or https: \(shown(url))")
        }
        guard parsed.host?.isEmpty == false else { throw UsageError("the URL has no host: \(shown(url))") }
        return url
    }

    /// Completes a URL: `:8080/path` is on localhost; addresses of this machine get `http`, all others `https`.
    private static func withScheme(_ text: String) -> String {
        if text.contains("://"), text.prefix(while: { $0 != "/" && $0 != "?" && $0 != "#" }).hasSuffix(":") { return text }
        if text.hasPrefix("//") { return withScheme(String(text.dropFirst(2))) }
        if text.hasPrefix(":"), !text.hasPrefix("::") {
            let rest = text.dropFirst()
            return "http://localhost" + (rest.first?.isNumber == true ? ":" : "") + rest
        }
        return (isLocal(text) ? "http://" : "https://") + text
    }

    private static func isLocal(_ text: String) -> Bool {
        let authority = text.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let place = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        if place.hasPrefix("[") { return place.hasPrefix("[::1]") }
        let host = place.prefix { $0 != ":" }.lowercased()
        if host == "localhost" || host.hasSuffix(".localhost") { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false)
        return numbers.count == 4 && numbers[0] == "127" && numbers.allSatisfy { UInt8($0) != nil }
    }

    private static func adding(_ items: [String], to url: String) -> String {
        guard !items.isEmpty else { return url }
        let end = url.firstIndex(of: "#") ?? url.endIndex
        let base = url[..<end]
        let separator = base.contains("?") ? (base.hasSuffix("?") || base.hasSuffix("&") ? "" : "&") : "?"
        return base + separator + items.joined(separator: "&") + url[end...]
    }

    /// Percent-encodes all but the unreserved characters (RFC 3986, section 2.3).
    static func escaped(_ text: String) -> String {
        let unreserved = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? text
    }

    static func hasUserInfo(_ url: String) -> Bool {
        guard let slashes = url.firstRange(of: "//") else { return false }
        return url[slashes.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }.contains("@")
    }

    /// Returns the URL for display: without user name, password and query, as the query may contain secrets too.
    static func shown(_ url: String) -> String {
        let text = url.prefix { $0 != "?" && $0 != "#" }
        guard let slashes = text.firstRange(of: "//") else { return String(text) }
        let authority = text[slashes.upperBound...].prefix { $0 != "/" }
        guard let at = authority.lastIndex(of: "@") else { return String(text) }
        return String(text[..<slashes.upperBound] + text[text.index(after: at)...])
    }
}
