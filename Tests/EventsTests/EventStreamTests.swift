// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTesting
import Testing

@testable import CurlewEvents

@Suite(.timeLimit(.minutes(1))) struct EventStreamTests {
    private let manager = makeManager()

    @Test("no text of a stream contains a secret, and no error a control character") func texts() {
        let stream = manager.eventStream("http://u:s3cret@h/?access_token=s3cret", headers: [.authorization(bearerToken: "s3cret")])
        var text = "\(stream) \(String(reflecting: stream)) "
        dump(stream, to: &text)
        #expect(!text.contains("s3cret"), "\(text)")
        let cause = TransferFailure(kind: .other, url: "", phase: .waiting, message: "\u{9B}")
        let error = EventStreamError.decodingFailed(data: Data("\r\n".utf8), error: cause)
        text = "\(error)"
        #expect(error.errorDescription == text)
        #expect(text.unicodeScalars.allSatisfy { !$0.isControlInText } && text.contains(#"\u{9B}"#))
    }

    private func configuration(_ clock: VirtualClock) -> EventStreamConfiguration {
        var configuration = EventStreamConfiguration()
        configuration.clock = clock
        configuration.jitter = { 1 }
        return configuration
    }

    /// A server that sends its responses in order; the last one is repeated.
    private func makeServer(_ answers: [ServerResponse]) throws -> LoopbackServer {
        let count = Lock(0)
        return try LoopbackServer { _, _ in
            let number = count.withLock { count in
                defer { count += 1 }
                return count
            }
            return answers[min(number, answers.count - 1)]
        }
    }

    private func events(_ text: String) -> ServerResponse {
        .ok(text, type: "text/event-stream; charset=utf-8")
    }

    private let over = ServerResponse.status(204)

    @Test("each reconnection resumes after the last event") func reconnects() async throws {
        let clock = VirtualClock(.automatic)
        let server = try makeServer([events("id: 1\ndata: a\n\nretry: 500\n\ndata: cut"), events("id: 2\ndata: b\n\n"), over])
        defer { server.stop() }
        var received: [ServerSentEvent] = []
        for try await event in manager.eventStream(server.url("/events"), configuration: configuration(clock)) { received.append(event) }
        #expect(received == [.init(data: "a", id: "1"), .init(data: "b", id: "2")])
        #expect(server.requests.map { $0.header("Last-Event-ID") } == [nil, "1", "2"])
        #expect(server.requests.allSatisfy { $0.header("Accept") == "text/event-stream" && $0.header("Cache-Control") == "no-store" })
        #expect(clock.sleeps == [.milliseconds(500), .milliseconds(500)])
    }

    @Test("a stream resumes after the configured ID") func resumed() async throws {
        let server = try makeServer([over])
        defer { server.stop() }
        var configuration = configuration(VirtualClock(.automatic))
        configuration.lastEventID = "42"
        for try await _ in manager.eventStream(server.url("/"), configuration: configuration) { #expect(Bool(false)) }
        #expect(server.requests.map { $0.header("Last-Event-ID") } == ["42"])
    }

    @Test("an ID that is not allowed in a header field is not sent") func invalidID() async throws {
        let server = try makeServer([events("id: a\u{1}b\ndata: x\n\n"), over])
        defer { server.stop() }
        var ids: [String] = []
        for try await event in manager.eventStream(server.url("/"), configuration: configuration(VirtualClock(.automatic))) {
            ids.append(event.id)
        }
        #expect(ids == ["a\u{1}b"])
        #expect(server.requests.map { $0.header("Last-Event-ID") } == [nil, nil])
    }

    @Test("retryable statuses are retried with a growing delay until one succeeds") func backOff() async throws {
        let clock = VirtualClock(.automatic)
        let server = try makeServer([.status(503), .status(503), .status(429), events("data: a\n\n"), .status(500), over])
        defer { server.stop() }
        for try await _ in manager.eventStream(server.url("/"), configuration: configuration(clock)) {}
        #expect(clock.sleeps == [3, 6, 12, 3, 3].map { .seconds($0) })
    }

    @Test("delays stay within bounds for any server setting and any number of failures") func longOutage() {
        let configuration = configuration(VirtualClock(.automatic))
        let delays = [1, 2, 2000, .max].map { configuration.delay(serverTime: .zero, failures: $0, rejection: nil) }
        #expect(delays == [.milliseconds(100), .milliseconds(200), .seconds(60), .seconds(60)])
        #expect(configuration.delay(serverTime: .seconds(Int.max), failures: 1, rejection: nil) == .seconds(60))
        #expect(configuration.delay(serverTime: .zero, failures: 0, rejection: nil) == .zero)
    }

    @Test("a rejecting response can set the delay, up to a limit") func retryAfter() async throws {
        let clock = VirtualClock(.automatic)
        let server = try makeServer([7, 61].map { .status(503, headers: [ServerField("Retry-After", "\($0)")]) })
        defer { server.stop() }
        await #expect(throws: EventStreamError.self) {
            for try await _ in manager.eventStream(server.url("/"), configuration: configuration(clock)) {}
        }
        #expect(clock.sleeps == [.seconds(7)])
    }

    /// A server that announces more than it sends, and then ends the stream.
    private func makeCuttingServer(_ field: String, _ body: String, times: Int) throws -> LoopbackServer {
        let count = Lock(0)
        return try LoopbackServer { [over] _, connection in
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard number <= times else { return over }
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\(field)\r\nContent-Length: 100\r\n\r\n"
            try connection.send(raw: head + body)
            connection.close()
            return nil
        }
    }

    @Test("a stream that was accepted and then lost does not set the delay by Retry-After") func retryAfterOfStream() async throws {
        let clock = VirtualClock(.automatic)
        let server = try makeCuttingServer("Retry-After: 61", "data: a\n\n", times: 1)
        defer { server.stop() }
        var received: [String] = []
        for try await event in manager.eventStream(server.url("/"), configuration: configuration(clock)) { received.append(event.data) }
        #expect(received == ["a"])
        #expect(clock.sleeps == [.seconds(3)])
    }

    @Test("a stream that is lost before its first event was open: delays do not grow, and attempts are not used up")
    func lostBeforeEvents() async throws {
        let clock = VirtualClock(.automatic)
        let server = try makeCuttingServer("X-Quiet: 1", "", times: 3)
        defer { server.stop() }
        let changes = Lock<[String]>([])
        var configuration = configuration(clock)
        configuration.reconnectionLimit = 1
        configuration.onChange = { change in
            let text =
                switch change {
                case .connecting(let attempt): "connecting \(attempt)"
                case .open: "open"
                case .waiting: "waiting"
                }
            changes.withLock { $0.append(text) }
        }
        for try await _ in manager.eventStream(server.url("/"), configuration: configuration) {}
        #expect(clock.sleeps == [.seconds(3), .seconds(3), .seconds(3)])
        let each = ["connecting 1", "open", "waiting"]
        #expect(changes.withLock { $0 } == each + each + each + ["connecting 1"])
        #expect(server.requestCount == 4)
    }

    @Test("attempts in a row are limited, and the last error is thrown") func limit() async throws {
        let server = try makeServer([.status(503)])
        defer { server.stop() }
        var configuration = configuration(VirtualClock(.automatic))
        configuration.reconnectionLimit = 2
        let error = await #expect(throws: EventStreamError.self) {
            for try await _ in manager.eventStream(server.url("/"), configuration: configuration) {}
        }
        guard case .rejected(let rejection)? = error, case .responseValidationFailed(.unacceptableStatusCode(503), _) = rejection.error
        else {
            return #expect(Bool(false))
        }
        #expect(server.requestCount == 3)
    }

    @Test("other statuses and content types end the stream with an error", arguments: [401, 404, 200])
    func rejected(_ status: Int) async throws {
        let server = try makeServer([
            ServerResponse(status: status, headers: [ServerField("Content-Type", "text/html")], body: .data(Data("data: x\n\n".utf8)))
        ])
        defer { server.stop() }
        let rejection = try await rejection(of: server)
        #expect(rejection.response.statusCode == status && rejection.body == Data("data: x\n\n".utf8))
        #expect(server.requestCount == 1)
    }

    /// The error with which a server's stream ends.
    private func rejection(of server: LoopbackServer, _ interceptor: (any RequestInterceptor)? = nil) async throws -> EventStreamRejection {
        let stream = manager.eventStream(server.url("/"), configuration: configuration(VirtualClock(.automatic)), interceptor: interceptor)
        do {
            for try await event in stream { throw CurlewError.invalidURL(url: event.data) }
        } catch EventStreamError.rejected(let rejection) {
            return rejection
        }
        throw CurlewError.cancelled
    }

    @Test("the error contains the response's body, up to a limit", arguments: [100, 64 << 10, 200_000])
    func rejectedBody(size: Int) async throws {
        let body = GeneratedBody().data(count: size)
        let server = try makeServer([
            ServerResponse(status: 400, headers: [ServerField("Content-Type", "application/json")], body: .data(body))
        ])
        defer { server.stop() }
        let rejection = try await rejection(of: server)
        #expect(rejection.body == body.prefix(EventStreamRejection.maximumBodySize) && rejection.response.statusCode == 400)
        #expect(rejection.response.value(for: "Content-Type") == "application/json")
        var text = "\(rejection) \(EventStreamError.rejected(rejection)) "
        dump(EventStreamError.rejected(rejection), to: &text)
        #expect(text.contains("400") && text.utf8.count < 2000)
    }

    @Test("a rejected response that does not end is not awaited, and its body so far is kept", arguments: [400, 200])
    func endlessRejection(status: Int) async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 \(status) X\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nnever")
            connection.waitUntilClosed()
            return nil
        }
        defer { server.stop() }
        let start = ContinuousClock.now
        #expect(try await rejection(of: server).body == Data("never".utf8))
        #expect(ContinuousClock.now - start < .seconds(20))
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("a rejected response is retried if a retrier decides so, and the body is the last one's")
    func rejectedAndRetried() async throws {
        let server = try makeServer(["first", "second"].map { ServerResponse(status: 400, body: .data(Data($0.utf8))) })
        defer { server.stop() }
        let once = Retrier { _, request, _, completion in completion(request.retryCount == 0, 0) }
        #expect(try await rejection(of: server, Interceptor(retriers: [once])).body == Data("second".utf8))
        #expect(server.requestCount == 2)
    }

    @Test("the attempt of an error counts over all connections, and its texts are sentences")
    func attempts() async throws {
        let server = try makeServer([events("data: a\n\n"), .status(503), .status(503)])
        defer { server.stop() }
        var configuration = configuration(VirtualClock(.automatic))
        configuration.reconnectionLimit = 1
        let waits = Lock<[Int?]>([])
        configuration.onChange = { change in
            guard case .waiting(_, EventStreamError.rejected(let rejection)?) = change else { return }
            waits.withLock { $0.append(rejection.error.request?.attempt) }
        }
        let once = Retrier { _, request, _, completion in completion(request.retryCount == 0, 0) }
        let stream = manager.eventStream(server.url("/"), configuration: configuration, interceptor: Interceptor(retriers: [once]))
        let error = await #expect(throws: EventStreamError.self) { for try await _ in stream {} }
        guard case .rejected(let rejection)? = error else { return #expect(Bool(false)) }
        #expect(server.requestCount == 5 && waits.withLock { $0 } == [3] && rejection.error.request?.attempt == 5)
        #expect("\(rejection)" == "GET \(server.url("/")) (attempt 5): status 503 is not acceptable. The body has 0 bytes.")
    }

    @Test("a retried error contains the body, too")
    func rejectedAndWaiting() async throws {
        let server = try makeServer([ServerResponse(status: 503, body: .data(Data("busy".utf8))), over])
        defer { server.stop() }
        let bodies = Lock<[Data]>([])
        var configuration = configuration(VirtualClock(.automatic))
        configuration.onChange = { change in
            guard case .waiting(_, EventStreamError.rejected(let rejection)?) = change else { return }
            bodies.withLock { $0.append(rejection.body) }
        }
        for try await _ in manager.eventStream(server.url("/"), configuration: configuration) {}
        #expect(bodies.withLock { $0 } == [Data("busy".utf8)])
    }

    @Test("a wrong content type ends the stream with an error, also without a body", arguments: ["text/html", nil])
    func emptyBody(_ type: String?) async throws {
        let fields = type.map { [ServerField("Content-Type", $0)] } ?? []
        let server = try makeServer([.status(200, headers: fields), over])
        defer { server.stop() }
        #expect(try await rejection(of: server).body.isEmpty)
        #expect(server.requestCount == 1)
    }

    @Test(
        "a POST is not repeated unless configured",
        arguments: [
            (EventStreamConfiguration.Reconnection.automatic, 1), (.never, 1), (.always, 2),
        ])
    func post(_ reconnection: EventStreamConfiguration.Reconnection, _ count: Int) async throws {
        let server = try makeServer([events("data: a\n\n"), over])
        defer { server.stop() }
        var request = try URLRequest(url: server.url("/"), method: .post, headers: ["Content-Type": "text/plain"])
        request.httpBody = Data("question".utf8)
        var configuration = configuration(VirtualClock(.automatic))
        configuration.reconnection = reconnection
        var received: [String] = []
        for try await event in manager.eventStream(request, configuration: configuration) { received.append(event.data) }
        #expect(received == ["a"])
        #expect(server.requests.map(\.body) == Array(repeating: Data("question".utf8), count: count))
    }

    @Test("changes are reported") func changes() async throws {
        let server = try makeServer([.status(503), events("data: a\n\n"), over])
        defer { server.stop() }
        let changes = Lock<[String]>([])
        var configuration = configuration(VirtualClock(.automatic))
        configuration.onChange = { change in
            let text =
                switch change {
                case .connecting(let attempt): "connecting \(attempt)"
                case .open(let head): "open \(head.statusCode)"
                case .waiting(let delay, let error): "waiting \(delay)\(error == nil ? "" : " after an error")"
                }
            changes.withLock { $0.append(text) }
        }
        for try await _ in manager.eventStream(server.url("/"), configuration: configuration) {}
        #expect(
            changes.withLock { $0 } == [
                "connecting 1", "waiting 3.0 seconds after an error", "connecting 2", "open 200", "waiting 3.0 seconds", "connecting 1",
            ])
    }

    @Test("events arrive while the response is in flight, and releasing the stream ends the request") func live() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
            guard connection.wait(until: gate) else { return nil }
            try connection.send(raw: "data: 2\n\n")
            connection.waitUntilClosed()
            return nil
        }
        defer { server.stop() }
        for try await event in manager.eventStream(server.url("/")) {
            guard event.data == "1" else { break }
            gate.open()
        }
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("cancelling the task that reads ends the stream") func cancellation() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            connection.wait(until: gate)
            return nil
        }
        defer { server.stop() }
        let stream = manager.eventStream(server.url("/"))
        let reading = Task { for try await _ in stream {} }
        #expect(await gate.arrivals())
        reading.cancel()
        let result = await reading.result
        #expect(throws: CancellationError.self) { try result.get() }
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("a shutdown ends the stream after its grace period, also while it waits to reconnect", arguments: [false, true])
    func shutdown(_ isReconnecting: Bool) async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 50\n\ndata: 1\n\n")
            if !isReconnecting { connection.waitUntilClosed() }
            connection.close()
            return nil
        }
        defer { server.stop() }
        let manager = makeManager()
        let stream = manager.eventStream(server.url("/"))
        let read = Log<Void>()
        let reading = Task { for try await _ in stream { read.append(()) } }
        await read.wait(for: isReconnecting ? 3 : 1)
        await manager.shutdown(gracePeriod: .milliseconds(200))
        await #expect { try await reading.value } throws: { error in
            if case CurlewError.sessionShutDown = error { true } else { false }
        }
    }

    @Test("an event over the limit ends the stream") func tooLarge() async throws {
        let server = try makeServer([events("data: " + String(repeating: "x", count: 100) + "\n\n")])
        defer { server.stop() }
        var configuration = configuration(VirtualClock(.automatic))
        configuration.maximumEventSize = 50
        var events = manager.eventStream(server.url("/"), configuration: configuration).makeAsyncIterator()
        await #expect(throws: EventStreamError.self) { try await events.next() }
        #expect(try await events.next() == nil)
    }

    @Test("lines of JSON in a response") func jsonLines() async throws {
        struct Entry: Decodable, Sendable, Equatable { let n: Int }
        let server = try makeServer([.ok("{\"n\":1}\n{\"n\":2}\n")])
        defer { server.stop() }
        var entries: [Entry] = []
        for try await entry in manager.streamRequest(server.url("/")).validate().bodyStream().jsonLines(of: Entry.self) {
            entries.append(entry)
        }
        #expect(entries == [Entry(n: 1), Entry(n: 2)])
    }
}
