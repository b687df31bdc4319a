// SPDX-License-Identifier: Apache-2.0

/// Why a cache used, validated or did not use a stored response.
///
/// An open set: later versions may add reasons, so a `switch` needs a `default`.
public struct CacheReason: RawRepresentable, Sendable, Hashable {
    /// The reason's name, as metrics and logs have it.
    public let rawValue: String

    /// Creates a reason from a name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The stored response is fresh (RFC 9111, section 4.2).
    public static let fresh = CacheReason(rawValue: "fresh")
    /// The request accepts a stale response: `max-stale`, or a cache policy that takes responses of any age.
    public static let allowedByRequest = CacheReason(rawValue: "allowed-by-request")
    /// Stale, and validated in the background: `stale-while-revalidate` (RFC 5861, section 3).
    public static let staleWhileRevalidate = CacheReason(rawValue: "stale-while-revalidate")
    /// Stale, and used in place of an error: `stale-if-error` (RFC 5861, section 4).
    public static let staleIfError = CacheReason(rawValue: "stale-if-error")
    /// The stored response is stale.
    public static let stale = CacheReason(rawValue: "stale")
    /// The request wants a validation: `no-cache`, `max-age`, `min-fresh`, or the cache policy.
    public static let requestedByRequest = CacheReason(rawValue: "requested-by-request")
    /// The stored response must be validated each time: `no-cache`.
    public static let requiredByResponse = CacheReason(rawValue: "required-by-response")
    /// Nothing is stored for the URL.
    public static let notStored = CacheReason(rawValue: "not-stored")
    /// What is stored for the URL was selected by other header fields: `Vary`, or other credentials.
    public static let otherVariant = CacheReason(rawValue: "other-variant")
    /// The stored part does not have the wanted range.
    public static let otherRange = CacheReason(rawValue: "other-range")
    /// The request forbids asking the host (`only-if-cached`, or the cache policy), and nothing that it may use is stored: it fails.
    public static let onlyIfCached = CacheReason(rawValue: "only-if-cached")
    /// The cache policy of the request, or its options, ignore the cache.
    public static let ignored = CacheReason(rawValue: "ignored")
    /// The request has conditions that only the host can evaluate.
    public static let conditional = CacheReason(rawValue: "conditional")
    /// The method's responses are not stored.
    public static let method = CacheReason(rawValue: "method")
    /// The request is of a kind that the cache does not store: it has a body, its content codings are left undecoded, its connection is
    /// authenticated, its URL has a user name, or it goes to a Unix socket.
    public static let notCacheable = CacheReason(rawValue: "not-cacheable")
    /// Another request for the same is in flight, and its response served this one.
    public static let collapsed = CacheReason(rawValue: "collapsed")
    /// The store failed.
    public static let storeFailed = CacheReason(rawValue: "store-failed")
}
