// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Dispatch
import Testing

@Suite(.timeLimit(.minutes(2))) struct RawStreamTests {
    private let server: TCPEchoServer
    private let manager = makeManager()

    init() throws {
        server = try TCPEchoServer()
    }

    private func collect(_ stream: StreamRequest) async throws -> Data {
        var data = Data()
        for try await piece in stream.bytes() { data += piece }
        return data
    }

    @Test("cancelling the task that awaits a write ends the wait")
    func cancelledWrite() async {
        let manager = makeManager()
        // Never started, so that no byte can be sent.
        manager.startRequestsImmediately = false
        let stream = manager.stream(withHostName: "127.0.0.1", port: server.port)
        let writing = Task { try await stream.write(Data("x".utf8)) }
        writing.cancel()
        let result = await writing.result
        #expect(throws: CancellationError.self) { try result.get() }
        stream.cancel()
    }

    @Test("written bytes are echoed") func echo() async throws {
        let stream = manager.stream(withHostName: "127.0.0.1", port: server.port)
        var iterator = stream.bytes().makeAsyncIterator()
        for text in ["one", "two", "three"] {
            try await stream.write(Data(text.utf8))
            var received = Data()
            while received.count < text.utf8.count, let piece = try await iterator.next() { received += piece }
            #expect(received == Data(text.utf8))
        }
        stream.closeWrite()
        #expect(try await iterator.next() == nil)
        try await stream.waitUntilCompleted()
    }

    // MARK: Retries

    @Test("a connection that was refused is retried, and what was written before is sent then", arguments: [false, true])
    func retry(isSessions: Bool) async throws {
        let listener = try StuckListener(.refusing)
        let received = Lock<Task<Data, Never>?>(nil)
        let retrier = CurlewCore.Retrier { _, request, _, completion in
            if request.retryCount == 1 { received.withLock { $0 = listener.serve() } }
            completion(request.retryCount < 3, 0)
        }
        let manager = makeManager()
        if isSessions { manager.retrier = retrier }
        let stream = manager.stream(
            withHostName: "127.0.0.1", port: listener.port, interceptor: isSessions ? nil : retrier,
            options: RequestOptions(deadline: .seconds(60)))
        try await stream.write(Data("one ".utf8))
        try await stream.write(Data("two".utf8))
        stream.closeWrite()
        #expect(await received.withLock { $0 }?.value == Data("one two".utf8))
        #expect(stream.retryCount == 2)
        for try await _ in stream.bytes() {}
        try await stream.waitUntilCompleted()
    }

    @Test("a retrier that gives up ends the connection with its error; a policy counts the attempts") func refused() async throws {
        let listener = try StuckListener(.refusing)
        let manager = makeManager()
        manager.retrier = RetryPolicy(exponentialBackoffScale: 0.01)
        let stream = manager.stream(withHostName: "127.0.0.1", port: listener.port)
        let writing = Task { try await stream.write(Data("x".utf8)) }
        await #expect(throws: CurlewError.self) { try await stream.waitUntilCompleted() }
        await #expect(throws: CurlewError.self) { try await writing.value }
        await #expect(throws: CurlewError.self) { for try await _ in stream.bytes() {} }
        #expect(stream.retryCount == 2)
    }

    @Test("an established connection is not retried, and a delay before a retry ends before the deadline, and can be cancelled")
    func retryLimits() async throws {
        let asked = Log<Int>()
        let retrier = CurlewCore.Retrier { _, _, _, completion in
            completion(true, 600)
            asked.append(1)
        }
        let listener = try StuckListener(.refusing)
        let late = manager.stream(
            withHostName: "127.0.0.1", port: listener.port, interceptor: retrier, options: RequestOptions(deadline: .seconds(10)))
        do {
            for try await _ in late.bytes() {}
            Issue.record("ended")
        } catch CurlewError.transferFailed(let failure) {
            #expect(failure.kind == .connect)
        }
        let cancelled = manager.stream(withHostName: "127.0.0.1", port: listener.port, interceptor: retrier)
        await asked.wait(for: 2)
        cancelled.cancel()
        await #expect(throws: CurlewError.self) { for try await _ in cancelled.bytes() {} }
        let reset = try LoopbackServer { _, connection in
            connection.reset()
            return nil
        }
        let established = manager.stream(withHostName: "127.0.0.1", port: reset.port, interceptor: retrier)
        try await established.write(Data("GET / HTTP/1.1\r\n\r\n".utf8))
        await #expect(throws: CurlewError.self) { for try await _ in established.bytes() {} }
        #expect(asked.elements.count == 2)
    }

    @Test("what is written before a session's asynchronous adapter has been passed is sent") func asynchronousAdapter() async throws {
        let manager = makeManager()
        manager.adapter = CurlewCore.Adapter { request async throws in
            await Task.yield()
            return request
        }
        let stream = manager.stream(withHostName: "127.0.0.1", port: server.port)
        try await stream.write(Data("early".utf8))
        stream.closeWrite()
        #expect(try await collect(stream) == Data("early".utf8))
    }

    @Test("many bytes are transferred in both directions at the same time") func bothDirections() async throws {
        let body = GeneratedBody().data(count: 20_000_000)
        let stream = manager.stream(withHostName: "localhost", port: server.port)
        async let writing: Void = {
            for offset in stride(from: 0, to: body.count, by: 1_000_000) { try await stream.write(body[offset..<offset + 1_000_000]) }
            stream.closeWrite()
        }()
        let received = try await collect(stream)
        try await writing
        #expect(received == body)
        try await stream.waitUntilCompleted()
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("writes from many tasks stay intact") func concurrentWrites() async throws {
        let stream = manager.stream(withHostName: "127.0.0.1", port: server.port)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<100 { group.addTask { try await stream.write(Data(repeating: UInt8(index), count: 1000)) } }
            try await group.waitForAll()
        }
        stream.closeWrite()
        let received = try await collect(stream)
        #expect(received.count == 100_000)
        let runs = stride(from: 0, to: received.count, by: 1000).map { Set(received[$0..<$0 + 1000]) }
        #expect(runs.allSatisfy { $0.count == 1 })
        #expect(Set(runs).count == 100)
    }

    @Test("a write after the end of the stream fails") func writeAfterEnd() async throws {
        let stream = manager.stream(withHostName: "127.0.0.1", port: server.port)
        stream.closeWrite()
        stream.closeWrite()
        await #expect(throws: CurlewError.self) { try await stream.write(Data([1])) }
        #expect(try await collect(stream).isEmpty)
        try await stream.waitUntilCompleted()
    }

    @Test("a stream is cancelled") func cancel() async throws {
        let stream = manager.stream(withHostName: "127.0.0.1", port: server.port)
        try await stream.write(Data([1]))
        stream.cancel()
        await #expect(throws: CurlewError.self) { try await stream.waitUntilCompleted() }
        await #expect(throws: CurlewError.self) { try await stream.write(Data([2])) }
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("a close by the peer is an end, a reset an error") func peerClose()
        async throws
    {
        let server = try LoopbackServer { request, connection in
            if request.path == "/reset" { connection.reset() } else { connection.close() }
            return nil
        }
        // Whether the error is there when a read fails with it, is seen by a race only.
        for (path, breaks) in [("/close", false)] + Array(repeating: ("/reset", true), count: 20) {
            let stream = manager.stream(withHostName: "127.0.0.1", port: server.port)
            try await stream.write(Data("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
            var failure: (any Error)?
            do { #expect(try await collect(stream).isEmpty) } catch { failure = error }
            #expect((stream.delegate.error != nil) == breaks, "\(path)")
            #expect((failure != nil) == breaks, "\(path)")
            stream.cancel()
        }
    }

    @Test("a refused port, an invalid host, an invalid port") func invalidTargets()
        async throws
    {
        let listener = try StuckListener(.refusing)
        let refused = manager.stream(withHostName: "127.0.0.1", port: listener.port)
        do {
            try await refused.waitUntilCompleted()
            Issue.record("The connection was not refused")
        } catch {
            #expect(error.transferFailure?.kind == .connect)
        }
        for stream in [manager.stream(withHostName: "a b", port: 80), manager.stream(withHostName: "127.0.0.1", port: 70_000)] {
            await #expect(throws: CurlewError.self) { try await stream.waitUntilCompleted() }
            await #expect(throws: CurlewError.self) { try await stream.write(Data([1])) }
            await #expect(throws: CurlewError.self) { _ = try await collect(stream) }
        }
    }

    @Test("a connection that is not established fails with the connect timeout") func connectTimeout()
        async throws
    {
        let listener = try StuckListener(.full)
        let manager = makeManager { $0.connectTimeout = .milliseconds(300) }
        let stream = manager.stream(withHostName: "127.0.0.1", port: listener.port)
        do {
            try await stream.waitUntilCompleted()
            Issue.record("The connection came about")
        } catch {
            #expect(error.transferFailure?.kind == .connectTimeout)
        }
    }

    @Test("releasing the manager ends its streams") func releasedManager() async throws {
        var manager: SessionManager? = makeManager()
        let stream = try #require(manager?.stream(withHostName: "127.0.0.1", port: server.port))
        try await stream.write(Data([1]))
        manager = nil
        do {
            try await stream.waitUntilCompleted()
            Issue.record("The stream outlived its session")
        } catch {
            #expect(error.isSessionInvalidated)
        }
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("Foundation's streams read and write") func foundationStreams() async throws {
        let (manager, port) = (manager, server.port)
        let body = GeneratedBody().data(count: 1_000_000)
        let stream = manager.stream(withHostName: "127.0.0.1", port: port)
        let (input, output) = stream.captureStreams()
        let (reader, writer) = (Unsafely(value: input), Unsafely(value: output))
        let written = Log<Bool>()
        DispatchQueue(label: "writer").async {
            writer.value.open()
            var rest = body[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { buffer in
                    buffer.baseAddress.map {
                        writer.value.write($0.assumingMemoryBound(to: UInt8.self), maxLength: min(buffer.count, 100_000))
                    } ?? -1
                }
                guard count > 0 else { break }
                rest = rest.dropFirst(count)
            }
            writer.value.close()
            written.append(rest.isEmpty)
        }
        let received: Data = await withTrackedContinuation { continuation in
            DispatchQueue(label: "reader").async {
                reader.value.open()
                var data = Data()
                var buffer = [UInt8](repeating: 0, count: 70_000)
                while case let count = reader.value.read(&buffer, maxLength: buffer.count), count > 0 { data += buffer[..<count] }
                reader.value.close()
                continuation.resume(returning: data)
            }
        }
        await written.wait(for: 1)
        #expect(written.elements == [true])
        #expect(received == body)
        try await stream.waitUntilCompleted()
    }

    // MARK: TLS

    @Test("hand-written HTTP over TLS", .needsNginx) func tls() async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        let port = try #require(URL(string: nginx.tlsHTTP1)?.port)
        let stream = manager.stream(withSecureHostName: "localhost", port: port)
        try await stream.write(Data("GET /1k.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8))
        let text = try await collect(stream)
        #expect(text.starts(with: Data("HTTP/1.1 200 OK\r\n".utf8)))
        let headEnd = try #require(text.firstRange(of: Data("\r\n\r\n".utf8)))
        #expect(text[headEnd.upperBound...].count == 1024)
        stream.closeWrite()
        try await stream.waitUntilCompleted()
    }

    @Test("many bytes over TLS", .needsNginx) func manyBytesTLS() async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        let port = try #require(URL(string: nginx.tlsHTTP1)?.port)
        let stream = manager.stream(withSecureHostName: "localhost", port: port)
        let head = "POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\nConnection: close\r\n\r\n"
        try await stream.write(Data(head.utf8))
        for _ in 0..<10 { try await stream.write(Data(count: 1_000_000)) }
        let text = String(decoding: try await collect(stream), as: UTF8.self)
        #expect(text.hasSuffix("10000000\n"))
    }

    @Test("an untrusted peer is an error", .needsNginx) func untrustedPeer() async throws {
        let port = try #require(URL(string: Servers.nginx().tlsHTTP1)?.port)
        let stream = manager.stream(withSecureHostName: "localhost", port: port)
        do {
            try await stream.write(Data("GET / HTTP/1.1\r\n\r\n".utf8))
            try await stream.waitUntilCompleted()
            Issue.record("The peer was trusted")
        } catch {
            #expect(error.transferFailure?.kind == .serverCertificate)
        }
    }
}

/// Passes Foundation's streams from the thread that creates them to the one that uses them.
private struct Unsafely<Value>: @unchecked Sendable {
    let value: Value
}
