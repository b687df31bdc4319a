// SPDX-License-Identifier: Apache-2.0

/// How a cache takes part in a request: the cases and meanings of `NSURLRequest.CachePolicy`.
public enum CachePolicy: Sendable, Hashable, CaseIterable {
    /// As HTTP has it: fresh answers come from the cache, stale ones are confirmed by the host first (RFC 9111).
    case useProtocolCachePolicy
    /// The host is asked, whatever the cache has; its answer may be stored.
    case reloadIgnoringLocalCacheData
    /// What the cache has, however old, else from the host.
    case returnCacheDataElseLoad
    /// What the cache has, however old, else ``TransferFailure/Kind/notInCache``.
    case returnCacheDataDontLoad
    /// As ``reloadIgnoringLocalCacheData``, and caches on the way are told to ask the host, too.
    case reloadIgnoringLocalAndRemoteCacheData
    /// What the cache has, if the host confirms it, however fresh it is.
    case reloadRevalidatingCacheData
}
