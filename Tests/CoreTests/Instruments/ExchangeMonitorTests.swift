// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct ExchangeMonitorTests {
    private enum Tenant {
        @TaskLocal static var current = "none"
    }

    private struct TenantCarrier: ContextCarrier {
        func capture() -> String? { Tenant.current }
        func restore<Value>(_ tenant: String, around body: () throws -> Value) rethrows -> Value {
            try Tenant.$current.withValue(tenant, operation: body)
        }
    }

    /// Records the exchanges.
    private struct Recorder: EventMonitor {
        let exchanges = Inbox<(exchange: OutgoingExchange, completion: ExchangeCompletion, id: UInt64, tenant: String)>()

        func request(_ request: Request, didCompleteExchange exchange: OutgoingExchange, with completion: ExchangeCompletion) {
            exchanges.put((exchange, completion, request.id, Tenant.current))
        }
    }

    private let recorder = Recorder()

    private func manager(_ mock: MockTransport, _ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        SessionManager(mock: mock) { [recorder] in
            $0.eventMonitors = [recorder]
            $0.contextCarriers = [TenantCarrier()]
            change(&$0)
        }
    }

    @Test func `monitors see each exchange with request, attempt, number, reason and the caller's context`() async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(302, ["Location": "/second"]), .failure(), .response(200),
        ])
        let manager = manager(mock)
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount == 0, 0) }
        let request = Tenant.$current.withValue("red") { manager.request("http://mock/first") }
        let response = await request.serializingData().response
        let seen = await recorder.exchanges.first(3)
        #expect(
            seen.map { "\($0.exchange.reason.rawValue) \($0.exchange.attempt).\($0.exchange.number)" } == [
                "first 1.1", "redirect 1.2", "retry 2.3",
            ])
        #expect(seen.map(\.completion.head?.statusCode) == [302, nil, 200])
        #expect(seen.map { kindOf($0.completion.error) } == [nil, .connect, nil])
        #expect(seen.allSatisfy { $0.id == request.id && $0.exchange.requestID == request.id && $0.tenant == "red" })
        #expect(seen.map(\.completion.metrics) == response.metrics.transactionMetrics)
    }

    @Test func `a cancelled exchange is reported once, a request that was not sent is not`() async {
        let mock = MockTransport()
        let manager = manager(mock)
        let request = manager.request("http://mock/")
        await mock.started[0].perform(.head(200))
        request.cancel()
        _ = await request.serializingData().response
        manager.startRequestsImmediately = false
        let unsent = manager.request("http://mock/")
        unsent.cancel()
        _ = await unsent.serializingData().response
        manager.settle()
        #expect(recorder.exchanges.all.map { isCancelled($0.completion.error) } == [true])
    }

    @Test func `the outcomes of the cache are reported`() async throws {
        let mock = MockTransport { request in
            if request.headers["If-None-Match"] == "\"1\"" { return .response(304, ["ETag": "\"1\""]) }
            return .response(200, ["Cache-Control": request.url.hasSuffix("stale") ? "max-age=0" : "max-age=3600", "ETag": "\"1\""], "x")
        }
        let manager = manager(mock) { $0.urlCache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil) }
        let cases: [(String, URLRequest.CachePolicy, HTTPHeaders)] = [
            ("/", .useProtocolCachePolicy, [:]), ("/", .useProtocolCachePolicy, [:]), ("/", .reloadRevalidatingCacheData, [:]),
            ("/", .reloadIgnoringLocalCacheData, [:]), ("/", .useProtocolCachePolicy, ["If-None-Match": "\"2\""]),
            ("/stale", .useProtocolCachePolicy, [:]), ("/stale", .returnCacheDataElseLoad, [:]),
            ("/stale", .useProtocolCachePolicy, ["Cache-Control": "max-stale"]),
            ("/", .useProtocolCachePolicy, ["Authorization": "Bearer t"]), ("/", .useProtocolCachePolicy, ["If-Match": "\"1\""]),
        ]
        for (path, policy, headers) in cases {
            var request = try URLRequest(url: "http://mock" + path, method: .get, headers: headers)
            request.cachePolicy = policy
            _ = try await manager.request(request).serializingData().value
        }
        let outcomes = await recorder.exchanges.first(cases.count).map(\.completion.metrics.cacheOutcome)
        #expect(outcomes == [.miss, .hit, .revalidated, .bypass, .hit, .miss, .stale, .stale, .miss, .bypass])
    }

    // MARK: Selected events

    /// Is told of failures, retries and the cache alone, and records everything else as a fault.
    private struct Selective: EventMonitor {
        let events = Inbox<String>()
        var monitoredEvents: MonitoredEvents { [.failures, .retries, .cache] }
        func request(_ request: Request, didCreate task: SessionTask) { events.put("not asked for") }
        func requestDidResume(_ request: Request) { events.put("not asked for") }
        func request(_ request: Request, didReceive response: HTTPURLResponse) { events.put("not asked for") }
        func request(_ request: Request, didComplete task: SessionTask, with error: (any Error)?) { events.put("not asked for") }
        func request(_ request: Request, didCompleteExchange exchange: OutgoingExchange, with completion: ExchangeCompletion) {
            events.put("not asked for")
        }
        func requestDidFinish(_ request: Request) { events.put("not asked for") }
        func request(_ request: Request, willRetryAfter delay: TimeInterval, because error: any Error) { events.put("retry") }
        func request(_ request: Request, didUseCache outcome: TransferMetrics.CacheOutcome) { events.put(outcome.rawValue) }
        func request(_ request: Request, didFailWith error: any Error, isHandled: Bool) {
            events.put("\(kindOf(error)?.rawValue ?? "\(error)") \(isHandled)")
        }
    }

    @Test func `a monitor is told of the events that it asks for`() async throws {
        let monitor = Selective()
        let mock = MockTransport.answering(inTurn: [
            .failure(), .response(200, ["Cache-Control": "max-age=3600"], "x"), .failure(), .failure(.idleTimeout),
        ])
        let manager = SessionManager(mock: mock) {
            $0.eventMonitors = [monitor, recorder]
            $0.urlCache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil)
        }
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount == 0, 0) }
        for _ in 0..<2 { _ = try await manager.request("http://mock/").serializingData().value }
        _ = await manager.request("http://mock/other").serializingData().result
        // The failure is reported after the awaiting task is resumed.
        _ = await monitor.events.first(8)
        manager.settle()
        #expect(monitor.events.all == ["miss", "retry", "miss", "hit", "miss", "retry", "miss", "idleTimeout true"])
        #expect(recorder.exchanges.count == 5)
    }

    @Test func `a failure without a handler is reported as one that is not handled`() async {
        let monitor = Selective()
        let manager = SessionManager(mock: MockTransport { _ in .failure() }) { $0.eventMonitors = [monitor] }
        manager.request("http://mock/")
        #expect(await monitor.events[0] == "connect false")
    }
}
