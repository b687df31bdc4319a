// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTesting
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct ExchangeInstrumentTests {
    private let instrument = RecordingInstrument()

    private func manager(_ mock: MockTransport, _ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        SessionManager(mock: mock) {
            $0.instruments = [instrument]
            change(&$0)
        }
    }

    private func numbers(_ mock: MockTransport) -> [String] { mock.started.all.map { $0.request.headers.values(for: "X-Number").joined() } }

    @Test func `an exchange is described, gets its fields, and ends once`() async throws {
        let mock = MockTransport.answering(200, [:], "body")
        let manager = manager(mock)
        var options = RequestOptions(name: "GET /users/{id}")
        options.cachePolicy = .reloadIgnoringLocalCacheData
        let request = manager.request(
            "http://user:secret@Mock:8080/users/7?access_token=t", headers: ["X-Own": "1", "X-Number": "old"], options: options)
        _ = try await request.serializingData().value
        let exchange = await instrument.started[0]
        #expect(exchange.requestID == request.id)
        #expect(exchange.name == "GET /users/{id}")
        #expect(exchange.method == .get)
        #expect(exchange.origin == HTTPOrigin(scheme: "http", host: "mock", port: 8080))
        #expect(exchange.redactedURL.hasSuffix("/users/7?access_token=<hidden>"))
        #expect(!exchange.redactedURL.contains("secret"))
        #expect(exchange.headers["X-Own"] == "1")
        var text = "\(exchange) \(String(reflecting: exchange))"
        dump(exchange, to: &text)
        #expect(!text.contains("secret") && !text.contains("=t") && text.contains("attempt 1"))
        #expect(!exchange.isWebSocketHandshake)
        #expect(instrument.reasons == ["first 1.1"])
        let sent = await mock.started[0].request
        #expect(sent.headers.values(for: "X-Number") == ["1"])
        #expect(sent.headers["Bad Name"] == nil)
        #expect(instrument.heads.all == [200])
        #expect(instrument.ended.all == ["1 200 ok"])
        // The task's request has no fields of instruments.
        #expect(request.request?.value(forHTTPHeaderField: "X-Number") == "old")
    }

    @Test func `each follow-up and each retry is an exchange with fields of its own`() async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(302, ["Location": "/second"]), .response(401, ["WWW-Authenticate": "Basic realm=\"r\""]), .response(503),
            .response(200),
        ])
        let manager = manager(mock)
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount == 0, 0) }
        _ = try await manager.request("http://mock/first").authenticate(user: "u", password: "p").validate().serializingData().value
        #expect(instrument.reasons == ["first 1.1", "redirect 1.2", "authentication 1.3", "retry 2.4"])
        #expect(numbers(mock) == ["1", "2", "3", "4"])
        #expect(instrument.ended.all == ["1 302 ok", "2 401 ok", "3 503 ok", "4 200 ok"])
        let urls = instrument.started.all.map(\.url)
        #expect(urls == ["http://mock/first", "http://mock/second", "http://mock/second", "http://mock/first"])
    }

    @Test func `interim responses are reported before the head, and without one`() async {
        let hints = MockTransport.Step.interim(ResponseHead(statusCode: 103, headers: ["Link": "</a>"]))
        let mock = MockTransport.answering(inTurn: [[hints] + .failure(.connectionLost), [hints, hints] + .response(200)])
        let manager = manager(mock)
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount == 0, 0) }
        #expect(await manager.request("http://mock/").serializingData().response.error == nil)
        #expect(instrument.heads.all == [103, 103, 103, 200])
        #expect(instrument.ended.all == ["1 - connectionLost", "2 200 ok"])
    }

    @Test func `a retry whose first attempt failed keeps counting`() async throws {
        let mock = MockTransport.answering(inTurn: [.failure(), .failure(.idleTimeout), .response(200)])
        let manager = manager(mock)
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount < 2, 0) }
        _ = try await manager.request("http://mock/").serializingData().value
        #expect(instrument.reasons == ["first 1.1", "retry 2.2", "retry 3.3"])
        #expect(instrument.ended.all == ["1 - connect", "2 - idleTimeout", "3 200 ok"])
    }

    @Test func `an origin that an instrument leaves alone gets none of its fields`() async throws {
        let mock = MockTransport.answering(inTurn: [.response(302, ["Location": "http://other/"]), .response(200)])
        var instrument = instrument
        instrument.host = "mock"
        let manager = SessionManager(mock: mock) { $0.instruments = [instrument] }
        _ = try await manager.request("http://mock/").serializingData().value
        #expect(numbers(mock) == ["1", ""])
        #expect(instrument.ended.all == ["1 302 ok"])
    }

    @Test func `a redirect whose long body is cut off has not failed`() async throws {
        let mock = MockTransport.answering(inTurn: [
            [.head(302, ["Location": "/next"]), .bytes(Data(count: 300 << 10)), .bytes(Data(count: 10)), .complete()], .response(200),
        ])
        _ = try await manager(mock).request("http://mock/").serializingData().value
        #expect(instrument.ended.all == ["1 302 ok", "2 200 ok"])
    }

    @Test func `a body that is too large fails its exchange with that`() async {
        let mock = MockTransport.answering(200, [:], "far too long")
        let manager = manager(mock) { $0.maximumBodySize = 5 }
        _ = await manager.request("http://mock/").serializingData().result
        #expect(instrument.ended.all == ["1 200 tooLarge"])
    }

    @Test func `cancelling ends the exchange in flight, and begins none for a request that was not sent`() async {
        let mock = MockTransport()
        let manager = manager(mock)
        let request = manager.request("http://mock/")
        await mock.started[0].perform(.head(200))
        request.suspend()
        request.cancel()
        _ = await request.serializingData().result
        #expect(instrument.ended.all == ["1 200 cancelled"])
        manager.startRequestsImmediately = false
        let unsent = manager.request("http://mock/")
        unsent.cancel()
        _ = await unsent.serializingData().result
        #expect(instrument.started.count == 1)
    }

    @Test func `a deadline ends the exchange in flight with itself`() async {
        let clock = VirtualClock()
        let manager = manager(MockTransport(clock: clock)) { $0.clock = clock }
        let request = manager.request("http://mock/", options: RequestOptions(deadline: .milliseconds(20)))
        _ = await instrument.started[0]
        await clock.advance(by: .milliseconds(20))
        _ = await request.serializingData().result
        #expect(instrument.ended.all == ["1 - deadline"])
    }

    @Test func `the end of the session ends the exchanges in flight`() async {
        let manager = manager(MockTransport())
        let requests = (0..<3).map { _ in manager.request("http://mock/") }
        _ = await instrument.started.first(3)
        manager.invalidateAndCancel()
        for request in requests { _ = await request.serializingData().result }
        let late = manager.request("http://mock/")
        _ = await late.serializingData().result
        // The one made afterwards is refused by the transport.
        #expect(await instrument.ended.first(4) == Array(repeating: "1 - invalidated", count: 4))
    }

    @Test func `a shutdown ends the exchanges in flight`() async {
        let manager = manager(MockTransport())
        let request = manager.request("http://mock/")
        _ = await instrument.started[0]
        await manager.shutdown(gracePeriod: .zero)
        _ = await request.serializingData().result
        #expect(instrument.ended.all == ["1 - shut down"])
        _ = await manager.request("http://mock/").serializingData().result
        #expect(instrument.started.count == 1)
    }

    @Test func `a request that is never made, and a body that can't be read, begin no exchange`() async {
        let manager = manager(.answering())
        manager.adapter = Adapting { _ in throw UserError() }
        _ = await manager.request("http://mock/").serializingData().result
        manager.adapter = nil
        _ = await manager.upload(URL(fileURLWithPath: "/nowhere/at all"), to: "http://mock/").serializingData().result
        #expect(instrument.started.count == 0)
    }

    @Test func `a transport that forgets a transfer ends its exchange`() async {
        /// Releases the observer without an event.
        struct Forgetful: Transport {
            func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
                UnawareTransfer {}
            }

            func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
                UnawareTransfer {}
            }

            func shutDown() {}
        }
        var configuration = SessionConfiguration()
        configuration.instruments = [instrument]
        let manager = SessionManager(configuration: configuration, transport: Forgetful())
        let request = manager.request("http://mock/")
        #expect(instrument.ended.all == ["1 - cancelled"])
        request.cancel()
    }

    @Test func `downloads, uploads and streamed bodies are exchanges`() async throws {
        let mock = MockTransport { _ in .response(200, [:], "body", readsBody: true) }
        let manager = manager(mock)
        _ = try await manager.download("http://mock/").serializingData().value
        _ = try await manager.upload(Data("four".utf8), to: "http://mock/").serializingData().value
        for try await _ in manager.streamRequest("http://mock/").bodyStream() {}
        #expect(instrument.ended.all == Array(repeating: "1 200 ok", count: 3))
        #expect(instrument.started.all.map(\.bodyLength) == [nil, 4, nil])
    }

    // MARK: What is installed with an instrument

    private enum Tenant {
        @TaskLocal static var current = "none"
    }

    private struct TenantCarrier: ContextCarrier {
        var prefix = ""
        func capture() -> String? { prefix + Tenant.current }
        func restore<Value>(_ tenant: String, around body: () throws -> Value) rethrows -> Value {
            try Tenant.$current.withValue(tenant, operation: body)
        }
    }

    private struct FinishMonitor: EventMonitor {
        let tenants = Inbox<String>()
        func requestDidFinish(_ request: Request) { tenants.put(Tenant.current) }
    }

    @Test func `carrier and monitor of an instrument are installed with it, and exchanges have the caller's context`() async throws {
        var instrument = instrument
        let monitor = FinishMonitor()
        instrument.contextCarrier = TenantCarrier()
        instrument.eventMonitor = monitor
        let mock = MockTransport.answering(inTurn: [.response(302, ["Location": "/next"]), .response(200)])
        let manager = SessionManager(mock: mock) { $0.instruments.append(instrument) }
        let request = Tenant.$current.withValue("red") { manager.request("http://mock/") }
        _ = try await request.serializingData().value
        #expect(instrument.started.all.map { $0.context(of: TenantCarrier.self) } == ["red", "red"])
        #expect(await monitor.tenants[0] == "red")
        #expect(manager.session.configuration.eventMonitors.isEmpty)
    }

    @Test func `of several carriers of one type the first is installed`() async throws {
        var second = instrument
        second.contextCarrier = TenantCarrier(prefix: "second ")
        let manager = SessionManager(mock: .answering()) {
            $0.contextCarriers = [TenantCarrier(prefix: "first ")]
            $0.instruments = [second, second]
        }
        _ = try await manager.request("http://mock/").serializingData().value
        #expect(instrument.started.all.map { $0.context(of: TenantCarrier.self) } == ["first none", "first none"])
        #expect(instrument.ended.count == 2)
    }

    // MARK: The cache

    @Test func `a response from the cache is no exchange, its validation is one`() async throws {
        let mock = MockTransport { request in
            guard request.headers["If-None-Match"] == nil else { return .response(304, ["ETag": "\"1\""]) }
            return .response(200, ["Cache-Control": "max-age=3600", "ETag": "\"1\""], "cached")
        }
        let manager = manager(mock) { $0.urlCache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil) }
        for policy in [URLRequest.CachePolicy.useProtocolCachePolicy, .useProtocolCachePolicy, .reloadRevalidatingCacheData] {
            var request = try URLRequest(url: "http://mock/", method: .get)
            request.cachePolicy = policy
            #expect(try await manager.request(request).serializingString().value == "cached")
        }
        #expect(instrument.ended.all == ["1 200 ok", "1 304 ok"])
        #expect(numbers(mock) == ["1", "1"])
    }

    @Test func `a validation that does not fit the cached response is followed by a restart`() async throws {
        let mock = MockTransport { request in
            guard request.headers["If-None-Match"] == nil else { return .response(304, ["ETag": "\"other\""]) }
            return .response(200, ["Cache-Control": "max-age=0", "ETag": "\"1\""], "cached")
        }
        let manager = manager(mock) { $0.urlCache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil) }
        for _ in 0..<2 { _ = try await manager.request("http://mock/").serializingString().value }
        #expect(instrument.reasons == ["first 1.1", "first 1.1", "restart 1.2"])
        #expect(instrument.ended.all == ["1 200 ok", "1 304 ok", "2 200 ok"])
    }
}
