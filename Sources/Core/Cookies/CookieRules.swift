// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Which cookie belongs to which host and path (RFC 6265, section 5.1).
enum CookieRules {
    /// Names under which national registries give out domains: `co.uk`, `com.au`, `ne.jp`.
    private static let registries: Set<String> = [
        "ac", "ad", "co", "com", "ed", "edu", "firm", "gen", "go", "gob", "gouv", "gov", "govt", "gr", "gv", "info", "lg", "ltd", "me",
        "mil", "ne", "net", "nhs", "nic", "nom", "or", "org", "plc", "police", "re", "res", "sch", "school", "web",
    ]

    /// Whether a host is the domain, or below it.
    static func domainMatches(host: String, domain: String) -> Bool {
        host == domain || (host.hasSuffix("." + domain) && !isAddress(host))
    }

    /// Whether a path is the cookie's, or below it.
    static func pathMatches(_ path: String, cookiePath: String) -> Bool {
        let (path, wanted) = (path.utf8, cookiePath.utf8)
        guard path.starts(with: wanted) else { return false }
        if path.count == wanted.count || wanted.last == UInt8(ascii: "/") { return true }
        return path.dropFirst(wanted.count).first == UInt8(ascii: "/")
    }

    /// The path of a cookie that names none: that of the request up to, but without, its last slash.
    static func defaultPath(of path: String) -> String {
        guard path.hasPrefix("/"), let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    /// Whether a host is an IPv6 address, or ends in a number as IPv4 addresses do: neither has domains above it.
    static func isAddress(_ host: String) -> Bool {
        if host.contains(":") { return true }
        let last = host.split(separator: ".").last ?? ""
        return !last.isEmpty && last.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Whether nobody owns a domain, so that a cookie for it would go to strangers.
    ///
    /// By the list at publicsuffix.org where the system has it, which is larger than this library; else by ``looksPublic(_:)``.
    static func isPublicSuffix(_ domain: String) -> Bool {
        domain.split(separator: ".", omittingEmptySubsequences: false).contains("")
            || (PublicSuffixList.contains(domain) ?? looksPublic(domain))
    }

    /// Whether a domain is a single label, or has one of the usual names of national registries. Providers that give names below their
    /// own to customers, such as `github.io`, are not known to this rule.
    static func looksPublic(_ domain: String) -> Bool {
        let labels = domain.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count > 1 else { return true }
        return labels.count == 2 && labels[1].utf8.count == 2 && registries.contains(String(labels[0]))
    }
}

/// What of a URL counts for cookies.
struct CookieOrigin {
    /// In lower case.
    let host: String
    let path: String
    let isSecure: Bool

    /// `nil` for a URL without a host.
    init?(_ url: URL) {
        guard let host = url.host?.lowercased(), !host.isEmpty else { return nil }
        self.host = host
        isSecure = url.scheme?.lowercased() == "https"
        // As it goes over the wire: what is escaped stays so.
        let path = URLComponents(url: url, resolvingAgainstBaseURL: true)?.percentEncodedPath ?? url.path
        self.path = path.isEmpty ? "/" : path
    }
}
