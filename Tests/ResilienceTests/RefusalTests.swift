// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewResilience
import CurlewTestSupport
import Testing

/// Refusals, for which a retry policy waits.
@Suite(.timeLimit(.minutes(1))) struct RefusalTests {
    private static let limiter = RateLimiter(RateLimit(1, per: .seconds(10), burst: 1), maximumWait: .zero)
    private static let refusals: Set<TransferFailure.Kind> = [.circuitOpen, .rateLimited, .overloaded]

    private static func breaker(_ openDuration: Duration = .seconds(10)) -> CircuitBreaker {
        var breaker = CircuitBreaker(minimumCalls: 1, window: .count(1), openDuration: openDuration, trialCalls: 1)
        breaker.jitter = 0
        return breaker
    }

    private func deadline(_ seconds: Int) -> RequestOptions { RequestOptions(deadline: .seconds(seconds)) }

    /// Sends a request that takes the only permit, and returns when it has finished.
    private func usePermit(of session: ScriptedSession) async throws {
        async let first = session.request().serializingData().value
        await session.exchange(0).respond()
        _ = try await first
    }

    @Test func `a request with a deadline waits as long as the refusal says, and is then sent`() async throws {
        let session = ScriptedSession(Resilience(rateLimiter: Self.limiter), interceptor: RetryPolicy(exponentialBackoffScale: 0))
        try await usePermit(of: session)
        async let value = session.request(options: deadline(60)).validate().serializingData().value
        try await session.clock.advance(toWaitAt: .seconds(10))
        await session.exchange(1).respond()
        #expect(try await value.isEmpty)
        #expect(session.clock.elapsed == .seconds(10) && session.count == 2)
    }

    @Test(
        arguments: [
            (5, [], false), (10, [], false), (11, [], true), (nil, [], false), (nil, refusals, true), (5, refusals, false),
            (11, refusals, true),
        ] as [(Int?, Set<TransferFailure.Kind>, Bool)])
    func `one that can't wait so long fails at once, with the refusal`(
        seconds: Int?, kinds: Set<TransferFailure.Kind>, waits: Bool
    ) async throws {
        let policy = RetryPolicy(retryLimit: 1, retryableFailureKinds: RetryPolicy.defaultRetryableFailureKinds.union(kinds))
        let session = ScriptedSession(Resilience(rateLimiter: Self.limiter), interceptor: policy)
        try await usePermit(of: session)
        let request = session.request(options: seconds.map { deadline($0) })
        if waits {
            async let value = request.validate().serializingData().value
            try await session.clock.advance(toWaitAt: .seconds(10))
            await session.exchange(1).respond()
            #expect(try await value.isEmpty)
        } else {
            let isRefused = await fails(request) {
                guard case CurlewError.transferFailed(let failure) = $0 else { return false }
                return failure.kind == .rateLimited && failure.retryAfter == .seconds(10)
            }
            #expect(isRefused && session.clock.elapsed == .zero && session.count == 1)
        }
    }

    @Test func `refusals are no attempts`() async throws {
        let policy = RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0)
        let session = ScriptedSession(Resilience(breaker: Self.breaker()), interceptor: policy)
        let request = session.request(options: deadline(60))
        async let isFailed = fails(request) { $0.asCurlewError?.statusCode == 503 }
        await session.exchange(0).respond(503)
        try await session.clock.advance(toWaitAt: .seconds(10))
        // The retry, which was refused before; the only one.
        await session.exchange(1).respond(503)
        #expect(await isFailed)
        #expect(session.count == 2 && request.retryCount == 2)
    }

    @Test func `the deadline ends waits for a breaker that stays open`() async throws {
        let session = ScriptedSession(
            Resilience(breaker: Self.breaker()), interceptor: RetryPolicy(retryLimit: 100, exponentialBackoffScale: 0))
        async let isRefused = fails(session.request(options: deadline(25))) { failureKind($0) == .circuitOpen }
        await session.exchange(0).respond(503)
        for (number, time) in [(1, 10), (2, 20)] {
            try await session.clock.advance(toWaitAt: .seconds(time))
            await session.exchange(number).respond(503)
        }
        #expect(await isRefused)
        #expect(session.clock.elapsed == .seconds(20) && session.count == 3)
    }

    @Test func `without a deadline the waits have an end together`() async throws {
        let kinds = RetryPolicy.defaultRetryableFailureKinds.union(Self.refusals)
        let policy = RetryPolicy(retryLimit: 100, exponentialBackoffScale: 0, maximumDelay: 25, retryableFailureKinds: kinds)
        let session = ScriptedSession(Resilience(breaker: Self.breaker()), interceptor: policy)
        async let isRefused = fails(session.request()) { failureKind($0) == .circuitOpen }
        await session.exchange(0).respond(503)
        for (number, time) in [(1, 10), (2, 20)] {
            try await session.clock.advance(toWaitAt: .seconds(time))
            await session.exchange(number).respond(503)
        }
        #expect(await isRefused)
        #expect(session.clock.elapsed == .seconds(20))
    }

    /// Waits for nothing.
    private final class Impatient: RetryPolicy, @unchecked Sendable {
        override func delay(beforeRetrying request: Request) -> TimeInterval? { 0 }
    }

    @Test func `a policy that does not wait comes to an end, too`() async throws {
        let session = ScriptedSession(
            Resilience(rateLimiter: Self.limiter), interceptor: Impatient(retryableFailureKinds: Self.refusals))
        try await usePermit(of: session)
        let request = session.request()
        #expect(await fails(request) { failureKind($0) == .rateLimited })
        #expect(request.retryCount == 100)
    }

    @Test func `a retry budget is not asked`() async throws {
        let budget = RetryBudget(.share(ratio: 0, minimum: 0, window: .seconds(10)))
        let session = ScriptedSession(Resilience(rateLimiter: Self.limiter, retryBudget: budget), interceptor: RetryPolicy())
        try await usePermit(of: session)
        async let value = session.request(options: deadline(60)).validate().serializingData().value
        try await session.clock.advance(toWaitAt: .seconds(10))
        await session.exchange(1).respond()
        #expect(try await value.isEmpty)
    }

    @Test func `what waits is cancelled at once`() async throws {
        let session = ScriptedSession(Resilience(rateLimiter: Self.limiter), interceptor: RetryPolicy())
        try await usePermit(of: session)
        let request = session.request(options: deadline(60))
        async let isEnded = fails(request, isCancelled)
        await session.clock.advance(by: .seconds(1))
        request.cancel()
        #expect(await isEnded)
        #expect(session.clock.elapsed == .seconds(1))
    }

    @Test(
        arguments: [
            (RetryPolicy(retryLimit: 0), HTTPMethod.get), (RetryPolicy(), .post), (ConnectionLostRetryPolicy(), .get),
        ])
    func `policies that retry nothing of the kind don't wait`(policy: RetryPolicy, method: HTTPMethod) async throws {
        let session = ScriptedSession(Resilience(rateLimiter: Self.limiter), interceptor: policy)
        try await usePermit(of: session)
        let request = session.manager.request("https://api.example.org/a", method: method, options: deadline(60))
        #expect(await fails(request) { failureKind($0) == .rateLimited })
    }
}
