// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct PauseTests {
    /// A server that counts the bytes it has sent.
    private static func countingServer(_ count: Lock<Int>, total: Int) throws -> LoopbackServer {
        try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
            let body = GeneratedBody()
            for offset in stride(from: 0, to: total, by: 65_536) {
                try connection.send(raw: body.data(offset: Int64(offset), count: min(65_536, total - offset)))
                count.withLock { $0 += 65_536 }
            }
            return nil
        }
    }

    @Test("a paused transfer receives no more than the network's buffers, and loses nothing")
    func pause() async throws {
        let sent = Lock(0)
        let total = 60_000_000
        let server = try Self.countingServer(sent, total: total)
        let pauses = Lock(0)
        let observer = RecordingObserver(onBytes: { _ in
            pauses.withLock { pauses in
                pauses += 1
                return pauses == 1 ? .pause : .proceed
            }
        })
        let transport = CurlTransport()
        var options = TransferOptions()
        options.idleTimeout = .seconds(2)
        var request = TransferRequest(url: server.url("/"), options: options)
        request.mayPause = true
        let transfer = transport.start(request, observer: observer)
        _ = await observer.record { $0.pieces == 1 }
        // Longer than the idle timeout, which doesn't run meanwhile.
        let other = try LoopbackServer.standard()
        #expect(await transport.run(TransferRequest(url: other.url("/delay/2500"))).error == nil)
        let paused = observer.record
        #expect(paused.pieces == 1)
        #expect(paused.completion == nil)
        #expect(sent.withLock { $0 } < 20_000_000)
        transfer.resumeReceiving()
        let end = await observer.end()
        #expect(end.error == nil)
        #expect(end.body.count == total && GeneratedBody().matches(end.body))
    }

    @Test(
        "a transfer paused at its head receives its body afterwards",
        arguments: ["/bytes/1000", "/bytes/300000", "/chunked/20000", "/drip?n=3&ms=50"])
    func holdAtHead(path: String) async throws {
        let server = try LoopbackServer.standard()
        let other = try LoopbackServer.standard()
        let observer = RecordingObserver(onHead: { _ in .pause })
        let transport = CurlTransport()
        let transfer = transport.start(TransferRequest(url: server.url(path)), observer: observer)
        _ = await observer.record { $0.head != nil }
        #expect(await transport.run(TransferRequest(url: other.url("/delay/100"))).error == nil)
        #expect(observer.record.pieces == 0)
        transfer.resumeReceiving()
        let end = await observer.end()
        #expect(end.error == nil)
        let length = path.split(separator: "/").last.flatMap { Int($0) } ?? 3
        #expect(end.body.count == length)
    }

    @Test(
        "pausing at each piece and resuming from another thread loses nothing",
        arguments: ["/bytes/3000000", "/gzip?n=200000", "/chunked/200000?size=7000"])
    func everyPiece(path: String) async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        let pieces = Lock(0)
        let observer = RecordingObserver(onBytes: { _ in
            pieces.withLock { $0 += 1 }
            return .pause
        })
        let transfer = transport.start(TransferRequest(url: server.url(path)), observer: observer)
        var seen = 0
        while true {
            let before = seen
            let record = await observer.record { $0.pieces > before }
            seen = record.pieces
            guard record.completion == nil else { break }
            transfer.resumeReceiving()
        }
        let end = await observer.end()
        #expect(end.error == nil)
        #expect(end.pieces > 1)
        let expected = path.hasPrefix("/gzip") ? ServerRoutes.text(count: 200_000) : GeneratedBody().data(count: end.body.count)
        #expect(end.body == expected)
        #expect(end.body.count >= 200_000)
    }

    @Test(
        "suspending pauses a transfer in every phase; resuming delivers the rest",
        arguments: ["/delay/200", "/drip?n=4&ms=100", "/bytes/5000000", "/silent"])
    func suspend(path: String) async throws {
        let server = try LoopbackServer.standard()
        let other = try LoopbackServer.standard()
        let transport = CurlTransport()
        var options = TransferOptions()
        options.idleTimeout = .seconds(2)
        options.firstByteTimeout = .seconds(2)
        let observer = RecordingObserver()
        let request = TransferRequest(url: server.url(path), options: options)
        #expect(await transport.run(TransferRequest(url: other.url("/json"))).error == nil)
        // Within a turn of the loop, as a test that stood still between the two would suspend a transfer that has completed.
        let started = await transport.visit { _ -> any TransferHandle in
            let transfer = transport.start(request, observer: observer)
            transfer.setSuspended(true)
            return transfer
        }
        let transfer = try #require(started.first)
        // The loop may have received something before it knew.
        #expect(await transport.run(TransferRequest(url: other.url("/json"))).error == nil)
        let received = observer.record.body.count
        // Longer than either timeout: time spent suspended doesn't count.
        #expect(await transport.run(TransferRequest(url: other.url("/delay/2500"))).error == nil)
        #expect(observer.record.completion == nil)
        #expect(observer.record.body.count == received)
        #expect(received < 5_000_000)
        transfer.setSuspended(false)
        let end = await observer.end()
        #expect((end.error == nil) == (path != "/silent"))
        if path == "/silent" { #expect(end.failure?.isTimeout == true) }
    }

    @Test("an upload can be suspended and resumed")
    func suspendUpload() async throws {
        let server = try LoopbackServer.standard()
        let other = try LoopbackServer.standard()
        let transport = CurlTransport()
        let observer = RecordingObserver()
        let body = FedBody([.bytes(Data(count: 1000))], length: 2000)
        let transfer = transport.start(TransferRequest(url: server.url("/upload"), method: .put, body: body), observer: observer)
        _ = await observer.record { $0.sent == 1000 }
        transfer.setSuspended(true)
        // Behind the suspension in the loop's queue: libcurl may have been about to read once more.
        #expect(await transport.run(TransferRequest(url: other.url("/"))).error == nil)
        body.feed(.bytes(Data(count: 1000)))
        #expect(await transport.run(TransferRequest(url: other.url("/delay/100"))).error == nil)
        #expect(observer.record.sent == 1000)
        transfer.setSuspended(false)
        let end = await observer.end()
        #expect(end.error == nil)
        #expect(end.sent == 2000)
    }

    @Test("a transfer that is paused or suspended can be cancelled", arguments: [true, false])
    func cancel(suspended: Bool) async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        let observer = RecordingObserver(onBytes: { _ in suspended ? .proceed : .pause })
        // What is suspended must not have ended before.
        let url = server.url(suspended ? "/drip?n=1000&ms=100" : "/bytes/50000000")
        let transfer = transport.start(TransferRequest(url: url), observer: observer)
        if suspended { transfer.setSuspended(true) } else { _ = await observer.record { $0.pieces == 1 } }
        transfer.cancel()
        #expect(await observer.end().isCancelled)
        #expect(observer.record.completions == 1)
    }

    @Test("an observer can cancel the transfer, at the head or in the body", arguments: [true, false])
    func observerCancels(atHead: Bool) async throws {
        let server = try LoopbackServer.standard()
        let observer = RecordingObserver(onHead: { _ in atHead ? .cancel : .proceed }, onBytes: { _ in .cancel })
        let end = await CurlTransport().run(TransferRequest(url: server.url("/bytes/100000")), observer: observer)
        #expect(end.isCancelled)
        #expect(end.pieces == (atHead ? 0 : 1))
    }
}
