// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import Testing

@Suite(.timeLimit(.minutes(1))) struct FreshnessTests {
    @Test(
        "a response is fresh for the seconds that its fields give",
        arguments: [
            (["Cache-Control": "max-age=60"], 60), (["Cache-Control": "MAX-AGE=60"], 60), (["Cache-Control": "max-age=060"], 60),
            (["Cache-Control": "max-age=60, max-age=10"], 60), (["Cache-Control": "max-age=\"60\""], 60),
            (["Cache-Control": "private, max-age=60", "Expires": date(10)], 60), (["Cache-Control": "s-maxage=10, max-age=60"], 60),
            (["Cache-Control": "x=\"max-age=10, max-age=10\", max-age=60"], 60),
            (["Cache-Control": "a=\"b\\\", max-age=10\", max-age=60"], 60),
            (["Cache-Control": "max-age=99999999999999999999"], 2_147_483_648), (["Cache-Control": "max-age=60", "Age": "20"], 40),
            (["Expires": date(60)], 60), (["Date": startDate, "Expires": date(60)], 60), (["Expires": date(60), "Pragma": "x"], 60),
            (["CDN-Cache-Control": "max-age=600", "Cache-Control": "max-age=60"], 60),
            (["Date": startDate, "Last-Modified": date(-1000)], 100), (["Date": startDate, "Last-Modified": date(-10_000_000)], 86_400),
        ] as [(HTTPHeaders, Double)])
    func lifetimes(_ headers: HTTPHeaders, seconds: Double) throws {
        let response = try #require(store(headers))
        #expect(CacheRules.decide(get(), [response], now: start + seconds - 0.1).serves)
        #expect(!CacheRules.decide(get(), [response], now: start + seconds + 0.1).serves)
    }

    @Test(
        "a response without a valid lifetime is stale at once",
        arguments: [
            [:], ["Cache-Control": "max-age=0"], ["Cache-Control": "max-age=-1"], ["Cache-Control": "max-age=60s"],
            ["Cache-Control": "max-age=60.5"], ["Cache-Control": "max-age='60'"], ["Cache-Control": "max-age"],
            ["Cache-Control": "max-age =60"], ["Cache-Control": "s-maxage=60"], ["CDN-Cache-Control": "max-age=60"], ["Expires": "0"],
            ["Expires": "tomorrow"], ["Expires": date(-1)], ["Expires": date(60), "expires": date(70)],
            ["Cache-Control": "max-age=60", "Age": "60"], ["Cache-Control": "max-age=2147483648", "Age": "2147483648"],
            ["Cache-Control": "max-age=2147483648", "Age": "99999999999999999999"], ["Date": startDate, "Last-Modified": date(100)],
        ] as [HTTPHeaders])
    func stale(_ headers: HTTPHeaders) {
        #expect(!decide(headers, after: 0).serves)
    }

    @Test("equal lines of Expires count as one")
    func equalExpires() {
        #expect(decide(["Expires": date(60), "expires": date(60)], after: 1).serves)
    }

    @Test(
        "of Age the first value counts, and an invalid one is ignored",
        arguments: [("30, 0", 30), ("0, 30", 0), ("abc", 0), ("30;a=b", 0), ("-30", 0), ("30.5", 0), ("", 0)] as [(String, Double)])
    func ages(_ value: String, seconds: Double) throws {
        let response = try #require(store(["Cache-Control": "max-age=60", "Age": value]))
        #expect(response.age(at: start) == seconds)
    }

    @Test("of several lines of Age the first counts")
    func repeatedAge() throws {
        let response = try #require(store(["Cache-Control": "max-age=60", "Age": "7", "age": "50"]))
        #expect(response.age(at: start) == 7)
    }

    @Test("the age includes the time in transit, and that since an old Date")
    func transit() throws {
        let delayed = try #require(store(["Cache-Control": "max-age=60", "Age": "10"], delay: 5))
        #expect(delayed.age(at: start + 3) == 18)
        let old = try #require(store(["Cache-Control": "max-age=60", "Date": date(-40)]))
        #expect(old.age(at: start + 3) == 43)
        let future = try #require(store(["Cache-Control": "max-age=60", "Date": date(40)]))
        #expect(future.age(at: start + 3) == 3)
    }

    @Test("a clock that is set back does not make an age negative")
    func clockSetBack() throws {
        let response = try #require(store(["Cache-Control": "max-age=60", "Age": "5"]))
        #expect(response.age(at: start - 100) == 5)
    }

    @Test(
        "heuristic freshness is for the statuses that allow it, and for public responses",
        arguments: [(200, true), (404, true), (302, false)])
    func heuristicStatuses(status: Int, isFresh: Bool) {
        let headers: HTTPHeaders = ["Date": startDate, "Last-Modified": date(-1000)]
        let stored = store(headers, status: status)
        #expect((stored?.lifetime ?? 0) == (isFresh ? 100 : 0))
        let public_ = store(["Date": startDate, "Last-Modified": date(-1000), "Cache-Control": "public"], status: status)
        #expect(public_?.lifetime == 100)
    }

    @Test("Pragma counts only without Cache-Control")
    func pragma() {
        #expect(!decide(["Expires": date(60), "Pragma": "no-cache"], after: 1).serves)
        #expect(decide(["Cache-Control": "max-age=60", "Pragma": "no-cache"], after: 1).serves)
        #expect(!decide(["Cache-Control": "max-age=60"], get(["Pragma": "no-cache"]), after: 1).serves)
        #expect(decide(["Cache-Control": "max-age=60"], get(["Pragma": "no-cache", "Cache-Control": "max-age=600"]), after: 1).serves)
    }
}
