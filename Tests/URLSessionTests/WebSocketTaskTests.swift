// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewTesting
import CurlewURLSession
import CurlewWebSocket
import Testing

/// The messages of WebSocket tasks. How they end: `WebSocketClosingTests`; how they begin: `WebSocketHandshakeTests`.
@Suite(.timeLimit(.minutes(1))) struct WebSocketTaskTests {
    private let delegate = ConnectionDelegate()
    private let session: URLSession

    init() {
        session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    }

    private func task(_ server: WebSocketServer, _ path: String = "/") throws -> URLSessionWebSocketTask {
        session.webSocketTask(with: try #require(URL(string: server.url(path))))
    }

    // MARK: Messages

    // U2.4
    @Test func `messages are sent and received, awaited`() async throws {
        let server = try makeEchoSocketServer()
        defer { server.stop() }
        let task = try task(server, "/chat?room=1")
        task.resume()
        try await task.send(.string("Hello"))
        try await task.send(.data(Data([0xFF, 0])))
        #expect(try await task.receive().text == "Hello")
        #expect(try await task.receive().bytes == Data([0xFF, 0]))
        #expect((task.response as? HTTPURLResponse)?.statusCode == 101)
        #expect(task.closeCode == .invalid)
        task.cancel(with: .normalClosure, reason: Data("bye".utf8))
        await delegate.events.wait(for: 3)
        #expect(delegate.events.elements == ["open -", "close 1000 bye", "complete"])
        #expect(delegate.errors.elements == [nil])
        #expect((task.closeCode, task.closeReason) == (.normalClosure, Data("bye".utf8)))
        #expect(task.state == .completed)
        #expect(server.requests.map(\.target) == ["/chat?room=1"])
        #expect(await server.waitForConnectionsToClose())
    }

    // U2.4
    @Test func `messages are sent and received with handlers, in order and on the delegate queue`() async throws {
        let server = try makeEchoSocketServer()
        defer { server.stop() }
        let task = try task(server)
        let log = Log<String>()
        let queue = session.delegateQueue
        for number in 0..<20 {
            task.receive { result in
                log.append("\((try? result.get())?.text ?? "-") \(OperationQueue.current === queue)")
            }
            task.send(.string("\(number)")) { error in
                if error != nil || OperationQueue.current !== queue { log.append("failed") }
            }
        }
        task.resume()
        await log.wait(for: 20)
        #expect(log.elements == (0..<20).map { "\($0) true" })
        let pongs = Log<Bool>()
        task.sendPing { pongs.append($0 == nil && OperationQueue.current === queue) }
        #expect(await pongs.first() == true)
        task.cancel()
        await delegate.events.wait(for: 2)
        #expect(delegate.errors.elements.map { $0?.code } == [.cancelled])
    }

    // U2.4
    @Test func `what is sent before the WebSocket is open waits for it, as for the start of the task`() async throws {
        let gate = Gate()
        let server = try makeEchoSocketServer(answer: { _ in
            gate.wait()
            return nil
        })
        defer { server.stop() }
        defer { gate.open() }
        let task = try task(server)
        let log = Log<String>()
        task.send(.string("early")) { log.append($0 == nil ? "sent" : "failed") }
        task.sendPing { log.append($0 == nil ? "pong" : "failed") }
        #expect(task.state == .suspended)
        #expect(server.requests.isEmpty)
        task.resume()
        #expect(await gate.arrivals())
        #expect(log.elements.isEmpty)
        gate.open()
        #expect(try await task.receive().text == "early")
        await log.wait(for: 2)
        #expect(log.elements.sorted() == ["pong", "sent"])
        task.cancel()
    }

    // U2.4
    @Test func `a suspended task makes no calls`() async throws {
        let server = try makeEchoSocketServer()
        defer { server.stop() }
        let task = try task(server)
        task.resume()
        await delegate.events.wait(for: 1)
        task.suspend()
        let log = Log<String?>()
        task.send(.string("late")) { _ in log.append("sent") }
        task.receive { log.append((try? $0.get())?.text) }
        // What another one does in the meantime takes longer than the calls would.
        let other = try self.task(server)
        other.resume()
        try await other.send(.string("other"))
        #expect(try await other.receive().text == "other")
        other.cancel()
        #expect(log.elements.isEmpty)
        task.resume()
        await log.wait(for: 2)
        #expect(Set(log.elements) == ["sent", "late"])
        task.cancel()
    }

    // U2.4
    @Test func `cancelling a task that receives ends its wait, and no message is lost`() async throws {
        let gate = Gate()
        let server = try makeSocketServer { peer in
            peer.wait(until: gate)
            for number in 0..<3 { try peer.send(.text, Data("\(number)".utf8)) }
            try peer.answerClose()
        }
        defer { server.stop() }
        defer { gate.open() }
        let task = try task(server)
        let early = Task { try await task.receive() }
        early.cancel()
        #expect(await failureCode { try await early.value } == .cancelled)
        task.resume()
        await delegate.events.wait(for: 1)
        let waiting = Task { try await task.receive() }
        let first = Task { try await task.receive() }
        await Task.yield()
        waiting.cancel()
        #expect(await failureCode { try await waiting.value } == .cancelled)
        gate.open()
        var texts: Set<String?> = [try await first.value.text]
        for _ in 0..<2 { texts.insert(try await task.receive().text) }
        #expect(texts == ["0", "1", "2"])
        #expect(task.state == .running)
        task.cancel()
    }

    // U2.4
    @Test func `a message beyond the largest size fails the task, and the server gets a close code`() async throws {
        let closes = Log<Data>()
        let server = try makeSocketServer { peer in
            try peer.send(.text, Data("small".utf8))
            try peer.send(.binary, Data(count: 2000))
            while let frame = try peer.receive() { if frame.opcode == .close { closes.append(frame.payload) } }
        }
        defer { server.stop() }
        let task = try task(server)
        #expect(task.maximumMessageSize == 1 << 20)
        task.maximumMessageSize = 1999
        task.resume()
        #expect(try await task.receive().text == "small")
        #expect(await failureCode { try await task.receive() } == .dataLengthExceedsMaximum)
        #expect(await closes.first()?.prefix(2) == Data([0x03, 0xF1]))
        await delegate.events.wait(for: 2)
        #expect(delegate.events.elements == ["open -", "complete"])
        #expect(delegate.errors.elements.map { $0?.code } == [.dataLengthExceedsMaximum])
        #expect(task.closeCode == .invalid)
    }
}
