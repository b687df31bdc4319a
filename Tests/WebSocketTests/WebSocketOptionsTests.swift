// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@testable import CurlewWebSocket

/// Options, deadlines and interceptors of WebSockets.
@Suite(.timeLimit(.minutes(1))) struct WebSocketOptionsTests {
    private typealias Adapter = CurlewCore.Adapter
    private typealias Retrier = CurlewCore.Retrier

    private let manager = makeManager()

    private static func kind(_ error: (any Error)?) -> TransferFailure.Kind? {
        if case CurlewError.transferFailed(let failure)? = error { failure.kind } else { nil }
    }

    private static func status(_ error: (any Error)?) -> Int? {
        if case WebSocketError.handshakeRejected(let rejection)? = error { rejection.response.statusCode } else { nil }
    }

    /// A server that answers no handshake.
    private func makeStalledServer(_ gate: Gate) throws -> LoopbackServer {
        try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return nil
        }
    }

    private func url(_ server: LoopbackServer) -> String { "ws://127.0.0.1:\(server.port)/" }

    @Test("a deadline ends a handshake that stalls: of the options, or of the calling task") func stalled() async throws {
        let gate = Gate()
        defer { gate.open() }
        let server = try makeStalledServer(gate)
        let start = ContinuousClock.now
        let socket = manager.webSocket(url(server), options: RequestOptions(deadline: .milliseconds(200)))
        #expect(Self.kind(await failure { try await socket.open() }) == .deadline)
        let other = await withDeadline(.milliseconds(200)) { manager.webSocket(url(server)) }
        #expect(Self.kind(await failure { try await other.waitUntilClosed() }) == .deadline)
        #expect(start.duration(to: .now) >= .milliseconds(390))
        #expect(start.duration(to: .now) < .seconds(30))
    }

    @Test("a deadline does not end an open WebSocket, nor its reconnections") func open() async throws {
        let server = try makeServer { peer in
            if peer.number == 1 { _ = try peer.receive() } else { try peer.echo() }
        }
        var configuration = WebSocketConfiguration()
        configuration.reconnection = WebSocketReconnection(limit: 3, firstDelay: .milliseconds(10))
        let deadline = Deadline.after(.seconds(2))
        let socket = await withDeadline(deadline) {
            manager.webSocket(server.url(), configuration: configuration, options: RequestOptions(deadline: .seconds(2)))
        }
        try await socket.open()
        try await Task.sleep(for: deadline.remaining + .milliseconds(100))
        guard case .open = socket.state else {
            Issue.record("\(socket.state)")
            return
        }
        // Ends the first connection.
        try await socket.send("close")
        var messages = socket.messages.makeAsyncIterator()
        while server.requests.count < 2 { try await Task.sleep(for: .milliseconds(5)) }
        try await socket.open()
        try await socket.send("after")
        #expect(try await messages.next() == .text("after"))
        #expect(server.requests.count == 2)
        socket.cancel()
    }

    @Test("a WebSocket whose adapter never answers ends with its deadline, its cancellation, and its session")
    func awaitedAdapter() async throws {
        let adapter = CurlewCore.Adapter { request async throws in
            try await Task.sleep(for: .seconds(600))
            return request
        }
        var configuration = WebSocketConfiguration()
        configuration.handshakeTimeout = nil
        let interceptor = Interceptor(adapters: [adapter])
        let late = manager.webSocket(
            "ws://127.0.0.1:1", configuration: configuration, interceptor: interceptor,
            options: RequestOptions(deadline: .milliseconds(100)))
        #expect(Self.kind(await failure { try await late.open() }) == .deadline)
        let other = SessionManager()
        let ended = other.webSocket("ws://127.0.0.1:1", configuration: configuration, interceptor: interceptor)
        other.invalidateAndCancel()
        #expect(await failure { try await ended.open() } != nil)
        let cancelled = manager.webSocket("ws://127.0.0.1:1", configuration: configuration, interceptor: interceptor)
        cancelled.cancel()
        #expect(await failure { try await cancelled.open() } != nil)
    }

    @Test("retried handshakes and their delays count against the deadline") func retries() async throws {
        let server = try makeServer(answer: { _ in "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n" }) { _ in }
        let always = Retrier { _, _, _, completion in completion(true, 0.05) }
        let start = ContinuousClock.now
        let socket = manager.webSocket(server.url(), interceptor: always, options: RequestOptions(deadline: .seconds(2)))
        #expect(await failure { try await socket.open() } != nil)
        #expect(server.requests.count > 1)
        #expect(start.duration(to: .now) < .seconds(30))
        // A delay that would end after it is not waited for.
        let late = Retrier { _, _, _, completion in completion(true, 600) }
        // Counted by its path: the server may still receive the last request of the former.
        let other = manager.webSocket(server.url("/late"), interceptor: late, options: RequestOptions(deadline: .seconds(30)))
        let error = await failure { try await other.open() }
        #expect(error != nil && Self.kind(error) != .deadline && server.requests.count { $0.path == "/late" } == 1)
    }

    @Test("a reconnection that would be later than the deadline of a WebSocket that was never open ends with that") func reconnection()
        async throws
    {
        let server = try makeServer(answer: { _ in "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n" }) { _ in }
        var configuration = WebSocketConfiguration()
        configuration.reconnection = WebSocketReconnection(limit: nil, firstDelay: .seconds(600), maximumDelay: .seconds(600))
        configuration.reconnection.jitter = { 1 }
        let socket = manager.webSocket(
            server.url(), configuration: configuration, options: RequestOptions(deadline: .seconds(2)))
        #expect(Self.kind(await failure { try await socket.open() }) == .deadline)
        #expect(server.requests.count == 1)
    }

    @Test("an interceptor adapts each handshake and decides about its retry by the response") func interceptor() async throws {
        let server = try makeServer(
            answer: { $0.header("X-Token") == "2" ? nil : "HTTP/1.1 401 No\r\nX-Why: token\r\nContent-Length: 0\r\n\r\n" },
            { try $0.echo() })
        for isAsync in [false, true] {
            let tokens = Lock(0)
            let seen = Log<String>()
            let change: @Sendable (URLRequest) -> URLRequest = { request in
                var request = request
                let token = tokens.withLock { tokens in
                    tokens += 1
                    return tokens
                }
                request.setValue("\(token)", forHTTPHeaderField: "X-Token")
                return request
            }
            let adapter =
                isAsync
                ? Adapter { request async throws in
                    await Task.yield()
                    return change(request)
                } : Adapter { change($0) }
            let retrier = Retrier { _, request, error, completion in
                seen.append(
                    [
                        "\(request.response?.statusCode ?? 0)", request.response?.value(forHTTPHeaderField: "X-Why") ?? "",
                        request.request?.value(forHTTPHeaderField: "X-Token") ?? "", "\(Self.status(error) ?? 0)",
                        "\(request.retryCount)", request.name ?? "", "\(request.options.userInfo["user"] ?? "")",
                    ].joined(separator: " "))
                completion(request.retryCount < 3, 0)
            }
            var options = RequestOptions(deadline: .seconds(30), interceptor: retrier, name: "GET /socket")
            options.userInfo["user"] = 7
            options.deadlineHeader = "X-Left"
            let socket = manager.webSocket(server.url(), interceptor: Interceptor(adapters: [adapter]), options: options)
            try await socket.send("hello")
            var messages = socket.messages.makeAsyncIterator()
            #expect(try await messages.next() == .text("hello"))
            #expect(seen.elements == ["401 token 1 401 0 GET /socket 7"])
            for request in server.requests {
                let left = try #require(Double(request.header("X-Left") ?? ""))
                #expect(left > 1 && left <= 30)
            }
            socket.cancel()
        }
        #expect(server.requests.map { $0.header("X-Token") } == ["1", "2", "1", "2"])
    }

    @Test("the session's retrier is asked, and an adapter that is also a retrier is used as both") func session() async throws {
        let server = try makeServer(answer: { _ in "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n" }) { _ in }
        let manager = makeManager()
        manager.retrier = Retrier { _, request, _, completion in completion(request.retryCount < 2, 0) }
        let first = manager.webSocket(server.url())
        #expect(Self.status(await failure { try await first.open() }) == 503)
        #expect(server.requests.count == 3)
        let both = Interceptor(adapters: [], retriers: [Retrier { _, request, _, completion in completion(request.retryCount < 3, 0) }])
        let second = self.manager.webSocket(server.url(), adapter: both)
        #expect(Self.status(await failure { try await second.open() }) == 503)
        #expect(server.requests.count == 7)
    }

    @Test("a handshake without an answer, and one with an invalid answer, may be retried") func failures() async throws {
        let server = try makeServer(
            answer: { $0.connection == 1 ? "" : $0.connection == 2 ? "HTTP/1.1 101 x\r\n\r\n" : nil }, { try $0.echo() })
        let errors = Log<String>()
        let retrier = Retrier { _, _, error, completion in
            errors.append("\(error)")
            completion(true, 0)
        }
        var configuration = WebSocketConfiguration()
        configuration.handshakeTimeout = .seconds(2)
        let socket = manager.webSocket(server.url(), configuration: configuration, interceptor: retrier)
        try await socket.open()
        #expect(errors.elements.count == 2, "\(errors.elements)")
        #expect(server.requests.count == 3)
        socket.cancel()
    }

    @Test("cancelling and closing end the delay before a retry") func cancelled() async throws {
        let server = try makeServer(answer: { _ in "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n" }) { _ in }
        let asked = Log<Int>()
        let retrier = Retrier { _, _, _, completion in
            completion(true, 600)
            asked.append(1)
        }
        let socket = manager.webSocket(server.url(), interceptor: retrier)
        await asked.wait(for: 1)
        socket.cancel()
        guard case CurlewError.cancelled? = await failure(of: { try await socket.waitUntilClosed() }) else {
            Issue.record("not cancelled")
            return
        }
        var configuration = WebSocketConfiguration()
        configuration.closeTimeout = .milliseconds(50)
        let other = manager.webSocket(server.url(), configuration: configuration, interceptor: retrier)
        await asked.wait(for: 2)
        guard case WebSocketError.timedOut(.close)? = await failure(of: { try await other.close() }) else {
            Issue.record("not timed out")
            return
        }
        #expect(server.requests.count == 2)
    }

    @Test("the addresses and the proxy of the options count, and nothing is sent") func network() async throws {
        let server = try makeEchoServer()
        var options = RequestOptions()
        options.addresses = .publicOnly
        let socket = manager.webSocket(server.url(), options: options)
        #expect(Self.kind(await failure { try await socket.open() }) == .addressNotAllowed)
        #expect(server.requests.isEmpty)
    }
}
