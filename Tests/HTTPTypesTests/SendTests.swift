// SPDX-License-Identifier: Apache-2.0
#if HTTPTypes
import CurlewEncoding
import CurlewHTTP
import CurlewHTTPTypes
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTransport
import Testing

/// Requests of swift-http-types, sent by a session.
@Suite(.timeLimit(.minutes(1))) struct SendTests {
    private let server: LoopbackServer
    private let manager = makeManager()

    init() throws {
        server = try LoopbackServer { request, _ in
            switch request.path {
            case "/echo": ServerResponse(status: 200, body: .data(request.body))
            case "/missing":
                ServerResponse(
                    status: 404, reason: "Nowhere",
                    headers: [ServerField("Set-Cookie", "a=1, b"), ServerField("x-odd", "1"), ServerField("Set-Cookie", "c=2")],
                    body: .data(Data("gone".utf8)))
            case "/moved": ServerResponse(status: 302, headers: [ServerField("Location", "/echo")])
            case "/big": ServerResponse(status: 200, body: .generated(length: 3_000_000, seed: 5))
            default: ServerResponse(status: 204)
            }
        }
    }

    private var authority: String { "127.0.0.1:\(server.port)" }

    private func request(_ method: HTTPRequest.Method = .get, _ path: String, _ fields: HTTPFields = [:]) -> HTTPRequest {
        HTTPRequest(method: method, scheme: "http", authority: authority, path: path, headerFields: fields)
    }

    /// Sends a request in both ways, and returns the responses with their whole bodies.
    private func bothWays(_ request: HTTPRequest, body: Data? = nil) async throws -> [(HTTPResponse, Data)] {
        let whole = try await manager.send(request, body: body)
        let (response, stream) = try await manager.streamResponse(to: request, body: body)
        var streamed = Data()
        for try await piece in stream { streamed += piece }
        return [whole, (response, streamed)]
    }

    // MARK: Responses

    @Test func `a status of 4xx is a response, with its fields in order and repeated`() async throws {
        for (response, body) in try await bothWays(request(.get, "/missing")) {
            #expect(response.status.code == 404)
            #expect(response.status.reasonPhrase == "Nowhere")
            #expect(response.headerFields[values: .setCookie] == ["a=1, b", "c=2"])
            let names: [String] = response.headerFields.map { $0.name.rawName }
            #expect(names.filter { $0 != "Content-Length" } == ["Set-Cookie", "x-odd", "Set-Cookie"])
            #expect(body == Data("gone".utf8))
        }
    }

    @Test func `a response without a body has an empty one`() async throws {
        for (response, body) in try await bothWays(request(.get, "/nothing")) {
            #expect(response.status == .noContent)
            #expect(body.isEmpty)
        }
    }

    // MARK: Streamed bodies

    /// Sends a streamed body in both ways; `body` makes it for each.
    private func streamed(
        _ request: HTTPRequest, length: Int64? = nil, _ body: () -> AsyncStream<[UInt8]>
    ) async throws -> [(HTTPResponse, Data)] {
        let whole = try await manager.send(request, body: body(), length: length)
        let (response, stream) = try await manager.streamResponse(to: request, body: body(), length: length)
        var received = Data()
        for try await piece in stream { received += piece }
        return [whole, (response, received)]
    }

    @Test func `a sequence is sent as the body, chunked or with a length`() async throws {
        let text = Array("one two three".utf8)
        let make = {
            AsyncStream<[UInt8]> { continuation in
                for piece in text.split(separator: UInt8(ascii: " ")) { continuation.yield(Array(piece)) }
                continuation.finish()
            }
        }
        for length in [nil, Int64(11)] {
            for (response, body) in try await streamed(request(.post, "/echo"), length: length, make) {
                #expect(response.status == .ok)
                #expect(body == Data("onetwothree".utf8))
            }
        }
        #expect(server.requests.map { $0.header("Transfer-Encoding") } == ["chunked", "chunked", nil, nil])
        await #expect(throws: CurlewError.self) { try await streamed(request(.post, "/echo"), length: 12, make) }
    }

    @Test func `the sequence of a closure is made again for a retry and a redirect`() async throws {
        let tries = Lock(0)
        let server = try LoopbackServer { request, _ in
            let number = tries.withLock { tries in
                tries += 1
                return tries
            }
            if number == 1 { return .redirect(to: "/there", status: 307) }
            return .ok(request.body)
        }
        let target = HTTPRequest(method: .put, scheme: "http", authority: "127.0.0.1:\(server.port)", path: "/")
        let body: @Sendable () -> AsyncStream<Data> = {
            AsyncStream { continuation in
                continuation.yield(Data("again".utf8))
                continuation.finish()
            }
        }
        let (response, received) = try await manager.send(target, making: body)
        #expect(response.status == .ok && received == Data("again".utf8))
        tries.withLock { $0 = 0 }
        let (second, stream) = try await manager.streamResponse(to: target, making: body)
        var pieces = Data()
        for try await piece in stream { pieces += piece }
        #expect(second.status == .ok && pieces == Data("again".utf8))
        #expect(server.requests.map(\.bodyLength) == [5, 5, 5, 5])
    }

    @Test func `backpressure in both directions: neither the sequence nor the response is read ahead of the reader`() async throws {
        // An echo that answers before it has the body, and returns each byte as it arrives.
        let echo = try EchoingHTTPServer()
        let made = Lock(0)
        let piece = [UInt8](repeating: 7, count: 64 << 10)
        let total = 400
        let body = AsyncStream<[UInt8]>(unfolding: {
            let number = made.withLock { made in
                made += 1
                return made
            }
            return number <= total ? piece : nil
        })
        let target = HTTPRequest(method: .post, scheme: "http", authority: "127.0.0.1:\(echo.port)", path: "/")
        let (response, stream) = try await manager.streamResponse(
            to: target, body: body, options: RequestOptions(deadline: .seconds(50), name: "echo"))
        #expect(response.status == .ok)
        // Nothing is read: both sides stop, as the buffers between them are full.
        var last = -1
        while case let now = made.withLock({ $0 }), now != last {
            last = now
            try await Task.sleep(for: .milliseconds(300))
        }
        #expect(last < total, "\(last)")
        var count = 0
        for try await received in stream { count += received.count }
        #expect(count == piece.count * total)
        #expect(made.withLock { $0 } == total + 1)
    }

    @Test func `a deadline and a cancellation end a streamed exchange, and the sequence`() async throws {
        let gate = Gate()
        let held = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return nil
        }
        defer { gate.open() }
        let target = HTTPRequest(method: .post, scheme: "http", authority: "127.0.0.1:\(held.port)", path: "/")
        let endless = AsyncStream<[UInt8]>(unfolding: {
            try? await Task.sleep(for: .milliseconds(5))
            return [1]
        })
        do {
            _ = try await manager.streamResponse(to: target, body: endless, options: RequestOptions(deadline: .milliseconds(300)))
            Issue.record("no error")
        } catch CurlewError.transferFailed(let failure) {
            #expect(failure.kind == .deadline)
        }
        let (asked, ended) = (Log<Void>(), Log<Void>())
        let task = Task { [manager] in
            try await manager.send(
                target,
                body: AsyncStream<[UInt8]>(unfolding: {
                    asked.append(())
                    do { try await Task.sleep(for: .seconds(600)) } catch { ended.append(()) }
                    return nil
                }))
        }
        await asked.wait(for: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await ended.wait(for: 1)
        #expect(ended.count == 1)
    }

    @Test func `redirects are followed`() async throws {
        for (response, body) in try await bothWays(request(.get, "/moved")) {
            #expect(response.status == .ok)
            #expect(body.isEmpty)
        }
    }

    @Test func `a large body is whole`() async throws {
        for (_, body) in try await bothWays(request(.get, "/big")) {
            #expect(body.count == 3_000_000)
            #expect(GeneratedBody(seed: 5).matches(body, offset: 0))
        }
    }

    @Test func `the head of a streamed response is returned before its body`() async throws {
        let gate = Gate()
        let slow = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
            connection.wait(until: gate)
            try connection.send(raw: "late")
            return nil
        }
        let request = HTTPRequest(method: .get, scheme: "http", authority: "127.0.0.1:\(slow.port)", path: "/")
        let (response, stream) = try await manager.streamResponse(to: request)
        #expect(response.status == .ok)
        #expect(!gate.isOpen)
        gate.open()
        var body = Data()
        for try await piece in stream { body += piece }
        #expect(body == Data("late".utf8))
    }

    @Test func `a truncated body is an error at its end, and not retried`() async throws {
        let cut = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
            connection.close()
            return nil
        }
        let request = HTTPRequest(method: .get, scheme: "http", authority: "127.0.0.1:\(cut.port)", path: "/")
        let (response, stream) = try await manager.streamResponse(to: request, interceptor: RetryPolicy(exponentialBackoffScale: 0))
        #expect(response.status == .ok)
        await #expect { for try await _ in stream {} } throws: { error in
            if case CurlewError.transferFailed(let failure) = error { failure.kind == .connectionLost } else { false }
        }
        #expect(cut.requests.count == 1)
    }

    // MARK: Requests

    @Test func `method, path, query, fields and body are sent as they are`() async throws {
        let report = try #require(HTTPRequest.Method("REPORT"))
        var fields: HTTPFields = [.accept: "text/plain", .cookie: "a=1"]
        fields.append(HTTPField(name: try #require(HTTPField.Name("x-Case")), value: "1"))
        fields.append(HTTPField(name: .cookie, value: "b=2"))
        fields.append(HTTPField(name: try #require(HTTPField.Name("X-CASE")), value: "2"))
        for (response, body) in try await bothWays(request(report, "/echo?q=%20a&r=ü".escaped, fields), body: Data("sent".utf8)) {
            #expect(response.status == .ok)
            #expect(body == Data("sent".utf8))
        }
        #expect(server.requests.count == 2)
        for sent in server.requests {
            #expect(sent.method == "REPORT")
            #expect(sent.target == "/echo?q=%20a&r=%C3%BC")
            #expect(sent.headers(named: "Cookie") == ["a=1; b=2"])
            let own = sent.headers.filter { ["accept", "cookie", "x-case"].contains($0.name.lowercased()) }
            #expect(own.map(\.name) == ["Accept", "Cookie", "x-Case", "X-CASE"])
            #expect(sent.header("Content-Type") == nil)
        }
    }

    @Test func `OPTIONS with an asterisk is about the server as a whole`() async throws {
        var wide = request(.options, "*")
        _ = try await bothWays(wide)
        _ = try await streamed(wide) {
            AsyncStream { continuation in
                continuation.yield(Array("sent".utf8))
                continuation.finish()
            }
        }
        (wide.scheme, wide.authority) = (nil, nil)
        let options = RequestOptions(name: "kept")
        let base = try #require(URL(string: server.url("/v1/?a=b#c")))
        _ = try await manager.send(wide, relativeTo: base, options: options)
        #expect(server.requests.map { "\($0.method) \($0.target)" } == Array(repeating: "OPTIONS *", count: 5))
    }

    @Test func `an empty body has the length 0, and none has no length`() async throws {
        _ = try await bothWays(request(.post, "/echo"), body: Data())
        _ = try await bothWays(request(.get, "/echo"))
        #expect(server.requests.map { $0.header("Content-Length") } == ["0", "0", nil, nil])
    }

    @Test func `interceptor and options count`() async throws {
        let adapter = Adapter { request in
            var request = request
            request.setValue("1", forHTTPHeaderField: "X-Adapted")
            return request
        }
        _ = try await manager.send(request(.get, "/a"), interceptor: adapter)
        let (_, stream) = try await manager.streamResponse(to: request(.get, "/b"), interceptor: adapter)
        for try await _ in stream {}
        #expect(server.requests.map { $0.header("X-Adapted") } == ["1", "1"])
        var options = RequestOptions()
        options.maximumBodySize = 100
        let big = request(.get, "/big")
        await #expect(throws: CurlewError.self) { try await manager.send(big, options: options) }
    }

    // MARK: Invalid requests

    @Test func `a request without authority or scheme is an error that says so`() async throws {
        var lacking = request(.get, "/a")
        lacking.authority = nil
        await expect(lacking, "The URL has no host: http:///a")
        lacking.scheme = nil
        await expect(lacking, "The URL's scheme is neither http nor https: ///a")
        var other = request(.get, "/a")
        other.scheme = "ftp"
        await expect(other, "The URL's scheme is neither http nor https: ftp://\(authority)/a")
        #expect(server.requests.isEmpty)
    }

    @Test(arguments: ["a/b", "user@127.0.0.1", "a?b", "a#b", #"a\b"#])
    func `an authority that is more than host and port is an error`(_ authority: String) async throws {
        await expect(HTTPRequest(method: .get, scheme: "http", authority: authority, path: "/"), "URL is not valid")
    }

    @Test(arguments: ["**", "*?", "a", "/a#b", #"/a\b"#, "http://127.0.0.1/"])
    func `a path that can't be sent is an error`(_ path: String) async throws {
        await expect(request(.options, path), "URL is not valid")
        await expect(request(.get, "*"), "URL is not valid: *")
        #expect(server.requests.isEmpty)
    }

    @Test func `a tunnel is an error`() async throws {
        await expect(HTTPRequest(method: .connect, scheme: nil, authority: authority, path: nil), "URL is not valid: CONNECT")
        var webSocket = request(.connect, "/chat")
        webSocket.extendedConnectProtocol = "websocket"
        await expect(webSocket, "URL is not valid: CONNECT")
    }

    @Test func `a field whose value is not UTF-8 is an error`() async throws {
        let field = HTTPField(name: .userAgent, value: [0x63, 0xE9])
        await expect(request(.get, "/a", HTTPFields([field])), #"The header "User-Agent" has an invalid name or value."#)
    }

    private func expect(_ request: HTTPRequest, _ text: String) async {
        await #expect { try await manager.send(request) } throws: { "\($0)".contains(text) }
        await #expect { try await manager.streamResponse(to: request) } throws: { "\($0)".contains(text) }
    }

    // MARK: Cancellation

    @Test(arguments: [false, true]) func `cancelling the awaiting task cancels the request`(_ isStreamed: Bool) async throws {
        let gate = Gate()
        let silent = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return nil
        }
        let request = HTTPRequest(method: .get, scheme: "http", authority: "127.0.0.1:\(silent.port)", path: "/")
        let task = Task { [manager] in
            if isStreamed { _ = try await manager.streamResponse(to: request) } else { _ = try await manager.send(request) }
        }
        #expect(await gate.arrivals())
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(await silent.waitForConnectionsToClose())
    }

    @Test func `a task that is cancelled before sends nothing`() async throws {
        let (manager, request) = (manager, request(.get, "/a"))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            _ = try await manager.send(request)
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(server.requests.isEmpty)
    }
}

extension String {
    /// With characters beyond ASCII percent-encoded.
    fileprivate var escaped: String {
        utf8.map { $0 < 0x80 ? String(UnicodeScalar($0)) : "%" + String($0, radix: 16, uppercase: true) }.joined()
    }
}
#endif
