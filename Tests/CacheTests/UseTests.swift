// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import Testing

@Suite(.timeLimit(.minutes(1))) struct UseTests {
    private static let fresh: HTTPHeaders = ["Cache-Control": "max-age=60", "ETag": "\"a\""]

    @Test("entity tags are compared by their bytes") func tagBytes() throws {
        let tags = try ["\"caf\u{E9}\"", "\"cafe\u{301}\""].map { try #require(EntityTag($0)) }
        #expect(!tags[0].matchesStrongly(tags[1]) && !tags[0].matchesWeakly(tags[1]) && tags[0].matchesStrongly(tags[0]))
    }

    @Test(
        "directives of the request ask for a validation",
        arguments: ["no-cache", "max-age=5", "max-age=0", "min-fresh=55", "max-age=x", "min-fresh=60"])
    func validationRequested(_ directives: String) {
        let decision = decide(Self.fresh, get(["Cache-Control": directives]), after: 10)
        #expect(decision == .validate(0, ["If-None-Match": "\"a\""], .requestedByRequest))
    }

    @Test("directives of the request that are met do not", arguments: ["max-age=10", "min-fresh=50", "max-stale", "x-other"])
    func validationNotRequested(_ directives: String) {
        let decision = decide(Self.fresh, get(["Cache-Control": directives]), after: 10)
        #expect(decision == .serve(0, .whole, .fresh, isStale: false, validates: false))
    }

    @Test(
        "max-stale takes a stale response, unless that must be validated",
        arguments: [
            ("max-age=60", "max-stale", true), ("max-age=60", "max-stale=10", true), ("max-age=60", "max-stale=9", false),
            ("max-age=60, must-revalidate", "max-stale", false), ("max-age=60, no-cache", "max-stale", false),
            ("max-age=60", "max-stale=x", false), ("max-age=60, proxy-revalidate", "max-stale", true),
        ])
    func maxStale(response: String, request: String, isServed: Bool) {
        let decision = decide(["Cache-Control": response, "ETag": "\"a\""], get(["Cache-Control": request]), after: 70)
        #expect(decision.serves == isServed)
        if isServed { #expect(decision == .serve(0, .whole, .allowedByRequest, isStale: true, validates: false)) }
    }

    @Test("no-cache is validated each time", arguments: ["no-cache", "NO-CACHE", "no-cache=\"\"", "no-cache=\"a\", no-cache"])
    func noCache(_ directive: String) {
        let decision = decide(["Cache-Control": "max-age=60, \(directive)", "ETag": "\"a\""], after: 1)
        #expect(decision.reason == .requiredByResponse && decision.validates)
    }

    @Test("no-cache with a list of fields hides those from what is served without a validation", arguments: ["\"x, Y\"", "\" y,X \""])
    func noCacheFields(_ list: String) throws {
        let stored = try #require(store(["Cache-Control": "max-age=60, no-cache=\(list)", "X": "1", "y": "2", "Z": "3"]))
        #expect(CacheRules.decide(get(), [stored], now: start + 1).serves)
        let fields = CacheRules.unvalidatedFields(of: stored)
        #expect(fields["X"] == nil && fields["Y"] == nil && fields["Z"] == "3" && stored.headers["X"] == "1")
        #expect(!CacheRules.decide(get(["Cache-Control": "no-cache=x"]), [stored], now: start + 1).serves)
    }

    @Test("a stale response without a validator is fetched again")
    func withoutValidator() {
        #expect(decide(["Cache-Control": "max-age=60"], after: 61) == .forward(.stale, isBypass: false))
    }

    @Test("both validators are sent")
    func bothValidators() {
        let decision = decide(["Cache-Control": "max-age=60", "ETag": "W/\"a\"", "Last-Modified": date(-10)], after: 61)
        #expect(decision == .validate(0, ["If-None-Match": "W/\"a\"", "If-Modified-Since": date(-10)], .stale))
    }

    @Test("only-if-cached never asks the host", arguments: [([:], 0.0), (["Cache-Control": "max-age=60"], 61)] as [(HTTPHeaders, Double)])
    func onlyIfCached(_ stored: HTTPHeaders, seconds: Double) {
        let responses = stored.isEmpty ? [] : [store(stored)].compactMap { $0 }
        #expect(CacheRules.decide(get(["Cache-Control": "only-if-cached"]), responses, now: start + seconds) == .fail)
        #expect(decide(Self.fresh, get(["Cache-Control": "only-if-cached"]), after: 1).serves)
    }

    @Test("no-store of the request does not keep it from what is stored")
    func noStoreOfTheRequest() {
        #expect(decide(Self.fresh, get(["Cache-Control": "no-store"]), after: 1).serves)
    }

    @Test("the modes of cache policies")
    func modes() {
        #expect(decide(Self.fresh, get([:], .ignoresStored), after: 1) == .forward(.ignored, isBypass: true))
        #expect(decide(Self.fresh, get([:], .revalidates), after: 1).reason == .requestedByRequest)
        #expect(decide(Self.fresh, get([:], .storedOrHost), after: 100).reason == .allowedByRequest)
        #expect(decide(Self.fresh, get([:], .storedOnly), after: 100).reason == .allowedByRequest)
        #expect(CacheRules.decide(get([:], .storedOrHost), [], now: start) == .forward(.notStored, isBypass: false))
        #expect(CacheRules.decide(get([:], .storedOnly), [], now: start) == .fail)
    }

    @Test("a reload does not validate a fresh immutable response")
    func immutable() {
        let headers: HTTPHeaders = ["Cache-Control": "max-age=60, immutable", "ETag": "\"a\""]
        #expect(decide(headers, get([:], .revalidates), after: 1).serves)
        #expect(decide(headers, get([:], .revalidates), after: 61).validates)
        #expect(decide(headers, get(["Cache-Control": "no-cache"]), after: 1).validates)
        #expect(decide(headers, get([:], .ignoresStored), after: 1) == .forward(.ignored, isBypass: true))
    }

    @Test("immutable counts only in responses received over TLS")
    func immutableWithoutTLS() throws {
        let answer = received(["Cache-Control": "max-age=60, immutable", "ETag": "\"a\""])
        for (url, serves) in [("http://host.test/", false), ("https://host.test/", true)] {
            let stored = try #require(StorageRules.head(of: answer, url: url, request: get()))
            #expect(CacheRules.decide(get([:], .revalidates), [stored], now: start + 1).serves == serves)
        }
    }

    @Test(
        "stale-while-revalidate serves for its seconds and validates in the background",
        arguments: [
            ("max-age=60, stale-while-revalidate=30", 90, true), ("max-age=60, stale-while-revalidate=30", 91, false),
            ("max-age=60, stale-while-revalidate=30, must-revalidate", 61, false),
            ("max-age=60, stale-while-revalidate=30, no-cache", 61, false),
        ])
    func whileRevalidating(directives: String, seconds: Double, isServed: Bool) throws {
        let stored = try #require(store(["Cache-Control": directives, "ETag": "\"a\""]))
        let decision = CacheRules.decide(get(), [stored], now: start + seconds)
        #expect((decision == .serve(0, .whole, .staleWhileRevalidate, isStale: true, validates: true)) == isServed)
        let foreground = CacheRules.decide(get(), [stored], now: start + seconds, validatesInBackground: false)
        #expect(!foreground.serves)
    }

    @Test(
        "stale-if-error of the response or the request allows a stale response",
        arguments: [
            ("max-age=60, stale-if-error=30", "", 90, true), ("max-age=60, stale-if-error=30", "", 91, false),
            ("max-age=60", "stale-if-error=30", 90, true), ("max-age=60", "", 61, false),
            ("max-age=60, stale-if-error=30, must-revalidate", "", 61, false), ("max-age=60, stale-if-error=30, no-cache", "", 61, false),
            ("max-age=60, stale-if-error=30", "no-cache", 61, false),
        ])
    func ifError(response: String, request: String, seconds: Double, isAllowed: Bool) throws {
        let stored = try #require(store(["Cache-Control": response]))
        let request = get(request.isEmpty ? [:] : ["Cache-Control": request])
        #expect(CacheRules.mayServeAfterError(stored, to: request, now: start + seconds) == isAllowed)
    }

    @Test(
        "only server errors stand for an unreachable host",
        arguments: [(500, true), (501, false), (502, true), (503, true), (504, true), (404, false)])
    func serverErrors(status: Int, isError: Bool) {
        #expect(CacheRules.isServerError(status) == isError)
    }

    @Test("other methods than GET and HEAD are forwarded", arguments: [HTTPMethod.post, .put, .delete, .options, .patch])
    func methods(_ method: HTTPMethod) {
        #expect(decide(Self.fresh, get(method: method), after: 1) == .forward(.method, isBypass: true))
        #expect(decide(Self.fresh, get(method: .head), after: 1).serves)
    }

    private static let conditional: [(HTTPHeaders, CacheDelivery)] = [
        (["If-None-Match": "\"a\""], .notModified), (["If-None-Match": "W/\"a\""], .notModified),
        (["If-None-Match": "\"x\", \"a\""], .notModified), (["If-None-Match": "*"], .notModified), (["If-None-Match": "\"b\""], .whole),
        (["If-Modified-Since": date(-10)], .notModified), (["If-Modified-Since": date(-11)], .whole),
        (["If-Modified-Since": "x"], .whole),
        (["If-None-Match": "\"b\"", "If-Modified-Since": date(0)], .whole),
    ]

    @Test("conditions of the request are answered by a fresh response with 304", arguments: conditional)
    func conditions(_ headers: HTTPHeaders, delivery: CacheDelivery) {
        let stored: HTTPHeaders = ["Cache-Control": "max-age=60", "ETag": "\"a\"", "Last-Modified": date(-10)]
        #expect(decide(stored, get(headers), after: 1) == .serve(0, delivery, .fresh, isStale: false, validates: false))
    }

    @Test("conditions of the request go to the host if nothing fresh is stored, and preconditions always")
    func forwardedConditions() {
        #expect(decide(Self.fresh, get(["If-None-Match": "\"a\""]), after: 61) == .forward(.conditional, isBypass: true))
        #expect(CacheRules.decide(get(["If-None-Match": "\"a\""]), [], now: start) == .forward(.conditional, isBypass: true))
        #expect(decide(Self.fresh, get(["If-Match": "\"a\""]), after: 1) == .forward(.conditional, isBypass: true))
        #expect(decide(Self.fresh, get(["If-Unmodified-Since": date(0)]), after: 1) == .forward(.conditional, isBypass: true))
    }
}
