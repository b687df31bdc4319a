// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A response's head in the cache: how old it is, and what it may be used for (RFC 9111, as a private cache).
///
/// A value without a clock or a store, so that the rules can be tried as a table.
struct StoredAnswer: Equatable {
    /// What a cache does with an answer that it has.
    enum Use: Equatable {
        /// It is given as it is.
        case give
        /// The host is asked whether it still holds, with these header fields.
        case confirm(HTTPHeaders)
        /// It is of no use.
        case pass
    }

    /// A guessed lifetime is this part of the time since the last change, and not longer than a day (RFC 9111, section 4.2.2).
    private static let heuristicPart = 0.1
    private static let longestHeuristic: TimeInterval = 86_400

    let statusCode: Int
    var headers: HTTPHeaders
    /// When it, or what confirmed it, was asked for and came.
    var requestTime: Date
    var responseTime: Date

    private var date: Date { headers.value(for: "Date").flatMap { HTTPDate.date(from: $0) } ?? responseTime }

    // MARK: Freshness

    /// How long it is fresh, in seconds since the server made it (RFC 9111, section 4.2.1).
    var lifetime: TimeInterval {
        if let seconds = CacheDirectives(headers).seconds("max-age") { return seconds }
        if let expires = headers.values(for: "Expires").first {
            // What is no date is in the past: servers send 0.
            return HTTPDate.date(from: expires).map { max($0.timeIntervalSince(date), 0) } ?? 0
        }
        guard let change = headers.value(for: "Last-Modified").flatMap({ HTTPDate.date(from: $0) }) else { return 0 }
        return min(max(date.timeIntervalSince(change), 0) * Self.heuristicPart, Self.longestHeuristic)
    }

    /// How old it is, in seconds, the time on the way included (RFC 9111, section 4.2.3).
    func age(at now: Date) -> TimeInterval {
        let apparent = max(responseTime.timeIntervalSince(date), 0)
        let delay = max(responseTime.timeIntervalSince(requestTime), 0)
        let told = headers.values(for: "Age").first.flatMap { Double($0) }.map { $0.isFinite ? max($0, 0) : 0 } ?? 0
        return max(apparent, told + delay) + max(now.timeIntervalSince(responseTime), 0)
    }

    /// What it may be used for by a request, when HTTP decides.
    func use(for request: HTTPHeaders, at now: Date) -> Use {
        isFresh(for: CacheDirectives(request), at: now) ? .give : confirmation
    }

    /// The way to ask the host whether it still holds, if there is one.
    var confirmation: Use {
        var conditions = HTTPHeaders()
        if let tag = headers.value(for: "ETag") { conditions.append(name: "If-None-Match", value: tag) }
        if let date = headers.value(for: "Last-Modified") { conditions.append(name: "If-Modified-Since", value: date) }
        return conditions.isEmpty ? .pass : .confirm(conditions)
    }

    private func isFresh(for request: CacheDirectives, at now: Date) -> Bool {
        let response = CacheDirectives(headers)
        guard !request.has("no-cache"), !response.has("no-cache") else { return false }
        let age = age(at: now)
        if let limit = request.seconds("max-age"), age > limit { return false }
        let rest = lifetime - age - (request.seconds("min-fresh") ?? 0)
        if rest > 0 { return true }
        guard let allowed = request.seconds("max-stale", bare: .infinity), !response.has("must-revalidate") else { return false }
        return allowed > 0 && -rest <= allowed
    }

    // MARK: Storing

    /// Fields that belong to one exchange, and those that would undo later changes when they come again.
    private static let unstored = [
        "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Proxy-Connection",
        "Set-Cookie", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
    ]
    /// Fields that tell of the stored body, which a response without one does not know better (RFC 9111, section 3.2).
    private static let ofBody = ["Content-Encoding", "Content-Length", "Content-Range", "Content-Type"]
    /// Statuses that may be stored without a word about it (RFC 9110, section 15.1), but for parts of a whole.
    private static let cacheable: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]
    /// Statuses that are never stored: parts, confirmations, and challenges, which are for whoever asked.
    private static let neverStored: Set<Int> = [206, 304, 401, 407]

    /// Whether the answer to a request without `Range` and `Authorization` may be stored (RFC 9111, section 3).
    static func mayStore(_ head: ResponseHead, request: HTTPHeaders) -> Bool {
        let headers = head.headers
        let directives = CacheDirectives(headers)
        guard head.statusCode >= 200, !neverStored.contains(head.statusCode), !directives.has("no-store") else { return false }
        guard !CacheDirectives(request).has("no-store"), !varyingNames(headers).contains("*") else { return false }
        let isExplicit = directives.has("max-age") || headers.value(for: "Expires") != nil || directives.has("public")
        return cacheable.contains(head.statusCode) || isExplicit
    }

    /// The names of the request fields on which the response depends, in lower case.
    static func varyingNames(_ headers: HTTPHeaders) -> [String] {
        CacheDirectives.list(headers.values(for: "Vary").joined(separator: ",")).map { $0.lowercased() }.sorted()
    }

    /// The fields that are kept of a response.
    static func storable(_ headers: HTTPHeaders) -> HTTPHeaders {
        var result = headers
        let named = CacheDirectives.list(headers.values(for: "Connection").joined(separator: ","))
        for name in unstored + named { result.remove(name: name) }
        return result
    }

    /// Takes over what a confirmation (304) says (RFC 9111, section 4.3.4); `false` if it is about something else.
    mutating func update(with headers: HTTPHeaders, requestTime: Date, responseTime: Date) -> Bool {
        if let tag = headers.value(for: "ETag"), let own = self.headers.value(for: "ETag"), Self.opaque(tag) != Self.opaque(own) {
            return false
        }
        var news = Self.storable(headers)
        for name in Self.ofBody { news.remove(name: name) }
        // An age is that of the confirmation, or there is none.
        self.headers.remove(name: "Age")
        self.headers.merge(news)
        self.requestTime = requestTime
        self.responseTime = responseTime
        return true
    }

    /// The tag without the mark of a weak one (RFC 9110, section 8.8.3.2).
    private static func opaque(_ tag: String) -> Substring {
        tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...]
    }
}
