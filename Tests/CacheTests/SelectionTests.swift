// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import Testing

@Suite(.timeLimit(.minutes(1))) struct SelectionTests {
    @Test(
        "a response serves requests with equal values of the fields in its Vary",
        arguments: [
            ("X", ["X": "1"], ["X": "1"], true), ("X", ["X": "1"], ["x": "1"], true), ("X", ["X": "1"], ["X": "2"], false),
            ("X", ["X": "1"], [:], false), ("X", [:], ["X": ""], false), ("X", [:], [:], true),
            ("X, Y", ["X": "1", "Y": "2"], ["X": "1"], false),
            ("X, Y", ["X": "1", "Y": "2"], ["Y": "2", "X": "1"], true), ("Prefer", ["Prefer": "1,  2"], ["Prefer": "1,2"], true),
            ("X", ["X": "1,  2"], ["X": "1,2"], false),
            ("Prefer", ["Prefer": "1, 2"], ["Prefer": "1", "prefer": "2"], true), ("X", ["X": "1, 2"], ["X": "2, 1"], false),
            ("Accept-Language", ["Accept-Language": "EN, de;q=0.5"], ["Accept-Language": "de; q=0.5,en"], true),
            ("Accept-Language", ["Accept-Language": "en, de"], ["Accept-Language": "de, en"], false),
            ("Accept-Encoding", ["Accept-Encoding": "gzip"], ["Accept-Encoding": "br"], false), ("Cookie", ["Cookie": "a=1"], [:], false),
        ] as [(String, HTTPHeaders, HTTPHeaders, Bool)])
    func vary(field: String, first: HTTPHeaders, second: HTTPHeaders, matches: Bool) throws {
        let stored = try #require(store(["Cache-Control": "max-age=60", "Vary": field], for: get(first)))
        #expect(CacheRules.decide(get(second), [stored], now: start + 1).serves == matches)
    }

    @Test("Vary: * is never stored", arguments: ["*", "X, *", "*, X"])
    func star(_ value: String) {
        #expect(store(["Cache-Control": "max-age=60", "Vary": value]) == nil)
    }

    @Test("several lines of Vary count together")
    func lines() throws {
        let stored = try #require(store(["Cache-Control": "max-age=60", "Vary": "X", "vary": "Y"], for: get(["X": "1", "Y": "1"])))
        #expect(!CacheRules.decide(get(["X": "1", "Y": "2"]), [stored], now: start + 1).serves)
    }

    @Test(arguments: [("Bearer a,b", "Bearer a,,b"), ("Bearer a, b", "Bearer a,b"), ("Bearer a", "Bearer a ")])
    func `Credentials are compared byte by byte`(first: String, second: String) throws {
        let stored = try #require(store(["Cache-Control": "max-age=60"], for: get(["Authorization": first])))
        #expect(CacheRules.decide(get(["Authorization": first]), [stored], now: start + 1).serves)
        #expect(!CacheRules.decide(get(["Authorization": second]), [stored], now: start + 1).serves)
    }

    @Test("a response is served to other credentials only if it is public")
    func credentials() throws {
        let first = get(["Authorization": "Bearer one"])
        let second = get(["Authorization": "Bearer two"])
        let own = try #require(store(["Cache-Control": "max-age=60"], for: first))
        #expect(CacheRules.decide(first, [own], now: start + 1).serves)
        #expect(CacheRules.decide(second, [own], now: start + 1) == .forward(.otherVariant, isBypass: false))
        #expect(!CacheRules.decide(get(), [own], now: start + 1).serves)
        let anonymous = try #require(store(["Cache-Control": "max-age=60"]))
        #expect(!CacheRules.decide(first, [anonymous], now: start + 1).serves)
        let shared = try #require(store(["Cache-Control": "max-age=60, public"], for: first))
        #expect(CacheRules.decide(second, [shared], now: start + 1).serves)
    }

    @Test("values are kept as a fingerprint only")
    func fingerprint() throws {
        let stored = try #require(store(["Cache-Control": "max-age=60", "Vary": "X-Key"], for: get(["X-Key": "topsecret"])))
        #expect(!String(decoding: stored.encoded, as: UTF8.self).contains("topsecret"))
    }

    @Test("of several that match the most recent counts, a whole one before a part")
    func mostRecent() throws {
        let old = try #require(store(["Cache-Control": "max-age=60", "Date": date(-5), "ETag": "\"a\""]))
        let new = try #require(store(["Cache-Control": "max-age=60", "Date": date(-1), "ETag": "\"b\""]))
        #expect(CacheRules.decide(get(), [old, new], now: start) == .serve(1, .whole, .fresh, isStale: false, validates: false))
        #expect(CacheRules.decide(get(), [new, old], now: start) == .serve(0, .whole, .fresh, isStale: false, validates: false))
        let part = try #require(StorageRules.beginning(of: new, length: 10, total: 20))
        #expect(CacheRules.decide(get(), [part, old], now: start) == .serve(1, .whole, .fresh, isStale: false, validates: false))
    }
}
