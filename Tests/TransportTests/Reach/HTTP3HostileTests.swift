// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// Hosts that misbehave over HTTP/3: behind the server of `scripts/http3`, which resets streams when its origin fails.
@Suite(.serialized, .timeLimit(.minutes(1)), .enabled(if: CurlInfo.current.supportsHTTP3 && HTTP3Server.shared != nil))
struct HostileHTTP3Tests {
    private let server: HTTP3Server
    private let transport = CurlTransport()

    init() throws {
        server = try #require(HTTP3Server.shared)
    }

    private func origin(
        bodies: @escaping @Sendable (ServerRequest) -> LoopbackServer.BodyHandling = { _ in .kept }, _ route: @escaping LoopbackServer.Route
    ) throws -> LoopbackServer {
        try LoopbackServer(unixSocketPath: server.origin, bodies: bodies, route: route)
    }

    private func request(
        _ path: String, method: HTTPMethod = .get, body: (any BodySource)? = nil, _ change: (inout TransferOptions) -> Void = { _ in }
    ) -> TransferRequest {
        TransferRequest(url: server.url("/origin/" + path), method: method, body: body, options: server.options(.http3Only, change))
    }

    /// The transport is still good for other requests.
    private func expectOthers() async {
        let end = await transport.run(TransferRequest(url: server.url("/hello"), options: server.options()))
        #expect(end.error == nil && end.body == Data("hello".utf8))
        #expect(end.completion?.metrics.httpVersion == .http3)
    }

    // Of a body without a length, this server ends the stream as if it were whole.
    @Test(arguments: [false, true]) func `a body that is cut or reset is never taken for a whole one`(resets: Bool) async throws {
        let origin = try origin { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + String(repeating: "x", count: 1_000))
            if resets { connection.reset() } else { connection.close() }
            return nil
        }
        defer { origin.stop() }
        let end = await transport.run(request("cut"))
        #expect(end.failure?.kind == .connectionLost, "\(String(describing: end.failure))")
        #expect(end.head == nil || end.head?.statusCode == 200)
        #expect(end.body.count <= 1_000 && end.body.allSatisfy { $0 == UInt8(ascii: "x") })
        await expectOthers()
    }

    @Test func `of several requests on a connection, only the one whose stream is reset fails`() async throws {
        let gate = Gate()
        let origin = try origin { request, connection in
            guard request.path.hasSuffix("cut") else {
                connection.wait(until: gate)
                return .ok("whole")
            }
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
            connection.close()
            return nil
        }
        defer { origin.stop() }
        #expect(await transport.run(TransferRequest(url: server.url("/hello"), options: server.options())).error == nil)
        let observers = (0..<4).map { _ in RecordingObserver() }
        for observer in observers { transport.start(request("held"), observer: observer) }
        #expect(await gate.arrivals(4))
        #expect(await transport.run(request("cut")).failure?.kind == .connectionLost)
        gate.open()
        for observer in observers {
            let end = await observer.end()
            #expect(end.error == nil && end.body == Data("whole".utf8))
        }
        await expectOthers()
    }

    @Test(arguments: [200, 303, 413], [true, false])
    func `a response in the middle of an upload ends it, and is delivered`(_ status: Int, isLengthKnown: Bool) async throws {
        let origin = try origin(bodies: { _ in .unread }) { _, _ in
            ServerResponse(status: status, headers: [ServerField("Location", "/")], body: .data(Data("early".utf8)))
        }
        defer { origin.stop() }
        let data = Data(count: 30_000_000)
        let body = StatedBody(data, length: isLengthKnown ? Int64(data.count) : nil)
        let end = await transport.run(request("early", method: .post, body: body) { $0.idleTimeout = .seconds(20) })
        // The proxy answers 502 if it notices the end of the origin's connection first.
        #expect(end.error == nil, "\(String(describing: end.failure))")
        #expect(end.head?.statusCode == status || end.head?.statusCode == 502)
        if end.head?.statusCode == status { #expect(end.body == Data("early".utf8)) }
        await expectOthers()
    }

    @Test(arguments: ["head", "body"]) func `silence ends at the time limit`(_ part: String) async throws {
        let origin = try origin { request, connection in
            if request.path.hasSuffix("body") { try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart") }
            connection.waitUntilClosed()
            return nil
        }
        defer { origin.stop() }
        let end = await transport.run(request(part) { $0.idleTimeout = .seconds(2) })
        #expect(end.failure?.kind == .idleTimeout)
        #expect(end.body == Data((part == "body" ? "part" : "").utf8))
        await expectOthers()
    }

    @Test func `a paused response holds back its host, not the others on the connection`() async throws {
        let length = 12_000_000
        let origin = try origin { _, _ in ServerResponse(status: 200, body: .generated(length: Int64(length), seed: 7)) }
        defer { origin.stop() }
        let isFirst = Lock(true)
        let paused = RecordingObserver(onBytes: { _ in
            isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst ? .pause : .proceed
            }
        })
        let transfer = transport.start(request("large"), observer: paused)
        _ = await paused.record { $0.pieces > 0 }
        for _ in 1...3 { await expectOthers() }
        #expect(paused.record.completion == nil && paused.record.pieces == 1)
        transfer.resumeReceiving()
        let end = await paused.end()
        #expect(end.error == nil && end.body.count == length)
        #expect(GeneratedBody(seed: 7).matches(end.body, offset: 0))
    }

    @Test("a stream that pauses has an HTTP/3 connection of its own, also where the host is known to speak HTTP/1.1 over TCP")
    func pausesBesideHTTP1() async throws {
        let length = 12_000_000
        let origin = try origin { request, _ in
            request.path.hasSuffix("large") ? ServerResponse(status: 200, body: .generated(length: Int64(length), seed: 7)) : .ok("small")
        }
        defer { origin.stop() }
        func request(_ path: String, _ version: HTTPVersionPolicy) -> TransferRequest {
            TransferRequest(url: "https://localhost:\(server.portWithoutHTTP2)/origin/\(path)", options: server.options(version))
        }
        let first = await transport.run(request("small", .automatic))
        #expect(first.error == nil && first.completion?.metrics.httpVersion == .http1_1)

        let isFirst = Lock(true)
        let paused = RecordingObserver(onBytes: { _ in
            isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst ? .pause : .proceed
            }
        })
        var stream = request("large", .http3Only)
        stream.mayPause = true
        let transfer = transport.start(stream, observer: paused)
        _ = await paused.record { $0.pieces > 0 }
        for version in [HTTPVersionPolicy.http3Only, .automatic, .http3Only] {
            let end = await transport.run(request("small", version))
            #expect(end.error == nil && end.body == Data("small".utf8))
            #expect(end.completion?.metrics.httpVersion == (version == .automatic ? .http1_1 : .http3))
        }
        #expect(paused.record.completion == nil && paused.record.pieces == 1)
        transfer.resumeReceiving()
        let end = await paused.end()
        #expect(end.error == nil && end.completion?.metrics.httpVersion == .http3)
        #expect(GeneratedBody(seed: 7).matches(end.body, offset: 0) && end.body.count == length)
    }

    @Test func `a cancelled response or upload does not affect others`() async throws {
        let origin = try origin { request, connection in
            if request.method == "GET" { return ServerResponse(status: 200, body: .generated(length: 1 << 40, seed: 1)) }
            connection.waitUntilClosed()
            return nil
        }
        defer { origin.stop() }
        let receiving = RecordingObserver()
        let transfer = transport.start(request("endless"), observer: receiving)
        _ = await receiving.record { $0.body.count > 100_000 }
        transfer.cancel()
        #expect(await receiving.end().isCancelled)
        await expectOthers()
        let sending = RecordingObserver()
        let upload = transport.start(request("upload", method: .put, body: DataBody(Data(count: 10_000_000))), observer: sending)
        _ = await sending.record { $0.sent > 0 }
        upload.cancel()
        #expect(await sending.end().isCancelled)
        await expectOthers()
    }

    @Test func `after failures of its streams, metrics and events agree on whether the connection is used again`() async throws {
        let origin = try origin { request, connection in
            if request.path.hasSuffix("cut") {
                try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
                connection.close()
            } else if request.path.hasSuffix("silence") {
                connection.waitUntilClosed()
            } else {
                connection.close()
            }
            return nil
        }
        defer { origin.stop() }
        let events = Log<ConnectionEvent>()
        transport.observeConnections { events.append($0) }
        let failing = [
            nil, request("cut"), nil, request("cut"), request("gone"), nil, request("silence") { $0.idleTimeout = .milliseconds(200) }, nil,
            request("wrong", method: .put, body: StatedBody(Data(count: 4_999), length: 5_000)), nil,
        ]
        var ports: Set<Int> = []
        for (index, failing) in failing.enumerated() {
            let opened = events.elements.count { $0.kind == .opened }
            let request = failing ?? TransferRequest(url: server.url("/hello"), options: server.options())
            let end = await transport.run(request)
            if failing == nil { #expect(end.error == nil) }
            let isNew = events.elements.count { $0.kind == .opened } > opened
            #expect(end.completion?.metrics.reusedConnection == !isNew, "\(index)")
            // Another connection has another port of this side.
            #expect(ports.insert(try #require(end.completion?.metrics.localPort)).inserted == isNew, "\(index)")
        }
    }

    @Test func `a body shorter than announced fails, and is not taken for a request`() async throws {
        let origin = try origin { _, _ in .ok("taken") }
        defer { origin.stop() }
        let end = await transport.run(request("wrong", method: .put, body: StatedBody(Data(count: 4_999), length: 5_000)))
        #expect(end.failure?.kind == .requestBody && end.head == nil)
        #expect(origin.requestCount == 0)
        await expectOthers()
    }
}

/// A body whose announced length, or the lack of one, is chosen apart from its bytes.
private final class StatedBody: BodySource {
    let length: Int64?
    private let body: DataBody

    init(_ data: Data, length: Int64?) {
        body = DataBody(data)
        self.length = length
    }

    func prepare(onReadable: @escaping @Sendable () -> Void) { body.prepare(onReadable: onReadable) }
    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead { body.read(into: buffer) }
    func rewind() -> Bool { body.rewind() }
}
