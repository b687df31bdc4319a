// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewTesting
import CurlewURLSession
import CurlewWebSocket
import Testing

/// How WebSocket tasks end.
@Suite(.timeLimit(.minutes(1))) struct WebSocketClosingTests {
    private let delegate = ConnectionDelegate()
    private let session: URLSession

    init() {
        session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    }

    private func task(_ server: WebSocketServer, _ path: String = "/") throws -> URLSessionWebSocketTask {
        session.webSocketTask(with: try #require(URL(string: server.url(path))))
    }

    // MARK: Closing

    // U2.4
    @Test func `the server closes with a code and a reason: what waits fails, messages before do not`() async throws {
        let server = try makeSocketServer { peer in
            try peer.send(.text, Data("last".utf8))
            try peer.sendClose(4001, "enough")
            _ = try peer.receive()
        }
        defer { server.stop() }
        let task = try task(server)
        task.resume()
        await delegate.events.wait(for: 3)
        #expect(delegate.events.elements == ["open -", "close 4001 enough", "complete"])
        #expect(delegate.errors.elements == [nil])
        #expect(task.error == nil)
        #expect(task.closeCode == .other(4001))
        #expect(task.closeCode == URLSessionWebSocketTask.CloseCode(rawValue: 4001))
        #expect(task.closeReason == Data("enough".utf8))
        #expect(try await task.receive().text == "last")
        #expect(await failureCode { try await task.receive() } == .networkConnectionLost)
        #expect(await failureCode { try await task.send(.string("x")) } == .networkConnectionLost)
        let pongs = Log<URLError.Code?>()
        task.sendPing { pongs.append(($0 as? URLError)?.code) }
        #expect(await pongs.first() == .networkConnectionLost)
        task.cancel(with: .goingAway, reason: nil)
        #expect(task.state == .completed)
        #expect(await server.waitForConnectionsToClose())
    }

    // U2.4
    @Test func `a receive that waits fails when the server closes without a code, before the task completes`() async throws {
        let server = try makeSocketServer { peer in
            _ = try peer.receive()
            try peer.send(.close)
            _ = try peer.receive()
        }
        defer { server.stop() }
        let task = try task(server)
        task.receive { [events = delegate.events] in
            if case .failure(let error as URLError) = $0 { events.append("failed \(error.code == .networkConnectionLost)") }
        }
        task.resume()
        try await task.send(.string("go"))
        await delegate.events.wait(for: 4)
        #expect(delegate.events.elements == ["open -", "failed true", "close 1005 -", "complete"])
        #expect((task.closeCode, task.closeReason) == (.noStatusReceived, nil))
    }

    // U2.4
    @Test func `calls of a suspended task fail in their order when the server closes, before the task completes`() async throws {
        let gate = Gate()
        let server = try makeSocketServer { peer in
            peer.wait(until: gate)
            try peer.sendClose(4001, "why")
            _ = try peer.receive()
        }
        defer { server.stop() }
        defer { gate.open() }
        let task = try task(server)
        task.resume()
        await delegate.events.wait(for: 1)
        task.suspend()
        let events = delegate.events
        task.receive { if case .failure = $0 { events.append("not received") } }
        task.send(.string("x")) { if $0 != nil { events.append("not sent") } }
        gate.open()
        await events.wait(for: 5)
        #expect(events.elements == ["open -", "close 4001 why", "not received", "not sent", "complete"])
    }

    // U2.4
    @Test func `the server's close code is known as soon as receiving fails because of it`() async throws {
        let server = try makeSocketServer { peer in
            _ = try peer.receive()
            try peer.sendClose(4001, "why")
            _ = try peer.receive()
        }
        defer { server.stop() }
        // The end of the task may come at the same time.
        for _ in 1...20 {
            let task = try task(server)
            task.resume()
            try await task.send(.string("go"))
            #expect(await failureCode { try await task.receive() } == .networkConnectionLost)
            #expect((task.closeCode, task.closeReason) == (.other(4001), Data("why".utf8)))
            task.cancel()
            #expect((task.closeCode, task.closeReason) == (.other(4001), Data("why".utf8)))
        }
    }

    // U2.4
    @Test func `the close code and reason of the program are sent, and those of the server's answer shown`() async throws {
        let frames = Log<String>()
        let server = try makeSocketServer { peer in
            while let frame = try peer.receive() {
                let code = frame.payload.prefix(2).reduce(0) { $0 << 8 | Int($1) }
                frames.append("\(frame.opcode) \(code) \(String(decoding: frame.payload.dropFirst(2), as: UTF8.self))")
                if frame.opcode == .close { return try peer.sendClose(1001, "answer") }
            }
        }
        defer { server.stop() }
        let long = Data(String(repeating: "x", count: 124).utf8)
        let sent: [(URLSessionWebSocketTask.CloseCode, Data?, String)] = [
            (.policyViolation, Data("why".utf8), "close 1008 why"), (.other(3000), nil, "close 3000 "),
            (.noStatusReceived, Data("why".utf8), "close 0 "), (.abnormalClosure, nil, "close 0 "),
            (.normalClosure, long, "close 1000 "), (.normalClosure, Data([0xFF]), "close 1000 "),
        ]
        for (number, (code, reason, expected)) in sent.enumerated() {
            let task = try task(server)
            task.resume()
            await delegate.events.wait(for: 3 * number + 1)
            let waiting = Task { try await task.receive() }
            task.cancel(with: code, reason: reason)
            // The server may have answered.
            #expect(task.state == .canceling || task.state == .completed)
            await delegate.events.wait(for: 3 * number + 3)
            #expect(await Self.code(of: waiting) == .cancelled)
            #expect(await Self.isFailing(task, .cancelled))
            #expect(frames.elements.last == expected)
            #expect((task.closeCode, task.closeReason) == (.goingAway, Data("answer".utf8)))
        }
        #expect(delegate.errors.elements == Array(repeating: nil, count: sent.count))
        #expect(await server.waitForConnectionsToClose())
    }

    private static func code(of task: Task<URLSessionWebSocketTask.Message, any Error>) async -> URLError.Code? {
        await failureCode { try await task.value }
    }

    private static func isFailing(_ task: URLSessionWebSocketTask, _ expected: URLError.Code) async -> Bool {
        await failureCode { try await task.send(.string("x")) } == expected
    }

    // U2.4
    @Test func `a connection that ends without a close frame was lost`() async throws {
        let server = try makeSocketServer { peer in _ = try peer.receive() }
        defer { server.stop() }
        let task = try task(server)
        // The end may come before it is known that the message was written.
        task.send(.string("go")) { _ in }
        task.resume()
        #expect(await failureCode { try await task.receive() } == .networkConnectionLost)
        await delegate.events.wait(for: 2)
        #expect(delegate.events.elements == ["open -", "complete"])
        #expect(delegate.errors.elements.map { $0?.code } == [.networkConnectionLost])
        #expect((task.closeCode, task.closeReason) == (.invalid, nil))
    }

    // U2.4
    @Test func `a server that violates the protocol fails the task`() async throws {
        let server = try makeSocketServer { peer in
            try peer.send(raw: Data([0x8F, 0]))
            peer.waitUntilClosed()
        }
        defer { server.stop() }
        let task = try task(server)
        task.resume()
        #expect(await failureCode { try await task.receive() } == .cannotParseResponse)
        await delegate.errors.wait(for: 1)
        #expect(delegate.errors.elements.map { $0?.code } == [.cannotParseResponse])
    }

    // MARK: Cancelling

    // U2.4
    @Test func `a task is cancelled in each state`() async throws {
        let gate = Gate()
        let server = try makeEchoSocketServer(answer: { request in
            if request.target == "/slow" { gate.wait() }
            return nil
        })
        defer { server.stop() }
        defer { gate.open() }
        // Suspended.
        let unstarted = try task(server)
        let early = Task { try await unstarted.receive() }
        unstarted.cancel(with: .normalClosure, reason: nil)
        #expect(await Self.code(of: early) == .cancelled)
        #expect(await Self.isFailing(unstarted, .cancelled))
        unstarted.resume()
        #expect(await eventually { unstarted.state == .completed })
        // Connecting.
        let connecting = try task(server, "/slow")
        connecting.resume()
        #expect(await gate.arrivals())
        let waiting = Task { try await connecting.receive() }
        connecting.cancel()
        #expect(await Self.code(of: waiting) == .cancelled)
        // What waits fails before the task completes.
        await delegate.errors.wait(for: 2)
        // Open.
        let open = try task(server)
        open.resume()
        try await open.send(.string("x"))
        _ = try await open.receive()
        let last = Task { try await open.receive() }
        open.cancel()
        #expect(await Self.code(of: last) == .cancelled)
        #expect(await Self.isFailing(open, .cancelled))
        await delegate.errors.wait(for: 3)
        #expect(delegate.errors.elements.map { $0?.code } == [.cancelled, .cancelled, .cancelled])
        #expect(delegate.events.elements == ["complete", "complete", "open -", "complete"])
        // Completed.
        open.cancel()
        #expect(open.state == .completed)
        #expect(open.closeCode == .invalid)
        #expect(server.requests.count == 2)
    }

    // U2.4
    @Test func `invalidating the session cancels its WebSockets, and no others are opened`() async throws {
        let server = try makeEchoSocketServer()
        defer { server.stop() }
        let open = try task(server)
        open.resume()
        await delegate.events.wait(for: 1)
        session.invalidateAndCancel()
        #expect(await Self.isFailing(open, .cancelled))
        let late = try task(server)
        late.resume()
        #expect(await Self.isFailing(late, .cancelled))
        #expect(server.requests.count == 1)
        #expect(await server.waitForConnectionsToClose())
    }

    // U2.4
    @Test func `a task and its session are released when they have ended, also without a last call of the program`() async throws {
        let server = try makeSocketServer { peer in
            try peer.sendClose(1000, "")
            _ = try peer.receive()
        }
        defer { server.stop() }
        weak var task: URLSessionWebSocketTask?
        weak var session: URLSession?
        do {
            let ended = Log<String>()
            let own = URLSession(configuration: .ephemeral)
            let socket = own.webSocketTask(with: try #require(URL(string: server.url())))
            (task, session) = (socket, own)
            socket.receive { _ in ended.append("received") }
            socket.resume()
            await ended.wait(for: 1)
        }
        #expect(await eventually { task == nil && session == nil })
        #expect(await server.waitForConnectionsToClose())
    }

    // U2.4
    @Test func `a close code has Apple's number, and any number makes one`() {
        let numbers = [0, 1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1015]
        let codes: [URLSessionWebSocketTask.CloseCode] = [
            .invalid, .normalClosure, .goingAway, .protocolError, .unsupportedData, .noStatusReceived, .abnormalClosure,
            .invalidFramePayloadData, .policyViolation, .messageTooBig, .mandatoryExtensionMissing, .internalServerError,
            .tlsHandshakeFailure,
        ]
        #expect(codes.map(\.rawValue) == numbers)
        #expect(numbers.map { URLSessionWebSocketTask.CloseCode(rawValue: $0) } == codes)
        #expect(URLSessionWebSocketTask.CloseCode(rawValue: 4242)?.rawValue == 4242)
    }
}
