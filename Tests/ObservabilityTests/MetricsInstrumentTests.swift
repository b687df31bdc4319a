// SPDX-License-Identifier: Apache-2.0
#if Observability
import Curlew
import CurlewEvents
import CurlewObservability
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewWebSocket
import MetricsTestKit
import Testing

@Suite(.timeLimit(.minutes(1))) struct MetricsInstrumentTests {
    private let metrics = TestMetrics()
    private let server: LoopbackServer
    private static let duration = "http.client.request.duration"

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func manager(
        _ optional: MetricsInstrument.OptionalMetrics = [], _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        makeManager {
            $0.instruments.append(MetricsInstrument(factory: metrics, optional: optional))
            change(&$0)
        }
    }

    @Test func `a request's duration has the dimensions of the conventions`() async throws {
        let response = await manager().request(server.url("/json?secret=1")).serializingData().response
        let timer = try #require(metrics.timers(label: Self.duration).first)
        #expect(
            Dictionary(uniqueKeysWithValues: timer.dimensions) == [
                "http.request.method": "GET", "server.address": "127.0.0.1", "server.port": "\(server.port)",
                "http.response.status_code": "200", "error.type": "", "network.protocol.version": "1.1",
            ])
        #expect(timer.values.map { Duration.nanoseconds($0) } == [response.metrics.last?.total])
        #expect(timer.displayUnit == .seconds)
        // Those in development are opt-in.
        #expect(metrics.meters.isEmpty && metrics.recorders.isEmpty)
        #expect(try metrics.expectCounter("curlew.request.dropped.handlers").totalValue == 0)
        #expect(metrics.count("curlew.request.queue.time") == 1)
        #expect(metrics.count("curlew.request.phase.duration", ["curlew.phase": "connect"]) == 1)
        #expect(metrics.count("curlew.request.phase.duration", ["curlew.phase": "first_byte"]) == 1)
        #expect(metrics.count("curlew.request.phase.duration", ["curlew.phase": "tls"]) == 0)
    }

    @Test func `each exchange counts, by status or error, and active requests return to zero`() async throws {
        let manager = manager([.activeRequests, .bodySizes])
        manager.retrier = retryOnce
        _ = try await manager.request(server.url("/redirect/1")).serializingData().value
        _ = try await manager.request(server.url("/flaky?fail=1&key=m")).validate().serializingData().value
        _ = try await manager.request(server.url("/auth-basic?user=u&password=p")).authenticate(user: "u", password: "p")
            .serializingData().value
        _ = await manager.request(server.url("/cut-body")).serializingData().result
        _ = await manager.request(server.url("/silent"), options: RequestOptions(deadline: .seconds(1))).serializingData().result
        let method = try #require(HTTPMethod(rawValue: "FROB"))
        _ = try await manager.request(server.url("/json"), method: method).serializingData().value
        let upload = try await manager.upload(Data(count: 300), to: server.url("/body")).serializingData().value
        #expect(upload.count == 300)
        func count(_ status: String, _ error: String) -> Int {
            metrics.count(Self.duration, ["http.response.status_code": status, "error.type": error])
        }
        #expect(count("302", "") == 1 && count("503", "503") == 1 && count("401", "401") == 1)
        #expect(count("200", "connectionLost") == 2 && count("", "deadline") == 1)
        #expect(metrics.count(Self.duration, ["http.request.method": "_OTHER"]) == 1)
        #expect(metrics.count(Self.duration) == 11)
        #expect(metrics.counterTotal(label: "curlew.request.retries") == 2)
        #expect(metrics.level("http.client.active_requests") == 0)
        #expect(metrics.meters(label: "http.client.active_requests").contains { $0.values.max() ?? 0 >= 1 })
        #expect(metrics.recorders(label: "http.client.request.body.size").flatMap(\.values).contains(300))
        #expect(metrics.recorders(label: "http.client.response.body.size").flatMap(\.values).contains(300))
        expectUniformDimensions()
    }

    /// swift-prometheus traps on metrics of one name whose dimensions have different names.
    private func expectUniformDimensions() {
        let all =
            metrics.timers.map { ($0.label, $0.dimensions) } + metrics.counters.map { ($0.label, $0.dimensions) }
            + metrics.meters.map { ($0.label, $0.dimensions) } + metrics.recorders.map { ($0.label, $0.dimensions) }
        for (label, same) in Dictionary(grouping: all, by: \.0) {
            #expect(Set(same.map { $0.1.map(\.0) }).count == 1, "\(label)")
        }
    }

    @Test func `cancelled requests, WebSockets, event streams and ended sessions leave no active request`() async throws {
        let sockets = try WebSocketServer(accept: WebSocketHandshake.accept(for:)) { peer in
            while let frame = try peer.receive(), frame.opcode != .close {}
            try peer.send(.close)
        }
        let events = try LoopbackServer { request, _ in
            request.header("Last-Event-ID") == nil ? .ok("retry: 1\nid: 1\ndata: x\n\n", type: "text/event-stream") : .status(204)
        }
        let manager = manager(.activeRequests)
        let socket = manager.webSocket(sockets.url())
        try await socket.open()
        try await socket.close()
        for try await _ in manager.eventStream(events.url("/")) {}
        let cancelled = manager.request(server.url("/silent"))
        #expect(await server.waitForRequests(1))
        #expect(metrics.level("http.client.active_requests") == 1)
        cancelled.cancel()
        _ = await cancelled.serializingData().result
        #expect(metrics.level("http.client.active_requests") == 0)
        let open = (0..<3).map { _ in manager.request(server.url("/silent")) }
        #expect(await server.waitForRequests(4))
        #expect(metrics.level("http.client.active_requests") == 3)
        manager.invalidateAndCancel()
        for request in open { _ = await request.serializingData().result }
        #expect(metrics.level("http.client.active_requests") == 0)
        #expect(metrics.count(Self.duration, ["http.response.status_code": "101"]) == 1)
        #expect(metrics.count(Self.duration, ["error.type": "sessionInvalidated"]) == 3)
    }

    @Test func `what policies do is counted`() async throws {
        let monitor = try #require(MetricsInstrument(factory: metrics).eventMonitor)
        #expect(monitor.monitoredEvents.contains(.policies))
        for group in ["https://a.example.org:443", "https://b.example.org:443"] {
            monitor.policyDidAct(PolicyReport(policy: "circuit_breaker", action: "changed", phase: "open", name: "api", group: group))
        }
        let dimensions = [
            ("curlew.policy", "circuit_breaker"), ("curlew.policy.action", "changed"), ("curlew.policy.phase", "open"),
            ("curlew.policy.name", "api"),
        ]
        #expect(metrics.counterTotal(label: "curlew.policy.events", dimensions: dimensions) == 2)
    }

    @Test func `what the cache does is counted`() async throws {
        let server = try LoopbackServer { request, _ in
            if request.header("If-None-Match") != nil { return .status(304, headers: [ServerField("ETag", "\"1\"")]) }
            return ServerResponse(
                status: 200, headers: [ServerField("Cache-Control", "max-age=100"), ServerField("ETag", "\"1\"")],
                body: .data(Data("x".utf8)))
        }
        let manager = manager { $0.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil) }
        let policies = [
            URLRequest.CachePolicy.useProtocolCachePolicy, .useProtocolCachePolicy, .reloadRevalidatingCacheData,
            .reloadIgnoringLocalCacheData,
        ]
        for policy in policies {
            var request = try URLRequest(url: server.url("/"), method: .get)
            request.cachePolicy = policy
            _ = try await manager.request(request).serializingString().value
        }
        let expected = [("miss", "not-stored"), ("hit", "fresh"), ("revalidated", "requested-by-request"), ("bypass", "ignored")]
        func totals() -> [Int64] {
            expected.map { outcome, reason in
                metrics.counterTotal(
                    label: "curlew.request.cache", dimensions: [("curlew.cache.outcome", outcome), ("curlew.cache.reason", reason)])
            }
        }
        #expect(await eventually { totals().reduce(0, +) == 4 })
        #expect(totals() == [1, 1, 1, 1])
        #expect(metrics.count(Self.duration) == 3)
    }

    @Test func `open connections are active or idle, and all are closed with the session`() async throws {
        let manager = manager(.connections)
        let waiting = manager.request(server.url("/silent"))
        _ = try await manager.request(server.url("/json")).serializingData().value
        _ = try await manager.request(server.url("/json")).serializingData().value
        _ = await manager.request(server.url("/cut-body")).serializingData().result
        let label = "http.client.open_connections"
        #expect(
            await eventually {
                metrics.level(label, ["http.connection.state": "active"]) == 1 && metrics.count("http.client.connection.duration") == 1
                    && metrics.level(label, ["http.connection.state": "idle"]) == 0
            })
        _ = try await manager.request(server.url("/json")).serializingData().value
        #expect(await eventually { metrics.level(label, ["http.connection.state": "idle"]) == 1 })
        await manager.shutdown(gracePeriod: .zero)
        _ = await waiting.serializingData().result
        #expect(await eventually { metrics.count("http.client.connection.duration") == 3 })
        #expect(metrics.level(label, ["http.connection.state": "active"]) == 0)
        #expect(metrics.level(label, ["http.connection.state": "idle"]) == 0)
        expectUniformDimensions()
    }

    @Test func `origins after the 256th are counted together`() async throws {
        // The proxy's answers, as there are no such hosts.
        let proxy = try LoopbackServer { _, _ in .ok("x") }
        let manager = manager { $0.proxy = .url("http://127.0.0.1:\(proxy.port)") }
        for number in 0..<260 {
            _ = try await manager.request("http://host\(number).example/\(number)?q=\(number)").serializingData().value
        }
        let timers = metrics.timers(label: Self.duration)
        #expect(timers.count == 257)
        #expect(metrics.timer(Self.duration, ["server.address": "other", "server.port": "0"])?.values.count == 4)
        #expect(!timers.contains { $0.dimensions.contains { $0.1.contains("?") || $0.1.contains("/") } })
    }
}
#endif
