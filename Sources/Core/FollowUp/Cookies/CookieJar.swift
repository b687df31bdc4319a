// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Adds a session's cookies to requests and stores those of responses (RFC 6265), in an `HTTPCookieStorage`.
///
/// The storage only stores: on Linux Foundation's parser and its selection of cookies for a URL ignore paths, `Secure` and host-only
/// cookies, so both are done here. The domain of a domain cookie is stored with a leading dot, that of a host-only cookie without.
final class CookieJar: Sendable {
    /// The most cookies per domain, beyond which the oldest is replaced. Also the most that are stored of one response.
    static let limitPerDomain = 180

    private let storage: HTTPCookieStorage
    private let acceptPolicy: HTTPCookie.AcceptPolicy
    private let sendsCookies: Bool

    init(_ storage: HTTPCookieStorage, acceptPolicy: HTTPCookie.AcceptPolicy, sendsCookies: Bool) {
        self.storage = storage
        self.acceptPolicy = acceptPolicy
        self.sendsCookies = sendsCookies
    }

    // MARK: Sending

    /// Returns the request with the cookies for its URL, after those that the user has set, which replace stored ones of the same name.
    ///
    /// Longer paths come first, then older cookies (RFC 6265, section 5.4). Does not read the disk: a storage reads its file when created.
    func adding(to request: TransferRequest, now: Date = Date()) -> TransferRequest {
        guard sendsCookies, request.handlesCookies, let url = URL(string: request.url), let origin = CookieOrigin(url) else {
            return request
        }
        guard let stored = storage.cookies(for: url), !stored.isEmpty else { return request }
        let given = request.headers["Cookie"]
        let names = Set(given.map(Self.names) ?? [])
        let cookies = stored.filter { Self.isSent($0, to: origin, now: now) && !names.contains($0.name) }
        guard !cookies.isEmpty else { return request }
        var result = request
        let pairs = cookies.sorted(by: Self.precedes).map { "\($0.name)=\($0.value)" }
        result.headers["Cookie"] = ([given].compactMap { $0 } + pairs).joined(separator: "; ")
        return result
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

    private static func names(in field: String) -> [String] {
        field.split(separator: ";").map { $0.prefix { $0 != "=" }.trimmingCharacters(in: .whitespaces) }
    }

    // MARK: Storing

    /// Stores the cookies of a response. May block, so it must not run on the event loop's thread.
    func store(_ head: ResponseHead, of request: TransferRequest, now: Date = Date()) {
        guard request.handlesCookies, let url = URL(string: request.url), let origin = CookieOrigin(url), accepts(origin, of: request)
        else {
            return
        }
        // A field with a control character is dropped (RFC 6265bis, section 5.6), rather than stored with a space in its place.
        for value in head.validValues(for: "Set-Cookie").prefix(Self.limitPerDomain) {
            if let cookie = SetCookie(value) { store(cookie, from: origin, now: now) }
        }
    }

    /// Whether the policy accepts cookies of a host. `onlyFromMainDocumentDomain` compares it with the request's main document; a request
    /// without one is its own.
    private func accepts(_ origin: CookieOrigin, of request: TransferRequest) -> Bool {
        guard acceptPolicy != .never else { return false }
        guard acceptPolicy == .onlyFromMainDocumentDomain, let document = request.mainDocumentURL else { return true }
        guard let host = URL(string: document)?.host?.lowercased() else { return false }
        return [(host, origin.host), (origin.host, host)].contains { name, domain in
            CookieRules.domainMatches(host: name, domain: domain) && (name == domain || !CookieRules.isPublicSuffix(domain))
        }
    }

    private func store(_ cookie: SetCookie, from origin: CookieOrigin, now: Date) {
        guard cookie.satisfiesPrefix(isSecureOrigin: origin.isSecure), origin.isSecure || !cookie.isSecure else { return }
        guard let domain = Self.domain(of: cookie, from: origin) else { return }
        let path = cookie.path ?? CookieRules.defaultPath(of: origin.path)
        let expiry = cookie.expiry(now: now)
        let bare = domain.hasPrefix(".") ? String(domain.dropFirst()) : domain
        let others = storage.cookies ?? []
        if !origin.isSecure, others.contains(where: { $0.isProtected(from: cookie.name, bare, path) }) { return }
        // Host-only is not part of a cookie's identity (RFC 6265, section 5.3), unlike the domain's dot in the storage.
        for old in others where old.name == cookie.name && old.bareDomain == bare && old.path == path { storage.deleteCookie(old) }
        guard expiry.map({ $0 > now }) ?? true, let new = cookie.foundation(domain: domain, path: path, expiry: expiry) else { return }
        let ofDomain = (storage.cookies ?? []).filter { $0.bareDomain == bare }
        if ofDomain.count >= Self.limitPerDomain, let oldest = ofDomain.min(by: { $0.creation < $1.creation }) {
            storage.deleteCookie(oldest)
        }
        storage.setCookie(new)
    }

    /// The domain in the storage's form; `nil` for a domain for which the host may not set cookies.
    private static func domain(of cookie: SetCookie, from origin: CookieOrigin) -> String? {
        guard let domain = cookie.domain else { return origin.host }
        // A public suffix or an address may set cookies for itself only.
        if CookieRules.isPublicSuffix(domain) || CookieRules.isAddress(origin.host) { return domain == origin.host ? domain : nil }
        return CookieRules.domainMatches(host: origin.host, domain: domain) ? "." + domain : nil
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
    fileprivate var isHostOnly: Bool { !domain.hasPrefix(".") }

    fileprivate var bareDomain: String { (isHostOnly ? domain : String(domain.dropFirst())).lowercased() }

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
