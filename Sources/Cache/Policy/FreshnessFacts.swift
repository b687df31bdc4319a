// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What the header fields of a response say of its age, its freshness and its validators; read in one pass.
struct FreshnessFacts {
    /// The heuristic lifetime is this fraction of the time since `Last-Modified`, and at most a day (RFC 9111, section 4.2.2).
    private static let heuristicFraction = 0.1
    private static let longestHeuristicLifetime = 86_400.0
    /// Statuses that are heuristically cacheable (RFC 9110, section 15.1).
    private static let heuristicallyCacheable: Set<Int> = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]

    private(set) var directives = CacheDirectives()
    /// `Date`, in seconds since 1970.
    private(set) var date: Double?
    private(set) var entityTag: EntityTag?
    private(set) var lastModified: String?
    /// `No-Vary-Search`, all lines as one list; `nil` without one.
    private(set) var noVarySearch: String?
    private var modificationTime: Double?
    /// The seconds of `Age`; ``CacheDirectives/longest`` and beyond is stale for good.
    private var reportedAge: Int?
    /// Whether there is an `Expires`; its time, if all lines agree on a valid one.
    private var hasExpires = false
    private var expires: Double?

    init(_ headers: HTTPHeaders) {
        directives = CacheDirectives(headers)
        var hasDate = false
        var hasAge = false
        var firstExpires: String?
        for field in headers {
            switch field.name.utf8.count {
            case 3 where !hasAge && field.isNamed("Age"):
                hasAge = true
                reportedAge = FieldParser.members(of: field.value).first.flatMap { CacheDirectives.deltaSeconds($0) }
            case 4 where entityTag == nil && field.isNamed("ETag"): entityTag = EntityTag(field.value)
            case 4 where !hasDate && field.isNamed("Date"):
                hasDate = true
                date = CacheDate.seconds(from: field.value)
            case 7 where field.isNamed("Expires"):
                // An invalid date, such as 0, has passed (section 5.3); of several that differ none is believed (section 4.2.1).
                if let firstExpires {
                    if firstExpires != field.value { expires = nil }
                } else {
                    firstExpires = field.value
                    expires = CacheDate.seconds(from: field.value)
                }
                hasExpires = true
            case 13 where lastModified == nil && field.isNamed("Last-Modified"):
                modificationTime = CacheDate.seconds(from: field.value)
                if modificationTime != nil { lastModified = field.value }
            case 14 where field.isNamed("No-Vary-Search"): noVarySearch = noVarySearch.map { "\($0), \(field.value)" } ?? field.value
            default: break
            }
        }
    }

    /// The age when the response was received, including the time in transit (RFC 9111, section 4.2.3).
    func initialAge(requestTime: Double, responseTime: Double) -> Double {
        let apparent = max(responseTime - (date ?? responseTime), 0)
        let reported = reportedAge ?? 0
        guard reported < CacheDirectives.longest else { return .infinity }
        return max(apparent, Double(reported) + max(responseTime - requestTime, 0))
    }

    /// The freshness lifetime in seconds, which an age is compared with (RFC 9111, section 4.2.1).
    func lifetime(statusCode: Int, responseTime: Double) -> Double {
        if let maxAge = directives.maxAge { return Double(maxAge) }
        let date = date ?? responseTime
        if hasExpires { return expires.map { max($0 - date, 0) } ?? 0 }
        guard Self.heuristicallyCacheable.contains(statusCode) || directives.has(.isPublic), let modificationTime else { return 0 }
        return min(max(date - modificationTime, 0) * Self.heuristicFraction, Self.longestHeuristicLifetime)
    }

    /// Whether the response says itself how long it is fresh.
    var isExplicit: Bool { directives.maxAge != nil || hasExpires }

    /// Whether a status is cacheable without explicit freshness.
    static func isHeuristicallyCacheable(_ statusCode: Int) -> Bool { heuristicallyCacheable.contains(statusCode) }
}
