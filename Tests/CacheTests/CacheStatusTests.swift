// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import Testing

@Suite struct CacheStatusTests {
    @Test(
        "a member is read, and written as it was",
        arguments: [
            "ExampleCache; hit", "ExampleCache; hit; ttl=376", "ExampleCache; hit; ttl=-412", "\"CDN Company Here\"; hit; ttl=545",
            "OriginCache; fwd=uri-miss", "OriginCache; fwd=stale; fwd-status=304; collapsed", "OriginCache; fwd=other; stored",
            "R2; fwd=miss; key=\"a \\\"b\\\" \\\\\"; detail=\"x; y, z\"",
        ])
    func members(_ text: String) throws {
        let list = HTTPHeaders(["Cache-Status": text]).cacheStatus
        #expect(list.count == 1 && list.first?.description == text)
    }

    @Test("the members of all lines are in order, the first is closest to the host")
    func lines() throws {
        let headers: HTTPHeaders = [
            "Cache-Status": "Origin; hit; ttl=1100, \"CDN, Inc\"; fwd=uri-miss;stored", "cache-status": "Own;hit=?0",
        ]
        let list = headers.cacheStatus
        #expect(list.map(\.cache) == ["Origin", "CDN, Inc", "Own"])
        #expect(list[0].isHit && list[0].timeToLive == 1100 && list[0].forward == nil)
        #expect(!list[1].isHit && list[1].forward == .uriMiss && list[1].isStored)
        #expect(!list[2].isHit)
    }

    @Test("unknown parameters and wrong types are ignored")
    func ignored() throws {
        let list = HTTPHeaders(["Cache-Status": "A; x=1; ttl=soon; fwd-status=7; fwd=\"stale\"; key=token; detail=token; y"]).cacheStatus
        var expected = CacheStatus(cache: "A")
        expected.detail = "token"
        #expect(list == [expected])
    }

    @Test(
        "a field that does not parse is ignored",
        arguments: [
            "A; Hit", "A; =1", "A; ttl=", "\"A", "A; key=\"x", "A; key=\"\\x\"", "A B", "A; k=\"x\"y", "Ä; hit", "OK; hit, \"bad",
            "A; hit,", "5; hit", "(A); hit",
        ])
    func invalid(_ text: String) {
        #expect(HTTPHeaders(["Cache-Status": text]).cacheStatus.isEmpty)
    }

    @Test(
        "each reason has its word",
        arguments: [
            (CacheReason.notStored, CacheStatus.Forward.uriMiss), (.otherVariant, .varyMiss), (.stale, .stale),
            (.requestedByRequest, .request),
            (.method, .method), (.ignored, .bypass), (.otherRange, .partial), (.conditional, .bypass),
            (.storeFailed, .miss), (.collapsed, .miss), (.notCacheable, .bypass), (.staleIfError, .stale), (.requiredByResponse, .stale),
        ])
    func words(reason: CacheReason, forward: CacheStatus.Forward) {
        #expect(CacheStatus.forward(for: reason) == forward)
    }
}
