// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import Testing

@testable import CurlewResilience

/// What each policy tells observers and monitors, and that refusals are typed errors.
@Suite(.timeLimit(.minutes(1))) struct EventTests {
    /// Collects what monitors are told.
    private struct Told: EventMonitor {
        let reports = Monitor<[PolicyReport]>([])
        var monitoredEvents: MonitoredEvents { .policies }
        func policyDidAct(_ report: PolicyReport) { reports.update { $0.append(report) } }
    }

    private let told = Told()
    private static let group = "https://api.example.org:443"

    private func session(_ policies: Resilience, interceptor: (any RequestInterceptor)? = nil) -> ScriptedSession {
        ScriptedSession(policies, interceptor: interceptor) { $0.eventMonitors.append(told) }
    }

    /// Whether observers were told these actions, and monitors the same in other words.
    private func expect(
        _ session: ScriptedSession, _ policy: Policy, _ actions: [PolicyEvent.Action], of group: String = Self.group,
        _ location: SourceLocation = #_sourceLocation
    ) async {
        let name = "api"
        let expected = actions.map { PolicyEvent(policy, name: name, group: group, $0) }
        #expect(session.events.all == expected, sourceLocation: location)
        #expect(await eventually { told.reports.read { $0.count } == expected.count }, sourceLocation: location)
        for (report, event) in zip(told.reports.read { $0 }, expected) {
            let plain = event.report(of: nil)
            #expect(report.policy == plain.policy && report.action == plain.action && report.phase == plain.phase, sourceLocation: location)
            #expect(report.name == name && report.group == group && report.duration == plain.duration, sourceLocation: location)
        }
    }

    /// Whether a request is refused with a kind of failure, unsent.
    private func isRefused(_ request: DataRequest, _ kind: TransferFailure.Kind, after time: Duration?) async -> Bool {
        await fails(request) { error in
            guard case CurlewError.transferFailed(let failure) = error else { return false }
            return failure.kind == kind && failure.retryAfter == time && !failure.requestWasSent && failure.phase == .queued
        }
    }

    @Test("a circuit breaker tells its phases and what it refuses") func breaker() async throws {
        var breaker = CircuitBreaker(name: "api", minimumCalls: 1, window: .count(1), openDuration: .seconds(60), trialCalls: 1)
        breaker.jitter = 0
        let session = session(Resilience(breaker: breaker))
        let first = session.request()
        await session.exchange(0).respond(503)
        #expect(try await first.serializingData().value.isEmpty)
        #expect(await isRefused(session.request(), .circuitOpen, after: .seconds(60)))
        await session.clock.advance(by: .seconds(60))
        let trial = session.request()
        #expect(await isRefused(session.request(), .circuitOpen, after: nil))
        await session.exchange(1).respond()
        #expect(try await trial.serializingData().value.isEmpty)
        await expect(
            session, .circuitBreaker,
            [
                .changed(from: .closed, to: .open), .refused(retryAfter: .seconds(60)), .changed(from: .open, to: .halfOpen),
                .refused(retryAfter: nil), .changed(from: .halfOpen, to: .closed),
            ])
    }

    @Test("a rate limiter tells waits, what it refuses, and what servers ask for") func rateLimiter() async throws {
        let limiter = RateLimiter(RateLimit(1, per: .seconds(2), burst: 1), name: "api", maximumWait: .seconds(3))
        let session = session(Resilience(rateLimiter: limiter))
        let requests = (0..<2).map { _ in session.request() }
        #expect(await isRefused(session.request(), .rateLimited, after: .seconds(4)))
        await session.exchange(0).respond(429, ["Retry-After": "1"])
        await session.clock.advance(by: .seconds(2))
        await session.exchange(1).respond()
        for request in requests { #expect(try await request.serializingData().value.isEmpty) }
        await expect(
            session, .rateLimiter, [.refused(retryAfter: .seconds(4)), .heldBack(.seconds(1)), .waited(.seconds(2))])
    }

    @Test("a limiter and a bulkhead tell waits and what they refuse", arguments: [Policy.concurrencyLimiter, .bulkhead])
    func places(_ policy: Policy) async throws {
        var policies = Resilience()
        if policy == .bulkhead {
            policies.bulkhead = Bulkhead(concurrent: 1, queueLimit: 1, maximumWait: .seconds(5)) { _ in "group" }
            policies.bulkhead?.limiter.name = "api"
        } else {
            policies.concurrency = ConcurrencyLimiter(
                .fixed(1), name: "api", group: .named { _ in "group" }, queueLimit: 1, maximumWait: .seconds(5))
        }
        let session = session(policies)
        let first = session.request()
        let late = session.request()
        #expect(await isRefused(session.request(), .overloaded, after: nil))
        await session.clock.advance(by: .seconds(5))
        #expect(await isRefused(late, .overloaded, after: nil))
        let next = session.request()
        await session.clock.advance(by: .seconds(1))
        await session.exchange(0).respond()
        await session.exchange(1).respond()
        for request in [first, next] { #expect(try await request.serializingData().value.isEmpty) }
        await expect(
            session, policy, [.refused(retryAfter: nil), .refused(retryAfter: nil), .waited(.seconds(1))], of: "group")
    }

    @Test("an adaptive limiter tells its limits") func limits() async throws {
        let limiter = ConcurrencyLimiter(
            .additive(initial: 10, minimum: 1, maximum: 20, backoff: 0.5, timeout: .seconds(5)), name: "api", group: .session)
        let session = session(Resilience(concurrency: limiter))
        let request = session.request()
        await session.exchange(0).respond(503)
        #expect(try await request.serializingData().value.isEmpty)
        await expect(session, .concurrencyLimiter, [.limitChanged(from: 10, to: 5)], of: "")
    }

    @Test("a retry budget tells what it refuses") func budget() async throws {
        let budget = RetryBudget(.share(ratio: 0, minimum: 0, window: .seconds(10)), name: "api")
        let session = session(
            Resilience(retryBudget: budget), interceptor: RetryPolicy(retryLimit: 3, exponentialBackoffScale: 0))
        let request = session.request().validate()
        async let isFailed = fails(request) { $0.asCurlewError?.statusCode == 503 }
        await session.exchange(0).respond(503)
        #expect(await isFailed)
        await expect(session, .retryBudget, [.refused(retryAfter: nil)], of: "")
        #expect(session.count == 1)
    }

    @Test("hedging tells second attempts, those that win, and those that are too many") func hedging() async throws {
        var hedging = Hedging(after: .fixed(.seconds(1)), extra: 0.5)
        hedging.name = "api"
        let session = session(Resilience(hedging: hedging))
        let requests = (0..<2).map { session.request("\($0)") }
        await session.clock.advance(by: .seconds(1))
        await session.exchange(2).respond()
        await session.exchange(1).respond()
        for request in requests { #expect(try await request.serializingData().value.isEmpty) }
        await expect(session, .hedging, [.hedged(after: .seconds(1)), .refused(retryAfter: nil), .hedgeWon])
    }

    @Test("coalescing tells the requests that join") func coalescing() async throws {
        var coalescing = Coalescing()
        coalescing.name = "api"
        let session = session(Resilience(coalescing: coalescing))
        let requests = (0..<3).map { _ in session.request() }
        await session.exchange(0).respond()
        for request in requests { #expect(try await request.serializingData().value.isEmpty) }
        await expect(session, .coalescing, [.coalesced, .coalesced])
    }

    @Test("every action has a name for dimensions of its own") func names() {
        let actions: [PolicyEvent.Action] = [
            .refused(retryAfter: .seconds(1)), .waited(.seconds(2)), .changed(from: .closed, to: .open), .limitChanged(from: 1, to: 2),
            .hedged(after: .seconds(3)), .hedgeWon, .coalesced, .heldBack(.seconds(4)), .storeFailed("gone"), .received(.breakerOpened),
            .fellBack,
        ]
        let reports = actions.map { PolicyEvent(.fallback, name: "name", group: "group", $0).report(of: nil) }
        #expect(
            reports.map(\.action) == [
                "refused", "waited", "changed", "limit_changed", "hedged", "hedge_won", "coalesced", "held_back", "store_failed",
                "received",
                "fell_back",
            ])
        #expect(reports.compactMap(\.duration) == [.seconds(1), .seconds(2), .seconds(3), .seconds(4)])
        #expect(reports.compactMap(\.phase) == ["open"])
        #expect(reports.allSatisfy { $0.policy == "fallback" && $0.name == "name" && $0.group == "group" })
    }
}
