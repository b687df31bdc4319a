// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewTesting
import CurlewURLSession
import Testing

@Suite(.timeLimit(.minutes(1))) struct StreamTaskTests {
    private let delegate = ConnectionDelegate()
    private let session: URLSession

    init() {
        session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    }

    private func task(_ port: Int) -> URLSessionStreamTask { session.streamTask(withHostName: "127.0.0.1", port: port) }

    private func text(_ result: (Data?, Bool)) -> String { result.0.map { String(decoding: $0, as: UTF8.self) } ?? "-" }

    // MARK: Reading and writing

    // U2.4
    @Test func `bytes are written and read, awaited, with least and most lengths`() async throws {
        let server = try TCPEchoServer()
        defer { server.stop() }
        let task = task(server.port)
        task.resume()
        try await task.write(Data("one ".utf8), timeout: 0)
        try await task.write(Data("two three".utf8), timeout: 10)
        #expect(text(try await task.readData(ofMinLength: 2, maxLength: 3, timeout: 10)) == "one")
        #expect(text(try await task.readData(ofMinLength: 4, maxLength: 4, timeout: 0)) == " two")
        #expect(text(try await task.readData(ofMinLength: 6, maxLength: 100, timeout: 0)) == " three")
        #expect(task.originalRequest == nil)
        task.closeWrite()
        #expect(try await task.readData(ofMinLength: 1, maxLength: 100, timeout: 0) == (nil, true))
        await delegate.events.wait(for: 3)
        #expect(delegate.events.elements == ["write closed", "read closed", "complete"])
        #expect(delegate.errors.elements == [nil])
        #expect(task.state == .completed)
        #expect(await server.waitForConnectionsToClose())
    }

    // U2.4
    @Test func `the peer's end is reported before the completion where no read waits for it`() async throws {
        let server = try TCPEchoServer()
        defer { server.stop() }
        let task = task(server.port)
        task.resume()
        try await task.write(Data("one".utf8), timeout: 0)
        #expect(text(try await task.readData(ofMinLength: 3, maxLength: 3, timeout: 0)) == "one")
        task.closeWrite()
        await delegate.events.wait(for: 3)
        #expect(delegate.events.elements == ["write closed", "read closed", "complete"])
        #expect(try await task.readData(ofMinLength: 1, maxLength: 100, timeout: 0) == (nil, true))
        #expect(delegate.events.elements.count == 3)
    }

    // U2.4
    @Test func `calls with handlers are served in order, also those before the start, on the delegate queue`() async throws {
        let server = try TCPEchoServer()
        defer { server.stop() }
        let task = task(server.port)
        let log = Log<String>()
        let queue = session.delegateQueue
        for number in 0..<5 {
            task.readData(ofMinLength: 2, maxLength: 2, timeout: 0) { data, isAtEnd, error in
                let text = data.map { String(decoding: $0, as: UTF8.self) } ?? "-"
                log.append("\(text) \(isAtEnd) \(error == nil) \(OperationQueue.current === queue)")
            }
            task.write(Data("n\(number)".utf8), timeout: 0) { if $0 != nil || OperationQueue.current !== queue { log.append("failed") } }
        }
        #expect(server.connectionCount == 0)
        task.resume()
        await log.wait(for: 5)
        #expect(log.elements == (0..<5).map { "n\($0) false true true" })
        task.cancel()
        await delegate.events.wait(for: 1)
        #expect(delegate.errors.elements.map { $0?.code } == [.cancelled])
    }

    // U2.4
    @Test func `more bytes than are kept unread arrive complete`() async throws {
        let server = try TCPEchoServer()
        defer { server.stop() }
        let task = task(server.port)
        task.resume()
        let sent = Data((0..<5 << 20).map { UInt8(truncatingIfNeeded: $0 >> 8 ^ $0) })
        task.write(sent, timeout: 0) { _ in }
        task.closeWrite()
        var received = Data()
        while true {
            let (data, isAtEnd) = try await task.readData(ofMinLength: 1, maxLength: 10_000, timeout: 0)
            if let data { received += data }
            if isAtEnd { break }
        }
        #expect(received == sent)
    }

    // U2.4
    @Test func `a task without calls makes no connection`() async throws {
        let server = try TCPEchoServer()
        defer { server.stop() }
        let task = task(server.port)
        task.resume()
        let other = self.task(server.port)
        other.resume()
        try await other.write(Data("x".utf8), timeout: 0)
        #expect(text(try await other.readData(ofMinLength: 0, maxLength: 9, timeout: 0)) == "x")
        #expect(server.connectionCount == 1)
        task.cancel()
        other.cancel()
        await delegate.errors.wait(for: 2)
        #expect(delegate.errors.elements.map { $0?.code } == [.cancelled, .cancelled])
    }

    // U2.4
    @Test func `bytes of a read that times out or is cancelled are for the next`() async throws {
        let server = try TCPEchoServer()
        defer { server.stop() }
        let task = task(server.port)
        task.resume()
        try await task.write(Data("hello".utf8), timeout: 0)
        #expect(await failureCode { try await task.readData(ofMinLength: 6, maxLength: 10, timeout: 0.2) } == .timedOut)
        for count in 0..<20 {
            let waiting = Task { try await task.readData(ofMinLength: 6, maxLength: 10, timeout: 0) }
            // Before it has begun, or at any time later.
            for _ in 0..<count { await Task.yield() }
            waiting.cancel()
            #expect(await failureCode { try await waiting.value } == .cancelled)
        }
        #expect(text(try await task.readData(ofMinLength: 5, maxLength: 10, timeout: 0)) == "hello")
        // A read that waits for longer does not have those after it wait.
        let log = Log<String>()
        task.readData(ofMinLength: 100, maxLength: 100, timeout: 0.2) { _, _, error in
            log.append((error as? URLError)?.code == .timedOut ? "late" : "-")
        }
        task.readData(ofMinLength: 1, maxLength: 100, timeout: 0) { data, _, _ in
            log.append(data.map { String(decoding: $0, as: UTF8.self) } ?? "-")
        }
        try await task.write(Data("next".utf8), timeout: 0)
        await log.wait(for: 2)
        #expect(log.elements == ["late", "next"])
        #expect(task.state == .running)
        task.cancel()
    }

    // U2.4
    @Test func `a write that the peer does not read times out`() async throws {
        // Echoes only as long as the client reads.
        let server = try TCPEchoServer()
        defer { server.stop() }
        let task = task(server.port)
        task.resume()
        let large = Data(count: 64 << 20)
        let log = Log<String>()
        task.write(large, timeout: 0.3) { log.append(($0 as? URLError)?.code == .timedOut ? "first" : "-") }
        task.write(Data("x".utf8), timeout: 2) { log.append(($0 as? URLError)?.code == .timedOut ? "second" : "-") }
        await log.wait(for: 2)
        #expect(log.elements == ["first", "second"])
        #expect(task.state == .running)
        task.cancel()
    }

    // U2.4
    @Test func `lengths that make no sense fail the read`() async throws {
        let task = task(1)
        for (least, most) in [(2, 1), (0, 0), (-1, 5), (0, -1)] {
            #expect(await failureCode { try await task.readData(ofMinLength: least, maxLength: most, timeout: 0) } == .unknown)
        }
        task.cancel()
    }

    // MARK: Ends

    // U2.4
    @Test func `what the peer has sent before its end is read, then the end`() async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "some bytes")
            connection.close()
            return nil
        }
        defer { server.stop() }
        let task = task(server.port)
        task.resume()
        try await task.write(Data("GET / HTTP/1.1\r\n\r\n".utf8), timeout: 0)
        #expect(text(try await task.readData(ofMinLength: 4, maxLength: 4, timeout: 0)) == "some")
        let rest = try await task.readData(ofMinLength: 100, maxLength: 200, timeout: 0)
        #expect(text(rest) == " bytes")
        #expect(rest.1)
        #expect(try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) == (nil, true))
        #expect(await delegate.events.first() == "read closed")
        task.closeWrite()
        await delegate.events.wait(for: 3)
        #expect(delegate.events.elements == ["read closed", "write closed", "complete"])
        #expect(await failureCode { try await task.write(Data("x".utf8), timeout: 0) } == .networkConnectionLost)
    }

    // U2.4
    @Test func `sides are closed after the calls before, and both end the task`() async throws {
        let server = try TCPEchoServer()
        defer { server.stop() }
        let task = task(server.port)
        let log = Log<String>()
        task.readData(ofMinLength: 3, maxLength: 3, timeout: 0) { data, _, _ in
            log.append(data.map { String(decoding: $0, as: UTF8.self) } ?? "-")
        }
        task.closeRead()
        task.readData(ofMinLength: 3, maxLength: 3, timeout: 0) { _, _, error in
            log.append((error as? URLError)?.code == .networkConnectionLost ? "closed" : "-")
        }
        task.write(Data("abcdef".utf8), timeout: 0) { _ in }
        task.resume()
        await log.wait(for: 2)
        #expect(log.elements == ["abc", "closed"])
        task.closeWrite()
        await delegate.events.wait(for: 3)
        #expect(delegate.events.elements == ["read closed", "write closed", "complete"])
        #expect(delegate.errors.elements == [nil])
        #expect(await server.waitForConnectionsToClose())
    }

    // U2.4
    @Test(arguments: [("127.0.0.1", 1, URLError.Code.cannotConnectToHost), ("127.0.0.1", 0, .badURL), ("a b", 80, .badURL)])
    func `what can't be connected to fails calls and task`(host: String, port: Int, expected: URLError.Code) async throws {
        let task = session.streamTask(withHostName: host, port: port)
        task.resume()
        let writing = Task { try await task.write(Data("x".utf8), timeout: 0) }
        #expect(await failureCode { try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) } == expected)
        #expect(await failureCode { try await writing.value } == expected)
        await delegate.errors.wait(for: 1)
        #expect(delegate.errors.elements.map { $0?.code } == [expected])
        #expect(task.state == .completed)
    }

    // U2.4
    @Test func `a reset connection fails what waits, and the task`() async throws {
        let server = try LoopbackServer { _, connection in
            connection.reset()
            return nil
        }
        defer { server.stop() }
        let task = task(server.port)
        task.resume()
        try await task.write(Data("GET / HTTP/1.1\r\n\r\n".utf8), timeout: 0)
        #expect(await failureCode { try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) } == .networkConnectionLost)
        await delegate.errors.wait(for: 1)
        #expect(delegate.errors.elements.map { $0?.code } == [.networkConnectionLost])
    }

    // U2.4
    @Test func `a task is cancelled before its start, before its connection and in use`() async throws {
        let server = try TCPEchoServer()
        defer { server.stop() }
        let tasks = (0..<3).map { _ in task(server.port) }
        let suspended = Task { try await tasks[0].readData(ofMinLength: 1, maxLength: 1, timeout: 0) }
        tasks[0].cancel()
        #expect(await failureCode { try await suspended.value } == .cancelled)
        tasks[1].resume()
        tasks[1].cancel()
        #expect(await failureCode { try await tasks[1].write(Data("x".utf8), timeout: 0) } == .cancelled)
        tasks[2].resume()
        try await tasks[2].write(Data("x".utf8), timeout: 0)
        let reading = Task { try await tasks[2].readData(ofMinLength: 5, maxLength: 5, timeout: 0) }
        tasks[2].cancel()
        #expect(await failureCode { try await reading.value } == .cancelled)
        await delegate.errors.wait(for: 3)
        #expect(delegate.errors.elements.map { $0?.code } == [.cancelled, .cancelled, .cancelled])
        #expect(await eventually { server.connectionCount == 1 })
        #expect(await server.waitForConnectionsToClose())
    }

    // MARK: Streams

    // U2.4
    @Test func `the streams are captured after the calls before, with the bytes that were not read, and end the task`() async throws {
        let server = try TCPEchoServer()
        defer { server.stop() }
        let task = task(server.port)
        task.resume()
        try await task.write(Data("first second".utf8), timeout: 0)
        #expect(await failureCode { try await task.readData(ofMinLength: 13, maxLength: 13, timeout: 0.2) } == .timedOut)
        #expect(text(try await task.readData(ofMinLength: 6, maxLength: 6, timeout: 0)) == "first ")
        task.captureStreams()
        let pair = try #require(await delegate.streams.first())
        #expect(task.state == .completed)
        #expect(await failureCode { try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) } == .networkConnectionLost)
        let received = await offThePool { () -> String in
            pair.input.open()
            pair.output.open()
            _ = Array(" third".utf8).withUnsafeBufferPointer { bytes in
                bytes.baseAddress.map { pair.output.write($0, maxLength: bytes.count) }
            }
            pair.output.close()
            var bytes: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 64)
            while true {
                let count = pair.input.read(&piece, maxLength: piece.count)
                guard count > 0 else { break }
                bytes += piece[..<count]
            }
            pair.input.close()
            return String(decoding: bytes, as: UTF8.self)
        }
        #expect(received == "second third")
        #expect(await server.waitForConnectionsToClose())
        #expect(delegate.events.elements == ["streams"])
        #expect(await session.allTasks.isEmpty)
    }

    // MARK: TLS

    private func secureServer() throws -> LoopbackServer {
        try LoopbackServer(tls: ServerTLS.throwAway().tls) { _, _ in .ok("secure") }
    }

    // U2.4
    @Test func `a secure connection is made before the first byte, to a server that the delegate trusts`() async throws {
        let server = try secureServer()
        defer { server.stop() }
        for isEarly in [false, true] {
            let asked = SocketAsyncDecisions(.acceptingServer)
            let task = session.streamTask(withHostName: "localhost", port: server.port)
            task.delegate = asked
            if isEarly { task.startSecureConnection() }
            task.resume()
            if !isEarly { task.startSecureConnection() }
            try await task.write(Data("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8), timeout: 0)
            let (data, _) = try await task.readData(ofMinLength: 10_000, maxLength: 10_000, timeout: 0)
            let text = String(decoding: try #require(data), as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 200"))
            #expect(text.hasSuffix("secure"))
            #expect(asked.events.elements == ["challenge NSURLAuthenticationMethodServerTrust 0"])
            task.cancel()
        }
    }

    // U2.4
    @Test func `a server that is not trusted gets no byte`() async throws {
        let server = try secureServer()
        defer { server.stop() }
        for decisions in [SocketHandlerDecisions(.rejectingServer), SocketHandlerDecisions(ConnectionAnswers())] {
            let task = session.streamTask(withHostName: "localhost", port: server.port)
            task.delegate = decisions
            task.startSecureConnection()
            task.resume()
            #expect(await failureCode { try await task.write(Data("GET / HTTP/1.1\r\n\r\n".utf8), timeout: 0) } != nil)
            #expect(await eventually { task.state == .completed })
            #expect(decisions.events.count == 1)
            #expect(task.error is URLError)
        }
        #expect(server.requestCount == 0)
    }

    // U2.4
    @Test func `TLS on a connection in use fails the task, and says so`() async throws {
        let server = try TCPEchoServer()
        defer { server.stop() }
        let task = task(server.port)
        task.resume()
        try await task.write(Data("x".utf8), timeout: 0)
        let reading = Task { try await task.readData(ofMinLength: 5, maxLength: 5, timeout: 0) }
        task.startSecureConnection()
        #expect(await failureCode { try await reading.value } == .unsupportedURL)
        await delegate.errors.wait(for: 1)
        let error = try #require(task.error as? URLError)
        #expect(error.code == .unsupportedURL)
        #expect(error.localizedDescription.contains("startSecureConnection()"))
        #expect(await server.waitForConnectionsToClose())
    }
}
