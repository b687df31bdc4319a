// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTesting
import CurlewURLLoading
import CurlewWebSocket
import Testing

@Suite(.timeLimit(.minutes(1))) struct WebSocketTests {
    private let manager = makeManager()

    @Test("text and binary messages are echoed") func echo() async throws {
        let server = try makeEchoServer()
        let socket = manager.webSocket(server.url("/chat?room=1"))
        let sent: [WebSocketMessage] = [
            .text("Hello"), .binary(Data([0xFF, 0])), .text(""), .binary(Data()), .text(String(repeating: "ü", count: 100_000)),
        ]
        for message in sent { try await socket.send(message) }
        var received: [WebSocketMessage] = []
        for try await message in socket.messages {
            received.append(message)
            if received.count == sent.count { break }
        }
        #expect(received == sent)
        #expect(try await socket.close() == WebSocketClosure(code: .normalClosure))
        #expect(server.requests.map(\.target) == ["/chat?room=1"])
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("the handshake reports subprotocol, header fields and compression") func handshake() async throws {
        let server = try makeServer(fields: { _ in
            ["Sec-WebSocket-Protocol: v2", "X-Server: yes", "Sec-WebSocket-Extensions: permessage-deflate"]
        }) { try $0.echo() }
        let socket = manager.webSocket(server.url(), subprotocols: ["v1", "v2"], headers: ["X-Client": "1"])
        let handshake = try await socket.open()
        #expect(handshake.subprotocol == "v2")
        #expect(handshake.isCompressed)
        #expect(handshake.response.value(for: "X-Server") == "yes")
        let request = try #require(server.requests.first)
        #expect(request.header("Sec-WebSocket-Protocol") == "v1, v2")
        #expect(request.header("X-Client") == "1")
    }

    @Test("a layer above learns of a failure before the calls for messages fail, and of the conclusion afterwards")
    func orderOfFailure() async throws {
        let gate = Gate()
        let server = try makeServer(answer: { _ in
            _ = gate.wait()
            return "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
        }) { $0.waitUntilClosed() }
        defer { server.stop() }
        let socket = manager.webSocket(server.url())
        let calls = Log<String>()
        socket.whenFailed { _ in calls.append("failed") }
        socket.whenConcluded { _ in calls.append("concluded") }
        _ = socket.receive { _ in calls.append("received") }
        gate.open()
        await calls.wait(for: 3)
        #expect(calls.elements == ["failed", "received", "concluded"])
    }

    @Test("a layer above learns of a failure before a message can't be sent because of it")
    func orderOfRefusal() async throws {
        let server = try makeServer(answer: { _ in "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n" }) { $0.waitUntilClosed() }
        defer { server.stop() }
        let socket = manager.webSocket(server.url())
        await #expect(throws: WebSocketError.self) { try await socket.open() }
        let (gate, calls) = (Gate(), Log<String>())
        Thread.detachNewThread {
            socket.whenFailed { _ in
                gate.wait()
                calls.append("failed")
            }
        }
        #expect(await gate.arrivals())
        socket.send(.text("x")) { _ in calls.append("not sent") }
        #expect(calls.elements.isEmpty)
        gate.open()
        await calls.wait(for: 2)
        #expect(calls.elements == ["failed", "not sent"])
    }

    @Test("the session's fields are sent, and its adapter is called after the given one") func adapters() async throws {
        let server = try makeEchoServer()
        let manager = makeManager { $0.headers = ["X-Session": "s", "Accept-Encoding": "gzip"] }
        manager.adapter = Adapter { request in
            var request = request
            request.setValue((request.value(forHTTPHeaderField: "X-Order") ?? "") + "2", forHTTPHeaderField: "X-Order")
            return request
        }
        let socket = manager.webSocket(
            server.url(),
            adapter: Adapter { request in
                var request = request
                request.setValue("1", forHTTPHeaderField: "X-Order")
                return request
            })
        try await socket.open()
        let request = try #require(server.requests.first)
        #expect(request.header("X-Order") == "12")
        #expect(request.header("X-Session") == "s")
        #expect(request.header("Accept-Encoding") == nil)
    }

    @Test("the session's cookies are sent, and those of the response stored, unless disabled") func cookies() async throws {
        let server = try makeServer(fields: { ["Set-Cookie: seen=\($0.connection)"] }) { try $0.echo() }
        let storage = URLSessionConfiguration.ephemeral.httpCookieStorage
        let manager = makeManager { $0.cookieStorage = storage }
        var request = try URLRequest(url: server.url(), method: .get, headers: ["Cookie": "own=1"])
        for _ in 0..<2 { try await manager.webSocket(request).open() }
        request.httpShouldHandleCookies = false
        try await manager.webSocket(request).open()
        #expect(server.requests.map { $0.header("Cookie") } == ["own=1", "own=1; seen=1", "own=1"])
    }

    @Test("messages are sent from a sequence") func sendSequence() async throws {
        let server = try makeEchoServer()
        let socket = manager.webSocket(server.url())
        let (sequence, continuation) = AsyncStream.makeStream(of: WebSocketMessage.self)
        for number in 0..<3 { continuation.yield(.text("\(number)")) }
        continuation.finish()
        try await socket.send(from: sequence)
        var messages = socket.messages.makeAsyncIterator()
        for number in 0..<3 { #expect(try await messages.next() == .text("\(number)")) }
    }

    @Test("an adapter's error ends the WebSocket") func throwingAdapter() async throws {
        struct NoToken: Error {}
        let socket = manager.webSocket("ws://127.0.0.1:1/", adapter: Adapter { _ in throw NoToken() })
        #expect(await failure { try await socket.open() } is NoToken)
        #expect(await failure { try await socket.send("x") } is NoToken)
    }

    @Test("a rejection has its status and body") func rejected() async throws {
        let server = try makeServer(answer: { _ in "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno" }) { $0.waitUntilClosed() }
        let socket = manager.webSocket(server.url())
        guard case WebSocketError.handshakeRejected(let rejection)? = await failure(of: { try await socket.open() }) else {
            return #expect(Bool(false))
        }
        #expect(rejection.response.statusCode == 403)
        #expect(rejection.body == Data("no".utf8))
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("an invalid accept value fails the handshake") func invalidAccept() async throws {
        let server = try makeServer(answer: { _ in
            "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n"
        }) { $0.waitUntilClosed() }
        let socket = manager.webSocket(server.url())
        guard case WebSocketError.handshakeFailed(.wrongAccept)? = await failure(of: { try await socket.open() }) else {
            return #expect(Bool(false))
        }
    }

    @Test("a refused connection is a transfer failure") func unreachable() async throws {
        let server = try makeEchoServer()
        let url = server.url()
        server.stop()
        let socket = manager.webSocket(url)
        guard case CurlewError.transferFailed(let reason)? = await failure(of: { for try await _ in socket.messages {} }) else {
            return #expect(Bool(false))
        }
        #expect(reason.kind == .connect)
    }

    @Test("messages sent before the connection is open are queued") func queued() async throws {
        let gate = Gate()
        let server = try makeServer(answer: { _ in
            gate.wait()
            return nil
        }) { try $0.echo() }
        let socket = manager.webSocket(server.url())
        try await socket.send("early")
        #expect(await gate.arrivals())
        gate.open()
        var messages = socket.messages.makeAsyncIterator()
        #expect(try await messages.next() == .text("early"))
    }

    // MARK: Pings

    @Test("a ping returns its round-trip time, and may have a payload") func ping() async throws {
        let server = try makeEchoServer()
        let socket = manager.webSocket(server.url())
        #expect(try await socket.ping() > .zero)
        #expect(try await socket.ping(Data("x".utf8)) > .zero)
        guard case WebSocketError.pingTooLarge(126)? = await failure(of: { try await socket.ping(Data(count: 126)) }) else {
            return #expect(Bool(false))
        }
    }

    @Test("the server's pings are answered between fragments and without a reader") func pongs() async throws {
        let pong = Log<Data>()
        let server = try makeServer { peer in
            try peer.send(.text, Data("Hel".utf8), isFinal: false)
            try peer.send(.ping, Data("beat".utf8))
            if let frame = try peer.receive(), frame.opcode == .pong { pong.append(frame.payload) }
            try peer.send(.continuation, Data("lo".utf8))
            try peer.answerClose()
        }
        let socket = manager.webSocket(server.url())
        #expect(await pong.first() == Data("beat".utf8))
        var messages = socket.messages.makeAsyncIterator()
        #expect(try await messages.next() == .text("Hello"))
    }

    @Test("a missing pong ends the connection") func keepAlive() async throws {
        let clock = VirtualClock()
        let server = try makeServer { $0.waitUntilClosed() }
        let socket = manager.webSocket(server.url(), configuration: configuration(clock) { $0.pingInterval = .seconds(60) })
        try await clock.advance(toWaitAt: .seconds(60))
        try await clock.advance(toWaitAt: .seconds(80))
        guard case WebSocketError.timedOut(.pong)? = await failure(of: { for try await _ in socket.messages {} }) else {
            return #expect(Bool(false))
        }
    }

    @Test("a server that answers pings is kept") func keptAlive() async throws {
        let clock = VirtualClock()
        let pings = Log<Void>()
        let server = try makeServer { peer in
            while let frame = try peer.receive(), frame.opcode == .ping {
                try peer.send(.pong, frame.payload)
                pings.append(())
            }
        }
        let socket = manager.webSocket(server.url(), configuration: configuration(clock) { $0.pingInterval = .seconds(60) })
        for round in 1...3 {
            try await clock.advance(toWaitAt: .seconds(60 * round))
            await pings.wait(for: round)
        }
        guard case .open = socket.state else { return #expect(Bool(false), "\(socket.state)") }
    }

    private func configuration(_ clock: VirtualClock, _ change: (inout WebSocketConfiguration) -> Void = { _ in }) -> WebSocketConfiguration
    {
        var configuration = WebSocketConfiguration()
        configuration.clock = clock
        change(&configuration)
        return configuration
    }

    // MARK: Timeouts

    @Test("the handshake times out") func handshakeTimeout() async throws {
        let clock = VirtualClock()
        let server = try makeServer(answer: { _ in "" }) { $0.waitUntilClosed() }
        let socket = manager.webSocket(server.url(), configuration: configuration(clock))
        try await clock.advance(toWaitAt: .seconds(30))
        guard case WebSocketError.timedOut(.handshake)? = await failure(of: { try await socket.open() }) else {
            return #expect(Bool(false))
        }
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("closing during a handshake waits for the close timeout at most") func closeInHandshake() async throws {
        let clock = VirtualClock()
        let server = try makeServer(answer: { _ in "" }) { $0.waitUntilClosed() }
        let socket = manager.webSocket(server.url(), configuration: configuration(clock) { $0.handshakeTimeout = nil })
        async let closing = failure { try await socket.close() }
        try await clock.advance(toWaitAt: .seconds(10))
        guard case WebSocketError.timedOut(.close)? = await closing else { return #expect(Bool(false)) }
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("closing while the request of a connection is being made waits for the close timeout at most") func closeBeforeHandshake()
        async throws
    {
        let clock = VirtualClock()
        let socket = manager.webSocket(subprotocols: [], configuration: configuration(clock)) {
            try await Task.sleep(for: .seconds(600))
            throw CurlewError.cancelled
        }
        async let closing = failure { try await socket.close() }
        try await clock.advance(toWaitAt: .seconds(10))
        guard case WebSocketError.timedOut(.close)? = await closing else { return #expect(Bool(false)) }
    }

    @Test("negative buffer sizes and intervals count as zero") func negativeSettings() async throws {
        let server = try makeEchoServer()
        var configuration = WebSocketConfiguration()
        configuration.sendBufferSize = -1
        configuration.receiveBufferSize = -1
        configuration.outgoingFrameSize = -1
        configuration.pingInterval = .seconds(-1)
        let socket = manager.webSocket(server.url(), configuration: configuration)
        for text in ["ab", "cd"] { try await socket.send(text) }
        var messages = socket.messages.makeAsyncIterator()
        for text in ["ab", "cd"] { #expect(try await messages.next() == .text(text)) }
        try await socket.close()
    }

    @Test("the close timeout aborts the connection") func closeTimeout() async throws {
        let clock = VirtualClock()
        let server = try makeServer { $0.waitUntilClosed() }
        let socket = manager.webSocket(server.url(), configuration: configuration(clock))
        try await socket.open()
        async let closing = failure { try await socket.close() }
        try await clock.advance(toWaitAt: .seconds(10))
        guard case WebSocketError.timedOut(.close)? = await closing else { return #expect(Bool(false)) }
        #expect(await server.waitForConnectionsToClose())
    }

    // MARK: Closing

    @Test("the server's code and reason are reported, and the code is echoed") func serverCloses() async throws {
        let echoed = Log<Data>()
        let server = try makeServer { peer in
            try peer.send(.text, Data("last".utf8))
            try peer.sendClose(4001, "enough")
            if let frame = try peer.receive() { echoed.append(frame.payload) }
        }
        let socket = manager.webSocket(server.url())
        var received: [WebSocketMessage] = []
        let error = await failure { for try await message in socket.messages { received.append(message) } }
        #expect(received == [.text("last")])
        guard case WebSocketError.closed(let closure)? = error else { return #expect(Bool(false)) }
        #expect(closure == WebSocketClosure(code: WebSocketCloseCode(rawValue: 4001), reason: "enough"))
        #expect(try await socket.waitUntilClosed() == closure)
        #expect(await echoed.first() == Data([0x0F, 0xA1]))
        #expect(await failure { try await socket.send("x") } is WebSocketError)
    }

    @Test("messages end on a normal closure", arguments: [1000, 1001] as [UInt16])
    func normalClosure(_ code: UInt16) async throws {
        let server = try makeServer { peer in
            try peer.sendClose(code)
            try peer.answerClose()
        }
        let socket = manager.webSocket(server.url())
        for try await _ in socket.messages { #expect(Bool(false)) }
        #expect(try await socket.waitUntilClosed().code.rawValue == code)
    }

    @Test("a connection that ends without a close frame throws 1006") func abnormal() async throws {
        let server = try makeServer { _ in }
        let socket = manager.webSocket(server.url())
        guard case WebSocketError.closed(let closure)? = await failure(of: { for try await _ in socket.messages {} }) else {
            return #expect(Bool(false))
        }
        #expect(closure.code == .abnormalClosure)
    }

    @Test("close sends code and reason, and waits for the server's close frame") func close() async throws {
        let frames = Log<Data>()
        let server = try makeServer { peer in
            while let frame = try peer.receive() {
                frames.append(frame.payload)
                if frame.opcode == .close { return try peer.sendClose(1000, "bye") }
            }
        }
        let socket = manager.webSocket(server.url())
        try await socket.send("first")
        let closure = try await socket.close(code: .goingAway, reason: "home")
        #expect(closure == WebSocketClosure(code: .normalClosure, reason: "bye"))
        #expect(frames.elements == [Data("first".utf8), Data([0x03, 0xE9]) + Data("home".utf8)])
        #expect(try await socket.close() == closure)
        for try await _ in socket.messages { #expect(Bool(false)) }
    }

    @Test(
        "invalid closures are rejected",
        arguments: [
            (1004, ""), (1006, ""), (1015, ""), (999, ""), (2999, ""), (5000, ""), (1005, "reason"),
            (1000, String(repeating: "x", count: 124)),
        ] as [(UInt16, String)])
    func invalidClosures(_ code: UInt16, _ reason: String) async throws {
        let server = try makeEchoServer()
        let socket = manager.webSocket(server.url())
        let error = await failure { try await socket.close(code: WebSocketCloseCode(rawValue: code), reason: reason) }
        guard case WebSocketError.invalidClosure? = error else { return #expect(Bool(false)) }
        try await socket.open()
    }

    @Test("a violation is answered with a close frame, after valid messages are processed") func violation() async throws {
        let frames = Log<ClientFrame>()
        let server = try makeServer { peer in
            try peer.send(raw: WebSocketPeer.frame(.text, Data("ok".utf8)) + Data([0x83, 0x00]))
            while let frame = try peer.receive() { frames.append(frame) }
        }
        let socket = manager.webSocket(server.url())
        let error = await failure { for try await message in socket.messages { try await socket.send(message) } }
        guard case WebSocketError.protocolViolation(.protocolError, _)? = error else { return #expect(Bool(false)) }
        #expect(await server.waitForConnectionsToClose())
        #expect(frames.elements.map(\.opcode) == [.text, .close])
        #expect(frames.elements.last?.payload.prefix(2) == Data([0x03, 0xEA]))
    }

    @Test("an oversized message closes the connection with 1009") func tooLarge() async throws {
        let server = try makeServer { peer in
            try peer.send(.binary, Data(count: 1001))
            try peer.answerClose()
        }
        var configuration = WebSocketConfiguration()
        configuration.maximumMessageSize = 1000
        let socket = manager.webSocket(server.url(), configuration: configuration)
        guard case WebSocketError.messageTooLarge? = await failure(of: { for try await _ in socket.messages {} }) else {
            return #expect(Bool(false))
        }
    }

    @Test("closing before it is open sends queued messages first") func closeEarly() async throws {
        let gate = Gate()
        let frames = Log<WebSocketPeer.Opcode>()
        let server = try makeServer(answer: { _ in
            gate.wait()
            return nil
        }) { peer in
            while let frame = try peer.receive() {
                frames.append(frame.opcode)
                if frame.opcode == .close { return try peer.send(.close, frame.payload) }
            }
        }
        let socket = manager.webSocket(server.url())
        try await socket.send("early")
        async let closing = socket.close()
        #expect(await gate.arrivals())
        gate.open()
        #expect(try await closing.code == .normalClosure)
        #expect(frames.elements == [.text, .close])
    }

    @Test("a lost connection is a transfer failure") func reset() async throws {
        let server = try makeServer { peer in
            _ = try peer.receive()
            peer.reset()
        }
        let socket = manager.webSocket(server.url())
        try await socket.send("x")
        guard case CurlewError.transferFailed(let reason)? = await failure(of: { for try await _ in socket.messages {} }) else {
            return #expect(Bool(false))
        }
        #expect(reason.kind == .connectionLost)
    }

    // MARK: Releasing

    @Test("cancelling ends it immediately for all waiting tasks") func cancel() async throws {
        let server = try makeServer { $0.waitUntilClosed() }
        let socket = manager.webSocket(server.url())
        try await socket.open()
        async let reading = failure { for try await _ in socket.messages {} }
        async let pinging = failure { try await socket.ping() }
        socket.cancel()
        for error in await [reading, pinging] {
            guard case CurlewError.cancelled? = error else { return #expect(Bool(false), "\(String(describing: error))") }
        }
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("cancelling the reading task leaves the connection open") func cancelledReader() async throws {
        let server = try makeEchoServer()
        let socket = manager.webSocket(server.url())
        let reading = Task { for try await _ in socket.messages {} }
        try await socket.open()
        reading.cancel()
        let result = await reading.result
        #expect(throws: CurlewError.self) { try result.get() }
        try await socket.send("x")
        var messages = socket.messages.makeAsyncIterator()
        #expect(try await messages.next() == .text("x"))
    }

    @Test("releasing a WebSocket closes it with 1001") func released() async throws {
        let code = Log<Data>()
        let server = try makeServer { peer in
            while let frame = try peer.receive() {
                guard frame.opcode == .close else { continue }
                code.append(frame.payload)
                return try peer.send(.close, frame.payload)
            }
        }
        var socket: WebSocket? = manager.webSocket(server.url())
        try await socket?.open()
        socket = nil
        #expect(await code.first() == Data([0x03, 0xE9]))
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("releasing the manager ends its WebSockets") func managerReleased() async throws {
        let server = try makeServer { $0.waitUntilClosed() }
        var manager: SessionManager? = makeManager()
        let socket = try #require(manager?.webSocket(server.url()))
        try await socket.open()
        manager = nil
        guard case CurlewError.sessionInvalidated? = await failure(of: { try await socket.waitUntilClosed() }) else {
            return #expect(Bool(false))
        }
    }

    @Test("a shutdown ends WebSockets after its grace period, and they do not reconnect") func managerShutDown() async throws {
        let server = try makeServer { $0.waitUntilClosed() }
        let manager = makeManager()
        var configuration = WebSocketConfiguration()
        configuration.reconnection = WebSocketReconnection(limit: nil, firstDelay: .milliseconds(1))
        let socket = manager.webSocket(server.url(), configuration: configuration)
        try await socket.open()
        await manager.shutdown(gracePeriod: .milliseconds(100))
        guard case CurlewError.sessionShutDown? = await failure(of: { try await socket.waitUntilClosed() }) else {
            return #expect(Bool(false))
        }
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("a WebSocket that is closed in time ends the shutdown early") func closedBeforeShutDown() async throws {
        let server = try makeEchoServer()
        let manager = makeManager()
        let socket = manager.webSocket(server.url())
        try await socket.open()
        async let end: Void = manager.shutdown(gracePeriod: .seconds(3_600))
        try await socket.close()
        await end
    }

    // MARK: Fragments and compression

    @Test("long messages are fragmented if configured") func fragments() async throws {
        let frames = Log<ClientFrame>()
        let server = try makeServer { peer in
            while let frame = try peer.receive(), frame.opcode != .close { frames.append(frame) }
            try peer.send(.close)
        }
        var configuration = WebSocketConfiguration()
        configuration.outgoingFrameSize = 4
        let socket = manager.webSocket(server.url(), configuration: configuration)
        try await socket.send("0123456789")
        try await socket.close()
        #expect(frames.elements.map(\.opcode) == [.text, .continuation, .continuation])
        #expect(frames.elements.map(\.isFinal) == [false, false, true])
        #expect(frames.elements.map(\.payload.count) == [4, 4, 2])
    }

    @Test("a ping is answered between the fragments of a message being sent") func pongBetweenFragments() async throws {
        let (frames, gate) = (Log<WebSocketPeer.Opcode>(), Gate())
        let server = try makeServer { peer in
            guard let first = try peer.receive() else { return }
            frames.append(first.opcode)
            try peer.send(.ping)
            try peer.send(.text, Data("pinged".utf8))
            peer.wait(until: gate)
            while let frame = try peer.receive(), frame.opcode != .close { frames.append(frame.opcode) }
            try peer.send(.close)
        }
        var configuration = WebSocketConfiguration()
        configuration.compression = nil
        configuration.outgoingFrameSize = 64 << 10
        let socket = manager.webSocket(server.url(), configuration: configuration)
        // Larger than the socket buffers, so that the ping arrives before the last fragment is sent.
        let sending = Task { try await socket.send(Data(count: 24 << 20)) }
        var messages = socket.messages.makeAsyncIterator()
        #expect(try await messages.next() == .text("pinged"))
        gate.open()
        try await sending.value
        try await socket.close()
        let opcodes = frames.elements
        #expect(opcodes.first == .binary)
        #expect(opcodes.last == .continuation)
        #expect(opcodes.count { $0 == .pong } == 1)
        #expect(opcodes.count { $0 == .continuation } == 383)
    }

    @Test(
        "compressed messages are echoed, with and without context takeover",
        arguments: ["", "; server_no_context_takeover; client_no_context_takeover"])
    func compressed(_ parameters: String) async throws {
        let server = try makeDeflateServer(parameters)
        let socket = manager.webSocket(server.url())
        let text = String(repeating: "curlew ", count: 1000)
        var messages = socket.messages.makeAsyncIterator()
        for _ in 0..<3 {
            try await socket.send(text)
            try await socket.send("short")
            #expect(try await messages.next() == .text(text))
            #expect(try await messages.next() == .text("short"))
        }
        try await socket.close()
    }

    @Test("compression is not offered when disabled") func noCompression() async throws {
        let server = try makeEchoServer()
        var configuration = WebSocketConfiguration()
        configuration.compression = nil
        let handshake = try await manager.webSocket(server.url(), configuration: configuration).open()
        #expect(!handshake.isCompressed)
        #expect(server.requests.first?.header("Sec-WebSocket-Extensions") == nil)
    }

    // MARK: Backpressure

    @Test("a server that does not read suspends senders") func slowServer() async throws {
        let gate = Gate()
        let counted = Log<Int>()
        let server = try makeServer { peer in
            peer.wait(until: gate)
            var count = 0
            while let frame = try peer.receive(), frame.opcode == .binary { count += 1 }
            counted.append(count)
            try peer.send(.close)
        }
        var configuration = WebSocketConfiguration()
        configuration.compression = nil
        let socket = manager.webSocket(server.url(), configuration: configuration)
        let sent = Log<Int>()
        let sending = Task {
            for number in 1...24 {
                try await socket.send(Data(count: 1 << 20))
                sent.append(number)
            }
        }
        #expect(await gate.arrivals())
        await sent.wait(for: 1)
        // The socket buffers hold a few MiB.
        #expect(sent.elements.count < 24)
        gate.open()
        try await sending.value
        try await socket.close()
        #expect(await counted.first() == 24)
    }

    @Test("a slow reader suspends receiving") func slowReader() async throws {
        let sent = Log<Int>()
        let server = try makeServer { peer in
            for number in 1...40 {
                try peer.send(.binary, Data(count: 1 << 20))
                sent.append(number)
            }
            try peer.sendClose(1000)
            try peer.answerClose()
        }
        let socket = manager.webSocket(server.url())
        try await socket.open()
        await sent.wait(for: 2)
        #expect(sent.elements.count < 40)
        var count = 0
        for try await _ in socket.messages { count += 1 }
        #expect(count == 40)
    }
}
