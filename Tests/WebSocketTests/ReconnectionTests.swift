// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTesting
import Testing

@testable import CurlewWebSocket

@Suite(.timeLimit(.minutes(1))) struct ReconnectionTests {
    private let manager = makeManager()

    private func configuration(_ clock: VirtualClock, limit: Int? = 10) -> WebSocketConfiguration {
        var configuration = WebSocketConfiguration()
        configuration.clock = clock
        configuration.reconnection = WebSocketReconnection(limit: limit, firstDelay: .seconds(1), maximumDelay: .seconds(8))
        configuration.reconnection.jitter = { 1 }
        return configuration
    }

    @Test("delays grow to their maximum, and attempts are limited") func delays() {
        var policy = WebSocketReconnection(limit: 5, firstDelay: .seconds(1), factor: 3, maximumDelay: .seconds(10))
        policy.jitter = { 1 }
        let lost = WebSocketError.closed(WebSocketClosure(code: .abnormalClosure))
        #expect(
            (0...5).map { policy.delay(after: lost, attempts: $0) } == [
                .seconds(1), .seconds(3), .seconds(9), .seconds(10), .seconds(10), nil,
            ])
        policy.jitter = { 0.5 }
        #expect(policy.delay(after: lost, attempts: 1) == .seconds(1.5))
        policy.jitter = { -7 }
        #expect(policy.delay(after: lost, attempts: 1) == .zero)
        #expect(WebSocketReconnection.never.delay(after: lost, attempts: 0) == nil)
    }

    @Test("delays stay valid with extreme policies", arguments: [0, 2, .infinity, .nan] as [Double])
    func extremePolicies(_ number: Double) {
        var policy = WebSocketReconnection(limit: nil, firstDelay: .zero, factor: number)
        policy.jitter = { number }
        let lost = WebSocketError.closed(WebSocketClosure(code: .abnormalClosure))
        for attempts in [0, 1, 2000, .max] { #expect(policy.delay(after: lost, attempts: attempts) == .zero) }
        policy.firstDelay = .seconds(1)
        for attempts in [0, 1, 2000, .max] {
            #expect(policy.delay(after: lost, attempts: attempts).map { (.zero ... .seconds(60)).contains($0) } == true)
        }
    }

    @Test("Retry-After replaces the delay, up to the maximum", arguments: [(5, true), (10, true), (11, false)])
    func retryAfter(_ seconds: Int, _ isWaited: Bool) {
        let response = ResponseHead(statusCode: 503, headers: ["Retry-After": "\(seconds)"])
        let rejected = WebSocketError.handshakeRejected(WebSocketRejection(response: response, body: Data()))
        let policy = WebSocketReconnection(maximumDelay: .seconds(10))
        #expect(policy.delay(after: rejected, attempts: 3) == (isWaited ? .seconds(seconds) : nil))
    }

    @Test("no text of a rejection has its body, and the error's is its localized description") func rejectionTexts() {
        let rejection = WebSocketRejection(response: ResponseHead(statusCode: 401), body: Data("s3cret".utf8))
        let error = WebSocketError.handshakeRejected(rejection)
        var text = "\(rejection) \(String(reflecting: rejection)) \(error)"
        dump(rejection, to: &text)
        #expect(!text.contains("s3cret") && !text.contains("115"), "\(text)")
        #expect(error.errorDescription == "\(error)")
    }

    @Test(
        "transient errors",
        arguments: [
            (WebSocketError.closed(WebSocketClosure(code: .goingAway)), true),
            (WebSocketError.closed(WebSocketClosure(code: .serviceRestart)), true),
            (WebSocketError.closed(WebSocketClosure(code: .normalClosure)), false),
            (WebSocketError.closed(WebSocketClosure(code: .policyViolation)), false),
            (WebSocketError.timedOut(.handshake), true),
            (WebSocketError.handshakeRejected(WebSocketRejection(response: ResponseHead(statusCode: 503), body: Data())), true),
            (WebSocketError.handshakeRejected(WebSocketRejection(response: ResponseHead(statusCode: 401), body: Data())), false),
            (WebSocketError.protocolViolation(code: .protocolError, message: ""), false),
            (CurlewError.transferFailed(TransferFailure(kind: .connect, url: "", phase: .connecting, message: "")), true),
            (CurlewError.transferFailed(TransferFailure(kind: .serverCertificate, url: "", phase: .securing, message: "")), false),
            (CurlewError.cancelled, false),
        ] as [(any Error, Bool)])
    func transient(_ error: any Error, _ mayPass: Bool) {
        #expect(WebSocketReconnection.isTransient(error) == mayPass)
    }

    @Test("a lost connection is re-established and sends queued messages") func reconnects() async throws {
        let clock = VirtualClock()
        let server = try makeServer { peer in
            guard peer.number > 1 else { return try peer.send(.text, Data("first".utf8)) }
            try peer.send(.text, Data("second".utf8))
            try peer.echo()
        }
        let socket = manager.webSocket(server.url(), configuration: configuration(clock))
        var messages = socket.messages.makeAsyncIterator()
        #expect(try await messages.next() == .text("first"))
        var states = socket.states.makeAsyncIterator()
        while let state = await states.next() {
            if case .waiting(let delay, let error) = state {
                #expect(delay == .seconds(1))
                #expect(error is WebSocketError)
                break
            }
        }
        try await socket.send("between")
        try await clock.advance(toWaitAt: .seconds(1))
        #expect(try await messages.next() == .text("second"))
        #expect(try await messages.next() == .text("between"))
        try await socket.close()
    }

    @Test("consecutive attempts are counted from the last open connection, and the last error is thrown") func limit() async throws {
        let clock = VirtualClock()
        let server = try makeServer(answer: { $0.connection == 2 ? nil : "HTTP/1.1 503 Busy\r\n\r\n" }) { _ in }
        let socket = manager.webSocket(server.url(), configuration: configuration(clock, limit: 2))
        // Rejected, open, rejected twice: then the limit is reached.
        for time in [1, 2, 4] { try await clock.advance(toWaitAt: .seconds(time)) }
        guard case WebSocketError.handshakeRejected(let rejection)? = await failure(of: { try await socket.waitUntilClosed() }) else {
            return #expect(Bool(false))
        }
        #expect(rejection.response.statusCode == 503)
        #expect(server.requests.count == 4)
    }

    @Test("the attempt after a connection that was open is the first one again") func attemptNumber() async throws {
        let clock = VirtualClock()
        let gate = Gate()
        let server = try makeServer(
            answer: {
                if $0.connection == 2 { gate.wait() }
                return nil
            }, { _ in })
        defer { server.stop() }
        defer { gate.open() }
        let socket = manager.webSocket(server.url(), configuration: configuration(clock))
        try await clock.advance(toWaitAt: .seconds(1))
        #expect(await gate.arrivals())
        guard case .connecting(attempt: 1) = socket.state else {
            Issue.record("\(socket.state)")
            return
        }
        socket.cancel()
    }

    @Test("the adapter is called for each connection") func adapterEachTime() async throws {
        let clock = VirtualClock()
        let server = try makeServer { peer in
            if peer.number == 2 { try peer.echo() }
        }
        let tokens = Log<Int>()
        let socket = manager.webSocket(
            server.url(), configuration: configuration(clock),
            adapter: Adapter { request in
                var request = request
                tokens.append(0)
                request.setValue("\(tokens.elements.count)", forHTTPHeaderField: "X-Token")
                return request
            })
        try await clock.advance(toWaitAt: .seconds(1))
        try await socket.ping()
        #expect(server.requests.map { $0.header("X-Token") } == ["1", "2"])
    }

    @Test("closing during a delay ends it with the last error") func closeInDelay() async throws {
        let server = try makeServer(answer: { _ in "HTTP/1.1 503 Busy\r\n\r\n" }) { _ in }
        let socket = manager.webSocket(server.url(), configuration: configuration(VirtualClock()))
        for await state in socket.states { if case .waiting = state { break } }
        guard case WebSocketError.handshakeRejected? = await failure(of: { try await socket.close() }) else {
            return #expect(Bool(false))
        }
    }

    @Test("a ping on a lost connection fails, despite reconnection") func lostPing() async throws {
        let clock = VirtualClock()
        let server = try makeServer { peer in
            if peer.number == 1 { _ = try peer.receive() } else { try peer.echo() }
        }
        let socket = manager.webSocket(server.url(), configuration: configuration(clock))
        guard case WebSocketError.closed(let closure)? = await failure(of: { try await socket.ping() }) else { return #expect(Bool(false)) }
        #expect(closure.code == .abnormalClosure)
        try await clock.advance(toWaitAt: .seconds(1))
        try await socket.ping()
    }

    @Test("the states through a reconnection") func states() async throws {
        let server = try makeEchoServer()
        let socket = manager.webSocket(server.url())
        let states = Task {
            var names: [String] = []
            for await state in socket.states { names.append("\(state)".prefix { $0 != "(" }.description) }
            return names
        }
        try await socket.open()
        try await socket.close()
        // A slow reader may miss intermediate states, but never the last one.
        let names = await states.value
        #expect(names.last == "closed")
        let order = ["connecting", "open", "closing", "closed"]
        #expect(names == order.filter { names.contains($0) })
    }
}
