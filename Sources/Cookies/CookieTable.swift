// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The cookies of a store, and the rules under which they are stored and selected (RFC 6265bis, sections 5.7 and 5.8). Pure: time and input
/// are given.
package struct CookieTable: Sendable {
    /// The longest time for which a cookie is stored, in seconds: 400 days.
    package static let longestAge = 400.0 * 86_400

    package let limits: CookieStore.Limits
    /// By domain; those of one domain in the order of their creation.
    private var domains: [String: [Cookie]] = [:]
    package private(set) var count = 0
    private var lastCreation = Date.distantPast

    package init(limits: CookieStore.Limits = CookieStore.Limits()) {
        self.limits = limits
    }

    /// All cookies, sorted by domain and creation.
    package var cookies: [Cookie] { domains.sorted { $0.key < $1.key }.flatMap(\.value) }

    // MARK: Storing

    /// Stores a cookie that a response has set, or removes the one whose place it takes if it has expired; ignores it if its host may not set
    /// it.
    ///
    /// - Parameter isCrossSite: whether the response belongs to a document of another site.
    package mutating func store(_ new: SetCookie, from origin: CookieOrigin, isCrossSite: Bool = false, now: Date) {
        guard new.satisfiesPrefix(isSecureOrigin: origin.isSecure), origin.isSecure || !new.isSecure else { return }
        guard let (domain, isHostOnly) = CookieRules.scope(of: new.domain, for: origin.host) else { return }
        if isCrossSite, new.sameSite == .strict || new.sameSite == .lax { return }
        var cookie = Cookie(
            name: new.name, value: new.value, domain: domain, isHostOnly: isHostOnly,
            path: new.path ?? CookieRules.defaultPath(of: origin.path), isSecure: new.isSecure, isHTTPOnly: new.isHTTPOnly,
            sameSite: new.sameSite)
        if !origin.isSecure, shadowsSecure(cookie) { return }
        cookie.expirationDate = new.expiry(now: now).map { Self.expiry($0, now: now) }
        set(cookie, now: now)
    }

    /// In whole seconds, rounded up, as files have them, and at most 400 days from now.
    private static func expiry(_ date: Date, now: Date) -> Date {
        let seconds = min(date.timeIntervalSince1970, now.timeIntervalSince1970 + longestAge)
        return Date(timeIntervalSince1970: seconds.rounded(.up))
    }

    /// Stores a cookie, in place of one with its ``Cookie/ID``, whose creation it keeps. Removes that one if the cookie has expired.
    package mutating func set(_ cookie: Cookie, now: Date) {
        let old = remove(cookie.id)
        guard !cookie.isExpired(at: now) else { return }
        var cookie = cookie
        // Files have microseconds.
        cookie.lastAccessDate = Self.date(Self.microseconds(now))
        // Later than that of any other: cookies of one response are sent in their order.
        cookie.creationDate = old?.creationDate ?? Self.date(max(Self.microseconds(now), Self.microseconds(lastCreation) + 1))
        insert(cookie)
        evict(from: cookie.domain, now: now)
    }

    private static func date(_ microseconds: Int64) -> Date { Date(timeIntervalSince1970: Double(microseconds) / 1e6) }

    /// The time since 1970.
    static func microseconds(_ date: Date) -> Int64 {
        let value = (date.timeIntervalSince1970 * 1e6).rounded()
        return value.isFinite ? Int64(max(min(value, 4e15), -4e15)) : 0
    }

    private mutating func insert(_ cookie: Cookie) {
        var list = domains[cookie.domain] ?? []
        // Mostly at the end.
        let index = (list.lastIndex { $0.creationDate <= cookie.creationDate } ?? -1) + 1
        list.insert(cookie, at: index)
        domains[cookie.domain] = list
        count += 1
        lastCreation = max(lastCreation, cookie.creationDate)
    }

    /// Whether a cookie that was received without TLS would take the place of a secure one, or go before it (section 5.7, step 16).
    private func shadowsSecure(_ cookie: Cookie) -> Bool {
        domains.contains { domain, list in
            (CookieRules.domainMatches(host: domain, domain: cookie.domain)
                || CookieRules.domainMatches(host: cookie.domain, domain: domain))
                && list.contains { $0.isSecure && $0.name == cookie.name && CookieRules.pathMatches(cookie.path, cookiePath: $0.path) }
        }
    }

    // MARK: Limits

    /// Removes cookies beyond the limits: expired ones first, then those that are not secure, the longest unused first.
    private mutating func evict(from domain: String, now: Date) {
        if let list = domains[domain], list.count > limits.perDomain {
            removeExpired(now: now, in: domain)
            while let list = domains[domain], list.count > limits.perDomain, let victim = Self.victim(among: list) { remove(victim) }
        }
        guard count > limits.total else { return }
        for domain in Array(domains.keys) { removeExpired(now: now, in: domain) }
        while count > limits.total, let victim = domains.values.lazy.joined().min(by: Self.isLessUsed) { remove(victim.id) }
    }

    private static func victim(among list: [Cookie]) -> Cookie.ID? {
        (list.filter { !$0.isSecure }.min(by: isLessUsed) ?? list.min(by: isLessUsed))?.id
    }

    private static func isLessUsed(_ first: Cookie, _ second: Cookie) -> Bool {
        (first.lastAccessDate, first.creationDate) < (second.lastAccessDate, second.creationDate)
    }

    private mutating func removeExpired(now: Date, in domain: String) {
        for cookie in domains[domain] ?? [] where cookie.isExpired(at: now) { remove(cookie.id) }
    }

    // MARK: Removing

    /// Removes a cookie; returns it if there was one.
    @discardableResult
    package mutating func remove(_ id: Cookie.ID) -> Cookie? {
        guard var list = domains[id.domain], let index = list.firstIndex(where: { $0.id == id }) else { return nil }
        let removed = list.remove(at: index)
        domains[id.domain] = list.isEmpty ? nil : list
        count -= 1
        return removed
    }

    // MARK: Selecting

    /// The cookies that a request sends, in order: longer paths first, then older cookies (section 5.8.3).
    ///
    /// - Parameter isCrossSite: whether the request belongs to a document of another site.
    package func cookies(for origin: CookieOrigin, isCrossSite: Bool = false, now: Date) -> [Cookie] {
        var found: [Cookie] = []
        forEachDomain(of: origin.host) { domain in
            for cookie in domains[domain] ?? [] where (domain == origin.host || !cookie.isHostOnly) && !cookie.isExpired(at: now) {
                guard origin.isSecure || !cookie.isSecure, CookieRules.pathMatches(origin.path, cookiePath: cookie.path) else { continue }
                guard !isCrossSite || cookie.sameSite == nil || cookie.sameSite == Cookie.SameSite.none else { continue }
                found.append(cookie)
            }
        }
        guard found.count > 1 else { return found }
        return found.sorted { first, second in
            let lengths = (first.path.utf8.count, second.path.utf8.count)
            return lengths.0 == lengths.1 ? first.creationDate < second.creationDate : lengths.0 > lengths.1
        }
    }

    /// Notes that cookies were sent.
    package mutating func use(_ cookies: [Cookie], now: Date) {
        for cookie in cookies {
            guard let index = domains[cookie.domain]?.firstIndex(where: { $0.id == cookie.id }) else { continue }
            domains[cookie.domain]?[index].lastAccessDate = now
        }
    }

    /// Calls `body` with the host, and with each domain above it.
    private func forEachDomain(of host: String, _ body: (String) -> Void) {
        body(host)
        guard !CookieRules.isAddress(host) else { return }
        var rest = host[...]
        while let dot = rest.unicodeScalars.firstIndex(of: ".") {
            rest = rest.suffix(afterScalarAt: dot)
            body(String(rest))
        }
    }
}

extension CookieTable: SharedTable {
    package var records: [Cookie.ID: Cookie] {
        Dictionary(domains.values.lazy.joined().map { ($0.id, $0) }) { first, _ in first }
    }

    package mutating func replace(with records: [Cookie.ID: Cookie]) {
        domains = [:]
        count = 0
        for cookie in records.values.sorted(by: { $0.creationDate < $1.creationDate }) { insert(cookie) }
    }

    package static func isSame(_ first: Cookie, _ second: Cookie) -> Bool { first.isSame(as: second) }
}
