// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct StreamTransferTests {
    private static func request(_ port: Int) -> StreamTransferRequest {
        StreamTransferRequest(host: "127.0.0.1", port: port, isSecure: false)
    }

    @Test("ten megabytes are echoed, sent in pieces of any size")
    func echo() async throws {
        let server = try TCPEchoServer()
        let transport = CurlTransport()
        let observer = RecordingStreamObserver()
        let data = GeneratedBody().data(count: 10_000_000)
        let stream = transport.openStream(Self.request(server.port), observer: observer)
        var random = SplitMix(state: 1)
        var offset = 0
        while offset < data.count {
            let count = min(Int(random.next() % 60_000), data.count - offset)
            stream.send(data.subdata(in: offset..<(offset + count)), endOfStream: false)
            offset += count
        }
        stream.send(Data(), endOfStream: true)
        let end = await observer.end()
        #expect(end.completion?.error == nil)
        #expect(end.isOpen && end.hasEndedReceiving)
        #expect(end.bytes == data)
        #expect(end.sent == 10_000_000)
        #expect(end.completions == 1)
        let metrics = try #require(end.completion?.metrics)
        #expect(metrics.requestBodyBytes == 10_000_000 && metrics.responseBodyBytes == 10_000_000)
        #expect(metrics.remotePort == server.port)
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("the opening has what was measured until then, and the completion the same with the rest")
    func opening() async throws {
        let server = try TCPEchoServer()
        let transport = CurlTransport()
        let observer = RecordingStreamObserver()
        let before = Date()
        let stream = transport.openStream(Self.request(server.port), observer: observer)
        let opening = try #require(await observer.record { $0.isOpen }.opening)
        stream.send(Data("x".utf8), endOfStream: true)
        let end = try #require(await observer.end().completion?.metrics)
        let times = [
            .zero, opening.queueDuration, opening.nameLookupEnd, opening.connectEnd, opening.total, end.total,
        ].compactMap { $0 }
        #expect(times.count == 6 && times == times.sorted())
        #expect((opening.queueDuration, opening.nameLookupEnd) == (end.queueDuration, end.nameLookupEnd))
        #expect((opening.connectEnd, opening.startDate) == (end.connectEnd, end.startDate))
        #expect(opening.startDate >= before && opening.startDate <= Date())
        #expect((opening.remoteAddress, opening.remotePort) == ("127.0.0.1", server.port))
        #expect(opening.localPort != nil && opening.localPort == end.localPort)
        #expect(opening.secureConnectionEnd == nil && opening.tlsVersion == nil && opening.tlsCipher == nil)
        #expect(opening.requestBodyBytes == 0 && opening.httpVersion == nil && !opening.reusedConnection)
    }

    @Test("an opening over TLS has its time, version and cipher, as the completion has")
    func secureOpening() async throws {
        let (tls, authority) = try ServerTLS.throwAway()
        let server = try LoopbackServer(tls: tls) { _, _ in .ok("") }
        var request = StreamTransferRequest(host: "localhost", port: server.port, isSecure: true)
        request.options.proxy = .none
        request.options.tls.certificateAuthorities = authority.certificate
        let transport = CurlTransport()
        let observer = RecordingStreamObserver()
        let stream = transport.openStream(request, observer: observer)
        let opening = try #require(await observer.record { $0.isOpen }.opening)
        stream.cancel()
        let end = try #require(await observer.end().completion?.metrics)
        #expect(opening.tlsVersion?.hasPrefix("TLSv1.") == true && opening.tlsCipher != nil)
        #expect((end.tlsVersion, end.tlsCipher) == (opening.tlsVersion, opening.tlsCipher))
        let times = [opening.connectEnd, opening.secureConnectionEnd, opening.total].compactMap { $0 }
        #expect(times.count == 3 && times == times.sorted())
        #expect(opening.remotePort == server.port && opening.localPort == end.localPort && !end.reusedConnection)
    }

    @Test("thousands of small pieces keep their order")
    func smallPieces() async throws {
        let server = try TCPEchoServer()
        let transport = CurlTransport()
        let observer = RecordingStreamObserver()
        let stream = transport.openStream(Self.request(server.port), observer: observer)
        for index in 0..<20_000 { stream.send(Data([UInt8(truncatingIfNeeded: index)]), endOfStream: index == 19_999) }
        let end = await observer.end()
        #expect(end.completion?.error == nil)
        #expect(end.bytes == Data((0..<20_000).map { UInt8(truncatingIfNeeded: $0) }))
    }

    @Test("the peer may close its side first; ours stays open")
    func peerEndsFirst() async throws {
        let server = try SocketListener { socket, _ in
            // libcurl takes a peer that has closed already for one that refused the connection.
            let count = withUnsafeTemporaryAllocation(byteCount: 1000, alignment: 16) { try? socket.receive(into: $0) }
            guard count ?? 0 > 0 else { return }
            try? socket.send(Data("bye".utf8))
            socket.shutDownWriting()
            socket.drain()
        }
        defer { server.stop(timeout: .seconds(10)) }
        let transport = CurlTransport()
        let observer = RecordingStreamObserver()
        let stream = transport.openStream(Self.request(server.port), observer: observer)
        stream.send(Data("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n".utf8), endOfStream: false)
        let half = await observer.record { $0.hasEndedReceiving }
        #expect(half.completion == nil)
        #expect(half.bytes.starts(with: Data("bye".utf8)))
        stream.send(Data("late".utf8), endOfStream: true)
        let end = await observer.end()
        #expect(end.completion?.error == nil)
        #expect(end.sent == Int64("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nlate".utf8.count))
    }

    @Test("a paused observer receives nothing until it resumes, and then everything")
    func backpressure() async throws {
        let server = try TCPEchoServer()
        let other = try LoopbackServer.standard()
        let transport = CurlTransport()
        let observer = RecordingStreamObserver(onBytes: { _ in .pause })
        let data = GeneratedBody().data(count: 3_000_000)
        let stream = transport.openStream(Self.request(server.port), observer: observer)
        stream.send(data, endOfStream: true)
        let first = await observer.record { !$0.bytes.isEmpty }
        #expect(await transport.run(TransferRequest(url: other.url("/delay/100"))).error == nil)
        var record = await observer.record { _ in true }
        #expect(record.bytes.count == first.bytes.count)
        while record.completion == nil {
            let count = record.bytes.count
            stream.resumeReceiving()
            record = await observer.record { $0.bytes.count > count }
        }
        #expect(record.completion?.error == nil)
        #expect(record.bytes == data)
    }

    @Test("an endless stream blocks neither other streams nor its own cancellation")
    func fairness() async throws {
        let server = try LoopbackServer { _, connection in
            let many = Data(count: 1 << 20)
            while connection.pause(for: .zero) { try connection.send(raw: many) }
            return nil
        }
        let other = try LoopbackServer.standard()
        let transport = CurlTransport()
        let received = Lock(0)
        let observer = CountingStreamObserver(received)
        let stream = transport.openStream(Self.request(server.port), observer: observer)
        stream.send(Data("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8), endOfStream: false)
        #expect(await eventually { received.withLock { $0 } > 0 })
        for _ in 1...19 { #expect(await transport.run(TransferRequest(url: other.url("/json"))).error == nil) }
        stream.cancel()
        #expect(ProcessProbe.settles { observer.isOver })
    }

    /// Counts bytes without storing them.
    private final class CountingStreamObserver: StreamTransferObserver {
        private let received: Lock<Int>
        private let over = Lock(false)

        init(_ received: Lock<Int>) { self.received = received }

        var isOver: Bool { over.withLock { $0 } }

        func stream(_ id: Int, didOpen metrics: TransferMetrics) {}
        func stream(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
            received.withLock { $0 += bytes.count }
            return .proceed
        }
        func streamDidEndReceiving(_ id: Int) {}
        func stream(_ id: Int, didSend count: Int64) {}
        func stream(_ id: Int, didComplete completion: TransferCompletion) { over.withLock { $0 = true } }
    }

    @Test("cancelling completes a stream, before and after it is established", arguments: [true, false])
    func cancel(early: Bool) async throws {
        let server = try TCPEchoServer()
        let silent = try SilentListener(backlog: 0, full: true)
        let transport = CurlTransport()
        let observer = RecordingStreamObserver()
        let stream = transport.openStream(Self.request(early ? silent.port : server.port), observer: observer)
        if !early { #expect(await observer.record { $0.isOpen }.isOpen) }
        stream.cancel()
        let end = await observer.end()
        #expect(end.isCancelled)
        #expect(end.completions == 1)
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("an observer can cancel the stream")
    func observerCancels() async throws {
        let server = try TCPEchoServer()
        let transport = CurlTransport()
        let observer = RecordingStreamObserver(onBytes: { _ in .cancel })
        let stream = transport.openStream(Self.request(server.port), observer: observer)
        stream.send(Data("hello".utf8), endOfStream: false)
        #expect(await observer.end().isCancelled)
    }

    @Test(
        "hosts that refuse, don't respond, don't exist or are invalid",
        arguments: [
            ("127.0.0.1", 1, TransferFailure.Kind.connect), ("nobody.invalid", 80, .nameResolution), ("127.0.0.1/x", 1, .invalidURL),
            ("user@127.0.0.1", 1, .invalidURL), ("a b", 1, .invalidURL), ("127.0.0.1", 70_000, .invalidURL), ("127.0.0.1", -1, .invalidURL),
            ("", 80, .invalidURL),
        ])
    func unreachable(host: String, port: Int, kind: TransferFailure.Kind) async throws {
        let observer = RecordingStreamObserver()
        let transport = CurlTransport()
        var options = TransferOptions()
        options.proxy = .none
        transport.openStream(StreamTransferRequest(host: host, port: port, isSecure: false, options: options), observer: observer)
        let end = await observer.end()
        #expect(end.failure?.kind == kind)
        #expect(!end.isOpen)
    }

    @Test("no connection in time")
    func timeout() async throws {
        let silent = try SilentListener(backlog: 0, full: true)
        let observer = RecordingStreamObserver()
        let transport = CurlTransport()
        var request = Self.request(silent.port)
        request.options.connectTimeout = .milliseconds(200)
        transport.openStream(request, observer: observer)
        let failure = try #require(await observer.end().failure)
        #expect(failure.kind == .connectTimeout)
        #expect(failure.phase == .connecting)
    }

    @Test("a reset connection is lost")
    func reset() async throws {
        let server = try LoopbackServer.standard()
        let observer = RecordingStreamObserver()
        let transport = CurlTransport()
        let stream = transport.openStream(Self.request(server.port), observer: observer)
        stream.send(Data("GET /reset HTTP/1.1\r\nHost: x\r\n\r\n".utf8), endOfStream: false)
        let failure = try #require(await observer.end().failure)
        #expect(failure.kind == .connectionLost)
        #expect(failure.requestWasSent)
    }

    @Test(
        "names and addresses are converted to URLs",
        arguments: [("h", 1, false, "http://h:1"), ("::1", 443, true, "https://[::1]:443"), ("[::1]", 1, false, "http://[::1]:1")])
    func url(host: String, port: Int, isSecure: Bool, url: String) {
        #expect(StreamTransferRequest(host: host, port: port, isSecure: isSecure).url == url)
    }
}
