// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import Testing

@Suite(.timeLimit(.minutes(1))) struct PartialContentTests {
    private func part(_ range: String, tag: String = "\"a\"", total: String = "10") -> StoredResponse? {
        store(
            ["Cache-Control": "max-age=60", "ETag": tag, "Content-Range": "bytes \(range)/\(total)", "Content-Length": "1"], status: 206,
            for: get(["Range": "bytes=\(range)"]))
    }

    @Test("a 206 is stored as a part, with a valid range and a known length only")
    func storing() throws {
        let stored = try #require(part("2-5"))
        #expect(stored.statusCode == 200 && stored.part == .init(offset: 2, length: 4, total: 10))
        #expect(stored.headers["Content-Range"] == nil && stored.headers["Content-Length"] == nil)
        #expect(part("2-5", total: "*") == nil && part("5-2") == nil && part("2-10") == nil)
        // Blanks within, several lines, and a range that can't be satisfied.
        #expect(part("2 - 5") == nil && part("2-5", total: " 10") == nil && part("*") == nil)
        let twice: HTTPHeaders = [
            "Cache-Control": "max-age=60", "ETag": "\"a\"", "Content-Range": "bytes 2-5/10", "content-range": "bytes 2-5/10",
        ]
        #expect(store(twice, status: 206, for: get(["Range": "bytes=2-5"])) == nil)
    }

    @Test("a part without a strong validator serves its range, and is not combined")
    func weakParts() throws {
        let first = try #require(part("0-3", tag: "W/\"a\""))
        #expect(CacheRules.decide(get(["Range": "bytes=1-3"]), [first], now: start + 1).serves)
        #expect(StorageRules.combined(first, try #require(part("4-9", tag: "W/\"a\""))) == nil)
        #expect(CacheRules.decide(get(), [first], now: start + 1) == .forward(.otherRange, isBypass: false))
    }

    @Test(
        "a stored part serves the ranges that it has",
        arguments: [
            ("bytes=2-5", true), ("bytes=3-4", true), ("bytes=2-6", false), ("bytes=1-3", false), ("bytes=-4", false), ("bytes=2-", false),
            ("bytes=2-3, 4-5", false), ("items=2-3", false),
        ])
    func servingParts(range: String, isServed: Bool) throws {
        let stored = try #require(part("2-5"))
        let decision = CacheRules.decide(get(["Range": range]), [stored], now: start + 1)
        #expect(decision.serves == isServed)
        if !isServed { #expect(decision == .forward(.otherRange, isBypass: false)) }
    }

    @Test("a whole response serves a range, whose If-Range must match strongly")
    func servingWhole() throws {
        let stored = try #require(store(["Cache-Control": "max-age=60", "ETag": "\"a\""]))
        let wanted = try #require(RequestedByteRange("bytes=2-5"))
        func delivery(_ headers: HTTPHeaders) -> CacheDecision { CacheRules.decide(get(headers), [stored], now: start + 1) }
        #expect(delivery(["Range": "bytes=2-5"]) == .serve(0, .range(wanted), .fresh, isStale: false, validates: false))
        #expect(
            delivery(["Range": "bytes=2-5", "If-Range": "\"a\""]) == .serve(0, .range(wanted), .fresh, isStale: false, validates: false))
        #expect(delivery(["Range": "bytes=2-5", "If-Range": "\"b\""]) == .serve(0, .whole, .fresh, isStale: false, validates: false))
        #expect(delivery(["Range": "bytes=2-5", "If-Range": "W/\"a\""]) == .serve(0, .whole, .fresh, isStale: false, validates: false))
    }

    @Test("ranges of a coded body are the host's, as what is stored is decoded")
    func coded() throws {
        let stored = try #require(store(["Cache-Control": "max-age=60", "ETag": "\"a\"", "Content-Encoding": "gzip"]))
        #expect(CacheRules.decide(get(["Range": "bytes=2-5"]), [stored], now: start + 1) == .forward(.otherRange, isBypass: false))
        let part: HTTPHeaders = [
            "Cache-Control": "max-age=60", "ETag": "\"a\"", "Content-Encoding": "gzip", "Content-Range": "bytes 0-3/10",
        ]
        #expect(store(part, status: 206) == nil)
    }

    @Test(
        "ranges are resolved against the length",
        arguments: [
            ("bytes=0-", 0, 9), ("bytes=3-", 3, 9), ("bytes=3-100", 3, 9), ("bytes=-4", 6, 9), ("bytes=-40", 0, 9), ("BYTES=0-0", 0, 0),
            ("bytes=10-", -1, -1), ("bytes=-0", -1, -1),
        ] as [(String, Int64, Int64)])
    func resolving(field: String, first: Int64, last: Int64) throws {
        let range = try #require(RequestedByteRange(field)).resolved(total: 10)
        #expect(range == (first < 0 ? nil : ByteRange(first: first, last: last)))
    }

    @Test(
        "invalid ranges are no ranges",
        arguments: ["bytes=-", "bytes=5-2", "bytes=a-b", "bytes=1", "bytes", "bytes=1-2-3", "bytes=99999999999999999999-"])
    func invalid(_ field: String) {
        #expect(RequestedByteRange(field) == nil)
    }

    @Test("the beginning of a broken transfer is completed by a range under its validator")
    func completing() throws {
        let whole = try #require(store(["Cache-Control": "max-age=60", "ETag": "\"a\""]))
        let beginning = try #require(StorageRules.beginning(of: whole, length: 4, total: 10))
        #expect(CacheRules.decide(get(), [beginning], now: start + 1) == .complete(0, ["Range": "bytes=4-", "If-Range": "\"a\""]))
        #expect(
            StorageRules.beginning(of: whole, length: 0, total: 10) == nil
                && StorageRules.beginning(of: whole, length: 10, total: 10) == nil)
        let weak = try #require(store(["Cache-Control": "max-age=60", "ETag": "W/\"a\""]))
        #expect(StorageRules.beginning(of: weak, length: 4, total: 10) == nil)
    }

    @Test("a modification date is strong only if it is a minute older than the response")
    func strongDates() throws {
        let strong = try #require(store(["Date": startDate, "Last-Modified": date(-60)]))
        #expect(strong.strongValidator == date(-60))
        let weak = try #require(store(["Date": startDate, "Last-Modified": date(-59)]))
        #expect(weak.strongValidator == nil)
        let undated = try #require(store(["Last-Modified": date(-600)]))
        #expect(undated.strongValidator == nil)
    }

    @Test("parts of one representation that adjoin are combined, up to the whole")
    func combining() throws {
        let first = try #require(part("0-3"))
        let second = try #require(part("4-6"))
        let both = try #require(StorageRules.combined(first, second))
        #expect(both.part == .init(offset: 0, length: 7, total: 10))
        let third = try #require(part("7-9"))
        let whole = try #require(StorageRules.combined(both, third))
        #expect(whole.part == nil && whole.statusCode == 200)
        #expect(StorageRules.combined(first, try #require(part("5-6"))) == nil)
        #expect(StorageRules.combined(first, try #require(part("4-6", tag: "\"b\""))) == nil)
        #expect(StorageRules.combined(first, try #require(part("4-6", total: "20"))) == nil)
    }
}
