// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import CurlewTransport

extension TransferMetrics {
    /// How the session's cache has handled the request, in the terms of RFC 9211; `nil` without a cache.
    ///
    /// A validation has `fwd=stale` or `fwd=request`, with `fwd-status=304` if it has confirmed the stored response; a stale response that is
    /// served in place of an error has `fwd=stale` with the status of the error, if there was one. A request that fails because it forbids
    /// asking the host is neither a hit nor forwarded. `detail` is ``cacheReason``.
    public var cacheStatus: CacheStatus? {
        guard let cacheOutcome else { return nil }
        var status = CacheStatus(cache: CacheStatus.ownName)
        switch cacheOutcome {
        case .miss where cacheReason == .onlyIfCached: break
        case .hit where cacheReason != .collapsed, .stale where cacheReason != .staleIfError:
            status.isHit = true
            status.timeToLive = cacheDetail.timeToLive.map { Int($0) }
        case .hit, .stale, .revalidated, .miss, .bypass:
            status.forward = CacheStatus.forward(for: cacheReason ?? .notStored)
            status.forwardStatus = cacheDetail.forwardStatus.map { Int($0) }
            status.isStored = cacheDetail.isStored
            status.isCollapsed = cacheReason == .collapsed
        }
        status.detail = cacheReason?.rawValue
        return status
    }
}
