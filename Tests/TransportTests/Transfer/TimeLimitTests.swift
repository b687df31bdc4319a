// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct TimeLimitTests {
    private static func options(_ change: (inout TransferOptions) -> Void) -> TransferOptions {
        var options = TransferOptions()
        options.proxy = .none
        change(&options)
        return options
    }

    private static let short = Duration.milliseconds(200)

    @Test("no connection in time", arguments: [(false, TransferFailure.Phase.connecting), (true, .securing)])
    func connect(isSecure: Bool, phase: TransferFailure.Phase) async throws {
        let listener = try SilentListener(backlog: isSecure ? 64 : 0, full: !isSecure)
        let transport = CurlTransport()
        // Before it connects, libcurl may load the system's certificates, which are missing on some systems.
        let options = Self.options {
            // With TLS, long enough for the connection to be seen before.
            $0.connectTimeout = isSecure ? .seconds(2) : Self.short
            $0.tls.verifiesServer = false
        }
        let request = TransferRequest(
            url: "\(isSecure ? "https" : "http")://127.0.0.1:\(listener.port)/", options: options)
        let failure = try #require(await transport.run(request).failure)
        #expect(failure.kind == .connectTimeout)
        #expect(failure.phase == phase)
        #expect(failure.isTimeout && !failure.requestWasSent)
    }

    @Test("no first byte in time")
    func firstByte() async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        let options = Self.options { $0.firstByteTimeout = Self.short }
        for body in [nil, DataBody(Data(count: 1000))] {
            let end = await transport.run(TransferRequest(url: server.url("/silent"), method: .put, body: body, options: options))
            #expect(end.failure?.kind == .firstByteTimeout)
            #expect(end.failure?.phase == .waiting)
            #expect(end.failure?.requestWasSent == true)
        }
    }

    @Test("the first byte ends its time limit")
    func firstByteCame() async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        let request = TransferRequest(
            url: server.url("/drip?n=11&ms=220"), options: Self.options { $0.firstByteTimeout = .seconds(2) })
        #expect(await transport.run(request).error == nil)
    }

    /// Runs a request, again while the server, where it stands still, has sent nothing of the body in time.
    private static func runUntilBegun(_ request: TransferRequest) async -> RecordingObserver.Record {
        var end = await CurlTransport().run(request)
        for _ in 1...10 where end.failure?.kind == .idleTimeout && end.body.isEmpty { end = await CurlTransport().run(request) }
        return end
    }

    @Test("framing is no progress: an extension of a chunk that never ends is cut off", arguments: ["5;", "5;a=b;", "5;a=\"", "0;"])
    func endlessExtension(_ chunk: String) async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n\(chunk)")
            let piece = String(repeating: "x", count: 16 << 10)
            while true { try connection.send(raw: piece) }
        }
        let request = TransferRequest(url: server.url("/"), options: Self.options { $0.idleTimeout = Self.short })
        let end = await Self.runUntilBegun(request)
        #expect(end.failure?.kind == .idleTimeout)
        #expect(end.body == Data("hello".utf8))
    }

    /// A body's coding, its beginning, and what follows without end. Not stored: what a `Data` of a program that ends refers to looks lost.
    private static func makeSilentBodies() -> [(String, Data, Data)] {
        let hello = StoredDeflate.gzip(Data("hello".utf8))
        let zeros = Data(count: 16 << 10)
        // The head, a block that is not the last one, and empty ones.
        let open = hello.prefix(10) + [0] + hello[11..<20]
        let blocks = Data((0..<3000).flatMap { _ in [0, 0, 0, 0xFF, 0xFF] as [UInt8] })
        let members = Data((0..<800).flatMap { _ in Array(StoredDeflate.gzip(Data())) })
        // Stored blocks of zeros, which the inner coding takes for padding.
        let stored = Data([0, 0, 0x40, 0xFF, 0xBF]) + zeros
        let inner = hello.prefix(10) + [0, UInt8(hello.count), 0, ~UInt8(hello.count), 0xFF] + hello
        return [
            ("gzip", hello, zeros), ("gzip", Data(open), blocks), ("gzip", hello, members), ("gzip, gzip", Data(inner), stored),
        ]
    }

    @Test("bytes that decode to nothing are no progress", arguments: 0..<4) func silence(_ index: Int) async throws {
        let (coding, start, piece) = Self.makeSilentBodies()[index]
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\n\r\n")
            try connection.send(raw: start)
            while true { try connection.send(raw: piece) }
        }
        let request = TransferRequest(url: server.url("/"), options: Self.options { $0.idleTimeout = Self.short })
        let end = await Self.runUntilBegun(request)
        #expect(end.failure?.kind == .idleTimeout)
        #expect(end.body == Data("hello".utf8))
    }

    @Test("no further byte in time")
    func idle() async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        let options = Self.options { $0.idleTimeout = .seconds(2) }
        let end = await transport.run(TransferRequest(url: server.url("/head-only"), options: options))
        #expect(end.failure?.kind == .idleTimeout)
        #expect(end.failure?.phase == .receivingBody)
        #expect(end.head?.statusCode == 200)
    }

    @Test("bytes that arrive within the idle timeout keep a transfer alive indefinitely")
    func drip() async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        let options = Self.options { $0.idleTimeout = .seconds(2) }
        let end = await transport.run(TransferRequest(url: server.url("/drip?n=11&ms=220"), options: options))
        #expect(end.error == nil)
        #expect(end.body.count == 11)
    }

    @Test("an upload that the server stops reading")
    func idleUpload() async throws {
        let server = try LoopbackServer(bodies: { _ in .unread }) { _, connection in
            connection.pause(for: .seconds(30))
            return nil
        }
        let transport = CurlTransport()
        let request = TransferRequest(
            url: server.url("/"), method: .put, body: DataBody(Data(count: 40_000_000)),
            options: Self.options { $0.idleTimeout = Self.short })
        let end = await transport.run(request)
        #expect(end.failure?.kind == .idleTimeout)
        #expect(end.failure?.phase == .sending)
        #expect(end.sent < 40_000_000)
    }

    @Test("not complete in time, in every phase", arguments: ["/silent", "/head-only", "/drip?n=100&ms=50"])
    func total(path: String) async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        let end = await transport.run(TransferRequest(url: server.url(path), options: Self.options { $0.totalTimeout = Self.short }))
        #expect(end.failure?.kind == .totalTimeout)
        #expect(try #require(end.completion).metrics.total >= Self.short)
    }

    @Test("progress of an upload does not extend the total timeout")
    func totalUpload() async throws {
        let server = try LoopbackServer(bodies: { _ in .unread }) { _, connection in
            connection.pause(for: .seconds(30))
            return nil
        }
        let body = FedBody([.bytes(Data(count: 1000))], length: 1_000_000)
        let transport = CurlTransport()
        let request = TransferRequest(
            url: server.url("/"), method: .put, body: body, options: Self.options { $0.totalTimeout = Self.short })
        #expect(await transport.run(request).failure?.kind == .totalTimeout)
    }

    @Test("a timeout of zero always expires", arguments: [Duration.zero, .seconds(-5)])
    func none(timeout: Duration) async throws {
        let server = try LoopbackServer.standard()
        let end = await CurlTransport().run(
            TransferRequest(url: server.url("/silent"), options: Self.options { $0.totalTimeout = timeout }))
        #expect(end.failure?.kind == .totalTimeout)
    }

    @Test("absent or infinite timeouts never expire")
    func forEver() async throws {
        let server = try LoopbackServer.standard()
        let options = Self.options {
            $0.connectTimeout = nil
            $0.idleTimeout = .seconds(Int64.max)
            $0.totalTimeout = .seconds(Int64.max)
            $0.firstByteTimeout = .seconds(Int64.max)
            $0.queueTimeout = nil
        }
        #expect(await CurlTransport().run(TransferRequest(url: server.url("/json"), options: options)).error == nil)
    }

    @Test("a handle's next request has its own timeouts, shorter or longer")
    func reusedHandle() async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        let short = Self.options { $0.firstByteTimeout = Self.short }
        let long = Self.options { $0.firstByteTimeout = .seconds(30) }
        for _ in 0..<2 {
            let quick = TransferRequest(url: server.url("/json"), options: short)
            var first = await transport.run(quick)
            // A server that stands still exceeds the limit.
            for _ in 1...10 where first.failure?.kind == .firstByteTimeout { first = await transport.run(quick) }
            #expect(first.error == nil)
            let slow = TransferRequest(url: server.url("/drip?n=5&ms=100"), options: long)
            #expect(await transport.run(slow).error == nil)
            let silent = TransferRequest(url: server.url("/silent"), options: short)
            #expect(await transport.run(silent).failure?.kind == .firstByteTimeout)
        }
    }

    @Test("no free connection in time; transfers queued behind still run")
    func queue() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("done")
        }
        var configuration = TransportConfiguration()
        configuration.maximumConnectionsPerHost = 1
        let transport = CurlTransport(configuration: configuration)
        let first = RecordingObserver()
        let last = RecordingObserver()
        transport.start(TransferRequest(url: server.url("/1")), observer: first)
        #expect(await gate.arrivals(1))
        let options = Self.options { $0.queueTimeout = Self.short }
        let waiting = RecordingObserver()
        transport.start(TransferRequest(url: server.url("/2"), options: options), observer: waiting)
        transport.start(TransferRequest(url: server.url("/3")), observer: last)
        let end = await waiting.end()
        #expect(end.failure?.kind == .queueTimeout)
        #expect(end.failure?.phase == .queued)
        #expect(end.failure?.requestWasSent == false)
        // The last one may have been started long after the one before.
        let other = try LoopbackServer.standard()
        #expect(await transport.run(TransferRequest(url: other.url("/delay/150"))).error == nil)
        gate.open()
        #expect(await first.end().error == nil)
        #expect(await last.end().error == nil)
        #expect(try #require(await last.end().completion?.metrics.queueDuration) > .milliseconds(100))
    }
}
