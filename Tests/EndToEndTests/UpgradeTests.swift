// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Other protocols on a connection that began with HTTP (RFC 9110, section 7.8): row A1.7 of what clients of APIs write by hand.
@Suite(.timeLimit(.minutes(1))) struct UpgradeTests {
    private static let switched = "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\n"

    /// A server of a daemon's kind: `/exec` switches to `tcp` and sends back what it gets.
    private static func daemon(path: String? = nil, tls: ServerTLS? = nil, _ requests: Log<ServerRequest> = Log()) throws -> LoopbackServer
    {
        try LoopbackServer(tls: tls, unixSocketPath: path) { request, connection in
            requests.append(request)
            switch request.path {
            case "/exec":
                // The first bytes of the new protocol come with the response.
                try connection.send(raw: "HTTP/1.1 102 Processing\r\n\r\n\(switched)Upgrade: TCP\r\n\r\nhello ")
                try connection.send(raw: "\(request.method) \(String(decoding: request.body, as: UTF8.self))\n")
                connection.close()
                return nil
            case "/other":
                try connection.send(raw: "\(switched)Upgrade: h2c\r\n\r\n")
                connection.waitUntilClosed()
                return nil
            case "/flaky" where requests.elements.count < 3: return ServerResponse(status: 503, body: .data(Data("busy".utf8)))
            case "/flaky":
                try connection.send(raw: "\(switched)Upgrade: tcp\r\n\r\n")
                connection.waitUntilClosed()
                return nil
            case "/missing":
                return ServerResponse(
                    status: 404, headers: [ServerField("Content-Type", "application/json"), ServerField("Set-Cookie", "a=1")],
                    body: .data(Data(#"{"message":"No such container"}"#.utf8)))
            case "/chunked": return ServerResponse(status: 400, body: .chunked([Data("no ".utf8), Data("way".utf8)]))
            case "/endless":
                try connection.send(raw: "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nsorry\r\n")
                connection.waitUntilClosed()
                return nil
            case "/head":
                try connection.send(raw: "HTTP/1.1 403 No\r\nContent-Length: 5\r\n\r\n")
                connection.waitUntilClosed()
                return nil
            case "/garbage":
                try connection.send(raw: "SSH-2.0-Server\r\n")
                connection.waitUntilClosed()
                return nil
            case "/closed":
                connection.close()
                return nil
            default:
                connection.waitUntilClosed()
                return nil
            }
        }
    }

    private let requests: Log<ServerRequest>
    private let server: LoopbackServer
    private let manager = makeManager()

    init() throws {
        requests = Log()
        server = try Self.daemon(requests)
    }

    private func text(_ connection: UpgradedConnection) async throws -> String {
        var text = ""
        for try await piece in connection.stream.bytes() { text += String(decoding: piece, as: UTF8.self) }
        return text
    }

    // A1.7
    @Test func `the connection begins with what came after the response`() async throws {
        let manager = makeManager { $0.headers = ["X-Session": "1", "Accept-Encoding": "gzip"] }
        manager.adapter = Adapter { $0.setValue("1", forHTTPHeaderField: "X-Adapted") }
        let connection = try await manager.upgrade(
            server.url("/exec?tty=1"), to: "tcp", method: .post, body: Data(#"{"Detach":false}"#.utf8),
            headers: ["Content-Type": "application/json"])
        #expect(connection.responseHead.statusCode == 101 && connection.responseHead.headers["Upgrade"] == "TCP")
        #expect(try await text(connection) == "hello POST {\"Detach\":false}\n")
        connection.stream.closeWrite()
        let request = try #require(requests.elements.first)
        #expect(request.target == "/exec?tty=1" && request.header("Connection") == "Upgrade" && request.header("Upgrade") == "tcp")
        #expect(request.header("X-Adapted") == "1" && request.header("Content-Length") == "16")
        #expect(request.header("X-Session") == "1" && request.header("Accept-Encoding") == nil)
    }

    // A1.7
    @Test func `a connection over a socket of Unix is upgraded too`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("s").path
        let local = try Self.daemon(path: path)
        let connection = try await manager.upgrade(
            "http://localhost/exec", to: "tcp", options: RequestOptions(unixSocketPath: path))
        #expect(try await text(connection) == "hello GET \n")
        connection.stream.cancel()
        withExtendedLifetime(local) {}
    }

    // A1.7
    @Test func `a connection over TLS is upgraded too`() async throws {
        let authority = try CertificateAuthority()
        let secure = try Self.daemon(tls: ServerTLS(authority.issue()))
        let trusting = makeManager { $0.tls.certificateAuthorities = authority.certificate }
        let connection = try await trusting.upgrade("https://localhost:\(secure.port)/exec", to: "tcp")
        #expect(try await text(connection) == "hello GET \n")
        connection.stream.cancel()
    }

    // A1.7
    @Test(
        arguments: [("/missing", 404, #"{"message":"No such container"}"#), ("/chunked", 400, "no way"), ("/other", 101, "")]
            as [(String, Int, String)])
    func `another status or protocol is a refusal, with its body`(_ path: String, _ status: Int, _ body: String) async throws {
        let error = try await #require(throws: UpgradeError.self) { try await manager.upgrade(server.url(path), to: "tcp") }
        guard case .upgradeRefused(let refusal) = error else { throw error }
        #expect(refusal.statusCode == status && String(decoding: refusal.body, as: UTF8.self) == body)
        #expect(!"\(error)\(refusal)".contains("container") && "\(error)".contains(status == 101 ? "another protocol" : "\(status)"))
        #expect(await server.waitForConnectionsToClose())
    }

    @Test(arguments: [("/garbage", "malformedResponse"), ("/closed", "connectionClosed")] as [(String, String)])
    func `what is no response is an error`(_ path: String, _ expected: String) async throws {
        let error = try await #require(throws: UpgradeError.self) { try await manager.upgrade(server.url(path), to: "tcp") }
        #expect(
            error == (expected == "malformedResponse" ? .malformedResponse : .connectionClosed) && error.localizedDescription == "\(error)")
        #expect(
            String(reflecting: error).hasSuffix(expected) || "\(error)".contains(expected == "malformedResponse" ? "HTTP/1.1" : "closed"))
        #expect(await server.waitForConnectionsToClose())
    }

    @Test func `a refusal whose body never ends is one, with the beginning of the body`() async throws {
        for (path, method, body) in [("/endless", HTTPMethod.get, "sorry"), ("/head", .head, "")] {
            let error = try await #require(throws: UpgradeError.self) {
                try await manager.upgrade(server.url(path), to: "tcp", method: method, timeout: nil)
            }
            guard case .upgradeRefused(let refusal) = error else { throw error }
            #expect(refusal.statusCode == 403 && String(decoding: refusal.body, as: UTF8.self) == body)
        }
        #expect(await server.waitForConnectionsToClose())
    }

    @Test func `a retrier decides about a refusal`() async throws {
        let seen = Log<Int?>()
        manager.retrier = Retrier { request, error, completion in
            if case UpgradeError.upgradeRefused(let refusal) = error { seen.append(refusal.statusCode) }
            completion(true, 0)
        }
        let connection = try await manager.upgrade(server.url("/flaky"), to: "tcp", method: .post, body: Data("x".utf8))
        #expect(seen.elements == [503, 503] && requests.elements.map(\.body) == Array(repeating: Data("x".utf8), count: 3))
        connection.stream.cancel()
        #expect(await server.waitForConnectionsToClose())
    }

    @Test func `cookies of a refusal are stored, and sent`() async throws {
        let manager = makeManager { $0.cookies = CookieStore() }
        await #expect(throws: UpgradeError.self) { try await manager.upgrade(server.url("/missing"), to: "tcp") }
        await #expect(throws: UpgradeError.self) { try await manager.upgrade(server.url("/missing"), to: "tcp") }
        #expect(requests.elements.map { $0.header("Cookie") } == [nil, "a=1"])
        let other = makeManager { $0.cookies = CookieStore() }
        other.adapter = Adapter { $0.httpShouldHandleCookies = false }
        await #expect(throws: UpgradeError.self) { try await other.upgrade(server.url("/missing"), to: "tcp") }
        other.adapter = nil
        await #expect(throws: UpgradeError.self) { try await other.upgrade(server.url("/missing"), to: "tcp") }
        #expect(requests.elements.last?.header("Cookie") == nil)
    }

    @Test(arguments: [("https://other.test/", false), ("http://127.0.0.1/page", true), (nil, true)] as [(String?, Bool)])
    func `cookies are those of a request with the main document that an adapter has set`(_ document: String?, _ isKept: Bool) async throws {
        let store = CookieStore()
        let manager = makeManager { $0.cookies = store }
        manager.adapter = Adapter { $0.mainDocumentURL = document.flatMap { URL(string: $0) } }
        await #expect(throws: UpgradeError.self) { try await manager.upgrade(server.url("/missing"), to: "tcp") }
        #expect(try store.cookies().map(\.name) == (isKept ? ["a"] : []))
        // It is not sent for a document of another site.
        try store.set(Cookie(name: "s", value: "1", domain: "127.0.0.1", sameSite: .strict))
        await #expect(throws: UpgradeError.self) { try await manager.upgrade(server.url("/missing"), to: "tcp") }
        let sent = try #require(requests.elements.last)
        #expect((sent.header("Cookie")?.hasSuffix("s=1") ?? false) == isKept)
    }

    @Test func `a server that never answers ends with the timeout, the deadline or the task`() async throws {
        for (options, timeout) in [(nil, Duration.milliseconds(50)), (RequestOptions(deadline: .milliseconds(50)), .seconds(60))] {
            let error = try await #require(throws: CurlewError.self) {
                try await manager.upgrade(server.url("/silent"), to: "tcp", options: options, timeout: timeout)
            }
            #expect(error.transferFailure?.kind == .deadline)
        }
        // Those before may have ended before the server has seen them.
        let (own, url) = (manager, server.url("/silent-too"))
        let task = Task { try await own.upgrade(url, to: "tcp") }
        #expect(await eventually { requests.elements.contains { $0.path == "/silent-too" } })
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(await server.waitForConnectionsToClose())
        #expect(await eventually { manager.requests.isEmpty })
    }

    @Test(arguments: ["PO ST", "CONNECT"] as [String]) func `an adapter's method has to be one`(_ method: String) async throws {
        manager.adapter = Adapter { $0.httpMethod = method }
        let error = try await #require(throws: CurlewError.self) { try await manager.upgrade(server.url("/exec"), to: "tcp") }
        guard case .urlRequestValidationFailed(.invalidMethod(method), _) = error else { throw error }
        #expect(requests.elements.isEmpty)
    }

    @Test(
        arguments: [
            ("ftp://localhost/", "tcp", nil), ("http://", "tcp", nil), ("http://localhost/#a", "tcp", nil),
            ("http://localhost/", "a\r\nb", "Upgrade"),
            ("http://localhost/", "tcp", "Connection"),
        ] as [(String, String, String?)])
    func `a request that can't be sent is an error`(_ url: String, _ name: String, _ field: String?) async throws {
        let headers: HTTPHeaders = field == "Connection" ? ["Connection": "close"] : [:]
        let error = try await #require(throws: CurlewError.self) { try await manager.upgrade(url, to: name, headers: headers) }
        #expect(error.invalidHeader == field)
    }
}
