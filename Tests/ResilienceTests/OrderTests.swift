// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewResilience
import CurlewTestSupport
import CurlewTesting
import Testing

/// The order in which a request meets the policies, as what it does not take from one because an earlier one has decided.
@Suite(.timeLimit(.minutes(1))) struct OrderTests {
    /// One permit in a hundred seconds, and no waiting.
    private let one = RateLimiter(RateLimit(1, per: .seconds(100), burst: 1), maximumWait: .zero)

    private func ok(_ request: DataRequest) async -> Bool { (try? await request.validate().serializingData().value) != nil }

    @Test("requests that join another one take no permit and no place") func coalescing() async {
        let session = ScriptedSession(
            Resilience(coalescing: Coalescing(), rateLimiter: one, concurrency: ConcurrencyLimiter(.fixed(1), queueLimit: 0)))
        let requests = (0..<5).map { _ in session.request() }
        await session.exchange(0).respond()
        for request in requests { #expect(await ok(request)) }
        #expect(session.count == 1)
    }

    @Test("a response from the cache takes no permit, and is served while the breaker is open") func cache() async throws {
        let breaker = CircuitBreaker(minimumCalls: 1, window: .count(1))
        let session = ScriptedSession(Resilience(breaker: breaker, rateLimiter: RateLimiter(RateLimit(2, per: .seconds(100), burst: 2)))) {
            $0.cache = .memory()
        }
        let stored = session.request("stored")
        await session.exchange(0).respond(200, ["Cache-Control": "max-age=3600"], "stored")
        #expect(try await stored.serializingString().value == "stored")
        for _ in 0..<5 { #expect(try await session.request("stored").serializingString().value == "stored") }
        let failing = session.request("failing")
        await session.exchange(1).respond(503)
        #expect(await !ok(failing))
        #expect(await fails(session.request("failing")) { failureKind($0) == .circuitOpen })
        #expect(try await session.request("stored").serializingString().value == "stored")
        #expect(session.count == 2)
    }

    @Test("what the breaker refuses takes no permit and no place") func breaker() async {
        var breaker = CircuitBreaker(minimumCalls: 1, window: .count(1), openDuration: .seconds(10), trialCalls: 1)
        breaker.jitter = 0
        let session = ScriptedSession(
            Resilience(
                breaker: breaker, rateLimiter: RateLimiter(RateLimit(2, per: .seconds(1_000), burst: 2), maximumWait: .zero),
                concurrency: ConcurrencyLimiter(.fixed(1), queueLimit: 0)))
        let failing = session.request()
        await session.exchange(0).respond(503)
        #expect(await !ok(failing))
        for _ in 0..<5 { #expect(await fails(session.request()) { failureKind($0) == .circuitOpen }) }
        await session.clock.advance(by: .seconds(10))
        let trial = session.request()
        await session.exchange(1).respond()
        #expect(await ok(trial))
        #expect(await fails(session.request()) { failureKind($0) == .rateLimited })
    }

    @Test("what the rate limiter refuses takes no place, and is no call of the breaker") func limiter() async {
        let breaker = CircuitBreaker(minimumCalls: 2, window: .count(2))
        let session = ScriptedSession(
            Resilience(breaker: breaker, rateLimiter: one, concurrency: ConcurrencyLimiter(.fixed(1), queueLimit: 0)))
        let first = session.request()
        await session.exchange(0).respond(503)
        #expect(await !ok(first))
        for _ in 0..<5 { #expect(await fails(session.request()) { failureKind($0) == .rateLimited }) }
        await session.clock.advance(by: .seconds(100))
        let second = session.request()
        await session.exchange(1).respond(503)
        #expect(await !ok(second))
        #expect(await fails(session.request()) { failureKind($0) == .circuitOpen })
    }

    @Test("what finds no place gives its permit back: at once, after its wait, and if it is cancelled meanwhile", arguments: [true, false])
    func permitsOfUnsent(cancels: Bool) async {
        let session = ScriptedSession(
            Resilience(
                rateLimiter: RateLimiter(RateLimit(3, per: .seconds(1_000), burst: 3), maximumWait: .zero),
                concurrency: ConcurrencyLimiter(.fixed(1), queueLimit: 1, maximumWait: .seconds(1))))
        let first = session.request()
        let exchange = await session.exchange(0)
        let waiting = session.request()
        // The queue is full.
        for _ in 0..<3 { #expect(await fails(session.request()) { failureKind($0) == .overloaded }) }
        if cancels { waiting.cancel() } else { await session.clock.advance(by: .seconds(1)) }
        #expect(await fails(waiting) { cancels ? isCancelled($0) : failureKind($0) == .overloaded })
        exchange.respond()
        #expect(await ok(first))
        for number in 1...2 {
            let next = session.request()
            await session.exchange(number).respond()
            #expect(await ok(next))
        }
        #expect(await fails(session.request()) { failureKind($0) == .rateLimited })
    }

    @Test("redirects and retries pass the policies as well") func exchanges() async {
        let breaker = CircuitBreaker(minimumCalls: 1, window: .count(1))
        let retries = RetryPolicy(retryLimit: 3, exponentialBackoffScale: 0)
        let session = ScriptedSession(Resilience(breaker: breaker), interceptor: retries)
        let retried = session.request().validate()
        async let isRefused = fails(retried) { failureKind($0) == .circuitOpen }
        await session.exchange(0).respond(503)
        #expect(await isRefused)
        #expect(session.count == 1)
        let other = ScriptedSession(Resilience(rateLimiter: one))
        let redirected = other.request()
        await other.exchange(0).perform(.head(302, ["Location": "/b"]), .complete())
        #expect(await fails(redirected) { failureKind($0) == .rateLimited })
        #expect(other.count == 1)
    }
}
