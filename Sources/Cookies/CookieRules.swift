// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Domain and path matching of cookies (RFC 6265bis, section 5.1).
package enum CookieRules {
    /// Second-level labels under which national registries register domains: `co.uk`, `com.au`, `ne.jp`.
    private static let registries: Set<String> = [
        "ac", "ad", "co", "com", "ed", "edu", "firm", "gen", "go", "gob", "gouv", "gov", "govt", "gr", "gv", "info", "lg", "ltd", "me",
        "mil", "ne", "net", "nhs", "nic", "nom", "or", "org", "plc", "police", "re", "res", "sch", "school", "web",
    ]

    /// Whether a host is the domain or a subdomain of it.
    package static func domainMatches(host: String, domain: String) -> Bool {
        host == domain || (host.hasByteSuffix("." + domain) && !isAddress(host))
    }

    /// Whether a path is the cookie's path or below it.
    package static func pathMatches(_ path: String, cookiePath: String) -> Bool {
        let (path, wanted) = (path.utf8, cookiePath.utf8)
        guard path.starts(with: wanted) else { return false }
        if path.count == wanted.count || wanted.last == UInt8(ascii: "/") { return true }
        return path.dropFirst(wanted.count).first == UInt8(ascii: "/")
    }

    /// The path of a cookie without `Path`: that of the request up to its last slash, exclusive.
    package static func defaultPath(of path: String) -> String {
        guard path.hasBytePrefix("/"), let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    /// Whether a host is an IPv6 address, or ends in a number like IPv4 addresses: neither has parent domains.
    package static func isAddress(_ host: String) -> Bool {
        if host.unicodeScalars.contains(":") { return true }
        let last = host.splitScalars(separator: ".").last ?? ""
        return last.isAllDigits
    }

    /// Whether a domain is a public suffix: a cookie for it would be sent to the sites of unrelated owners.
    ///
    /// Decided by the system's copy of the list at publicsuffix.org, which is not bundled because it is larger than this library; without
    /// one, by ``looksPublic(_:)``.
    package static func isPublicSuffix(_ domain: String) -> Bool {
        domain.splitScalars(separator: ".", omittingEmptySubsequences: false).contains("")
            || (PublicSuffixList.contains(domain) ?? looksPublic(domain))
    }

    /// Whether a domain is a single label, or a common second-level label of a national registry. Providers that give subdomains to
    /// customers, such as `github.io`, are not recognized.
    package static func looksPublic(_ domain: String) -> Bool {
        let labels = domain.splitScalars(separator: ".", omittingEmptySubsequences: false)
        guard labels.count > 1 else { return true }
        return labels.count == 2 && labels[1].utf8.count == 2 && registries.contains(String(labels[0]))
    }

    /// The domain for which a cookie is stored, given its attribute `Domain` (RFC 6265bis, section 5.7, steps 8 to 11); `nil` if the host may
    /// not set a cookie for it.
    ///
    /// A public suffix or an address may set cookies for itself only.
    package static func scope(of domain: String?, for host: String) -> (domain: String, isHostOnly: Bool)? {
        // Not the name of a host, and a file could not distinguish it from a domain.
        guard host.utf8.first != UInt8(ascii: ".") else { return nil }
        guard let domain else { return (host, true) }
        // A dot alone is the empty domain, which is that of the host where hosts have names; an address has no domain at all.
        guard !domain.isEmpty else { return isAddress(host) ? nil : (host, true) }
        guard domain.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        if isPublicSuffix(domain) || isAddress(host) { return domain == host ? (host, true) : nil }
        return domainMatches(host: host, domain: domain) ? (domain, false) : nil
    }

    /// The registrable domain of a host: one label more than its public suffix. The host itself if it is an address or a public suffix.
    package static func registrableDomain(of host: String) -> String {
        guard !isAddress(host) else { return host }
        var domain = host[...]
        while let dot = domain.unicodeScalars.firstIndex(of: ".") {
            let parent = domain.suffix(afterScalarAt: dot)
            if isPublicSuffix(String(parent)) { break }
            domain = parent
        }
        return String(domain)
    }
}

/// The parts of a URL that decide which cookies it sends and sets.
package struct CookieOrigin: Sendable {
    /// In the form in which hosts are compared.
    package let host: String
    package let path: String
    package let isSecure: Bool

    /// `nil` for a URL without a host.
    package init?(_ url: URL) {
        guard let host = url.comparableHost else { return nil }
        self.host = host
        isSecure = url.scheme?.lowercased() == "https"
        // As sent: percent escapes are not decoded.
        let path = URLComponents(url: url, resolvingAgainstBaseURL: true)?.percentEncodedPath ?? url.path
        self.path = path.isEmpty ? "/" : path
    }

    /// Whether both belong to one site: the same scheme and registrable domain (RFC 6265bis, section 5.2).
    package func isSameSite(as other: CookieOrigin) -> Bool {
        guard isSecure == other.isSecure else { return false }
        return host == other.host || CookieRules.registrableDomain(of: host) == CookieRules.registrableDomain(of: other.host)
    }
}
