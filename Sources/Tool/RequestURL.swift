// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Makes URLs of what one types.
enum RequestURL {
    /// The URL with its scheme and the items of the query.
    static func make(_ text: String, items: [RequestItem]) throws(UsageError) -> String {
        let query = items.compactMap { item -> String? in
            guard case .query(let name, let value) = item else { return nil }
            return "\(escaped(name))=\(escaped(value))"
        }
        let url = adding(query, to: withScheme(text))
        guard let parsed = try? url.asURL() else { throw UsageError("not a URL: \(shown(url))") }
        guard ["http", "https"].contains(parsed.scheme?.lowercased()) else {
            throw UsageError("neither http nor https: \(shown(url))")
        }
        guard parsed.host?.isEmpty == false else { throw UsageError("the URL has no host: \(shown(url))") }
        return url
    }

    /// `:8080/path` is on localhost; what is on this machine gets `http`, everything else `https`.
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

    /// Percent-encoding of all but the unreserved characters (RFC 3986, section 2.3).
    static func escaped(_ text: String) -> String {
        let unreserved = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? text
    }

    static func hasUserInfo(_ url: String) -> Bool {
        guard let slashes = url.firstRange(of: "//") else { return false }
        return url[slashes.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }.contains("@")
    }

    /// The URL as it may be shown: without user name and password, and without the query, where secrets may stand too.
    static func shown(_ url: String) -> String {
        let text = url.prefix { $0 != "?" && $0 != "#" }
        guard let slashes = text.firstRange(of: "//") else { return String(text) }
        let authority = text[slashes.upperBound...].prefix { $0 != "/" }
        guard let at = authority.lastIndex(of: "@") else { return String(text) }
        return String(text[..<slashes.upperBound] + text[text.index(after: at)...])
    }
}
