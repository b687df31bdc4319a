// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The head of a stored response, with its age, freshness and reuse (RFC 9111, as a private cache).
///
/// A value without a clock or a store, so that the rules are tested as tables.
struct StoredResponse: Equatable {
    /// How the cache uses a stored response for a request.
    enum Use: Equatable {
        /// It is served without a request.
        case serve
        /// It is revalidated by a request with these conditions.
        case revalidate(HTTPHeaders)
        /// It is stale and has no validator: the request is sent without conditions.
        case reload
    }

    /// The heuristic freshness lifetime is this fraction of the time since `Last-Modified`, and at most a day (RFC 9111, section 4.2.2).
    private static let heuristicFraction = 0.1
    private static let longestHeuristicLifetime: TimeInterval = 86_400

    let statusCode: Int
    var headers: HTTPHeaders
    /// When the request for it, or its last revalidation, was sent, and when the response was received.
    var requestTime: Date
    var responseTime: Date

    private var date: Date { headers.value(for: "Date").flatMap { HTTPDate.date(from: $0) } ?? responseTime }

    // MARK: Freshness

    /// The freshness lifetime in seconds, counted like the age (RFC 9111, section 4.2.1).
    var lifetime: TimeInterval {
        if let seconds = CacheDirectives(headers).seconds("max-age") { return seconds }
        if let expires = headers.values(for: "Expires").first {
            // An invalid date counts as past (RFC 9111, section 5.3): servers send 0.
            return HTTPDate.date(from: expires).map { max($0.timeIntervalSince(date), 0) } ?? 0
        }
        guard let modified = headers.value(for: "Last-Modified").flatMap({ HTTPDate.date(from: $0) }) else { return 0 }
        return min(max(date.timeIntervalSince(modified), 0) * Self.heuristicFraction, Self.longestHeuristicLifetime)
    }

    /// The age in seconds, including the time in transit (RFC 9111, section 4.2.3).
    func age(at now: Date) -> TimeInterval {
        let apparent = max(responseTime.timeIntervalSince(date), 0)
        let delay = max(responseTime.timeIntervalSince(requestTime), 0)
        let reported = headers.values(for: "Age").first.flatMap { Double($0) }.map { $0.isFinite ? max($0, 0) : 0 } ?? 0
        return max(apparent, reported + delay) + max(now.timeIntervalSince(responseTime), 0)
    }

    /// How the response is used for a request with these header fields, under the protocol's rules.
    func use(for request: HTTPHeaders, at now: Date) -> Use {
        isFresh(for: CacheDirectives(request), at: now) ? .serve : revalidation
    }

    /// Whether the freshness lifetime has passed, regardless of what requests allow.
    func isStale(at now: Date) -> Bool { age(at: now) >= lifetime }

    /// Revalidation by the response's validators; `.reload` if it has none.
    var revalidation: Use {
        var conditions = HTTPHeaders()
        if let tag = headers.value(for: "ETag") { conditions.append(name: "If-None-Match", value: tag) }
        if let date = headers.value(for: "Last-Modified") { conditions.append(name: "If-Modified-Since", value: date) }
        return conditions.isEmpty ? .reload : .revalidate(conditions)
    }

    private func isFresh(for request: CacheDirectives, at now: Date) -> Bool {
        let response = CacheDirectives(headers)
        guard !request.has("no-cache"), !response.has("no-cache") else { return false }
        let age = age(at: now)
        if let limit = request.seconds("max-age"), age > limit { return false }
        let remaining = lifetime - age - (request.seconds("min-fresh") ?? 0)
        if remaining > 0 { return true }
        guard let allowed = request.seconds("max-stale", bare: .infinity), !response.has("must-revalidate") else { return false }
        return allowed > 0 && -remaining <= allowed
    }

    // MARK: Storing

    /// Hop-by-hop fields, and `Set-Cookie`, which would overwrite newer cookies whenever the response is served.
    private static let unstoredFields = [
        "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Proxy-Connection",
        "Set-Cookie", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
    ]
    /// Fields that describe the stored body, which a 304, having no body, does not update (RFC 9111, section 3.2).
    private static let contentFields = ["Content-Encoding", "Content-Length", "Content-Range", "Content-Type"]
    /// Statuses that are heuristically cacheable (RFC 9110, section 15.1), except 206.
    private static let cacheable: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]
    /// Statuses that are never stored: partial content, 304, and challenges, which are for one client.
    private static let neverStored: Set<Int> = [206, 304, 401, 407]

    /// Whether the response to a request without `Range` and `Authorization` may be stored (RFC 9111, section 3).
    static func isStorable(_ head: ResponseHead, request: HTTPHeaders) -> Bool {
        let headers = head.headers
        let directives = CacheDirectives(headers)
        guard head.statusCode >= 200, !neverStored.contains(head.statusCode), !directives.has("no-store") else { return false }
        guard !CacheDirectives(request).has("no-store"), !varyNames(headers).contains("*") else { return false }
        let isExplicit = directives.has("max-age") || headers.value(for: "Expires") != nil || directives.has("public")
        return cacheable.contains(head.statusCode) || isExplicit
    }

    /// The names in `Vary`, sorted and in lower case.
    static func varyNames(_ headers: HTTPHeaders) -> [String] {
        CacheDirectives.list(headers.values(for: "Vary").joined(separator: ",")).map { $0.lowercased() }.sorted()
    }

    /// The fields that are stored of a response: all but hop-by-hop ones and cookies.
    static func storable(_ headers: HTTPHeaders) -> HTTPHeaders {
        var result = headers
        let named = CacheDirectives.list(headers.values(for: "Connection").joined(separator: ","))
        for name in unstoredFields + named { result.remove(name: name) }
        return result
    }

    /// Updates the response from a 304 (RFC 9111, section 4.3.4); `false` if that has the ETag of another representation.
    mutating func update(with headers: HTTPHeaders, requestTime: Date, responseTime: Date) -> Bool {
        if let tag = headers.value(for: "ETag"), let own = self.headers.value(for: "ETag"), Self.opaqueTag(tag) != Self.opaqueTag(own) {
            return false
        }
        var newHeaders = Self.storable(headers)
        for name in Self.contentFields { newHeaders.remove(name: name) }
        // The age is that of the 304, which may have none.
        self.headers.remove(name: "Age")
        self.headers.merge(newHeaders)
        self.requestTime = requestTime
        self.responseTime = responseTime
        return true
    }

    /// The opaque tag without the mark of a weak one, for weak comparison (RFC 9110, section 8.8.3.2).
    private static func opaqueTag(_ tag: String) -> Substring {
        tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...]
    }
}
