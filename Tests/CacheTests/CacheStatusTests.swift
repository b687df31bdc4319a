// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import Testing

@Suite struct CacheStatusTests {
    @Test("a hit and a forwarded request are told as RFC 9211 has them")
    func members() {
        var hit = CacheStatus()
        hit.timeToLive = 30
        #expect(hit.member == "Curlew; hit; ttl=30")
        var miss = CacheStatus()
        miss.forward = .uriMiss
        miss.forwardStatus = 200
        miss.isStored = true
        miss.detail = CacheReason.notStored.rawValue
        #expect(miss.member == "Curlew; fwd=uri-miss; fwd-status=200; stored; detail=not-stored")
    }

    @Test(
        "each reason has its word",
        arguments: [
            (CacheReason.notStored, CacheStatus.Forward.uriMiss), (.otherVariant, .varyMiss), (.stale, .stale),
            (.requestedByRequest, .request),
            (.method, .method), (.ignored, .bypass), (.otherRange, .partial), (.conditional, .bypass),
        ])
    func words(reason: CacheReason, forward: CacheStatus.Forward) {
        #expect(CacheStatus.forward(for: reason) == forward)
    }
}
