// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// How a cache has handled a request: a member of the field `Cache-Status` (RFC 9211, section 2).
///
/// `HTTPHeaders.cacheStatus` reads what the caches on the way report, `TransferMetrics.cacheStatus` is the status of the session's own cache.
public struct CacheStatus: Sendable, Hashable {
    /// Why a request was forwarded towards the host (RFC 9211, section 2.2). An open set.
    public struct Forward: RawRepresentable, Sendable, Hashable {
        /// The reason, as the field has it.
        public let rawValue: String

        /// Creates a reason from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The cache was configured not to handle the request.
        public static let bypass = Forward(rawValue: "bypass")
        /// The semantics of the method demand it.
        public static let method = Forward(rawValue: "method")
        /// Nothing was stored for the URL.
        public static let uriMiss = Forward(rawValue: "uri-miss")
        /// What was stored for the URL was selected by other header fields.
        public static let varyMiss = Forward(rawValue: "vary-miss")
        /// There was no response for one of the two reasons before.
        public static let miss = Forward(rawValue: "miss")
        /// A fresh response was stored, but the request's directives did not allow its use.
        public static let request = Forward(rawValue: "request")
        /// The stored response was stale.
        public static let stale = Forward(rawValue: "stale")
        /// Not all of the wanted range was stored.
        public static let partial = Forward(rawValue: "partial")
    }

    /// The name of the session's own cache.
    public static let ownName = "Curlew"

    /// The name that the cache gives itself.
    public var cache: String
    /// Whether a stored response was used without forwarding the request.
    public var isHit = false
    /// Why the request was forwarded; `nil` if it was not, or the cache does not say so.
    public var forward: Forward?
    /// The status of the response to the forwarded request, if it is reported.
    public var forwardStatus: Int?
    /// The remaining freshness lifetime in seconds, if it is reported; negative for a stale response.
    public var timeToLive: Int?
    /// Whether the response to the forwarded request was stored.
    public var isStored = false
    /// Whether the forwarded request was collapsed with others.
    public var isCollapsed = false
    /// A representation of the cache's key, if it is reported.
    public var key: String?
    /// More, in a form of the cache's own.
    public var detail: String?

    /// Creates the status of a cache that reports nothing but its name.
    public init(cache: String) { self.cache = cache }

    /// `nil` for a member that does not begin with a name.
    fileprivate init?(_ member: StructuredFields.Member) {
        guard case .item(let item) = member else { return nil }
        switch item.value {
        case .string(let name), .token(let name): self.init(cache: name)
        default: return nil
        }
        for parameter in item.parameters { set(parameter.key, parameter.value) }
    }

    /// Parameters that are unknown, or have another type than they should, are ignored.
    private mutating func set(_ parameter: String, _ value: StructuredFields.BareItem) {
        switch (parameter, value) {
        case ("hit", .boolean(let flag)): isHit = flag
        case ("stored", .boolean(let flag)): isStored = flag
        case ("collapsed", .boolean(let flag)): isCollapsed = flag
        case ("fwd", .token(let reason)): forward = Forward(rawValue: reason)
        case ("fwd-status", .integer(let status)) where (100...999).contains(status): forwardStatus = status
        case ("ttl", .integer(let seconds)): timeToLive = seconds
        case ("key", .string(let text)): key = text
        case ("detail", .string(let text)), ("detail", .token(let text)): detail = text
        default: break
        }
    }

    /// Why a request that was forwarded for a reason was, in the terms of the field.
    package static func forward(for reason: CacheReason) -> Forward {
        switch reason {
        case .notStored: .uriMiss
        case .otherVariant: .varyMiss
        case .stale, .requiredByResponse, .staleIfError: .stale
        case .requestedByRequest: .request
        case .otherRange: .partial
        // What would have been found is unknown.
        case .storeFailed, .collapsed: .miss
        case .method: .method
        default: .bypass
        }
    }
}

extension HTTPHeaders {
    /// The members of all lines of `Cache-Status` (RFC 9211): the cache that is closest to the host first. Empty without a field, or if one
    /// does not parse, as a structured field that is invalid is ignored (RFC 9651, section 4.2).
    ///
    /// Setting them replaces all fields of that name.
    public var cacheStatus: [CacheStatus] {
        get {
            let members = structuredList("Cache-Status")
            let list = members.compactMap { CacheStatus($0) }
            return list.count == members.count ? list : []
        }
        set { set("Cache-Status", to: newValue.map(\.description).joined(separator: ", ")) }
    }
}

extension CacheStatus: CustomStringConvertible {
    /// The member as the field has it.
    public var description: String {
        var text = StructuredFields.isToken(cache) ? cache : cache.quotedString
        if isHit { text += "; hit" }
        if let forward { text += "; fwd=\(forward.rawValue)" }
        if let forwardStatus { text += "; fwd-status=\(forwardStatus)" }
        if let timeToLive { text += "; ttl=\(timeToLive)" }
        if isStored { text += "; stored" }
        if isCollapsed { text += "; collapsed" }
        if let key { text += "; key=\(key.quotedString)" }
        if let detail { text += "; detail=\(detail.quotedString)" }
        return text
    }
}
