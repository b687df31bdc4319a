// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewResilience
import CurlewTestSupport
import CurlewTesting
import Testing

/// A store in memory that grants so many permits, and then fails, or asks to wait.
private final class TestStore: RateLimitStore {
    struct Away: Error {}

    let calls = Monitor<[Int]>([])
    private let answers: Monitor<[RateLimitGrant]>

    init(_ answers: RateLimitGrant...) { self.answers = Monitor(answers) }

    func acquire(_ count: Int, of key: String, limit: RateLimit) async throws -> RateLimitGrant {
        calls.update { $0.append(count) }
        let next = answers.update { $0.isEmpty ? nil : $0.removeFirst() }
        guard let next else { throw Away() }
        return next
    }
}

/// A store whose answers the test gives.
private final class AskingStore: RateLimitStore {
    let calls = Inbox<CheckedContinuation<RateLimitGrant, any Error>>()

    func acquire(_ count: Int, of key: String, limit: RateLimit) async throws -> RateLimitGrant {
        try await withCheckedThrowingContinuation { calls.put($0) }
    }
}

/// Publishes to all subscribers.
private final class TestState: SharedPolicyState {
    /// A subscription, which ends with the object.
    final class Token: Sendable {
        private let end: @Sendable () -> Void

        init(_ end: @escaping @Sendable () -> Void) { self.end = end }
        deinit { end() }
    }

    private let receivers = Monitor<[UUID: @Sendable (SharedChange) -> Void]>([:])
    let published = Monitor<[SharedChange]>([])

    func publish(_ change: SharedChange) {
        published.update { $0.append(change) }
        for receive in receivers.read({ Array($0.values) }) { receive(change) }
    }

    func subscribe(_ receive: @escaping @Sendable (SharedChange) -> Void) -> any AnyObject & Sendable {
        let id = UUID()
        receivers.update { $0[id] = receive }
        return Token { [weak self] in self?.receivers.update { _ = $0.removeValue(forKey: id) } }
    }
}

@Suite(.timeLimit(.minutes(1))) struct StoreTests {
    private let url = "https://api.example.org/"

    private func manager(_ store: TestStore, _ events: Events, _ failure: RateLimiter.StoreFailure, lease: Int = 1) -> SessionManager {
        var limiter = RateLimiter(RateLimit(100, burst: 10), name: "api", maximumWait: .seconds(5), store: store, leaseSize: lease)
        limiter.storeFailure = failure
        return SessionManager(mock: .text("ok")) { $0.use(Resilience(rateLimiter: limiter, observers: [events])) }
    }

    @Test("leased permits are used without another call") func lease() async throws {
        let store = TestStore(.granted(5, validFor: .seconds(60)))
        let manager = manager(store, Events(), .closed, lease: 5)
        for _ in 0..<5 { #expect(try await manager.request(url).serializingString().value == "ok") }
        #expect(store.calls.read { $0 } == [5])
        await #expect(throws: CurlewError.self) { try await manager.request(url).serializingString().value }
        #expect(store.calls.read { $0 } == [5, 5])
    }

    @Test("a store that asks to wait is asked again") func wait() async throws {
        let store = TestStore(.wait(.milliseconds(5)), .granted(1, validFor: .seconds(1)))
        let manager = manager(store, Events(), .closed)
        #expect(try await manager.request(url).serializingString().value == "ok")
        #expect(store.calls.read { $0.count } == 2)
    }

    @Test("a permit whose request was cancelled before the store has answered is the next one's") func permitOfCancelled() async throws {
        let store = AskingStore()
        let session = ScriptedSession(Resilience(rateLimiter: RateLimiter(RateLimit(1, burst: 1), store: store)))
        let first = session.request()
        let call = await store.calls[0]
        first.cancel()
        #expect(await fails(first, isCancelled))
        let second = session.request()
        call.resume(returning: .granted(1, validFor: .seconds(60)))
        try #require(await eventually { session.count == 1 })
        await session.exchange(0).respond()
        #expect(try await second.serializingData().value.isEmpty)
        #expect(store.calls.count == 1)
    }

    @Test("a request that was cancelled before the store has failed takes no turn from the others") func turnOfCancelled() async throws {
        let store = AskingStore()
        let session = ScriptedSession(Resilience(rateLimiter: RateLimiter(RateLimit(1, per: .seconds(10), burst: 1), store: store)))
        let requests = (0..<3).map { _ in session.request() }
        await session.clock.advance(by: .seconds(1))
        requests[1].cancel()
        #expect(await fails(requests[1], isCancelled))
        await store.calls[0].resume(throwing: TestStore.Away())
        await session.exchange(0).respond()
        #expect(try await requests[0].serializingData().value.isEmpty)
        try await session.clock.advance(toWaitAt: .seconds(11))
        await session.exchange(1).respond()
        #expect(try await requests[2].serializingData().value.isEmpty)
    }

    @Test("a leased permit of a request that finds no place is there again") func leaseOfUnsent() async throws {
        let store = TestStore(.granted(2, validFor: .seconds(60)))
        var limiter = RateLimiter(RateLimit(2, burst: 2), store: store, leaseSize: 2)
        limiter.storeFailure = .closed
        let session = ScriptedSession(
            Resilience(rateLimiter: limiter, concurrency: ConcurrencyLimiter(.fixed(1), queueLimit: 0)))
        let first = session.request()
        let exchange = await session.exchange(0)
        for _ in 0..<3 { #expect(await fails(session.request()) { failureKind($0) == .overloaded }) }
        exchange.respond()
        #expect(try await first.serializingData().value.isEmpty)
        let second = session.request()
        await session.exchange(1).respond()
        #expect(try await second.serializingData().value.isEmpty)
        #expect(store.calls.read { $0 } == [2])
    }

    // A5.1: a fleet's refusal says how long to wait, as that of a process does.
    @Test("a request that a store lets wait too long is refused at once, and sent when the store has said") func longWait() async throws {
        let store = TestStore(.wait(.seconds(10)), .granted(1, validFor: .seconds(1)))
        let limiter = RateLimiter(RateLimit(1, per: .seconds(10), burst: 1), name: "api", maximumWait: .seconds(1), store: store)
        let session = ScriptedSession(Resilience(rateLimiter: limiter), interceptor: RetryPolicy())
        let isRefused = await fails(session.request()) {
            guard case CurlewError.transferFailed(let failure) = $0 else { return false }
            return failure.kind == .rateLimited && failure.retryAfter == .seconds(10)
        }
        #expect(isRefused && session.clock.elapsed == .zero)
        // Until then the store is not asked for others, whose time is shorter.
        await session.clock.advance(by: .seconds(4))
        async let value = session.request(options: RequestOptions(deadline: .seconds(60))).serializingData().value
        try await session.clock.advance(toWaitAt: .seconds(10))
        await session.exchange(0).respond()
        #expect(try await value.isEmpty)
        #expect(session.clock.elapsed == .seconds(10))
        #expect(store.calls.read { $0 } == [1, 1])
    }

    // A5.1
    @Test("a store that has refused for long is asked again after some seconds, as the hold may have ended elsewhere")
    func endedHold() async throws {
        let store = TestStore(.wait(.seconds(3_600)), .granted(1, validFor: .seconds(1)))
        let limiter = RateLimiter(RateLimit(1, per: .seconds(10), burst: 1), name: "api", maximumWait: .seconds(1), store: store)
        let session = ScriptedSession(Resilience(rateLimiter: limiter))
        for _ in 0..<2 {
            let isRefused = await fails(session.request()) {
                guard case CurlewError.transferFailed(let failure) = $0 else { return false }
                return failure.kind == .rateLimited && failure.retryAfter == .seconds(3_600)
            }
            #expect(isRefused)
        }
        #expect(store.calls.read { $0 } == [1])
        await session.clock.advance(by: .seconds(6))
        async let value = session.request().serializingData().value
        await session.exchange(0).respond()
        #expect(try await value.isEmpty)
        #expect(store.calls.read { $0 } == [1, 1])
    }

    @Test("a store that fails is open, closed or replaced, as it is set", arguments: [RateLimiter.StoreFailure.open, .closed, .local])
    func failure(_ setting: RateLimiter.StoreFailure) async throws {
        let events = Events()
        let manager = manager(TestStore(), events, setting)
        let value = try? await manager.request(url).serializingString().value
        #expect(value == (setting == .closed ? nil : "ok"))
        #expect(events.count { if case .storeFailed = $0.action { true } else { false } } == 1)
    }

    @Test("a host that one process finds dead is spared by the other") func sharedBreaker() async throws {
        let state = TestState()
        var breaker = CircuitBreaker(name: "api", minimumCalls: 1, window: .count(1))
        breaker.shared = state
        let policies = Resilience(breaker: breaker)
        let finder = SessionManager(mock: .status(500)) { $0.use(policies) }
        let mock = MockTransport(.text("ok"))
        let other = SessionManager(mock: mock) { $0.use(policies) }
        _ = try await finder.request(url).serializingData().value
        #expect(state.published.read { $0.map(\.kind) } == [.breakerOpened])
        await #expect(throws: CurlewError.self) { try await other.request(url).serializingData().value }
        #expect(mock.requests.isEmpty)
    }

    @Test("observers learn of a breaker's changes in their order, also if another process opens it as it closes")
    func orderOfChanges() async throws {
        let state = TestState()
        var breaker = CircuitBreaker(name: "api", minimumCalls: 1, window: .count(1), openDuration: .seconds(60), trialCalls: 1)
        breaker.jitter = 0
        breaker.shared = state
        let gate = Gate()
        let observer = ClosurePolicyObserver { if case .changed(_, .closed) = $0.action { gate.wait() } }
        let session = ScriptedSession(Resilience(breaker: breaker, observers: [observer]))
        let first = session.request()
        await session.exchange(0).respond(503)
        #expect(try await first.serializingData().value.isEmpty)
        await session.clock.advance(by: .seconds(60))
        let trial = session.request()
        let exchange = await session.exchange(1)
        Thread.detachNewThread { exchange.respond() }
        #expect(await gate.arrivals())
        state.publish(SharedChange(.breakerOpened, policy: "api", group: "https://api.example.org:443", lasting: .seconds(60)))
        gate.open()
        #expect(try await trial.serializingData().value.isEmpty)
        let changes = session.events.all.map(\.action).filter { if case .changed = $0 { true } else { false } }
        #expect(
            changes == [
                .changed(from: .closed, to: .open), .changed(from: .open, to: .halfOpen), .changed(from: .halfOpen, to: .closed),
                .changed(from: .closed, to: .open),
            ])
    }

    @Test("observers learn of a limit's changes in their order, also if two sessions have it") func orderOfLimits() async throws {
        let (gate, events) = (Gate(), Events())
        let observer = ClosurePolicyObserver { if case .limitChanged(from: 100, to: _) = $0.action { gate.wait() } }
        let limiter = ConcurrencyLimiter(
            .additive(initial: 100, minimum: 1, maximum: 200, backoff: 0.5, timeout: .seconds(5)), group: .session)
        var configuration = SessionConfiguration()
        configuration.use(Resilience(concurrency: limiter, observers: [observer, events]))
        let transports = (0..<2).map { _ in ScriptedTransport() }
        let managers = transports.map { SessionManager(configuration: configuration, transport: $0) }
        let requests = managers.map { $0.request(url) }
        let exchanges = (await transports[0].started[0], await transports[1].started[0])
        Thread.detachNewThread { exchanges.0.respond(503) }
        #expect(await gate.arrivals())
        exchanges.1.respond(503)
        #expect(events.all.isEmpty)
        gate.open()
        for request in requests { #expect(try await request.serializingData().value.isEmpty) }
        #expect(events.all.map(\.action) == [.limitChanged(from: 100, to: 50), .limitChanged(from: 50, to: 25)])
    }
}
