// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewTesting
import CurlewURLSession
import CurlewWebSocket
import Testing

/// The challenges of a WebSocket task's handshake: credentials, the trust in servers, client certificates.
@Suite(.timeLimit(.minutes(1))) struct WebSocketChallengeTests {
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

    // MARK: Credentials

    private static let user = "user", password = "secret"

    /// A server that wants credentials in a scheme.
    private func protected(_ challenge: String, _ isValid: @escaping @Sendable (String) -> Bool) throws -> WebSocketServer {
        try makeEchoSocketServer(answer: { request in
            isValid(request.header("Authorization") ?? "") ? nil : socketHead("401 Unauthorized", "WWW-Authenticate: \(challenge)")
        })
    }

    // U2.4
    @Test(arguments: [false, true])
    func `a challenge for Basic is answered by the delegate, after a wrong answer again`(isAsync: Bool) async throws {
        let valid = "Basic " + Data("user:secret".utf8).base64EncodedString()
        let server = try protected("Basic realm=\"r\"") { $0 == valid }
        defer { server.stop() }
        let answers = ConnectionAnswers(challenge: { challenge in
            #expect(challenge.protectionSpace.realm == "r")
            #expect((challenge.failureResponse as? HTTPURLResponse)?.statusCode == 401)
            let password = challenge.previousFailureCount == 0 ? "wrong" : Self.password
            return (.useCredential, URLCredential(user: Self.user, password: password, persistence: .forSession))
        })
        let (handler, async) = (SocketHandlerDecisions(answers), SocketAsyncDecisions(answers))
        let task = session.webSocketTask(with: try request(server.url()))
        task.delegate = isAsync ? async : handler
        task.resume()
        try await task.send(.string("x"))
        #expect(try await task.receive().text == "x")
        let method = NSURLAuthenticationMethodHTTPBasic
        #expect((isAsync ? async.events : handler.events).elements == ["challenge \(method) 0", "challenge \(method) 1"])
        #expect(server.requests.count == 3)
        #expect(server.requests.first?.header("Authorization") == nil)
        task.cancel()
        // The credential was accepted, and so stored: another session with the same storage sends it.
        let other = URLSession(configuration: configuration)
        defer { other.invalidateAndCancel() }
        let second = other.webSocketTask(with: try request(server.url()))
        second.resume()
        try await second.send(.string("y"))
        #expect(try await second.receive().text == "y")
        second.cancel()
    }

    // U2.4
    @Test func `Digest is answered, and preferred to Basic; a redirect to another origin does not take the answer along`() async throws {
        let target = try makeEchoSocketServer()
        defer { target.stop() }
        let location = target.url()
        let server = try makeEchoSocketServer(answer: { request in
            let given = request.header("Authorization") ?? ""
            let isValid =
                given.hasPrefix("Digest username=\"user\"") && given.contains("uri=\"/path?q=1\"") && given.contains("nonce=\"n\"")
            return isValid
                ? socketHead("302 Found", "Location: \(location)")
                : socketHead("401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\", Digest realm=\"r\", nonce=\"n\", qop=\"auth\"")
        })
        defer { server.stop() }
        let asked = SocketHandlerDecisions(
            ConnectionAnswers(challenge: { _ in
                (.useCredential, URLCredential(user: Self.user, password: Self.password, persistence: .none))
            }))
        let task = session.webSocketTask(with: try request(server.url("/path?q=1")))
        task.delegate = asked
        task.resume()
        try await task.send(.string("x"))
        #expect(asked.events.elements == ["challenge \(NSURLAuthenticationMethodHTTPDigest) 0", "redirect 302"])
        #expect(target.requests.first?.header("Authorization") == nil)
        task.cancel()
    }

    // U2.4
    @Test func `a challenge that is not answered is the response, and one that is cancelled cancels the task`() async throws {
        let server = try protected("Basic realm=\"r\"") { _ in false }
        defer { server.stop() }
        let unanswered: [(ConnectionAnswers?, count: Int)] = [
            (nil, 1), (ConnectionAnswers(challenge: { _ in (.rejectProtectionSpace, nil) }), 1),
            (ConnectionAnswers(challenge: { _ in (.useCredential, nil) }), 1),
        ]
        for (answers, count) in unanswered {
            let before = server.requests.count
            let task = session.webSocketTask(with: try request(server.url()))
            task.delegate = answers.map { SocketAsyncDecisions($0) }
            task.resume()
            #expect(await end(of: task)?.code == .badServerResponse)
            #expect((task.response as? HTTPURLResponse)?.statusCode == 401)
            #expect(server.requests.count - before == count)
        }
        let task = session.webSocketTask(with: try request(server.url()))
        task.delegate = SocketHandlerDecisions(ConnectionAnswers(challenge: { _ in (.cancelAuthenticationChallenge, nil) }))
        task.resume()
        #expect(await end(of: task)?.code == .cancelled)
    }

    // U2.4
    @Test func `a server that always wants another credential is not answered for ever`() async throws {
        let server = try protected("Basic realm=\"r\"") { _ in false }
        defer { server.stop() }
        let task = session.webSocketTask(with: try request(server.url()))
        task.delegate = SocketHandlerDecisions(
            ConnectionAnswers(challenge: { _ in
                (.useCredential, URLCredential(user: Self.user, password: Self.password, persistence: .none))
            }))
        task.resume()
        #expect(await end(of: task)?.code == .badServerResponse)
        #expect(server.requests.count == 11)
    }

    // U2.4
    @Test func `user name and password of the URL are sent`() async throws {
        let server = try makeEchoSocketServer()
        defer { server.stop() }
        let task = session.webSocketTask(with: try request("ws://user:secret@127.0.0.1:\(server.port)/"))
        task.resume()
        try await task.send(.string("x"))
        #expect(server.requests.first?.header("Authorization") == "Basic " + Data("user:secret".utf8).base64EncodedString())
        task.cancel()
    }

    // MARK: TLS

    /// A server with a certificate that is not known, which sends one message to each WebSocket.
    private func secureServer() throws -> LoopbackServer {
        try LoopbackServer(tls: ServerTLS.throwAway().tls) { request, connection in
            let accept = WebSocketHandshake.accept(for: request.header("Sec-WebSocket-Key") ?? "")
            let lines = ["HTTP/1.1 101 x", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: \(accept)", "", ""]
            try connection.send(raw: lines.joined(separator: "\r\n"))
            try connection.send(raw: WebSocketPeer.frame(.text, Data("secure".utf8)))
            connection.waitUntilClosed()
            return nil
        }
    }

    // U2.4
    @Test func `the trust in a server is the delegate's decision, that of the session's too`() async throws {
        let server = try secureServer()
        defer { server.stop() }
        let url = "wss://localhost:\(server.port)/"
        let asked = SocketAsyncDecisions(.acceptingServer)
        let task = session.webSocketTask(with: try request(url))
        task.delegate = asked
        task.resume()
        #expect(try await task.receive().text == "secure")
        #expect(asked.events.elements == ["challenge NSURLAuthenticationMethodServerTrust 0"])
        task.cancel()
        let accepting = URLSession(configuration: configuration, delegate: SocketSessionChallenges(.acceptingServer), delegateQueue: nil)
        defer { accepting.invalidateAndCancel() }
        let second = accepting.webSocketTask(with: try request(url))
        second.resume()
        #expect(try await second.receive().text == "secure")
        second.cancel()
        #expect(server.requestCount == 2)
    }

    // U2.4
    @Test func `a server that is not trusted gets no handshake`() async throws {
        let server = try secureServer()
        defer { server.stop() }
        for decisions in [SocketHandlerDecisions(.rejectingServer), SocketHandlerDecisions(ConnectionAnswers())] {
            let task = session.webSocketTask(with: try request("wss://localhost:\(server.port)/"))
            task.delegate = decisions
            task.resume()
            #expect(await failureCode { try await task.receive() } != nil)
            #expect(await end(of: task) != nil)
            #expect(decisions.events.count == 1)
            #expect(task.response == nil)
        }
        #expect(server.requestCount == 0)
    }

    // U2.4
    @Test func `the trust in the target of a redirect is asked about, too`() async throws {
        let target = try secureServer()
        defer { target.stop() }
        let location = "https://localhost:\(target.port)/"
        let server = try makeEchoSocketServer(answer: { _ in socketHead("302 Found", "Location: \(location)") })
        defer { server.stop() }
        let asked = SocketHandlerDecisions(.acceptingServer)
        let task = session.webSocketTask(with: try request(server.url()))
        task.delegate = asked
        task.resume()
        #expect(try await task.receive().text == "secure")
        #expect(asked.events.elements == ["redirect 302", "challenge NSURLAuthenticationMethodServerTrust 0"])
        #expect(task.currentRequest?.url?.scheme == "wss")
        task.cancel()
    }

    // U2.4
    @Test func `a redirect to another origin presents no client certificate, one to the same origin does`() async throws {
        let authority = try CertificateAuthority()
        let clients = try CertificateAuthority(name: "Clients")
        let identity = try clients.issue("Numenius", usage: .client)
        configuration.curlew.tls.certificateAuthorities = authority.certificate
        configuration.curlew.tls.clientCertificate = .pem(Data(identity.chain.utf8), key: Data(identity.key.utf8))
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let tls = ServerTLS(try authority.issue(), clientAuthority: clients)
        let names = Log<String?>()
        let target = try LoopbackServer(tls: tls) { _, _ in .ok("reached") }
        defer { target.stop() }
        let location = target.url("/")
        let server = try LoopbackServer(tls: tls) { request, connection in
            names.append(connection.tls?.clientName)
            try connection.send(raw: socketHead("307 Moved", "Location: \(request.path == "/first" ? "/second" : location)"))
            connection.waitUntilClosed()
            return nil
        }
        defer { server.stop() }
        let task = session.webSocketTask(with: try request("wss://localhost:\(server.port)/first"))
        task.resume()
        #expect(await end(of: task) != nil)
        #expect(names.elements == ["Numenius", "Numenius"])
        #expect(task.currentRequest?.url?.port == target.port)
        #expect(target.requestCount == 0)
        #expect(await eventually { !target.handshakeFailures.isEmpty })
    }
}
