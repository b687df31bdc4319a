// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import CurlewTransport

extension TransferMetrics {
    /// How the session's cache has handled the request, in the terms of RFC 9211; `nil` without a cache.
    public var cacheStatus: CacheStatus? {
        guard let cacheOutcome else { return nil }
        var status = CacheStatus(cache: CacheStatus.ownName)
        switch cacheOutcome {
        case .hit,
            .stale where cacheReason != .staleIfError:
            status.isHit = true
        case .stale, .revalidated, .miss, .bypass: status.forward = CacheStatus.forward(for: cacheReason ?? .notStored)
        }
        status.isCollapsed = cacheReason == .collapsed
        if cacheOutcome == .revalidated { status.forwardStatus = 304 }
        status.detail = cacheReason?.rawValue
        return status
    }
}
