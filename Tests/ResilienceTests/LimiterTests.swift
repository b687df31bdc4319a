// SPDX-License-Identifier: Apache-2.0
import CurlewTransport
import Testing

@testable import CurlewResilience

@Suite struct RateLimiterTests {
    @Test("after the burst requests are spaced evenly") func spacing() {
        var state = RateLimiterState(RateLimit(10, burst: 2))
        let waits = (0..<5).map { _ in state.acquire(at: .zero, maximumWait: .seconds(10)) }
        #expect(waits == [.granted, .granted, .wait(.milliseconds(100)), .wait(.milliseconds(200)), .wait(.milliseconds(300))])
        #expect(state.acquire(at: .seconds(10), maximumWait: .zero) == .granted)
    }

    @Test("a refusal tells the time to wait, and takes no turn") func refusal() {
        var state = RateLimiterState(RateLimit(1, burst: 1))
        #expect(state.acquire(at: .zero, maximumWait: .zero) == .granted)
        #expect(state.acquire(at: .zero, maximumWait: .milliseconds(500)) == .refused(retryAfter: .seconds(1)))
        #expect(state.acquire(at: .zero, maximumWait: .seconds(1)) == .wait(.seconds(1)))
        state.giveBack()
        #expect(state.acquire(at: .zero, maximumWait: .seconds(1)) == .wait(.seconds(1)))
    }

    @Test("of a rate of 500 a second, 60 seconds grant 30,000 and the burst") func rate() {
        var state = RateLimiterState(RateLimit(500, burst: 10))
        var granted = 0
        for step in 0..<60_000 where state.acquire(at: .milliseconds(step), maximumWait: .zero) == .granted { granted += 1 }
        #expect((29_990...30_010).contains(granted))
    }

    @Test("after a server's hold requests leave spaced, and not together") func hold() {
        var state = RateLimiterState(RateLimit(10, burst: 10))
        state.hold(for: .seconds(5), at: .zero)
        #expect(state.acquire(at: .seconds(1), maximumWait: .seconds(10)) == .wait(.seconds(4)))
        #expect(state.acquire(at: .seconds(1), maximumWait: .seconds(10)) == .wait(.milliseconds(4_100)))
        #expect(state.remainingHold(at: .seconds(2)) == .seconds(3))
    }

    @Test("a server's slower quota counts, a faster one does not") func quota() {
        var state = RateLimiterState(RateLimit(10, burst: 1))
        state.adopt(quota: 60, per: .seconds(60))
        #expect(state.acquire(at: .zero, maximumWait: .zero) == .granted)
        #expect(state.acquire(at: .zero, maximumWait: .seconds(2)) == .wait(.seconds(1)))
        state.adopt(quota: 6_000, per: .seconds(60))
        #expect(state.acquire(at: .seconds(10), maximumWait: .zero) == .granted)
        #expect(state.acquire(at: .seconds(10), maximumWait: .seconds(1)) == .wait(.milliseconds(100)))
    }

    @Test("Retry-After, RateLimit and RateLimit-Policy are read") func fields() {
        func limits(_ status: Int, _ headers: HTTPHeaders) -> ServerLimits {
            ServerLimits(ResponseHead(statusCode: status, headers: headers))
        }
        #expect(limits(429, ["Retry-After": "7"]).hold == .seconds(7))
        #expect(limits(200, ["Retry-After": "7"]).hold == nil)
        #expect(limits(200, ["RateLimit": #""a,b;r=0";r=0;t=30, "c";r=5;t=90"#]).hold == .seconds(30))
        #expect(limits(200, ["RateLimit": "garbage;r=;t=x"]).hold == nil)
        let quota = limits(200, ["RateLimit-Policy": #""burst";q=100;w=60,"daily";q=1000;w=86400"#]).quota
        #expect(limits(200, ["RateLimit-Policy": #""a";q=9;w=60;qu="content-bytes""#]).quota == nil)
        #expect(quota?.count == 1_000)
        #expect(quota?.window == .seconds(86_400))
    }

    @Test("lines of a head are found by their beginning, in any case")
    func lines() throws {
        let head = ResponseHead(statusCode: 200, headers: ["Content-Type": "ratelimit", "RateLimit-Policy": "q=1", "Z": ""])
        #expect(head.hasLine(beginningWith: "ratelimit") && head.hasLine(beginningWith: "z:"))
        #expect(!head.hasLine(beginningWith: "http/") && !head.hasLine(beginningWith: "limit"))
        #expect(!head.hasLine(beginningWith: "z: and more than there is"))
        #expect(ServerLimits.mayBe(in: head) && ServerLimits.mayBe(in: ResponseHead(statusCode: 429)))
        #expect(!ServerLimits.mayBe(in: ResponseHead(statusCode: 200, headers: ["Retry-After": "1"])))
    }
}

@Suite struct ConcurrencyLimiterTests {
    @Test("the queue is bounded, and the most urgent leave first") func priorities() {
        var state = ConcurrencyLimiterState(ConcurrencyLimiter(.fixed(1), queueLimit: 3))
        #expect(state.arrive(1) == .admitted)
        #expect(state.arrive(2, urgency: 5) == .queued)
        #expect(state.arrive(3, urgency: 3) == .queued)
        #expect(state.arrive(4, urgency: 0) == .queued)
        #expect(state.arrive(5, urgency: 0) == .refused)
        #expect(state.leave(.success, after: .zero) == [4])
        #expect(state.withdraw(3) == true)
        #expect(state.withdraw(3) == false)
        #expect(state.leave(.success, after: .zero) == [2])
        #expect(state.leave(.success, after: .zero) == [])
        #expect(state.inFlight == 0)
    }

    @Test("a request without urgency does not starve") func fairness() {
        var state = ConcurrencyLimiterState(ConcurrencyLimiter(.fixed(1), queueLimit: 1_000))
        #expect(state.arrive(0) == .admitted)
        #expect(state.arrive(1, urgency: 7) == .queued)
        var places: UInt64 = 0
        for number in 2..<100 as Range<UInt64> {
            #expect(state.arrive(number, urgency: 0) == .queued)
            places += 1
            if state.leave(.success, after: .zero) == [1] { break }
        }
        #expect(places == 8)
    }

    @Test("a limit of .max admits everything") func unlimited() {
        let adaptive = ConcurrencyLimiter.Limit.additive(initial: .max, minimum: .max, maximum: .max, backoff: 0.9, timeout: .seconds(1))
        for limit in [ConcurrencyLimiter.Limit.fixed(.max), adaptive] {
            var state = ConcurrencyLimiterState(ConcurrencyLimiter(limit))
            let decision = state.arrive(1)
            #expect(decision == .admitted)
            _ = state.leave(.dropped, after: .zero)
            #expect(state.limit > 1_000_000_000)
        }
    }

    @Test("any backoff and tolerance keep the limit within its bounds", arguments: [-.infinity, -1, 0, 2, .infinity, .nan] as [Double])
    func factors(_ factor: Double) {
        let limits = [
            ConcurrencyLimiter.Limit.additive(initial: 10, minimum: 2, maximum: 12, backoff: factor, timeout: .seconds(1)),
            .gradient(initial: 10, minimum: 2, maximum: 12, tolerance: factor),
        ]
        for limit in limits {
            var state = ConcurrencyLimiterState(ConcurrencyLimiter(limit))
            for number in 0..<10 as Range<UInt64> { _ = state.arrive(number) }
            for result in [ConcurrencyLimiterState.Result.success, .dropped, .success] {
                _ = state.leave(result, after: .seconds(2))
                #expect((2...12).contains(state.limit))
            }
        }
    }

    @Test("a change that another process has published counts for a day at most", arguments: ["NaN", "-Inf", "Inf"])
    func changeDuration(_ seconds: String) throws {
        let decoder = JSONDecoder()
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(positiveInfinity: "Inf", negativeInfinity: "-Inf", nan: "NaN")
        let json = #"{"kind": "breaker.opened", "policy": "p", "group": "", "seconds": "\#(seconds)"}"#
        let change = try decoder.decode(SharedChange.self, from: Data(json.utf8))
        #expect(change.duration == (seconds == "Inf" ? .seconds(86_400) : .zero))
    }

    @Test("the additive limit grows while responses are good, and shrinks by the backoff") func additive() {
        var state = ConcurrencyLimiterState(
            ConcurrencyLimiter(.additive(initial: 10, minimum: 2, maximum: 12, backoff: 0.5, timeout: .seconds(1))))
        for number in 0..<10 as Range<UInt64> { #expect(state.arrive(number) == .admitted) }
        _ = state.leave(.success, after: .zero)
        #expect(state.limit == 11)
        _ = state.leave(.dropped, after: .zero)
        #expect(state.limit == 5)
        _ = state.leave(.success, after: .seconds(2))
        #expect(state.limit == 2)
        _ = state.leave(.ignored, after: .seconds(2))
        #expect(state.limit == 2)
    }

    @Test("the gradient follows the latency down and up") func gradient() {
        var state = ConcurrencyLimiterState(ConcurrencyLimiter(.gradient2))
        var number: UInt64 = 0
        func run(_ latency: Duration, _ rounds: Int) -> Int {
            for _ in 0..<rounds {
                while state.inFlight < state.limit {
                    number += 1
                    _ = state.arrive(number)
                }
                _ = state.leave(.success, after: latency)
            }
            return state.limit
        }
        let good = run(.milliseconds(10), 300)
        #expect(good > 100)
        #expect(run(.milliseconds(100), 30) < good / 2)
    }
}

@Suite struct BudgetTests {
    @Test("retries are a fifth of the requests and ten a second") func finagle() {
        var state = RetryBudgetState(.finagle)
        for _ in 0..<1_000 { state.noteRequest(at: .zero) }
        var count = 0
        while state.withdraw(at: .seconds(1)) { count += 1 }
        #expect(count == 300)
        #expect(state.refusedCount == 1)
        // Everything has left the window.
        #expect(state.balance(at: .seconds(20)) == 100)
        state.becomeLean(at: .seconds(20))
        #expect(state.withdraw(at: .seconds(20)) == false)
    }

    @Test("tokens: no retries at half or less, a tenth of a token for each success") func grpc() {
        var state = RetryBudgetState(.grpc)
        for _ in 0..<4 { state.noteResult(isFailure: true) }
        #expect(state.withdraw(at: .zero) == true)
        state.noteResult(isFailure: true)
        #expect(state.withdraw(at: .zero) == false)
        for _ in 0..<2 { state.noteResult(isFailure: false) }
        #expect(state.withdraw(at: .zero) == true)
    }

    @Test("any part is a percentile", arguments: [(-1, 10), (0.4, 10), (0.9, 1_000), (2, 1_000), (.infinity, 1_000), (.nan, 1_000)])
    func percentiles(_ part: Double, _ expected: Int) {
        var state = HedgingState(Hedging(after: .percentile(part)))
        for number in 0..<50 { state.responded(after: .milliseconds(number % 2 == 0 ? 10 : 1_000)) }
        #expect(state.requestBegins(at: .zero).map { $0 >= .milliseconds(expected) && $0 < .milliseconds(2 * expected) } == true)
    }

    @Test("hedges are five in a hundred, after the 95th percentile") func hedging() throws {
        var state = HedgingState(Hedging())
        #expect(state.requestBegins(at: .zero) == nil)
        for number in 1...99 {
            _ = state.requestBegins(at: .zero)
            state.responded(after: .milliseconds(number > 95 ? 500 : 10))
        }
        let begun = state.requestBegins(at: .zero)
        let delay = try #require(begun)
        #expect(delay >= .milliseconds(10) && delay < .milliseconds(12))
        var count = 0
        while state.hedge(at: .zero) { count += 1 }
        #expect(count == 5)
    }

    @Test("the histogram's percentiles are at most an eighth too high") func histogram() {
        var histogram = LatencyHistogram()
        for number in 1...900 { histogram.add(.milliseconds(number)) }
        for part in [0.1, 0.5, 0.95, 0.99] {
            let exact = Double(900) * part / 1_000
            let found = histogram.percentile(part).seconds
            #expect(found >= exact && found <= exact * 1.13, "\(part)")
        }
    }
}
