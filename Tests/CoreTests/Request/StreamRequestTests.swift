// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct StreamRequestTests {
    private let mock = MockTransport()
    private let manager: SessionManager

    init() { manager = SessionManager(mock: mock) }

    @Test("bytes come in order until the peer ends, and writes return when they have left")
    func bothWays() async throws {
        let request = manager.stream(withSecureHostName: "mock", port: 7)
        let stream = await mock.opened[0]
        #expect(stream.request.isSecure && stream.request.port == 7)
        async let writing: Void = request.write(Data("hello".utf8))
        #expect(await stream.written[0].0 == Data("hello".utf8))
        stream.sent(5)
        try await writing
        #expect(stream.receive(Data("ab".utf8)) == .proceed)
        stream.receive(Data("cd".utf8))
        stream.endReceiving()
        var bytes = Data()
        for try await piece in request.bytes() { bytes += piece }
        #expect(bytes == Data("abcd".utf8))
        request.closeWrite()
        #expect(await stream.written[1].1)
        stream.complete()
        try await request.waitUntilCompleted()
    }

    @Test("what is written before the start is sent at the start, in order")
    func writtenBeforeStart() async throws {
        manager.startRequestsImmediately = false
        let request = manager.stream(withHostName: "mock", port: 7)
        let done = Inbox<Bool>()
        for text in ["a", "b"] {
            request.connection.write(Data(text.utf8)) { done.put((try? $0.get()) != nil) }
        }
        request.closeWrite()
        request.resume()
        let stream = await mock.opened[0]
        let written = await stream.written.first(3)
        #expect(written.map { String(decoding: $0.0, as: UTF8.self) } == ["a", "b", ""])
        #expect(written.map(\.1) == [false, false, true])
        stream.sent(2)
        #expect(await done.first(2) == [true, true])
    }

    @Test("the end fails those who write and read")
    func broken() async {
        let request = manager.stream(withHostName: "mock", port: 7)
        let stream = await mock.opened[0]
        let writing = Task { try await request.write(Data("hello".utf8)) }
        _ = await stream.written[0]
        stream.complete(CurlewError.failure(.connectionLost))
        await #expect(throws: CurlewError.self) { try await writing.value }
        await #expect(throws: CurlewError.self) { for try await _ in request.bytes() {} }
        await #expect(throws: CurlewError.self) { try await request.write(Data("x".utf8)) }
        await #expect(throws: CurlewError.self) { try await request.waitUntilCompleted() }
    }

    @Test("a cancelled reader does not hang, and the connection stays")
    func cancelledReader() async throws {
        let request = manager.stream(withHostName: "mock", port: 7)
        let stream = await mock.opened[0]
        let reading = Task { for try await _ in request.bytes() {} }
        await Task.yield()
        reading.cancel()
        _ = await reading.result
        stream.receive(Data("ab".utf8))
        var iterator = request.bytes().makeAsyncIterator()
        #expect(try await iterator.next() == Data("ab".utf8))
        #expect(request.task?.state == .running)
    }

    @Test(
        "hosts and ports that can't be are refused",
        arguments: [("", 80), ("a b", 80), ("a/b", 80), ("user@a", 80), ("a", 0), ("a", 65_536)])
    func refused(_ host: String, _ port: Int) async {
        await #expect(throws: CurlewError.self) { try await manager.stream(withHostName: host, port: port).waitUntilCompleted() }
        #expect(mock.opened.all.isEmpty)
    }

    // MARK: Handshakes

    private func handshake() throws -> StreamRequest {
        let urlRequest = try URLRequest(url: "http://mock/", method: .get)
        return manager.handshakeStream(urlRequest, interceptor: nil, options: nil) { adapted, _ in
            let request = try UpgradeRequest(adapted.url, .get, [:], to: "mock", defaults: [:], cookies: nil)
            return StreamHandshake(
                request, url: request.url, isWebSocket: false, isReconnection: false, isUpgraded: false, didBegin: nil)
        }
    }

    @Test("a write after a handshake returns when its own bytes have left, not the handshake's")
    func writtenAfterHandshake() async throws {
        let request = try handshake()
        let stream = await mock.opened[0]
        stream.open()
        let opening = Int64(await stream.written[0].0.count)
        stream.sent(opening)
        try await request.handshakeCompleted(attempt: 1)
        let done = Inbox<Bool>()
        request.write(Data("hello".utf8)) { done.put((try? $0.get()) != nil) }
        #expect(await stream.written[1].0 == Data("hello".utf8))
        stream.sent(opening + 4)
        #expect(done.count == 0)
        stream.sent(opening + 5)
        #expect(await done[0])
        request.cancel()
    }

    @Test(
        "what came on a lost connection is no part of the response to the next attempt",
        arguments: ["HTTP/1.1 101 Swi", "HTTP/1.1 401 No\r\nContent-Length: 9\r\n\r\nhalf"])
    func lostInResponse(_ beginning: String) async throws {
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        let request = try handshake()
        let first = await mock.opened[0]
        first.open()
        let progress = HandshakeProgress()
        let reading = Task { try await request.readHandshake(progress) }
        first.receive(Data(beginning.utf8))
        #expect(await eventually { progress.attempt == 1 })
        first.complete(CurlewError.failure(.connectionLost))
        let second = await mock.opened[1]
        second.open()
        second.receive(Data("HTTP/1.1 101 Switching Protocols\r\n\r\n".utf8))
        switch try await reading.value {
        case nil: #expect(progress.received.head == nil)
        case .refused(let head, let body)?: #expect(head.statusCode == 401 && body == Data("half".utf8))
        case .switched?: Issue.record("the parts of two responses were read as one")
        }
        try await request.handshakeFailed(UserError(), head: progress.received.head, attempt: 1)
        let next = HandshakeProgress()
        guard case .switched(let head, let rest)? = try await request.readHandshake(next) else {
            Issue.record("the second response was not read")
            return
        }
        #expect(head.statusCode == 101 && rest.isEmpty && next.attempt == 2)
        try await request.handshakeCompleted(attempt: 2)
        request.cancel()
    }

    // MARK: Captured streams

    @Test("captured streams read and write, blocking")
    func captured() async throws {
        let request = manager.stream(withHostName: "mock", port: 7)
        let stream = await mock.opened[0]
        let results = Inbox<[Int]>()
        DispatchQueue(label: "captured").async {
            let (input, output) = request.captureStreams()
            input.open()
            output.open()
            let written = output.write([1, 2, 3], maxLength: 3)
            var buffer = [UInt8](repeating: 0, count: 2)
            let counts = (0..<4).map { _ in input.read(&buffer, maxLength: 2) }
            results.put([written] + counts)
            input.close()
            output.close()
        }
        #expect(await stream.written[0].0 == Data([1, 2, 3]))
        stream.sent(3)
        stream.receive(Data([4, 5, 6]))
        stream.endReceiving()
        #expect(await results[0] == [3, 2, 1, 0, 0])
        #expect(isCancelled(await { do { try await request.waitUntilCompleted(); return nil } catch { return error } }()))
    }

    @Test("closing a captured stream ends a read that waits")
    func closedWhileReading() async {
        let request = manager.stream(withHostName: "mock", port: 7)
        _ = await mock.opened[0]
        let input = StreamRequestInput(request, Data())
        input.open()
        let box = HandedOver(value: input)
        let results = Inbox<Int>()
        let started = Inbox<Void>()
        DispatchQueue(label: "reading").async {
            var byte: UInt8 = 0
            started.put(())
            results.put(box.value.read(&byte, maxLength: 1))
        }
        _ = await started[0]
        box.value.close()
        #expect(await results[0] == -1)
    }
}
