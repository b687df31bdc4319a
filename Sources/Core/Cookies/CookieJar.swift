// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A session's cookies, in a storage of Foundation's: added to each exchange, taken from each response (RFC 6265).
///
/// Foundation's parser and its choice of cookies for a URL are not used: on Linux they know no paths, no `Secure` and no host-only cookies.
/// A cookie for a domain is stored with a dot before it, one for a host only without, which is how the storage tells them apart.
final class CookieJar: Sendable {
    /// The most cookies of one domain; further ones take the place of the oldest. Also the most of one response.
    static let limitPerDomain = 180

    private let storage: HTTPCookieStorage
    private let acceptPolicy: HTTPCookie.AcceptPolicy
    private let sendsCookies: Bool

    /// `nil` when the session has no cookie storage.
    init?(_ configuration: SessionConfiguration) {
        guard let storage = configuration.cookieStorage else { return nil }
        self.storage = storage
        acceptPolicy = configuration.cookieAcceptPolicy
        sendsCookies = configuration.sendsCookies
    }

    // MARK: Sending

    /// The request with the cookies for its URL, behind those that the user has set.
    ///
    /// Longer paths come first, then what was stored earlier. A storage on disk has been read when it was made.
    func adding(to request: TransferRequest, now: Date = Date()) -> TransferRequest {
        guard sendsCookies, request.handlesCookies, let url = URL(string: request.url), let origin = CookieOrigin(url) else {
            return request
        }
        guard let stored = storage.cookies(for: url), !stored.isEmpty else { return request }
        let given = request.headers["Cookie"]
        let names = Set(given.map(Self.names) ?? [])
        let cookies = stored.filter { Self.mayGo($0, to: origin, now: now) && !names.contains($0.name) }
        guard !cookies.isEmpty else { return request }
        var result = request
        let pairs = cookies.sorted(by: Self.goesBefore).map { "\($0.name)=\($0.value)" }
        result.headers["Cookie"] = ([given].compactMap { $0 } + pairs).joined(separator: "; ")
        return result
    }

    private static func mayGo(_ cookie: HTTPCookie, to origin: CookieOrigin, now: Date) -> Bool {
        if let expiry = cookie.expiresDate, expiry <= now { return false }
        guard !cookie.isSecure || origin.isSecure, cookie.isSendable else { return false }
        let isForHost =
            cookie.isHostOnly ? cookie.bareDomain == origin.host : CookieRules.domainMatches(host: origin.host, domain: cookie.bareDomain)
        return isForHost && CookieRules.pathMatches(origin.path, cookiePath: cookie.path)
    }

    private static func goesBefore(_ first: HTTPCookie, _ second: HTTPCookie) -> Bool {
        let lengths = (first.path.utf8.count, second.path.utf8.count)
        if lengths.0 != lengths.1 { return lengths.0 > lengths.1 }
        let times = (first.creation, second.creation)
        return times.0 == times.1 ? first.name < second.name : times.0 < times.1
    }

    private static func names(in field: String) -> [String] {
        field.split(separator: ";").map { $0.prefix { $0 != "=" }.trimmingCharacters(in: .whitespaces) }
    }

    // MARK: Storing

    /// Keeps the cookies that a response brought. May block: not on the transport's thread.
    func store(_ head: ResponseHead, of request: TransferRequest, now: Date = Date()) {
        guard request.handlesCookies, let url = URL(string: request.url), let origin = CookieOrigin(url), accepts(origin, of: request)
        else {
            return
        }
        // A field with a control character is dropped (RFC 6265bis, section 5.6), not read with a space in that character's place.
        for value in head.validValues(for: "Set-Cookie").prefix(Self.limitPerDomain) {
            if let cookie = SetCookie(value) { store(cookie, from: origin, now: now) }
        }
    }

    /// Whether the policy takes cookies of a host: by the document that the request is a part of, where the user has named it.
    private func accepts(_ origin: CookieOrigin, of request: TransferRequest) -> Bool {
        guard acceptPolicy != .never else { return false }
        guard acceptPolicy == .onlyFromMainDocumentDomain, let document = request.mainDocumentURL else { return true }
        guard let host = URL(string: document)?.host?.lowercased() else { return false }
        return [(host, origin.host), (origin.host, host)].contains { name, domain in
            CookieRules.domainMatches(host: name, domain: domain) && (name == domain || !CookieRules.isPublicSuffix(domain))
        }
    }

    private func store(_ cookie: SetCookie, from origin: CookieOrigin, now: Date) {
        guard cookie.hasLawfulPrefix(isSecureOrigin: origin.isSecure), origin.isSecure || !cookie.isSecure else { return }
        guard let domain = Self.domain(of: cookie, from: origin) else { return }
        let path = cookie.path ?? CookieRules.defaultPath(of: origin.path)
        let expiry = cookie.expiry(now: now)
        let bare = domain.hasPrefix(".") ? String(domain.dropFirst()) : domain
        let others = storage.cookies ?? []
        if !origin.isSecure, others.contains(where: { $0.isProtected(from: cookie.name, bare, path) }) { return }
        // Also those that differ only in whether they are for one host alone: they are the same cookie.
        for old in others where old.name == cookie.name && old.bareDomain == bare && old.path == path { storage.deleteCookie(old) }
        guard expiry.map({ $0 > now }) ?? true, let new = cookie.foundation(domain: domain, path: path, expiry: expiry) else { return }
        let ofDomain = (storage.cookies ?? []).filter { $0.bareDomain == bare }
        if ofDomain.count >= Self.limitPerDomain, let oldest = ofDomain.min(by: { $0.creation < $1.creation }) {
            storage.deleteCookie(oldest)
        }
        storage.setCookie(new)
    }

    /// The domain as the storage wants it; `nil` for a cookie that the host may not set.
    private static func domain(of cookie: SetCookie, from origin: CookieOrigin) -> String? {
        guard let domain = cookie.domain else { return origin.host }
        // A host may name itself, even one that is a suffix of others, or an address.
        if CookieRules.isPublicSuffix(domain) || CookieRules.isAddress(origin.host) { return domain == origin.host ? domain : nil }
        return CookieRules.domainMatches(host: origin.host, domain: domain) ? "." + domain : nil
    }
}

extension SetCookie {
    /// The cookie as Foundation has it.
    fileprivate func foundation(domain: String, path: String, expiry: Date?) -> HTTPCookie? {
        var properties: [HTTPCookiePropertyKey: Any] = [.name: name, .value: value, .domain: domain, .path: path]
        if let expiry { properties[.expires] = expiry } else { properties[.discard] = "TRUE" }
        if isSecure { properties[.secure] = "TRUE" }
        if isHTTPOnly { properties[HTTPCookiePropertyKey("HttpOnly")] = "TRUE" }
        return HTTPCookie(properties: properties)
    }
}

extension HTTPCookie {
    /// Whether it is for its host only, not for those below it.
    fileprivate var isHostOnly: Bool { !domain.hasPrefix(".") }

    fileprivate var bareDomain: String { (isHostOnly ? domain : String(domain.dropFirst())).lowercased() }

    /// When it was stored, in seconds since the first instant of 2001.
    fileprivate var creation: Double { properties?[HTTPCookiePropertyKey("Created")] as? Double ?? 0 }

    /// Whether it can stand in a header field: the storage takes anything from the program.
    fileprivate var isSendable: Bool {
        let isSound = { (text: String, forbidden: String) in
            !text.utf8.contains { $0 < 0x20 || $0 == 0x7F || forbidden.utf8.contains($0) }
        }
        return !name.isEmpty && isSound(name, "=;") && isSound(value, ";")
    }

    /// Whether it is a secure cookie that one of that name, received without TLS, would hide (RFC 6265bis, section 5.7).
    fileprivate func isProtected(from name: String, _ domain: String, _ path: String) -> Bool {
        guard isSecure, self.name == name, CookieRules.pathMatches(path, cookiePath: self.path) else { return false }
        return CookieRules.domainMatches(host: domain, domain: bareDomain) || CookieRules.domainMatches(host: bareDomain, domain: domain)
    }
}
