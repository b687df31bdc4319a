// SPDX-License-Identifier: Apache-2.0
#if Observability
import Curlew
import CurlewObservability
import CurlewResilience
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTesting
import InMemoryLogging
import InMemoryTracing
import Logging
import MetricsTestKit
import Testing
import Tracing

/// What the instruments tell of requests that policies refuse or coalesce.
@Suite(.timeLimit(.minutes(1))) struct PolicyReportTests {
    private let metrics = TestMetrics()
    private let tracer = makeTracer()
    private let handler = InMemoryLogHandler()

    private func manager(_ level: Logger.Level, _ policies: Resilience, recordsRequests: Bool = false) -> SessionManager {
        makeManager { observe(&$0, level, policies, recordsRequests) }
    }

    private func observe(
        _ configuration: inout SessionConfiguration, _ level: Logger.Level, _ policies: Resilience, _ recordsRequests: Bool = false
    ) {
        var logger = Logger(label: "test", factory: { [handler] _ in handler })
        logger.logLevel = level
        var tracing = TracingInstrument(tracer: tracer)
        tracing.recordsRequests = recordsRequests
        configuration.instruments = [MetricsInstrument(factory: metrics), tracing, LoggingInstrument(logger: logger)]
        configuration.use(policies)
    }

    private func count(_ policy: String, _ action: String, phase: String = "") -> Int64 {
        metrics.counterTotal(
            label: "curlew.policy.events",
            dimensions: [
                ("curlew.policy", policy), ("curlew.policy.action", action), ("curlew.policy.phase", phase), ("curlew.policy.name", "api"),
            ])
    }

    private func spans(_ action: String) -> [FinishedInMemorySpan] {
        tracer.finishedSpans.filter { $0["curlew.policy.action"] == action }
    }

    private func logged(_ action: String) -> InMemoryLogHandler.Entry? {
        handler.entries.first { $0.metadata["curlew.policy.action"] == "\(action)" }
    }

    @Test("a refused request is counted, has a span under its caller's, and is logged", arguments: [false, true])
    func refused(recordsRequests: Bool) async throws {
        let server = try LoopbackServer { _, _ in .status(503) }
        let breaker = CircuitBreaker(name: "api", minimumCalls: 1, window: .count(1))
        let manager = manager(.debug, Resilience(breaker: breaker), recordsRequests: recordsRequests)
        _ = await manager.request(server.url("/first")).validate().serializingData().result
        let parent = tracer.startSpan("work", context: .topLevel)
        let request = ServiceContext.withValue(parent.context) {
            manager.request(server.url("/second?token=s3cret"), options: RequestOptions(name: "GET /second"))
        }
        await #expect(throws: CurlewError.self) { try await request.serializingData().value }
        parent.end()
        #expect(server.requestCount == 1)
        #expect(await eventually { !spans("refused").isEmpty && logged("refused") != nil })
        let span = try #require(spans("refused").first)
        #expect(span.operationName == "GET /second" && span.kind == .internal && span.status?.code == .error)
        #expect(span.traceID == parent.spanContext.traceID)
        #expect((span.parentSpanID == parent.spanContext.spanID) == !recordsRequests)
        #expect(span["curlew.policy"] == "circuit_breaker" && span["curlew.policy.name"] == "api")
        #expect(span["url.full"]?.contains("s3cret") == false)
        #expect(count("circuit_breaker", "refused") == 1 && count("circuit_breaker", "changed", phase: "open") == 1)
        let entry = try #require(logged("refused"))
        #expect(entry.level == .debug && entry.metadata["curlew.request.id"] == "\(request.id)")
        #expect(entry.metadata["curlew.request.name"] == "GET /second" && entry.metadata["curlew.duration"] != nil)
        let change = try #require(logged("changed"))
        #expect(change.level == .notice && change.metadata["curlew.policy.phase"] == "open")
        #expect(!"\(handler.entries)".contains("s3cret"))
        // A request's span begins with the refusal as well, and ends with the request.
        #expect(await eventually { tracer.activeSpans.isEmpty })
        #expect(tracer.finishedSpans.count { $0.operationName == "GET /second" } == (recordsRequests ? 2 : 1))
    }

    @Test("a coalesced request is counted, has a span, and is logged, beside the one exchange") func coalesced() async throws {
        let url = "https://api.example.org/same"
        let clock = VirtualClock()
        let mock = MockTransport(.text("shared").delayed(by: .seconds(1)), clock: clock)
        var coalescing = Coalescing()
        coalescing.name = "api"
        let manager = SessionManager(mock: mock) { [coalescing] in observe(&$0, .debug, Resilience(coalescing: coalescing)) }
        let requests = (0..<3).map { _ in manager.request(url) }
        #expect(await eventually { spans("coalesced").count == 2 && count("coalescing", "coalesced") == 2 })
        await clock.advance(by: .seconds(1))
        for request in requests { #expect(try await request.serializingString().value == "shared") }
        #expect(mock.requests.count == 1)
        for span in spans("coalesced") {
            #expect(span.operationName == "GET" && span.kind == .internal && span.status == nil)
            #expect(span["url.full"] == url && span["http.response.status_code"] == nil)
        }
        #expect(tracer.finishedSpans.count { $0.kind == .client } == 1)
        #expect(await eventually { handler.entries.count { $0.metadata["curlew.policy.action"] == "coalesced" } == 2 })
        let ids = Set(
            handler.entries.compactMap { entry in
                entry.metadata["curlew.policy.action"] == "coalesced" ? entry.metadata["curlew.request.id"]?.description : nil
            })
        #expect(ids.count == 2 && ids.isSubset(of: requests.map { "\($0.id)" }))
    }

    @Test("a request that a limiter refuses has a span, and waits are counted") func limited() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.text("ok"), clock: clock)
        let limiter = RateLimiter(RateLimit(1, burst: 1), name: "api", maximumWait: .seconds(1))
        let manager = SessionManager(mock: mock) { observe(&$0, .debug, Resilience(rateLimiter: limiter)) }
        let requests = (0..<3).map { _ in manager.request("https://api.example.org/limited") }
        await #expect(throws: CurlewError.self) { try await requests[2].serializingData().value }
        await clock.advance(by: .seconds(1))
        for request in requests.prefix(2) { #expect(try await request.serializingString().value == "ok") }
        #expect(await eventually { count("rate_limiter", "refused") == 1 && count("rate_limiter", "waited") == 1 })
        #expect(await eventually { spans("refused").count == 1 && logged("refused") != nil && logged("waited") != nil })
        let span = try #require(spans("refused").first)
        #expect(span["curlew.policy"] == "rate_limiter" && span["url.full"] == "https://api.example.org/limited")
        #expect(span.kind == .internal && span.status?.code == .error)
        // What has waited is an exchange like others.
        #expect(tracer.finishedSpans.count { $0.kind == .client } == 2)
    }

    @Test("refused retries and second attempts are counted, and a second attempt is logged as one") func attempts() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.status(503), clock: clock)
        mock.enqueue(.text("slow").delayed(by: .seconds(10)), .text("fast"))
        var hedging = Hedging(after: .fixed(.seconds(1)), extra: 1)
        hedging.name = "api"
        let budget = RetryBudget(.share(ratio: 0, minimum: 0, window: .seconds(10)), name: "api")
        let manager = SessionManager(mock: mock, interceptor: RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0)) { [hedging] in
            observe(&$0, .debug, Resilience(retryBudget: budget, hedging: hedging))
        }
        let request = manager.request("https://api.example.org/slow")
        async let value = request.serializingString().value
        try await mock.waitForRequests(1)
        await clock.advance(by: .seconds(1))
        #expect(try await value == "fast")
        await #expect(throws: CurlewError.self) {
            try await manager.request("https://api.example.org/failing").validate().serializingData().value
        }
        #expect(
            await eventually {
                count("hedging", "hedged") == 1 && count("hedging", "hedge_won") == 1 && count("retry_budget", "refused") == 1
            })
        #expect(await eventually { logged("hedged") != nil && logged("refused") != nil })
        // The retry is no exchange that was not sent: the request ends with the error of its last attempt.
        #expect(spans("refused").isEmpty)
        #expect(await eventually { tracer.finishedSpans.count { $0.kind == .client } == 3 })
        #expect(handler.entries.contains { $0.metadata["curlew.exchange.reason"] == "hedge" })
    }

    @Test("above their levels nothing is logged") func quiet() async throws {
        let server = try LoopbackServer { _, _ in .status(503) }
        let breaker = CircuitBreaker(name: "api", minimumCalls: 1, window: .count(1))
        let manager = manager(.notice, Resilience(breaker: breaker))
        for _ in 0..<2 { _ = await manager.request(server.url("/")).validate().serializingData().result }
        #expect(await eventually { count("circuit_breaker", "refused") == 1 })
        #expect(handler.entries.map(\.level) == [.notice])
    }
}
#endif
