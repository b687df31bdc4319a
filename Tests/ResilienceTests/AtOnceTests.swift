// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Testing

@testable import CurlewResilience

/// What exchanges that no policy delays take, which is to be what the other ones would have got.
@Suite(.timeLimit(.minutes(1))) struct AtOnceTests {
    @Test("a permit that is taken at once is one that would be granted", arguments: 0..<20) func permits(_ seed: Int) {
        var random = SplitMix(state: UInt64(seed))
        let limit = RateLimit(Int.random(in: 1...50, using: &random), burst: Int.random(in: 1...10, using: &random))
        var (asked, taken) = (RateLimiterState(limit), RateLimiterState(limit))
        var now = Duration.zero
        for _ in 0..<500 {
            now += .milliseconds(Int.random(in: 0...40, using: &random))
            switch Int.random(in: 0..<20, using: &random) {
            case 0:
                asked.hold(for: .milliseconds(100), at: now)
                taken.hold(for: .milliseconds(100), at: now)
            case 1:
                asked.adopt(quota: 5, per: .seconds(1))
                taken.adopt(quota: 5, per: .seconds(1))
            case 2:
                // Reserves a turn, or is refused, and changes the state in the same way.
                #expect(asked.acquire(at: now, maximumWait: .seconds(1)) == taken.acquire(at: now, maximumWait: .seconds(1)))
            default: #expect((asked.acquire(at: now, maximumWait: .zero) == .granted) == taken.takeNow(at: now))
            }
        }
    }

    @Test("a place that is taken at once is one that would be given", arguments: 0..<20) func places(_ seed: Int) {
        var random = SplitMix(state: UInt64(seed))
        let limiter = ConcurrencyLimiter(.fixed(3), queueLimit: 2)
        var (asked, taken) = (ConcurrencyLimiterState(limiter), ConcurrencyLimiterState(limiter))
        for number in 0..<300 {
            if Bool.random(using: &random) {
                let isFree = taken.enterNow()
                let decision = asked.arrive(UInt64(number))
                #expect((decision == .admitted) == isFree)
                if !isFree { #expect(taken.arrive(UInt64(number)) == decision) }
            } else if asked.inFlight > 0 {
                let admitted = asked.leave(.success, after: .zero)
                let other = taken.leaveNow() ? [] : taken.leave(.success, after: .zero)
                #expect(admitted == other)
            }
            #expect(asked.inFlight == taken.inFlight && asked.queued == taken.queued)
        }
    }

    @Test("a place of a limit that adapts is never left without its measurement") func adaptivePlaces() {
        for limit in [ConcurrencyLimiter.Limit.aimd, .gradient2] {
            var state = ConcurrencyLimiterState(ConcurrencyLimiter(limit))
            let (hasEntered, hasLeft) = (state.enterNow(), state.leaveNow())
            #expect(hasEntered && !hasLeft && state.inFlight == 1)
        }
    }

    @Test("a success that is counted at once counts as any other", arguments: 0..<20) func successes(_ seed: Int) {
        var random = SplitMix(state: UInt64(seed))
        let isOfTime = seed.isMultiple(of: 4)
        var breaker = CircuitBreaker(
            minimumCalls: 5, window: isOfTime ? .time(.milliseconds(30)) : .count(10), openDuration: .milliseconds(50), trialCalls: 3)
        breaker.slowCallDuration = .milliseconds(80)
        breaker.slowCallRate = 0.6
        var (asked, counted) = (CircuitBreakerState(breaker), CircuitBreakerState(breaker))
        var now = Duration.zero
        var (countedAtOnce, changes) = (0, 0)
        for _ in 0..<2_000 {
            now += .milliseconds(Int.random(in: 0...5, using: &random))
            let (one, other) = (asked.admit(at: now), counted.admit(at: now))
            #expect(one.admission == other.admission && one.change == other.change)
            guard case .admitted(let ticket) = one.admission else { continue }
            let milliseconds = Int64.random(in: 0...100, using: &random)
            let took = Duration.milliseconds(milliseconds)
            let verdict = Int.random(in: 0..<10, using: &random) < 3 ? CircuitBreaker.Verdict.failure : .success
            let change = asked.record(verdict, ticket, took: took, at: now, random: 0)
            if change != nil { changes += 1 }
            if verdict == .success, counted.countSuccess(ticket, took: milliseconds * 1_000_000) {
                countedAtOnce += 1
                #expect(change == nil)
            } else {
                #expect(counted.record(verdict, ticket, took: took, at: now, random: 0) == change)
            }
            #expect(asked.phase == counted.phase)
        }
        #expect((countedAtOnce > 0) == !isOfTime && changes > 0)
    }

    @Test("a request whose time is in nanoseconds counts as any other", arguments: [RetryBudget.Rule.finagle, .grpc])
    func requests(_ rule: RetryBudget.Rule) {
        var random = SplitMix(state: 26)
        var (one, other) = (RetryBudgetState(rule), RetryBudgetState(rule))
        var now: Int64 = 0
        for _ in 0..<2_000 {
            now += Int64.random(in: 0...100_000_000, using: &random)
            one.noteRequest(at: .nanoseconds(now))
            other.noteRequest(atNanoseconds: now)
            #expect(one.balance(at: .nanoseconds(now)) == other.balance(at: .nanoseconds(now)))
            guard Int.random(in: 0..<4, using: &random) == 0 else { continue }
            #expect(one.withdraw(at: .nanoseconds(now)) == other.withdraw(at: .nanoseconds(now)))
        }
    }

    @Test("a verdict of the user's own counts for statuses that are no failure by default, and the other way round") func verdicts() async {
        var breaker = CircuitBreaker(minimumCalls: 1, window: .count(1))
        breaker.classify = { $0.statusCode == 200 ? .failure : .success }
        let manager = SessionManager(mock: MockTransport(.status(500), .status(501), .status(200))) { [breaker] in
            $0.use(Resilience(breaker: breaker))
        }
        func status() async -> Int? { await manager.request("https://example.org/a").serializingData().response.response?.statusCode }
        for expected in [500, 501, 200, nil] { #expect(await status() == expected) }
    }

    @Test("a percentile does not depend on those asked for before", arguments: 0..<20) func percentiles(_ seed: Int) {
        var random = SplitMix(state: UInt64(seed))
        var (asked, fresh) = (LatencyHistogram(), LatencyHistogram())
        for _ in 0..<1_500 {
            let latency = Duration.microseconds(Int.random(in: 1...1_000_000, using: &random))
            asked.add(latency)
            fresh.add(latency)
            _ = asked.percentile(Double.random(in: 0...1, using: &random))
        }
        for part in [0, 0.01, 0.5, 0.95, 1] {
            var copy = fresh
            #expect(asked.percentile(part) == copy.percentile(part))
        }
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

    @Test("a host whose name begins like that of another one has a group of its own") func groups() async throws {
        let manager = SessionManager(mock: .status(500)) { $0.use(Resilience(breaker: CircuitBreaker(minimumCalls: 1, window: .count(1)))) }
        func status(_ url: String) async -> Int? { await manager.request(url).serializingData().response.response?.statusCode }
        #expect(await status("https://example.org/a") == 500)
        #expect(await status("https://example.org/b") == nil)
        for other in ["https://example.org.test/a", "https://example.org:444/", "http://example.org/", "https://example.or/"] {
            #expect(await status(other) == 500)
            #expect(await status(other) == nil)
        }
        #expect(await status("https://EXAMPLE.org") == nil)
    }
}
