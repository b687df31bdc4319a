// SPDX-License-Identifier: Apache-2.0
import CurlewResilience
import CurlewTestSupport
import CurlewTesting
import Testing

/// Collects the events of policies.
final class Events: PolicyObserver {
    private let events = Monitor<[PolicyEvent]>([])
    var all: [PolicyEvent] { events.read { $0 } }
    func policyDidAct(_ event: PolicyEvent) { events.update { $0.append(event) } }
    func count(_ matches: (PolicyEvent) -> Bool) -> Int { all.filter(matches).count }
}

@Suite(.timeLimit(.minutes(1))) struct PolicySessionTests {
    private let url = "https://api.example.org/a"

    private func manager(
        _ mock: MockTransport, _ resilience: Resilience, interceptor: (any RequestInterceptor)? = nil,
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        SessionManager(mock: mock, interceptor: interceptor) { configuration in
            change(&configuration)
            configuration.use(resilience)
        }
    }

    private func failure(_ body: () async throws -> Data) async -> TransferFailure? {
        do {
            _ = try await body()
        } catch CurlewError.transferFailed(let failure) {
            return failure
        } catch {}
        return nil
    }

    @Test("an open breaker refuses with the time to wait, sends nothing, and closes after good trials") func breaker() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.status(503), .status(503), .text("ok"), clock: clock)
        let events = Events()
        var breaker = CircuitBreaker(minimumCalls: 2, window: .count(2), openDuration: .seconds(60), trialCalls: 1)
        breaker.jitter = 0
        let manager = manager(mock, Resilience(breaker: breaker, observers: [events]))
        for _ in 0..<2 { _ = try await manager.request(url).serializingData().value }
        let refusal = await failure { try await manager.request("https://api.example.org/b?token=secret").serializingData().value }
        #expect(refusal?.kind == .circuitOpen)
        #expect(refusal?.retryAfter == .seconds(60))
        #expect(refusal?.requestWasSent == false)
        #expect(refusal?.request?.attempt == 1)
        #expect("\(String(describing: refusal))".contains("https://api.example.org:443 is open"))
        #expect(!"\(String(describing: refusal))".contains("secret"))
        #expect(mock.requests.count == 2)
        // Another origin is another group.
        _ = try await manager.request("https://other.example.org/").serializingData().value
        await clock.advance(by: .seconds(60))
        #expect(try await manager.request(url).serializingString().value == "ok")
        let phases = events.all.compactMap { if case .changed(_, let phase) = $0.action { phase } else { nil } }
        #expect(phases == [.open, .halfOpen, .closed])
        #expect(events.count { $0.action == .refused(retryAfter: .seconds(60)) && $0.group == "https://api.example.org:443" } == 1)
    }

    @Test("requests over the rate wait for their turn in order, and a cancelled one does not") func rate() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.text("ok"), clock: clock)
        let events = Events()
        let manager = manager(mock, Resilience(rateLimiter: RateLimiter(RateLimit(1, burst: 1)), observers: [events]))
        _ = try await manager.request(url).serializingData().value
        let second = manager.request(url)
        let third = manager.request(url)
        third.cancel()
        async let value = second.serializingString().value
        await #expect(throws: CurlewError.self) { try await third.serializingData().value }
        #expect(mock.requests.count == 1)
        await clock.advance(by: .seconds(1))
        #expect(try await value == "ok")
        #expect(clock.elapsed == .seconds(1))
        #expect(events.count { $0.action == .waited(.seconds(1)) } == 1)
        let refusal = await failure {
            let manager = self.manager(
                MockTransport(.text("ok"), clock: clock),
                Resilience(rateLimiter: RateLimiter(RateLimit(1, per: .seconds(100), burst: 1), maximumWait: .seconds(5))))
            _ = try await manager.request(url).serializingData().value
            return try await manager.request(url).serializingData().value
        }
        #expect(refusal?.kind == .rateLimited)
        #expect(refusal?.retryAfter == .seconds(100))
    }

    @Test("Retry-After of a 429 holds the next request back") func retryAfter() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.status(429, headers: ["Retry-After": "10"]), .text("ok"), clock: clock)
        let manager = manager(mock, Resilience(rateLimiter: RateLimiter(RateLimit(1_000))))
        _ = try await manager.request(url).serializingData().value
        let next = manager.request(url)
        async let value = next.serializingString().value
        await clock.advance(by: .seconds(9))
        #expect(mock.requests.count == 1)
        await clock.advance(by: .seconds(1))
        #expect(try await value == "ok")
    }

    @Test("at most so many requests are in flight, and those that wait follow") func concurrency() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.text("ok").delayed(by: .seconds(1)), clock: clock)
        let limiter = ConcurrencyLimiter(.fixed(2), group: .session, queueLimit: 2)
        let manager = manager(mock, Resilience(concurrency: limiter))
        let requests = (0..<5).map { _ in manager.request(url) }
        let refusal = await failure { try await requests[4].serializingData().value }
        #expect(refusal?.kind == .overloaded)
        try await mock.waitForRequests(2)
        #expect(mock.requests.count == 2)
        await clock.advance(by: .seconds(1))
        try await mock.waitForRequests(4)
        await clock.advance(by: .seconds(1))
        for request in requests.prefix(4) { #expect(try await request.serializingString().value == "ok") }
    }

    @Test("a full compartment does not stop another one") func bulkhead() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.text("ok").delayed(by: .seconds(1)), clock: clock)
        let manager = manager(mock, Resilience(bulkhead: Bulkhead(concurrent: 1) { $0.name }))
        func request(_ name: String) -> DataRequest { manager.request(url, options: RequestOptions(name: name)) }
        let first = request("a")
        let second = request("b")
        let refusal = await failure { try await request("a").serializingData().value }
        #expect(refusal?.kind == .overloaded)
        await clock.advance(by: .seconds(1))
        #expect(try await first.serializingString().value == "ok")
        #expect(try await second.serializingString().value == "ok")
    }

    @Test("a budget refuses retries of all retriers; the request has its own error") func budget() async throws {
        let clock = VirtualClock(.automatic)
        let mock = MockTransport(.status(503), clock: clock)
        let events = Events()
        let budget = RetryBudget(.share(ratio: 0.5, minimum: 0, window: .seconds(1_000)))
        let manager = manager(
            mock, Resilience(retryBudget: budget, observers: [events]),
            interceptor: RetryPolicy(retryLimit: 10, exponentialBackoffScale: 0))
        var errors: [Int?] = []
        for _ in 0..<4 {
            do { _ = try await manager.request(url).validate().serializingData().value } catch {
                errors.append(error.asCurlewError?.statusCode)
            }
        }
        #expect(errors == [503, 503, 503, 503])
        #expect(mock.requests.count == 6)
        #expect(events.count { $0.policy == .retryBudget } == 4)
    }

    @Test("a late request is sent twice, and the first response counts") func hedging() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(clock: clock)
        mock.enqueue(.text("slow").delayed(by: .seconds(10)), .text("fast").delayed(by: .milliseconds(10)))
        let events = Events()
        let manager = manager(
            mock, Resilience(hedging: Hedging(after: .fixed(.seconds(1)), extra: 1), observers: [events]))
        let request = manager.request(url)
        async let value = request.serializingString().value
        try await mock.waitForRequests(1)
        await clock.advance(by: .seconds(1))
        try await mock.waitForRequests(2)
        await clock.advance(by: .milliseconds(10))
        #expect(try await value == "fast")
        #expect(clock.elapsed == .milliseconds(1_010))
        #expect(events.all.map(\.action) == [.hedged(after: .seconds(1)), .hedgeWon])
        // A POST is never sent twice.
        mock.enqueue(.text("post").delayed(by: .seconds(10)))
        async let post = manager.request(url, method: .post).serializingString().value
        try await mock.waitForRequests(3)
        await clock.advance(by: .seconds(10))
        #expect(try await post == "post")
        #expect(mock.requests.count == 3)
    }

    @Test("equal requests in flight share one transfer, each with its own cancellation") func coalescing() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.text("shared").delayed(by: .seconds(1)), clock: clock)
        let events = Events()
        let manager = manager(mock, Resilience(coalescing: Coalescing(), observers: [events]))
        let requests = (0..<10).map { _ in manager.request(url) }
        let other = manager.request(url, headers: ["Authorization": "Bearer b"])
        requests[0].cancel()
        await #expect(throws: CurlewError.self) { try await requests[0].serializingData().value }
        try await mock.waitForRequests(2)
        await clock.advance(by: .seconds(1))
        for request in requests.dropFirst() { #expect(try await request.serializingString().value == "shared") }
        #expect(try await other.serializingString().value == "shared")
        #expect(mock.requests.count == 2)
        #expect(events.count { $0.action == .coalesced } == 9)
        // A later one is a transfer of its own.
        let later = manager.request(url)
        async let value = later.serializingString().value
        try await mock.waitForRequests(3)
        await clock.advance(by: .seconds(1))
        #expect(try await value == "shared")
    }

    @Test("a POST has the same key on each attempt, and another request another one") func keys() async throws {
        let mock = MockTransport(.status(503), .status(503), .text("ok"), clock: VirtualClock(.automatic))
        let keys = IdempotencyKeys()
        let manager = manager(mock, Resilience(idempotencyKeys: keys), interceptor: keys.retryPolicy())
        _ = try await manager.request(url, method: .post).validate().serializingData().value
        _ = try await manager.request(url, method: .post).validate().serializingData().value
        _ = try await manager.request(url).validate().serializingData().value
        let sent = mock.requests.map { $0.headers["Idempotency-Key"] }
        #expect(sent.count == 5)
        #expect(sent[0] != nil && sent[0] == sent[1] && sent[1] == sent[2])
        #expect(sent[3] != nil && sent[3] != sent[0])
        #expect(sent[4] == nil)
    }

    @Test("a stale response takes the place of a refusal, a value that of a failure") func fallback() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(
            .status(200, headers: ["Cache-Control": "max-age=1"], data: Data("stored".utf8)), .status(503), clock: clock)
        let manager = manager(mock, Resilience(staleIfError: .seconds(3_600))) { $0.cache = .memory() }
        #expect(try await manager.request(url).serializingString().value == "stored")
        await clock.advance(by: .seconds(10))
        #expect(try await manager.request(url).validate().serializingString().value == "stored")
        #expect(mock.requests.count == 2)
        let events = Events()
        let guest = Fallback("guest", observer: events)
        #expect(try await guest { try await manager.request("https://b.example.org/").validate().serializingString().value } == "guest")
        #expect(events.count { $0.action == .fellBack } == 1)
        await #expect(throws: CancellationError.self) { try await guest { throw CancellationError() } }
    }

    @Test("monitors are told what policies do") func monitors() async throws {
        struct Told: EventMonitor {
            let reports: Monitor<[PolicyReport]>
            var monitoredEvents: MonitoredEvents { .policies }
            func policyDidAct(_ report: PolicyReport) { reports.update { $0.append(report) } }
        }
        let reports = Monitor<[PolicyReport]>([])
        let mock = MockTransport(.status(503), clock: VirtualClock())
        let breaker = CircuitBreaker(name: "api", minimumCalls: 1, window: .count(1))
        let manager = manager(mock, Resilience(breaker: breaker)) { $0.eventMonitors.append(Told(reports: reports)) }
        _ = try await manager.request(url).serializingData().value
        #expect(await eventually { !reports.read { $0.isEmpty } })
        let group = "https://api.example.org:443"
        #expect(
            reports.read { $0 } == [PolicyReport(policy: "circuit_breaker", action: "changed", phase: "open", name: "api", group: group)])
    }

    @Test("requests that wait end with their session") func sessionEnds() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.text("ok").delayed(by: .seconds(10)), clock: clock)
        let manager = manager(
            mock, Resilience(coalescing: Coalescing { $0.url.hasSuffix("shared") }, concurrency: ConcurrencyLimiter(.fixed(1))))
        let requests = [url, url, "\(url)/shared", "\(url)/shared"].map { manager.request($0) }
        try await mock.waitForRequests(1)
        manager.invalidateAndCancel()
        for request in requests {
            let error = await #expect(throws: CurlewError.self) { try await request.serializingData().value }
            if case .sessionInvalidated? = error {} else { Issue.record("\(String(describing: error))") }
        }
    }
}
