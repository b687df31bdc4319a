// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Domain and path matching of cookies (RFC 6265, section 5.1).
enum CookieRules {
    /// Second-level labels under which national registries register domains: `co.uk`, `com.au`, `ne.jp`.
    private static let registries: Set<String> = [
        "ac", "ad", "co", "com", "ed", "edu", "firm", "gen", "go", "gob", "gouv", "gov", "govt", "gr", "gv", "info", "lg", "ltd", "me",
        "mil", "ne", "net", "nhs", "nic", "nom", "or", "org", "plc", "police", "re", "res", "sch", "school", "web",
    ]

    /// Whether a host is the domain or a subdomain of it.
    static func domainMatches(host: String, domain: String) -> Bool {
        host == domain || (host.hasSuffix("." + domain) && !isAddress(host))
    }

    /// Whether a path is the cookie's path or below it.
    static func pathMatches(_ path: String, cookiePath: String) -> Bool {
        let (path, wanted) = (path.utf8, cookiePath.utf8)
        guard path.starts(with: wanted) else { return false }
        if path.count == wanted.count || wanted.last == UInt8(ascii: "/") { return true }
        return path.dropFirst(wanted.count).first == UInt8(ascii: "/")
    }

    /// The path of a cookie without `Path`: that of the request up to its last slash, exclusive.
    static func defaultPath(of path: String) -> String {
        guard path.hasPrefix("/"), let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    /// Whether a host is an IPv6 address, or ends in a number like IPv4 addresses: neither has parent domains.
    static func isAddress(_ host: String) -> Bool {
        if host.contains(":") { return true }
        let last = host.split(separator: ".").last ?? ""
        return !last.isEmpty && last.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Whether a domain is a public suffix: a cookie for it would be sent to the sites of unrelated owners.
    ///
    /// Decided by the system's copy of the list at publicsuffix.org, which is not bundled because it is larger than this library; without
    /// one, by ``looksPublic(_:)``.
    static func isPublicSuffix(_ domain: String) -> Bool {
        domain.split(separator: ".", omittingEmptySubsequences: false).contains("")
            || (PublicSuffixList.contains(domain) ?? looksPublic(domain))
    }

    /// Whether a domain is a single label, or a common second-level label of a national registry. Providers that give subdomains to
    /// customers, such as `github.io`, are not recognized.
    static func looksPublic(_ domain: String) -> Bool {
        let labels = domain.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count > 1 else { return true }
        return labels.count == 2 && labels[1].utf8.count == 2 && registries.contains(String(labels[0]))
    }
}

/// The parts of a URL that decide which cookies it sends and sets.
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
        // As sent: percent escapes are not decoded.
        let path = URLComponents(url: url, resolvingAgainstBaseURL: true)?.percentEncodedPath ?? url.path
        self.path = path.isEmpty ? "/" : path
    }
}
