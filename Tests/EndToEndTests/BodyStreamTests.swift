// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(3))) struct BodyStreamTests {
    private let server: LoopbackServer
    private let manager = makeManager()

    init() throws {
        server = try LoopbackServer.standard(recording: false)
    }

    @Test("a body without a stream reader is received when a handler awaits the end")
    func handlerWithoutReader() async throws {
        let body = try await manager.streamRequest(server.url("/bytes/3000000")).validate().serializingData().value
        #expect(body.count == 3_000_000)
    }

    @Test("the pieces make up the body", arguments: [0, 1, 100_000, 20_000_000]) func pieces(_ count: Int) async throws {
        var offset: Int64 = 0
        for try await piece in manager.streamRequest(server.url("/bytes/\(count)?seed=3")).validate().bodyStream() {
            #expect(!piece.isEmpty)
            #expect(GeneratedBody(seed: 3).matches(piece, offset: offset))
            offset += Int64(piece.count)
        }
        #expect(offset == count)
    }

    @Test("a coded body is streamed decoded") func codedBody() async throws {
        var body = Data()
        for try await piece in manager.streamRequest(server.url("/gzip?n=3000000")).bodyStream() { body += piece }
        #expect(body == ServerRoutes.text(count: 3_000_000))
    }

    @Test("a data request's body can be streamed as well") func dataRequest() async throws {
        var count = 0
        for try await piece in manager.request(server.url("/bytes/5000000")).validate().bodyStream() { count += piece.count }
        #expect(count == 5_000_000)
    }

    @Test("a rejected status yields no pieces") func rejectedStatus() async throws {
        let pieces = Log<Data>()
        do {
            for try await piece in manager.streamRequest(server.url("/status/500")).validate().bodyStream() { pieces.append(piece) }
            Issue.record("The stream ended without an error")
        } catch {
            #expect(error.unacceptableStatus == 500)
        }
        #expect(pieces.count == 0)
    }

    @Test(
        "a truncated body is an error",
        arguments: ["/cut-body?announce=3000000&send=2000000", "/gzip-truncated?n=3000000"])
    func truncatedBody(_ path: String) async throws {
        var count = 0
        do {
            for try await piece in manager.streamRequest(server.url(path)).validate().bodyStream() { count += piece.count }
            Issue.record("The stream ended without an error")
        } catch {
            #expect([.connectionLost, .decoding].contains(error.transferFailure?.kind))
        }
        #expect(count > 0)
    }

    @Test("releasing the stream cancels the request") func releasedStream() async throws {
        do {
            let stream = manager.streamRequest(server.url("/bytes/1000000000")).validate().bodyStream()
            for try await piece in stream where !piece.isEmpty { break }
        }
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("cancelling the reading task cancels the request") func cancelledTask() async throws {
        let read = Log<Void>()
        let (manager, url) = (manager, server.url("/drip?n=1000&ms=100"))
        let task = Task {
            for try await _ in manager.streamRequest(url).bodyStream() { read.append(()) }
        }
        await read.wait(for: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("a paused reader applies backpressure to the server") func backpressure() async throws {
        let sent = Lock<Int64>(0)
        let stalled = try LoopbackServer { _, connection in
            let length: Int64 = 256 << 20
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
            while sent.withLock({ $0 }) < length {
                try connection.send(raw: Data(count: 1 << 20))
                sent.withLock { $0 += 1 << 20 }
            }
            return nil
        }
        let other = makeManager()
        var iterator = manager.streamRequest(stalled.url("/")).validate().bodyStream().makeAsyncIterator()
        #expect(try await iterator.next()?.isEmpty == false)
        // Enough time for the buffers along the path to fill; another request passes it without sleeping.
        for _ in 0..<5 { _ = try await other.request(server.url("/delay/100")).serializingData().value }
        #expect(sent.withLock { $0 } < 64 << 20)
        var count = 0
        while let piece = try await iterator.next() { count += piece.count }
        // The last piece is counted after it was sent, by when it may have been read.
        #expect(await eventually { sent.withLock { $0 } == 256 << 20 })
        #expect(count > 200 << 20)
    }

    @Test("a closure receives the pieces in order, before the handlers") func closure() async throws {
        let offsets = Log<(offset: Int64, matches: Bool)>()
        let ended = Log<(data: Data?, received: Int64)>()
        let offset = Lock<Int64>(0)
        manager.request(server.url("/bytes/10000000")).validate().stream { piece in
            let start = offset.withLock { offset in
                defer { offset += Int64(piece.count) }
                return offset
            }
            offsets.append((start, GeneratedBody().matches(piece, offset: start)))
        }.response { response in ended.append((response.data, offset.withLock { $0 })) }
        await ended.wait(for: 1)
        #expect(offsets.elements.allSatisfy { $0.matches })
        #expect(ended.elements.first?.received == 10_000_000)
        #expect(ended.elements.first?.data == nil)
    }

    /// The reader pauses every 16 MiB until the server has been unable to send for a while; memory is measured in a separate process.
    @Test("a slowly read body uses little memory") func slowReader() async throws {
        let length = Scale.streamedBody
        let sent = Lock<Int64>(0)
        let server = try LoopbackServer(recording: false) { request, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
            guard request.method != "HEAD" else { return nil }
            for offset in stride(from: 0, to: length, by: 1 << 20) {
                try connection.send(raw: GeneratedBody().data(offset: offset, count: 1 << 20))
                sent.withLock { $0 = offset + 1 << 20 }
            }
            return nil
        }
        let probe = try Probe.start("stream", server.url("/"))
        var output: [String] = []
        var ahead: Int64 = 0
        while let line = await probe.readLine() {
            output.append(line)
            guard line.hasPrefix("gate="), let read = Int64(line.dropFirst(5)) else { continue }
            let other = makeManager()
            _ = await other.request(self.server.url("/delay/100")).serializingData().response
            ahead = max(ahead, sent.withLock { $0 } - read)
            probe.writeLine()
        }
        let report = Probe.Report(status: await probe.finish().status, output: output)
        #expect(report.status == 0)
        #expect(report["length"].map { Int64($0) } == length)
        #expect(report["checksum"] == Int(GeneratedBody().checksum(count: length)))
        // The kernel's buffers on both sides and the library's own.
        #expect(ahead < 24 << 20)
        let growth = try #require(report["peak"]) - #require(report["before"])
        print("streamed \(length >> 20) MiB slowly: peak \(growth >> 10) KiB above the start, \(ahead >> 10) KiB ahead at the most")
        if Scale.limitsMemory { #expect(growth < 24 << 20) }
    }
}
