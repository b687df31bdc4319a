// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct AuthenticationTests {
    private let manager = makeManager()

    private static func basicServer() throws -> LoopbackServer { try LoopbackServer.standard() }

    private static let basicPath = "/auth-basic?user=user&password=p%C3%A4ss:word"

    // MARK: Basic

    @Test("Basic, in UTF-8") func basic() async throws {
        let server = try Self.basicServer()
        let text = try await manager.request(server.url(Self.basicPath)).authenticate(user: "user", password: "päss:word").validate()
            .serializingString().value
        #expect(text == "Welcome")
        #expect(server.requestCount == 2)
        #expect(server.connectionCount == 1)
    }

    @Test("user name and password of a URL are sent as Basic with the first request") func basicOfURL() async throws {
        let server = try Self.basicServer()
        let reply = try await manager.request("http://ada:s%3Acret@127.0.0.1:\(server.port)/echo").serializingDecodable(EchoReply.self)
            .value
        #expect(reply.header("Authorization") == "Basic " + Data("ada:s:cret".utf8).base64EncodedString())
        #expect(server.requestCount == 1)
    }

    @Test("a credential added after an immediate 401 is not lost") func credentialRace() async throws {
        let server = try LoopbackServer(recording: false, route: ServerRoutes.standard)
        let url = server.url(Self.basicPath)
        let lost = Log<Int>()
        await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask { [manager] in
                    for number in 0..<(Scale.requests / 8) {
                        let response = await manager.request(url).authenticate(user: "user", password: "päss:word").serializingString()
                            .response
                        if response.value != "Welcome" { lost.append(number) }
                    }
                }
            }
        }
        #expect(lost.count == 0)
        #expect(server.requestCount == 2 * (Scale.requests / 8) * 8)
    }

    @Test("a rejected password yields the 401 with its body, without an error") func rejected() async throws {
        let server = try DigestServer()
        let response = await manager.request(server.url("/")).authenticate(user: "user", password: "wrong").serializingString().response
        #expect(response.error == nil)
        #expect(response.response?.statusCode == 401)
        #expect(response.value == "who are you")
        #expect(server.server.requestCount == 2)
        let validated = await manager.request(server.url("/")).authenticate(user: "user", password: "wrong").validate().serializingString()
            .response
        #expect(validated.error?.unacceptableStatus == 401)
    }

    @Test("downloads, uploads and streamed bodies are authenticated as well") func kinds() async throws {
        let server = try DigestServer { request in .ok(request.body.isEmpty ? Data("welcome".utf8) : request.body) }
        let directory = try TemporaryDirectory()
        let download = await manager.download(server.url("/"), to: directory.file("file")).authenticate(user: "user", password: "password")
            .validate().serializingString().response
        #expect(download.value == "welcome")
        let body = GeneratedBody().data(count: 3_000_000)
        let file = try directory.write(body, to: "body")
        let fromMemory = await manager.upload(body, to: server.url("/")).authenticate(user: "user", password: "password")
            .serializingData().response
        #expect(fromMemory.value == body)
        let fromFile = await manager.upload(file, to: server.url("/")).authenticate(user: "user", password: "password")
            .serializingData().response
        #expect(fromFile.value == body)
        // A stream can be sent once: with the nonce that the server has accepted, and not after a challenge.
        for (manager, status) in [(manager, 200), (makeManager(), 401)] {
            let stream = manager.upload(InputStream(data: Data(count: 1000)), to: server.url("/"), method: .put)
                .authenticate(user: "user", password: "password")
            let response = await stream.serializingData().response
            #expect(response.error == nil && response.response?.statusCode == status)
        }
        var streamed = Data()
        for try await piece in manager.streamRequest(server.url("/")).authenticate(user: "user", password: "password").bodyStream() {
            streamed += piece
        }
        #expect(streamed == Data("welcome".utf8))
    }

    @Test("after a 401 before the end of the upload the request is repeated with credentials") func earlyRejection() async throws {
        let refusal = ServerResponse(status: 401, headers: [ServerField("WWW-Authenticate", "Basic realm=x")])
        let server = try LoopbackServer(bodies: { $0.header("Authorization") == nil ? .refused(refusal) : .counted }) { request, _ in
            .ok("\(request.bodyLength)")
        }
        let body = GeneratedBody().data(count: 20_000_000)
        let response = await manager.upload(body, to: server.url("/")).authenticate(user: "a", password: "b").serializingString().response
        #expect(response.value == "20000000")
    }

    @Test("the body of a long 401 is discarded at the cost of at most a connection") func longRejection() async throws {
        let server = try LoopbackServer { request, _ in
            guard request.header("Authorization") == nil else { return .ok("welcome") }
            return ServerResponse(
                status: 401, headers: [ServerField("WWW-Authenticate", "Basic realm=x")], body: .generated(length: 1 << 30))
        }
        let response = await manager.request(server.url("/")).authenticate(user: "a", password: "b").serializingString().response
        #expect(response.value == "welcome")
    }

    // MARK: Digest

    @Test(
        "Digest",
        arguments: [
            DigestServer.Behavior(), .init(algorithm: "SHA-256"), .init(algorithm: "MD5-sess"), .init(algorithm: "SHA-256-sess"),
            .init(algorithm: nil), .init(algorithm: nil, qop: nil), .init(qop: "auth-int,auth"),
            .init(algorithm: "SHA-256", hashesUser: true),
        ])
    func digest(_ behavior: DigestServer.Behavior) async throws {
        let server = try DigestServer(behavior)
        for (method, path) in [(HTTPMethod.get, "/"), (.post, "/a%20b?c=%22d%22,e"), (.delete, "?x")] {
            let response = await manager.request(server.url(path), method: method).authenticate(user: "user", password: "password")
                .serializingString().response
            #expect(response.value == "welcome")
        }
    }

    @Test("non-ASCII user names") func digestNames() async throws {
        let server = try DigestServer(.init(algorithm: "SHA-256", user: #"Jäsøn "J" Doe"#))
        let response = await manager.request(server.url("/")).authenticate(user: #"Jäsøn "J" Doe"#, password: "password")
            .serializingString()
            .response
        #expect(response.value == "welcome")
    }

    @Test("a stale nonce is renewed once within a task") func stale() async throws {
        let server = try DigestServer(.init(uses: 1)) { request in
            request.path == "/" ? .redirect(to: "/next") : .ok("welcome")
        }
        let response = await manager.request(server.url("/")).authenticate(user: "user", password: "password").serializingString().response
        #expect(response.value == "welcome")
        #expect(server.server.requests.map(\.path) == ["/", "/", "/next", "/next"])
        let never = try DigestServer(.init(uses: 0))
        let refused = await manager.request(never.url("/")).authenticate(user: "user", password: "password").serializingString().response
        #expect(refused.error == nil && refused.response?.statusCode == 401)
        #expect(never.server.requestCount == 3)
    }

    @Test("a redirect to another origin is followed without the credential") func redirect() async throws {
        let other = try LoopbackServer { _, _ in
            ServerResponse(status: 401, headers: [ServerField("WWW-Authenticate", "Basic realm=\"phishing\"")])
        }
        let target = other.url("/")
        let server = try DigestServer { _ in .redirect(to: target, status: 307) }
        let response = await manager.request(server.url("/"), method: .post).authenticate(user: "user", password: "password")
            .serializingData().response
        #expect(response.response?.statusCode == 401)
        #expect(response.response?.url?.absoluteString == target)
        #expect(other.requests.map { $0.header("Authorization") } == [nil])
    }

    // MARK: libcurl's schemes

    @Test("NTLM, with a body that is sent after authentication", .enabled(if: CurlInfo.current.supportsNTLM)) func ntlm() async throws {
        let server = try LoopbackServer(route: NTLMScript.route(user: "alice"))
        let url = server.url("/")
        let response = await manager.upload(Data("order".utf8), to: url).authenticate(user: "DOMAIN\\alice", password: "secret").validate()
            .serializingString().response
        #expect(response.value == "welcome order")
        #expect(server.requests.compactMap { NTLMScript.message($0)?.number } == [1, 3])
        let refused = await manager.request(url).authenticate(user: "bob", password: "secret").serializingString().response
        #expect(refused.error == nil && refused.response?.statusCode == 401)
        #expect(refused.value == "refused")
    }

    @Test("Negotiate without tickets yields the 401", .enabled(if: CurlInfo.current.supportsNegotiate)) func negotiate() async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 401, headers: [ServerField("WWW-Authenticate", "Negotiate")], body: .data(Data("no".utf8)))
        }
        let tickets = URLCredential(user: "", password: "", persistence: .none)
        let response = await manager.request(server.url("/")).authenticate(usingCredential: tickets).serializingString().response
        #expect(response.error == nil && response.value == "no")
        #expect(server.requestCount <= 3)
    }

    // MARK: Sessions

    @Test("an accepted credential is used for the session's other requests to the same protection space") func storage() async throws {
        let storage = URLCredentialStorage()
        let manager = makeManager { $0.credentialStorage = storage }
        let server = try DigestServer()
        _ = try await manager.request(server.url("/a")).authenticate(user: "user", password: "password").validate().serializingData().value
        let response = await manager.request(server.url("/b")).serializingString().response
        #expect(response.value == "welcome")
        let other = try DigestServer()
        #expect(await manager.request(other.url("/")).serializingData().response.response?.statusCode == 401)
    }

    @Test("a challenge closure may complete asynchronously") func closure() async throws {
        let server = try DigestServer()
        let seen = Log<URLAuthenticationChallenge>()
        manager.delegate.taskDidReceiveChallenge = { _, _, challenge, completion in
            seen.append(challenge)
            let password = challenge.previousFailureCount == 0 ? "wrong" : "password"
            callbackQueue.async { completion(.useCredential, URLCredential(user: "user", password: password, persistence: .none)) }
        }
        #expect(await manager.request(server.url("/")).serializingString().response.value == "welcome")
        #expect(seen.elements.map(\.previousFailureCount) == [0, 1])
        #expect(seen.elements.map(\.protectionSpace.port) == [server.server.port, server.server.port])
        #expect(seen.elements[0].protectionSpace.realm == #"loop, "back""#)
        #expect(seen.elements[0].protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPDigest)
    }

    // MARK: Other servers

    @Test("httpbin's Basic", .needsHttpbin, arguments: ["/basic-auth/user/passwd", "/hidden-basic-auth/user/passwd"])
    func httpbinBasic(_ path: String) async throws {
        let url = try Servers.httpbin() + path
        let isHidden = path.hasPrefix("/hidden")
        let response = await manager.request(url).authenticate(user: "user", password: "passwd").validate().serializingData().response
        #expect(response.response?.statusCode == (isHidden ? 404 : 200))
        let header = try #require(Request.authorizationHeader(user: "user", password: "passwd"))
        let unasked = await manager.request(url, headers: [header.key: header.value]).validate().serializingData().response
        #expect(unasked.response?.statusCode == 200)
    }

    @Test("httpbin's Digest", .needsHttpbin, arguments: ["auth/user/passwd", "auth/user/passwd/MD5", "auth/user/passwd/SHA-256"])
    func httpbinDigest(_ path: String) async throws {
        let url = try Servers.httpbin() + "/digest-auth/" + path
        let good = await manager.request(url).authenticate(user: "user", password: "passwd").validate().serializingData().response
        #expect(good.error == nil && good.response?.statusCode == 200)
        let bad = await manager.request(url).authenticate(user: "user", password: "wrong").serializingData().response
        #expect(bad.error == nil && bad.response?.statusCode == 401)
        #expect(bad.metrics.transactionMetrics.count == 2)
    }

    @Test("nginx's Basic over TLS", .needsNginx) func nginxBasic() async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        for url in [nginx.tls, nginx.tlsHTTP1] {
            let response = await manager.request(url + "/auth").authenticate(user: "user", password: "passwd").validate().serializingData()
                .response
            #expect(response.error == nil)
            let refused = await manager.request(url + "/auth").authenticate(user: "user", password: "wrong").serializingData().response
            #expect(refused.error == nil && refused.response?.statusCode == 401)
        }
    }
}
