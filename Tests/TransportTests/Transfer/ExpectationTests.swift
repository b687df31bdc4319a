// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// `Expect: 100-continue` set by the user (RFC 9110, section 10.1.1): the request is sent once, and has one response.
@Suite(.timeLimit(.minutes(1))) struct ExpectationTests {
    enum Body: CaseIterable, Sendable {
        case data, file, stream
    }

    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func request(_ url: String, _ method: HTTPMethod, _ body: Body, size: Int) throws -> TransferRequest {
        let bytes = GeneratedBody().data(count: size)
        let source: any BodySource =
            switch body {
            case .data: DataBody(bytes)
            case .file: try FileBody(path: try directory.write(bytes, to: "body").path)
            case .stream: FedBody([.bytes(bytes), .end])
            }
        var request = TransferRequest(url: url, method: method, headers: ["Expect": "100-continue"], body: source)
        request.expectsLargeBody = body != .data
        request.options.proxy = .none
        return request
    }

    @Test("a 417 instead of a 100 is the response, and the request is not repeated", arguments: Body.allCases, [HTTPMethod.post, .put])
    func refused(body: Body, method: HTTPMethod) async throws {
        let heads = Lock(0)
        let refusal = ServerResponse(status: 417, headers: [ServerField("X-Answer", "1")], body: .data(Data("refused".utf8)))
        let server = try LoopbackServer { _ in
            heads.withLock { $0 += 1 }
            return .refused(refusal)
        } route: { _, _ in
            .ok("stored")
        }
        let transport = CurlTransport()
        let end = await transport.run(try request(server.url("/"), method, body, size: 1000))
        #expect(end.error == nil, "\(String(describing: end.error))")
        #expect(end.head?.statusCode == 417 && end.head?.value(for: "X-Answer") == "1")
        #expect(end.body == Data("refused".utf8))
        // Without an answer the body is sent after a second.
        let isInTime = try #require(end.completion).metrics.total < .seconds(1)
        #expect((end.sent == 0 || !isInTime) && end.completions == 1)
        #expect(heads.withLock { $0 } == 1)
    }

    @Test("a 417 on a connection that stays open is the response, and the connection is not reused", arguments: Body.allCases)
    func refusedAndKept(body: Body) async throws {
        let server = try LoopbackServer { request in
            request.header("Expect") == nil ? .kept : .unread
        } route: { request, connection in
            guard request.header("Expect") != nil else { return .ok("\(request.connection)") }
            try connection.send(raw: "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 7\r\n\r\nrefused")
            // A server that continues to read the announced body.
            connection.waitUntilClosed()
            return nil
        }
        let transport = CurlTransport()
        // More than the buffers hold: what is sent after a second without an answer is never all of it.
        let end = await transport.run(try request(server.url("/"), .put, body, size: 20_000_000))
        #expect(end.error == nil, "\(String(describing: end.error))")
        #expect(end.head?.statusCode == 417 && end.body == Data("refused".utf8))
        var next = TransferRequest(url: server.url("/"))
        next.options.proxy = .none
        #expect(await transport.run(next).body == Data("2".utf8))
        #expect(server.connectionCount == 2)
    }

    @Test("a 417 while the body is sent is the response, and the request is not repeated", arguments: Body.allCases)
    func refusedInBody(body: Body) async throws {
        let (heads, gate) = (Lock(0), Gate())
        let server = try LoopbackServer { _ in
            heads.withLock { $0 += 1 }
            return .unread
        } route: { _, connection in
            try connection.send(raw: "HTTP/1.1 100 Continue\r\n\r\n")
            connection.wait(until: gate)
            return ServerResponse(status: 417, body: .data(Data("refused".utf8)))
        }
        let observer = RecordingObserver()
        let transport = CurlTransport()
        transport.start(try request(server.url("/"), .put, body, size: 20_000_000), observer: observer)
        #expect(await observer.record { $0.sent > 0 }.sent > 0)
        gate.open()
        let end = await observer.end()
        #expect(end.error == nil, "\(String(describing: end.error))")
        #expect(end.head?.statusCode == 417 && end.body == Data("refused".utf8))
        #expect(end.completions == 1)
        #expect(heads.withLock { $0 } == 1)
    }

    @Test("the body waits for consent, but a server that never consents still receives it", arguments: Body.allCases)
    func consent(body: Body) async throws {
        let (gate, silent) = (Gate(), Gate())
        let server = try LoopbackServer { _ in
            .unread
        } route: { request, connection in
            // Responds only after the test has checked, and then sends 100 or nothing.
            connection.wait(until: request.path == "/consent" ? gate : silent)
            if request.path == "/consent" { try connection.send(raw: "HTTP/1.1 100 Continue\r\n\r\n") }
            connection.wait(until: silent)
            return .ok("stored")
        }
        let observer = RecordingObserver()
        let transport = CurlTransport()
        let start = ContinuousClock.now
        transport.start(try request(server.url("/consent"), .put, body, size: 1000), observer: observer)
        #expect(await gate.arrivals())
        let sent = observer.record.sent
        // It waits for a second.
        #expect(sent == 0 || start.duration(to: .now) >= .seconds(1))
        gate.open()
        #expect(await observer.record { $0.sent == 1000 }.sent == 1000)
        let other = RecordingObserver()
        transport.start(try request(server.url("/silent"), .put, body, size: 1000), observer: other)
        #expect(await other.record { $0.sent == 1000 }.sent == 1000)
        silent.open()
        #expect(await observer.end().body == Data("stored".utf8))
        #expect(await other.end().body == Data("stored".utf8))
    }

    @Test("a cancelled, failed or suspended request stops waiting")
    func interrupted() async throws {
        let server = try LoopbackServer { _ in
            .unread
        } route: { _, connection in
            connection.waitUntilClosed()
            return nil
        }
        let transport = CurlTransport()
        let cancelled = RecordingObserver()
        let transfer = transport.start(try request(server.url("/"), .put, .data, size: 1000), observer: cancelled)
        #expect(server.waitForRequests(1))
        transfer.cancel()
        #expect(await cancelled.end().isCancelled)
        var limited = try request(server.url("/"), .put, .data, size: 1000)
        limited.options.totalTimeout = .milliseconds(50)
        let end = await transport.run(limited)
        #expect(end.failure?.kind == .totalTimeout && end.sent == 0)
        let suspended = RecordingObserver()
        let next = transport.start(try request(server.url("/next"), .put, .data, size: 1000), observer: suspended)
        // The one before may have been given up before it was sent.
        #expect(await eventually { server.requests.contains { $0.path == "/next" } })
        next.setSuspended(true)
        next.setSuspended(false)
        #expect(await suspended.record { $0.sent == 1000 }.sent == 1000)
        next.cancel()
        #expect(await suspended.end().isCancelled)
    }

    @Test("with consent the body is sent once", arguments: Body.allCases)
    func met(body: Body) async throws {
        let server = try LoopbackServer.standard()
        let end = await CurlTransport().run(try request(server.url("/upload"), .put, body, size: 100_000))
        #expect(end.error == nil)
        let reply = try JSONDecoder().decode(EchoReply.self, from: end.body)
        #expect(reply.bodyLength == 100_000 && reply.header("Expect") == "100-continue")
        #expect(server.requestCount == 1)
    }
}
