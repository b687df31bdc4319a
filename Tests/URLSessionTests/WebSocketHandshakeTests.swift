// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewTesting
import CurlewURLSession
import CurlewWebSocket
import Testing

/// The handshake of WebSocket tasks: rejections and redirects. Challenges: `WebSocketChallengeTests`.
@Suite(.timeLimit(.minutes(1))) struct WebSocketHandshakeTests {
    private let delegate = ConnectionDelegate()
    private let configuration: URLSessionConfiguration
    private let session: URLSession

    init() {
        configuration = .ephemeral
        configuration.httpAdditionalHeaders = ["X-Shared": "s", "X-Api-Key": "session-key"]
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    private func request(_ url: String) throws -> URLRequest { URLRequest(url: try #require(URL(string: url))) }

    private func end(of task: URLSessionWebSocketTask) async -> URLError? {
        #expect(await eventually { task.state == .completed })
        return task.error as? URLError
    }

    // U2.4
    @Test func `subprotocols are offered, and the delegate gets the server's choice`() async throws {
        let server = try makeEchoSocketServer(fields: { _ in ["Sec-WebSocket-Protocol: v2"] })
        defer { server.stop() }
        let task = session.webSocketTask(with: try #require(URL(string: server.url())), protocols: ["v1", "v2"])
        task.resume()
        #expect(await delegate.events.first() == "open v2")
        #expect(server.requests.first?.header("Sec-WebSocket-Protocol") == "v1, v2")
        task.cancel()
        var request = try request(server.url("/#part"))
        request.setValue("v2", forHTTPHeaderField: "Sec-WebSocket-Protocol")
        request.setValue("mine", forHTTPHeaderField: "Sec-WebSocket-Key")
        request.setValue("close", forHTTPHeaderField: "Connection")
        request.setValue("1", forHTTPHeaderField: "X-Mine")
        let second = session.webSocketTask(with: request)
        second.resume()
        await delegate.events.wait(for: 3)
        #expect(delegate.events.elements.filter { $0 == "open v2" }.count == 2)
        let sent = try #require(server.requests.last)
        #expect(sent.header("X-Mine") == "1")
        #expect(sent.header("X-Shared") == "s")
        #expect(sent.header("Sec-WebSocket-Key") != "mine")
        #expect(sent.header("Connection") == "Upgrade")
        second.cancel()
    }

    // U2.4
    @Test func `a rejected handshake is a bad server response, which the task has`() async throws {
        let server = try makeSocketServer(answer: { _ in socketHead("403 Forbidden", "X-Why: no") }) { $0.waitUntilClosed() }
        defer { server.stop() }
        let task = session.webSocketTask(with: try request(server.url()))
        let sending = Task { try await task.send(.string("x")) }
        let log = Log<URLError.Code?>()
        task.receive { if case .failure(let error) = $0 { log.append((error as? URLError)?.code) } }
        task.resume()
        #expect(await failureCode { try await sending.value } == .badServerResponse)
        #expect(await log.first() == .badServerResponse)
        await delegate.events.wait(for: 1)
        #expect(delegate.events.elements == ["complete"])
        #expect(delegate.errors.elements.map { $0?.code } == [.badServerResponse])
        let response = try #require(task.response as? HTTPURLResponse)
        #expect((response.statusCode, response.value(forHTTPHeaderField: "X-Why")) == (403, "no"))
        #expect(await server.waitForConnectionsToClose())
    }

    // U2.4, U3.5
    @Test func `cookies of a handshake are accepted by the request's main document`() async throws {
        let server = try makeSocketServer(answer: { _ in socketHead("403 Forbidden", "Set-Cookie: a=1") }) { $0.waitUntilClosed() }
        defer { server.stop() }
        for (document, count) in [("https://other.test/", 0), ("http://127.0.0.1/page", 1)] {
            var request = try request(server.url())
            request.mainDocumentURL = URL(string: document)
            let task = session.webSocketTask(with: request)
            task.resume()
            #expect(await failureCode { try await task.receive() } == .badServerResponse)
            #expect(configuration.httpCookieStorage?.cookies?.count == count)
        }
    }

    // U2.4
    @Test func `the response of a rejected handshake is known as soon as receiving fails because of it`() async throws {
        let server = try makeSocketServer(answer: { _ in socketHead("403 Forbidden") }) { $0.waitUntilClosed() }
        defer { server.stop() }
        // The end of the task comes at the same time.
        for _ in 1...20 {
            let task = session.webSocketTask(with: try request(server.url()))
            task.resume()
            #expect(await failureCode { try await task.receive() } == .badServerResponse)
            #expect((task.response as? HTTPURLResponse)?.statusCode == 403)
            #expect((task.error as? URLError)?.code == .badServerResponse)
        }
    }

    // U2.4
    @Test(arguments: [
        ("ftp://127.0.0.1/", [], URLError.Code.unsupportedURL), ("ws://127.0.0.1:1/", [], .cannotConnectToHost),
        ("ws://127.0.0.1:1/", ["a b"], .badURL), ("nothing", [], .unsupportedURL),
    ])
    func `what can't be opened fails with the code that Apple has for it`(
        url: String, protocols: [String], expected: URLError.Code
    ) async throws {
        let task = session.webSocketTask(with: try #require(URL(string: url)), protocols: protocols)
        task.resume()
        #expect(await failureCode { try await task.receive() } == expected)
        #expect(await end(of: task)?.code == expected)
    }

    // U2.4
    @Test func `a server that ends the connection in place of a response is a bad one, as is one that does not switch`() async throws {
        let silent = try LoopbackServer { _, connection in
            connection.close()
            return nil
        }
        defer { silent.stop() }
        let wrong = try makeSocketServer(answer: { _ in
            "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n"
        }) { $0.waitUntilClosed() }
        defer { wrong.stop() }
        for url in ["ws://127.0.0.1:\(silent.port)/", wrong.url()] {
            let task = session.webSocketTask(with: try request(url))
            task.resume()
            #expect(await end(of: task)?.code == .badServerResponse)
        }
    }

    // MARK: Redirects

    // U2.4
    @Test func `a redirect to the same origin takes credentials along, and the cookie that it sets`() async throws {
        let server = try makeEchoSocketServer(answer: { request in
            request.target == "/first" ? socketHead("302 Found", "Location: /second", "Set-Cookie: seen=1; Path=/") : nil
        })
        defer { server.stop() }
        let asked = SocketHandlerDecisions(
            ConnectionAnswers(redirect: { response, proposed in
                var request = proposed
                request.setValue("\(response.statusCode)", forHTTPHeaderField: "X-Redirect")
                return request
            }))
        var request = try request(server.url("/first"))
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        request.setValue("own=1", forHTTPHeaderField: "Cookie")
        let task = session.webSocketTask(with: request)
        task.delegate = asked
        let early = Task { try await task.send(.string("early")) }
        task.resume()
        try await early.value
        #expect(try await task.receive().text == "early")
        #expect(asked.events.elements == ["redirect 302"])
        #expect(server.requests.map(\.target) == ["/first", "/second"])
        let second = try #require(server.requests.last)
        #expect(second.header("Authorization") == "Bearer secret")
        #expect(second.header("Cookie") == "own=1; seen=1")
        #expect(second.header("X-Api-Key") == "session-key")
        #expect(second.header("X-Redirect") == "302")
        #expect(task.originalRequest?.url?.path == "/first")
        #expect(task.currentRequest?.url?.absoluteString == server.url("/second"))
        #expect((task.response as? HTTPURLResponse)?.url?.absoluteString == server.url("/second"))
        task.cancel()
    }

    // U2.4
    @Test(arguments: [301, 302, 303, 307, 308])
    func `a redirect to another origin takes no credentials along`(status: Int) async throws {
        let target = try makeEchoSocketServer()
        defer { target.stop() }
        // Some servers name the scheme of WebSockets, others that of HTTP.
        let location = status == 302 ? target.url("/") : target.url("/").replacingOccurrences(of: "ws:", with: "http:")
        let server = try makeEchoSocketServer(answer: { _ in
            socketHead("\(status) Moved", "Location: \(location)", "Set-Cookie: a=1; Path=/never")
        })
        defer { server.stop() }
        let asked = SocketAsyncDecisions(ConnectionAnswers())
        var request = try request(server.url())
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        request.setValue("own=1", forHTTPHeaderField: "Cookie")
        request.setValue("1", forHTTPHeaderField: "X-Plain")
        let task = session.webSocketTask(with: request)
        task.delegate = asked
        task.resume()
        try await task.send(.string("x"))
        #expect(try await task.receive().text == "x")
        #expect(asked.events.elements == ["redirect \(status)"])
        let sent = try #require(target.requests.first)
        #expect(sent.header("X-Plain") == "1")
        #expect(sent.header("X-Shared") == "s")
        for name in ["Authorization", "Cookie", "X-Api-Key"] { #expect(sent.header(name) == nil) }
        #expect(server.requests.first?.header("X-Api-Key") == "session-key")
        task.cancel()
    }

    // U2.4
    @Test func `a delegate that changes a redirect's origin does not take credentials there`() async throws {
        let target = try makeEchoSocketServer()
        defer { target.stop() }
        let server = try makeEchoSocketServer(answer: { _ in socketHead("302 Found", "Location: /next") })
        defer { server.stop() }
        let other = URL(string: target.url())
        let asked = SocketHandlerDecisions(
            ConnectionAnswers(redirect: { _, proposed in
                var request = proposed
                request.url = other
                request.setValue("for the other", forHTTPHeaderField: "X-Auth-Token")
                return request
            }))
        var request = try request(server.url())
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        let task = session.webSocketTask(with: request)
        task.delegate = asked
        task.resume()
        try await task.send(.string("x"))
        let sent = try #require(target.requests.first)
        #expect(sent.header("Authorization") == nil)
        #expect(sent.header("X-Auth-Token") == "for the other")
        task.cancel()
    }

    // U2.4
    @Test(arguments: ["302 Found", "401 Unauthorized"])
    func `a redirect or a challenge with Retry-After is followed at once, as for other tasks`(status: String) async throws {
        let server = try makeEchoSocketServer(answer: { request in
            request.target == "/next" || request.header("Authorization") != nil
                ? nil : socketHead(status, "Location: /next", "WWW-Authenticate: Basic realm=\"r\"", "Retry-After: 600")
        })
        defer { server.stop() }
        let asked = SocketHandlerDecisions(
            ConnectionAnswers(challenge: { _ in (.useCredential, URLCredential(user: "u", password: "p", persistence: .none)) }))
        let task = session.webSocketTask(with: try request(server.url()))
        task.delegate = asked
        task.resume()
        try await task.send(.string("x"))
        #expect(try await task.receive().text == "x")
        #expect(asked.events.count == 1 && server.requests.count == 2)
        task.cancel()
    }

    // U2.4
    @Test func `a redirect that the delegate declines is the response`() async throws {
        let server = try makeEchoSocketServer(answer: { _ in socketHead("302 Found", "Location: /next") })
        defer { server.stop() }
        let task = session.webSocketTask(with: try request(server.url()))
        task.delegate = SocketAsyncDecisions(ConnectionAnswers(redirect: { _, _ in nil }))
        task.resume()
        #expect(await end(of: task)?.code == .badServerResponse)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 302)
        #expect(server.requests.count == 1)
    }

    // U2.4
    @Test func `the twenty-first redirect fails the task, as does one from TLS to none`() async throws {
        let server = try makeEchoSocketServer(answer: { _ in socketHead("307 Again", "Location: /next") })
        defer { server.stop() }
        let task = session.webSocketTask(with: try request(server.url()))
        task.resume()
        #expect(await end(of: task)?.code == .httpTooManyRedirects)
        #expect(server.requests.count == 21)
        let (tls, authority) = try ServerTLS.throwAway()
        let secure = try LoopbackServer(tls: tls) { _, connection in
            try connection.send(raw: socketHead("302 Found", "Location: ws://127.0.0.1:1/"))
            connection.waitUntilClosed()
            return nil
        }
        defer { secure.stop() }
        configuration.curlew.tls.certificateAuthorities = authority.certificate
        let trusting = URLSession(configuration: configuration)
        defer { trusting.invalidateAndCancel() }
        let second = trusting.webSocketTask(with: try request("wss://localhost:\(secure.port)/"))
        second.resume()
        #expect(await end(of: second)?.code == .appTransportSecurityRequiresSecureConnection)
    }

    // U2.4
    @Test(arguments: ["302 Found", "401 Unauthorized"])
    func `a task is cancelled while its delegate decides, and nothing of it stays`(status: String) async throws {
        let server = try makeEchoSocketServer(answer: { _ in
            socketHead(status, "Location: /next", "WWW-Authenticate: Basic realm=\"r\"")
        })
        defer { server.stop() }
        let silent = SocketSilentDecisions()
        weak var released: URLSessionWebSocketTask?
        do {
            let task = session.webSocketTask(with: try request(server.url()))
            released = task
            task.delegate = silent
            task.resume()
            #expect(await silent.asked.first() == (status.hasPrefix("302") ? "redirect" : "challenge"))
            task.cancel()
            #expect(await end(of: task)?.code == .cancelled)
        }
        #expect(server.requests.count == 1)
        #expect(await server.waitForConnectionsToClose())
        #expect(await eventually { released == nil })
    }
}
