// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Fields that follow a body (RFC 9110, section 6.5).
@Suite(.timeLimit(.minutes(2))) struct TrailerTests {
    private let server: LoopbackServer
    private let directory: TemporaryDirectory
    private let manager = makeManager()

    init() throws {
        directory = try TemporaryDirectory()
        let attempts = Log<Int>()
        server = try LoopbackServer { request, connection in
            attempts.append(1)
            switch request.path {
            case "/none": return .ok("none")
            case "/redirect":
                try connection.send(
                    raw: "HTTP/1.1 302 Found\r\nLocation: /chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-First: 1\r\n\r\n")
            case "/flaky" where attempts.elements.count == 1:
                try connection.send(
                    raw: "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-First: 1\r\n\r\n")
            case "/flaky": return .ok("none")
            case "/many":
                let field = "X-Long: " + String(repeating: "a", count: 3_000) + "\r\n"
                try connection.send(raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
                for _ in 0..<1_000 { try connection.send(raw: field) }
                try connection.send(raw: "\r\n")
            default:
                try connection.send(
                    raw: "HTTP/1.1 200 OK\r\nX-Head: 1\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n"
                        + "4\r\nbody\r\n0\r\nX-Sum: 7\r\nX-Two: a\r\nx-two:  b \r\n\r\n")
            }
            return nil
        }
    }

    private static let expected: HTTPHeaders = ["X-Sum": "7", "X-Two": "a", "x-two": "b"]

    @Test("a chunked response's trailers are those of the request and of its response") func chunked() async throws {
        let request = manager.request(server.url("/chunked"))
        let response = await request.serializingString().response
        #expect(response.value == "body")
        #expect(response.responseTrailers == Self.expected && request.responseTrailers == Self.expected)
        #expect(response.responseHead?.headers["X-Sum"] == nil && response.responseHead?.headers["X-Head"] == "1")
        // The connection is still in use.
        #expect(await manager.request(server.url("/none")).serializingString().response.responseTrailers.isEmpty)
        #expect(server.connectionCount == 1)
    }

    @Test("downloads, streamed bodies and handlers have them too") func otherKinds() async throws {
        let file = directory.file("file")
        let download = await manager.download(server.url("/chunked"), to: file).serializingURL().response
        #expect(download.error == nil && download.responseTrailers == Self.expected)
        let streamed = manager.streamRequest(server.url("/chunked"))
        var body = Data()
        for try await piece in streamed.bodyStream() { body += piece }
        #expect(body == Data("body".utf8) && streamed.responseTrailers == Self.expected)
        let trailers = Log<[HTTPHeaders]>()
        manager.request(server.url("/chunked")).response { trailers.append([$0.responseTrailers]) }
        manager.download(server.url("/chunked")).response { trailers.append([$0.responseTrailers]) }
        await trailers.wait(for: 2)
        #expect(trailers.elements == [[Self.expected], [Self.expected]])
    }

    @Test("those of a redirect and of an attempt that was retried are not the response's") func earlierResponses() async throws {
        #expect(await manager.request(server.url("/redirect")).serializingString().response.responseTrailers == Self.expected)
        manager.retrier = Retrier.attempts(1)
        let server = try LoopbackServer { [count = Log<Int>()] _, connection in
            count.append(1)
            guard count.elements.count == 1 else { return .ok("none") }
            try connection.send(raw: "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-First: 1\r\n\r\n")
            return nil
        }
        let request = manager.request(server.url("/"))
        let response = await request.validate().serializingString().response
        #expect(response.value == "none" && request.retryCount == 1 && response.responseTrailers.isEmpty)
    }

    @Test("trailers count towards the limit of a head") func limit() async throws {
        let response = await manager.request(server.url("/many")).serializingData().response
        #expect(response.error?.transferFailure?.kind == .tooLarge)
    }

    @Test("HTTP/2 responses have trailers") func http2() async throws {
        let server = try HTTP2Server { connection in
            while let frame = try connection.nextFrame() {
                guard frame.kind == 1 else { continue }
                let stream = frame.stream
                // Literal fields without indexing (RFC 7541, section 6.2.2).
                let block = Data([0x00, 5]) + Data("x-sum".utf8) + Data([1]) + Data("7".utf8)
                try connection.send(
                    .head(200, stream: stream), .data(Data("body".utf8), stream: stream), .init(1, flags: 5, stream: stream, block))
            }
        }
        let manager = makeManager { $0.httpVersion = .http2PriorKnowledge }
        let response = await manager.request(server.url("/")).serializingString().response
        #expect(response.value == "body" && response.responseHead?.httpVersion == "HTTP/2")
        #expect(response.responseTrailers == ["x-sum": "7"])
    }

    // MARK: Of requests

    private static func pieces() -> AsyncStream<Data> {
        AsyncStream { continuation in
            continuation.yield(Data("bo".utf8))
            continuation.yield(Data("dy".utf8))
            continuation.finish()
        }
    }

    @Test("a sequence's trailers are sent after its end, chunked, also with a length", arguments: [nil, 4] as [Int64?])
    func sent(_ length: Int64?) async throws {
        let request = manager.upload(
            Self.pieces(), length: length, to: server.url("/none"), headers: ["Trailer": "X-Sum"],
            trailers: { ["X-Sum": "7", "X-Two": "b"] })
        #expect(try await request.validate().serializingString().value == "none")
        let received = try #require(server.requests.first)
        #expect(received.body == Data("body".utf8) && received.header("Transfer-Encoding") == "chunked")
        #expect(received.header("Content-Length") == nil && received.header("Trailer") == "X-Sum")
        #expect(received.trailers == [ServerField("X-Sum", "7"), ServerField("X-Two", "b")])
        // The connection serves requests without trailers afterwards.
        for _ in 0..<10 {
            let next = await manager.upload(Self.pieces(), to: server.url("/none")).serializingData().response
            #expect(next.error == nil && server.requests.last?.trailers == [] && server.requests.last?.body == Data("body".utf8))
        }
        #expect(server.connectionCount == 1)
    }

    @Test("a request that may be repeated sends its trailers again when a pooled connection ends", arguments: [HTTPMethod.put, .post])
    func staleConnection(_ method: HTTPMethod) async throws {
        let server = try LoopbackServer { request, connection in
            // The connection of the first request ends once the second was read.
            guard request.sequence == 1 else {
                connection.close()
                return nil
            }
            return .ok("none")
        }
        _ = await manager.request(server.url("/")).serializingData().response
        let request = manager.upload({ Self.pieces() }, to: server.url("/"), method: method, trailers: { ["X-Sum": "7"] })
        let response = await request.serializingData().response
        let received = server.requests.filter { $0.method == method.rawValue }
        #expect(received.allSatisfy { $0.trailers == [ServerField("X-Sum", "7")] && $0.body == Data("body".utf8) })
        #expect((response.error == nil) == (method == .put) && received.count == (method == .put ? 2 : 1))
    }

    @Test("a retry sends the trailers of its own sequence") func retried() async throws {
        manager.retrier = Retrier.attempts(1)
        let calls = Log<Int>()
        let request = manager.upload(
            { Self.pieces() }, to: server.url("/flaky"),
            trailers: {
                calls.append(1)
                return ["X-Call": "\(calls.elements.count)"]
            })
        #expect(try await request.validate().serializingString().value == "none")
        #expect(server.requests.map(\.trailers) == [[ServerField("X-Call", "1")], [ServerField("X-Call", "2")]])
    }

    @Test(
        "an invalid trailer fails the request and is not sent",
        arguments: [("X", "a\r\nX-Injected: 1"), ("X Y", "1"), ("Content-Length", "4"), ("transfer-encoding", "chunked")])
    func invalid(_ name: String, _ value: String) async throws {
        let response = await manager.upload(
            Self.pieces(), to: server.url("/none"), trailers: { HTTPHeaders([.init(name: name, value: value)]) }
        )
        .serializingData().response
        #expect(response.error?.invalidHeader == name)
        #expect(server.requestCount == 0)
    }

    @Test("a session that insists on HTTP/2 fails trailers; one that negotiates sends them over HTTP/1.1", .needsNginx)
    func versions() async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        let first = await manager.request(nginx.tls + "/").serializingData().response
        let upload = await manager.upload(Self.pieces(), to: nginx.tls + "/upload", trailers: { ["X-Sum": "7"] }).serializingData().response
        #expect(upload.error == nil && upload.responseHead?.httpVersion == "HTTP/1.1")
        #expect(first.responseHead?.httpVersion == "HTTP/2")
        let strict = makeManager { $0.httpVersion = .http2PriorKnowledge }
        let refused = await strict.upload(Self.pieces(), to: server.url("/none"), trailers: { ["X-Sum": "7"] }).serializingData().response
        #expect(refused.error?.transferFailure?.kind == .configuration)
    }
}
