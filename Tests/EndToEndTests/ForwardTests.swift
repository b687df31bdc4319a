// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Requests that a gateway forwards: row A2.4 of what clients of APIs write by hand.
@Suite(.timeLimit(.minutes(1))) struct ForwardTests {
    private let server: LoopbackServer
    private let gate = Gate()
    private let manager = makeManager { $0.cookies = CookieStore() }

    init() throws {
        let (standard, gate) = (ServerRoutes.standard, gate)
        server = try LoopbackServer { request, connection in
            switch request.path {
            case "/trailers":
                try connection.send(
                    raw: "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
                        + "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-End: 1\r\nKeep-Alive: timeout=5\r\nTransfer-Encoding: chunked\r\n"
                        + "Proxy-Authenticate: Basic\r\nSet-Cookie: server=1\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 7\r\nKeep-Alive: 1\r\n\r\n")
                return nil
            case "/tagged":
                let fields = [
                    ServerField("Content-Encoding", "gzip"), ServerField("ETag", "\"v1\""), ServerField("Content-Digest", "sha-256=:AAAA:"),
                ]
                return ServerResponse(status: 200, headers: fields, body: .data(StoredDeflate.gzip(Data("text".utf8))))
            case "/stalled":
                try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
                connection.wait(until: gate)
                return nil
            default: return try standard(request, connection)
            }
        }
    }

    private static let received: HTTPHeaders = [
        "Host": "shop.example", "Connection": "close, X-Secret-Hop", "X-Secret-Hop": "1", "Keep-Alive": "timeout=5", "TE": "trailers",
        "Upgrade": "h2c", "HTTP2-Settings": "AA", "Proxy-Authorization": "Basic x", "Transfer-Encoding": "chunked",
        "Expect": "100-continue",
        "Cookie": "a=1", "cookie": "b=2", "X-Forwarded-For": "10.0.0.1", "Forwarded": "for=evil", "X-Real-IP": "10.0.0.2", "Via": "2 edge",
        "Accept": "text/plain", "Authorization": "Bearer t",
    ]

    private func forwarded(_ change: (inout ForwardedRequest) -> Void = { _ in }) async throws -> EchoReply {
        var request = ForwardedRequest(.get, to: server.url("/echo"), headers: Self.received, client: "192.0.2.1")
        change(&request)
        let body = try await manager.forward(request).body.collect(upTo: 1 << 20)
        return try JSONDecoder().decode(EchoReply.self, from: body)
    }

    // A2.4
    @Test func `fields of the connection are not forwarded, those that name the client are replaced`() async throws {
        let reply = try await forwarded()
        for name in [
            "Connection", "X-Secret-Hop", "Keep-Alive", "TE", "Upgrade", "HTTP2-Settings", "Proxy-Authorization", "Transfer-Encoding",
            "Expect",
            "Forwarded", "X-Real-IP",
        ] {
            #expect(reply.header(name) == nil, "\(name)")
        }
        #expect(reply.header("Host") == "127.0.0.1:\(server.port)" && reply.header("Cookie") == "a=1; b=2")
        #expect(reply.header("Accept") == "text/plain" && reply.header("Authorization") == "Bearer t")
        #expect(reply.header("X-Forwarded-For") == "192.0.2.1" && reply.header("X-Forwarded-Host") == "shop.example")
        #expect(reply.header("X-Forwarded-Proto") == "http" && reply.header("Via") == "2 edge, 1.1 curlew")
    }

    // A2.4
    @Test func `another gateway's fields are kept if it is trusted, in both forms`() async throws {
        let trusted = try await forwarded {
            $0.trustsClientFields = true
            $0.keepsHost = true
        }
        #expect(trusted.header("X-Forwarded-For") == "10.0.0.1, 192.0.2.1" && trusted.header("Host") == "shop.example")
        let standard = try await forwarded {
            ($0.trustsClientFields, $0.clientFields, $0.client, $0.scheme) = (true, .forwarded, "2001:db8::1", "https")
        }
        #expect(standard.header("Forwarded") == #"for=evil, for="[2001:db8::1]";host=shop.example;proto=https"#)
        let none = try await forwarded { ($0.clientFields, $0.client) = (.none, nil) }
        #expect(none.header("X-Forwarded-For") == nil && none.header("X-Forwarded-Host") == nil)
        let unknown = try await forwarded { ($0.clientFields, $0.client) = (.forwarded, nil) }
        #expect(unknown.header("Forwarded") == "for=unknown;host=shop.example;proto=http")
    }

    // A2.4
    @Test func `trailers and interim responses are forwarded, fields of the connection are not`() async throws {
        let interim = Log<ResponseHead>()
        let request = ForwardedRequest(.get, to: server.url("/trailers"), headers: [:])
        let response = try await manager.forward(request) { interim.append($0) }
        #expect(response.statusCode == 200 && response.headers["X-End"] == "1")
        for name in ["Connection", "X-Hop", "Keep-Alive", "Transfer-Encoding", "Proxy-Authenticate"] {
            #expect(response.headers[name] == nil)
        }
        #expect(try await response.body.collect(upTo: 4) == Data("body".utf8))
        #expect(response.trailers == ["X-Sum": "7"])
        await interim.wait(for: 1)
        #expect(interim.elements.map(\.statusCode) == [103] && interim.elements.first?.headers["Link"] == "</a.css>; rel=preload")
        // The cookie is the client's.
        #expect(response.headers["Set-Cookie"] == "server=1")
        #expect(try await forwarded { $0.headers.remove(name: "Cookie") }.header("Cookie") == nil)
    }

    // A2.4
    @Test(arguments: [nil, "6"] as [String?]) func `a body is forwarded while it is received, with its length or chunked`(_ length: String?)
        async throws
    {
        var headers: HTTPHeaders = ["Content-Type": "text/plain"]
        headers["Content-Length"] = length
        let body = AsyncStream<[UInt8]> { pieces in
            for piece in ["ab", "cd", "ef"] { pieces.yield(Array(piece.utf8)) }
            pieces.finish()
        }
        let request = ForwardedRequest(.put, to: server.url("/echo"), headers: headers)
        let response = try await manager.forward(request, body: body)
        let reply = try JSONDecoder().decode(EchoReply.self, from: try await response.body.collect(upTo: 1 << 20))
        #expect(reply.method == "PUT" && reply.bodyLength == 6 && reply.header("Content-Type") == "text/plain")
        #expect(reply.header("Content-Length") == length && reply.header("Transfer-Encoding") == (length == nil ? "chunked" : nil))
    }

    @Test func `a request's trailers are forwarded`() async throws {
        let request = ForwardedRequest(.post, to: server.url("/echo"), headers: ["Trailer": "X-Sum"])
        let body = AsyncStream<Data> { pieces in
            pieces.yield(Data("body".utf8))
            pieces.finish()
        }
        let response = try await manager.forward(request, body: body, trailers: { ["X-Sum": "7", "Connection": "X-Sum"] })
        // `Connection` is no trailer, and neither is what it names.
        #expect(response.statusCode == 200)
        #expect(server.requests.first?.trailers.isEmpty == true)
        let second = try await manager.forward(request, body: body, trailers: { ["X-Sum": "7"] })
        #expect(second.statusCode == 200 && server.requests.last?.trailers.map(\.value) == ["7"])
    }

    @Test func `redirects and statuses are responses`() async throws {
        for (path, status) in [("/redirect/1", 302), ("/status/503", 503)] {
            let response = try await manager.forward(ForwardedRequest(.get, to: server.url(path), headers: [:]))
            #expect(response.statusCode == status)
        }
        #expect(server.requestCount == 2)
    }

    @Test func `a coded body is decoded, or passes as it is`() async throws {
        let decoded = try await manager.forward(
            ForwardedRequest(.get, to: server.url("/gzip?n=3000"), headers: ["Accept-Encoding": "gzip"]))
        #expect(decoded.headers["Content-Encoding"] == nil && decoded.headers["Content-Length"] == nil)
        #expect(try await decoded.body.collect(upTo: 3_000) == ServerRoutes.text(count: 3_000))
        let tagged = try await manager.forward(ForwardedRequest(.get, to: server.url("/tagged"), headers: [:]))
        #expect(tagged.headers["ETag"] == "W/\"v1\"" && tagged.headers["Content-Digest"] == nil)
        #expect(try await tagged.body.collect(upTo: 4) == Data("text".utf8))
        let plain = makeManager { $0.decodesContent = false }
        let coded = try await plain.forward(ForwardedRequest(.get, to: server.url("/gzip?n=3000"), headers: ["Accept-Encoding": "gzip"]))
        let length = try #require(coded.headers["Content-Length"].flatMap { Int($0) })
        #expect(coded.headers["Content-Encoding"] == "gzip")
        #expect(try await coded.body.collect(upTo: 10_000).count == length)
        let same = try await plain.forward(ForwardedRequest(.get, to: server.url("/tagged"), headers: [:]))
        #expect(same.headers["ETag"] == "\"v1\"" && same.headers["Content-Digest"] == "sha-256=:AAAA:")
        _ = try await plain.forward(ForwardedRequest(.get, to: server.url("/echo"), headers: [:]))
        #expect(server.requests.last?.header("Accept-Encoding") == "identity")
    }

    @Test func `a part of a body is not coded where the session decodes`() async throws {
        let headers: HTTPHeaders = ["Range": "bytes=10-19", "Accept-Encoding": "gzip"]
        let part = try await manager.forward(ForwardedRequest(.get, to: server.url("/bytes/100"), headers: headers))
        #expect(part.statusCode == 206 && part.headers["Content-Range"] == "bytes 10-19/100")
        #expect(try await part.body.collect(upTo: 10) == GeneratedBody().data(offset: 10, count: 10))
        let plain = makeManager { $0.decodesContent = false }
        _ = try await plain.forward(ForwardedRequest(.get, to: server.url("/bytes/100"), headers: headers)).body.collect(upTo: 10)
        #expect(server.requests.map { $0.header("Accept-Encoding") } == ["identity", "gzip"])
    }

    @Test func `the deadline and the client's end reach the server`() async throws {
        defer { gate.open() }
        let request = ForwardedRequest(.get, to: server.url("/stalled"), headers: [:])
        do {
            let response = try await manager.forward(request)
            #expect(response.statusCode == 200)
        }
        #expect(await server.waitForConnectionsToClose())
        let late = try await withDeadline(.seconds(1)) { try await manager.forward(request) }
        let error = try await #require(throws: CurlewError.self) { try await late.body.collect(upTo: 4) }
        #expect(error.transferFailure?.kind == .deadline)
        #expect(await server.waitForConnectionsToClose())
    }

    @Test func `what can't be forwarded is an error`() async throws {
        var named = ForwardedRequest(.get, to: server.url("/echo"), headers: [:])
        named.gatewayName = "a, b"
        for request in [
            ForwardedRequest(.connect, to: server.url("/"), headers: [:]), named, ForwardedRequest(.get, to: "http://", headers: [:]),
        ] {
            await #expect(throws: CurlewError.self) { try await manager.forward(request) }
        }
        #expect(server.requestCount == 0)
    }
}
