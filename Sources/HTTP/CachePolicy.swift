// SPDX-License-Identifier: Apache-2.0

/// The cache policy of a request: the cases and meanings of `NSURLRequest.CachePolicy`.
public enum CachePolicy: Sendable, Hashable, CaseIterable {
    /// HTTP's rules: fresh responses come from the cache, stale ones are validated with the host first (RFC 9111).
    case useProtocolCachePolicy
    /// Sends the request to the host, even if there is a cached response; the response may be stored.
    case reloadIgnoringLocalCacheData
    /// Uses a cached response of any age, otherwise sends the request to the host.
    case returnCacheDataElseLoad
    /// Uses a cached response of any age, otherwise fails with ``TransferFailure/Kind/notInCache``.
    case returnCacheDataDontLoad
    /// The same as ``reloadIgnoringLocalCacheData``, and asks caches between client and host to forward the request as well.
    case reloadIgnoringLocalAndRemoteCacheData
    /// Uses a cached response only after validating it with the host, even if it is fresh.
    case reloadRevalidatingCacheData
}
