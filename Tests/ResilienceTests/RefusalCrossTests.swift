// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewResilience
import CurlewTestSupport
import Testing

/// Refusals, for which a retry policy waits, where other features take part.
@Suite(.timeLimit(.minutes(1))) struct RefusalCrossTests {
    private static let limiter = RateLimiter(RateLimit(1, per: .seconds(10), burst: 1), maximumWait: .zero)

    private static func breaker(_ openDuration: Duration = .seconds(10)) -> CircuitBreaker {
        var breaker = CircuitBreaker(minimumCalls: 1, window: .count(1), openDuration: openDuration, trialCalls: 1)
        breaker.jitter = 0
        return breaker
    }

    private let options = RequestOptions(deadline: .seconds(300))

    /// Fails the first exchange of a session, which opens its breaker.
    private func openBreaker(of session: ScriptedSession) async {
        async let isFailed = fails(session.request()) { $0.asCurlewError?.statusCode == 500 }
        await session.exchange(0).respond(500)
        #expect(await isFailed)
    }

    // A5.1: × Retry-After
    @Test func `the time of a refusal counts, not Retry-After of the response before`() async throws {
        let policy = RetryPolicy(retryLimit: 1)
        let session = ScriptedSession(Resilience(breaker: Self.breaker()), interceptor: policy)
        let request = session.request(options: options)
        async let value = request.validate().serializingData().value
        await session.exchange(0).respond(503, ["Retry-After": "3"])
        // The retry of 3 s is refused for 7 s.
        try await session.clock.advance(toWaitAt: .seconds(3))
        try await session.clock.advance(toWaitAt: .seconds(10))
        await session.exchange(1).respond()
        #expect(try await value.isEmpty)
        #expect(session.clock.elapsed == .seconds(10) && session.count == 2 && request.retryCount == 2)
    }

    // A5.1: × two users, × Retry-After
    @Test func `a user is held back by what the server has asked another one, and both are served`() async throws {
        let session = ScriptedSession(Resilience(rateLimiter: Self.limiter), interceptor: RetryPolicy())
        async let first = session.request("a", options: options).validate().serializingData().value
        await session.exchange(0).respond(429, ["Retry-After": "20"])
        await session.clock.advance(by: .seconds(5))
        async let second = session.request("b", options: options).validate().serializingData().value
        for (number, time) in [(1, 20), (2, 30)] {
            try await session.clock.advance(toWaitAt: .seconds(time))
            await session.exchange(number).respond()
        }
        #expect(try await [first, second] == [Data(), Data()])
        #expect(session.clock.elapsed == .seconds(30) && session.count == 3)
    }

    // A5.1: × two users, × cancel
    @Test func `a user who is cancelled while waiting takes nothing from another one`() async throws {
        let session = ScriptedSession(Resilience(rateLimiter: Self.limiter), interceptor: RetryPolicy())
        async let opening = session.request().serializingData().value
        await session.exchange(0).respond()
        _ = try await opening
        let first = session.request("a", options: options)
        async let isCancelled = fails(first, isCancelled)
        async let second = session.request("b", options: options).validate().serializingData().value
        await session.clock.advance(by: .seconds(1))
        first.cancel()
        #expect(await isCancelled)
        try await session.clock.advance(toWaitAt: .seconds(10))
        await session.exchange(1).respond()
        #expect(try await second.isEmpty)
        #expect(session.clock.elapsed == .seconds(10) && session.count == 2)
    }

    // A5.1: × the session's clock
    @Test func `time does not pass while a policy decides`() async throws {
        let (isDeciding, isAdvanced) = (Lock(false), Lock(false))
        var limiter = Self.limiter
        limiter.group = .named { request in
            guard request.url.hasSuffix("b") else { return "all" }
            isDeciding.withLock { $0 = true }
            // Were time to pass meanwhile, the refusal would name a time from before.
            let start = ContinuousClock.now
            while !isAdvanced.withLock({ $0 }), start.duration(to: .now) < .milliseconds(200) { usleep(1_000) }
            return "all"
        }
        let session = ScriptedSession(Resilience(rateLimiter: limiter), interceptor: RetryPolicy())
        async let first = session.request().serializingData().value
        await session.exchange(0).respond()
        _ = try await first
        async let second = session.request("b", options: options).serializingData().value
        #expect(await eventually { isDeciding.withLock { $0 } })
        await session.clock.advance(by: .seconds(1))
        isAdvanced.withLock { $0 = true }
        try await session.clock.advance(toWaitAt: .seconds(10))
        await session.exchange(1).respond()
        #expect(try await second.isEmpty)
    }

    // A5.1: × hedging
    @Test func `a refused request has no second attempt, and one after its wait`() async throws {
        let hedging = Hedging(after: .fixed(.seconds(1)), extra: 1)
        let session = ScriptedSession(Resilience(breaker: Self.breaker(), hedging: hedging))
        await openBreaker(of: session)
        let request = session.manager.request("https://api.example.org/a", interceptor: RetryPolicy(retryLimit: 1), options: options)
        async let value = request.validate().serializingString().value
        await session.clock.advance(by: .seconds(10))
        let first = await session.exchange(1)
        await session.clock.advance(by: .seconds(1))
        await session.exchange(2).respond(200, [:], "hedged")
        #expect(try await value == "hedged")
        #expect(await eventually { first.isOver })
        #expect(session.count == 3 && request.retryCount == 1)
    }

    // A5.1: × maximumDelay
    @Test(arguments: [(60, 60, true), (60, 61, false), (90, 72, true)] as [(Double, Int, Bool)])
    func `a refusal for longer than maximumDelay ends the request at once`(limit: Double, pause: Int, waits: Bool) async throws {
        let session = ScriptedSession(Resilience(breaker: Self.breaker(.seconds(pause))))
        await openBreaker(of: session)
        let request = session.manager.request(
            "https://api.example.org/a", interceptor: RetryPolicy(retryLimit: 1, maximumDelay: limit), options: options)
        guard waits else {
            #expect(await fails(request) { failureKind($0) == .circuitOpen })
            return #expect(session.clock.elapsed == .zero)
        }
        async let value = request.validate().serializingData().value
        try await session.clock.advance(toWaitAt: .seconds(pause))
        await session.exchange(1).respond()
        #expect(try await value.isEmpty)
    }

    // A5.1
    @Test func `a refusal that names no time because there is no room ends the request`() async throws {
        let bulkhead = Bulkhead(concurrent: 1) { _ in "all" }
        let session = ScriptedSession(Resilience(bulkhead: bulkhead), interceptor: RetryPolicy())
        async let first = session.request("a").serializingData().value
        let exchange = await session.exchange(0)
        #expect(await fails(session.request("b", options: options)) { failureKind($0) == .overloaded })
        exchange.respond()
        #expect(try await first.isEmpty)
        #expect(session.clock.elapsed == .zero)
    }
}
