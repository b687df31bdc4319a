// SPDX-License-Identifier: Apache-2.0
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The cookies of an `HTTPCookieStorage`.
///
/// The storage only stores: on Linux Foundation's parser and its selection of cookies for a URL ignore paths, `Secure` and host-only
/// cookies, so both are done here. The domain of a domain cookie is stored with a leading dot, that of a host-only cookie without.
struct FoundationCookies: CookieBacking {
    /// The most cookies per domain, beyond which the oldest is replaced.
    static let limitPerDomain = 180

    let storage: HTTPCookieStorage

    /// A storage reads its file when it is created.
    var mayBlock: (storing: Bool, sending: Bool) { (true, false) }

    // MARK: Sending

    /// Of Foundation's own class only: another one may have cookies for a URL that it does not list.
    var isEmpty: Bool { type(of: storage) == HTTPCookieStorage.self && storage.cookies?.isEmpty ?? true }

    func pairs(for origin: CookieOrigin, url: URL, isCrossSite: Bool) -> [(name: String, text: String)] {
        pairs(for: origin, url: url, now: Date())
    }

    func pairs(for origin: CookieOrigin, url: URL, now: Date) -> [(name: String, text: String)] {
        cookies(for: origin, url: url, now: now).map { ($0.name, "\($0.name)=\($0.value)") }
    }

    /// The cookies that are sent to a URL, in their order.
    func cookies(for origin: CookieOrigin, url: URL, now: Date = Date()) -> [HTTPCookie] {
        // Foundation compares hosts as they are written.
        let stored = (url.host == origin.host ? storage.cookies(for: url) : storage.cookies) ?? []
        guard !stored.isEmpty else { return [] }
        return stored.filter { Self.isSent($0, to: origin, now: now) }.sorted(by: Self.precedes)
    }

    private static func isSent(_ cookie: HTTPCookie, to origin: CookieOrigin, now: Date) -> Bool {
        if let expiry = cookie.expiresDate, expiry <= now { return false }
        guard !cookie.isSecure || origin.isSecure, cookie.isSendable else { return false }
        let isForHost =
            cookie.isHostOnly ? cookie.bareDomain == origin.host : CookieRules.domainMatches(host: origin.host, domain: cookie.bareDomain)
        return isForHost && CookieRules.pathMatches(origin.path, cookiePath: cookie.path)
    }

    private static func precedes(_ first: HTTPCookie, _ second: HTTPCookie) -> Bool {
        let lengths = (first.path.utf8.count, second.path.utf8.count)
        if lengths.0 != lengths.1 { return lengths.0 > lengths.1 }
        let times = (first.creation, second.creation)
        return times.0 == times.1 ? first.name < second.name : times.0 < times.1
    }

    // MARK: Storing

    func store(_ cookies: [SetCookie], from origin: CookieOrigin, isCrossSite: Bool) {
        let now = Date()
        // Foundation has no cookies without a name.
        for cookie in cookies where !cookie.name.isEmpty { store(cookie, from: origin, now: now) }
    }

    private func store(_ cookie: SetCookie, from origin: CookieOrigin, now: Date) {
        guard cookie.satisfiesPrefix(isSecureOrigin: origin.isSecure), origin.isSecure || !cookie.isSecure else { return }
        guard let (bare, isHostOnly) = CookieRules.scope(of: cookie.domain, for: origin.host) else { return }
        let path = cookie.path ?? CookieRules.defaultPath(of: origin.path)
        let expiry = cookie.expiry(now: now)
        let others = storage.cookies ?? []
        if !origin.isSecure, others.contains(where: { $0.isProtected(from: cookie.name, bare, path) }) { return }
        // Host-only is not part of a cookie's identity (RFC 6265, section 5.3), unlike the domain's dot in the storage.
        for old in others where old.name == cookie.name && old.bareDomain == bare && old.path == path { storage.deleteCookie(old) }
        let domain = isHostOnly ? bare : "." + bare
        guard expiry.map({ $0 > now }) ?? true, let new = cookie.foundation(domain: domain, path: path, expiry: expiry) else { return }
        let ofDomain = (storage.cookies ?? []).filter { $0.bareDomain == bare }
        if ofDomain.count >= Self.limitPerDomain, let oldest = ofDomain.min(by: { $0.creation < $1.creation }) {
            storage.deleteCookie(oldest)
        }
        storage.setCookie(new)
    }
}

extension SetCookie {
    /// The cookie as Foundation's type.
    fileprivate func foundation(domain: String, path: String, expiry: Date?) -> HTTPCookie? {
        var properties: [HTTPCookiePropertyKey: Any] = [.name: name, .value: value, .domain: domain, .path: path]
        if let expiry { properties[.expires] = expiry } else { properties[.discard] = "TRUE" }
        if isSecure { properties[.secure] = "TRUE" }
        if isHTTPOnly { properties[HTTPCookiePropertyKey("HttpOnly")] = "TRUE" }
        return HTTPCookie(properties: properties)
    }
}

extension HTTPCookie {
    /// Whether it is sent to its host only, not to subdomains.
    var isHostOnly: Bool { !domain.hasBytePrefix(".") }

    var bareDomain: String { (isHostOnly ? domain : String(domain.dropFirstScalars())).comparableHost }

    /// When it was stored, in seconds since 2001-01-01 00:00:00 UTC.
    fileprivate var creation: Double { properties?[HTTPCookiePropertyKey("Created")] as? Double ?? 0 }

    /// Whether it is valid in a header field: programs may store any text.
    fileprivate var isSendable: Bool {
        let isValid = { (text: String, forbidden: String) in
            !text.utf8.contains { $0 < 0x20 || $0 == 0x7F || forbidden.utf8.contains($0) }
        }
        return !name.isEmpty && isValid(name, "=;") && isValid(value, ";")
    }

    /// Whether it is a secure cookie that a cookie of that name, received without TLS, would shadow (RFC 6265bis, section 5.7).
    fileprivate func isProtected(from name: String, _ domain: String, _ path: String) -> Bool {
        guard isSecure, self.name == name, CookieRules.pathMatches(path, cookiePath: self.path) else { return false }
        return CookieRules.domainMatches(host: domain, domain: bareDomain) || CookieRules.domainMatches(host: bareDomain, domain: domain)
    }
}
