// SPDX-License-Identifier: Apache-2.0
import CurlewAuth
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct OAuthClientTests {
    // A4.1: RFC 6749, section 2.3.1
    @Test func `a client authenticates by Basic, in the body, or not at all`() async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        for authentication in [.secret("s:/+ü"), .secretInBody("s&"), .none] as [OAuthClientAuthentication] {
            _ = try await server.client(authentication).tokens(by: .clientCredentials())
        }
        let requests = server.state.read { $0.tokenRequests }
        let expected = "Basic \(Data("app:s%3A/%2B%C3%BC".utf8).base64EncodedString())"
        #expect(requests.map { $0.request.header("Authorization") } == [expected, nil, nil])
        #expect(requests.map { $0.form["client_id"] } == [nil, ["app"], ["app"]])
        #expect(requests.map { $0.form["client_secret"] } == [nil, ["s&"], nil])
        #expect(requests.allSatisfy { $0.request.header("Accept") == "application/json" })
    }

    // A4.1: RFC 8693, 7523, 8707
    @Test func `grants have their parameters`() async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let client = server.client(.secret("s"))
        var exchange = OAuthTokenExchange { "subject" }
        (exchange.actor, exchange.actorType, exchange.requestedType) = ({ "actor" }, .jwt, .jwt)
        (exchange.audiences, exchange.resources, exchange.scope) = (["x", "y"], ["https://r.example/a", "https://r.example/b"], ["s"])
        _ = try await client.tokens(by: .tokenExchange(exchange))
        _ = try await client.tokens(by: .jwtBearer(scope: ["s"]) { "e.y.J" })
        _ = try await client.tokens(by: .other(type: "urn:x", parameters: { ["a": "b"] }))
        let type = "urn:ietf:params:oauth:token-type:"
        #expect(
            server.forms == [
                [
                    "grant_type": ["urn:ietf:params:oauth:grant-type:token-exchange"], "subject_token": ["subject"],
                    "subject_token_type": ["\(type)access_token"], "actor_token": ["actor"], "actor_token_type": ["\(type)jwt"],
                    "requested_token_type": ["\(type)jwt"], "audience": ["x", "y"], "scope": ["s"],
                    "resource": ["https://r.example/a", "https://r.example/b"],
                ],
                ["grant_type": ["urn:ietf:params:oauth:grant-type:jwt-bearer"], "assertion": ["e.y.J"], "scope": ["s"]],
                ["grant_type": ["urn:x"], "a": ["b"]],
            ])
    }

    @Test func `a refresh keeps what the response leaves out`() async throws {
        let server = try AuthorizationServer { _, _ in nil }
        defer { server.stop() }
        server.state.update { state in
            state.next = [
                { _ in .ok(#"{"access_token": "x", "token_type": "Bearer", "expires_in": "60"}"#, type: "application/json") }
            ]
        }
        let old = OAuthTokens(accessToken: "a0", refreshToken: "r0", scope: ["s"], idToken: "i")
        let tokens = try await server.client().refresh(old, scope: ["s"])
        #expect(tokens.accessToken == "x" && tokens.refreshToken == "r0" && tokens.scope == ["s"] && tokens.idToken == "i")
        let expiration = try #require(tokens.expiration)
        #expect((50...60).contains(expiration.timeIntervalSinceNow) && !tokens.requiresRefresh)
        #expect(server.forms == [["grant_type": ["refresh_token"], "refresh_token": ["r0"], "scope": ["s"], "client_id": ["app"]]])
        guard case OAuthError.signInRequired(nil)? = await error(of: { try await server.client().refresh(OAuthTokens(accessToken: "a")) })
        else {
            Issue.record("there was no refresh token")
            return
        }
    }

    // A4.1: RFC 6749, section 5.2
    @Test(
        arguments: [
            (#"{"error": "invalid_client"}"#, 401, "The authorization server has refused the request: invalid_client (status 401)."),
            (#"{"error": "invalid_scope"}"#, 200, "The authorization server has refused the request: invalid_scope (status 200)."),
            (
                #"{"access_token": "x", "token_type": "mac"}"#, 200,
                "The authorization server's response, of status 200, is not one: the body has no tokens of a known type."
            ),
            ("<html>", 500, "The authorization server's response, of status 500, is not one: the body has no error of OAuth."),
            ("", 307, "The authorization server's response, of status 307, is not one: the body has no error of OAuth."),
        ] as [(String, Int, String)])
    func `errors are types`(body: String, status: Int, description: String) async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let location = server.url("/elsewhere")
        server.state.update { state in
            state.next = [
                { _ in
                    var response = ServerResponse.ok(body, type: "application/json").header("Location", location)
                    response.status = status
                    return response
                }
            ]
        }
        let error = await AuthTests.error { try await server.client().tokens(by: .clientCredentials()) }
        #expect(error.map { "\($0)" } == description)
        // No redirect takes the secret elsewhere.
        #expect(server.requests.count == 1)
    }

    @Test func `a lifetime is short in proportion`() {
        func requiresRefresh(_ seconds: TimeInterval) -> Bool {
            OAuthTokens(accessToken: "a", expiration: Date(timeIntervalSinceNow: seconds)).requiresRefresh
        }
        #expect(!OAuthTokens(accessToken: "a").requiresRefresh && !requiresRefresh(30) && !requiresRefresh(3600) && requiresRefresh(-1))
    }

    @Test func `no description has a secret`() async throws {
        let tokens = OAuthTokens(accessToken: "hidden1", refreshToken: "hidden2", idToken: "hidden3")
        let client = OAuthClient(
            id: "app", authentication: .secret("hidden4"), server: .metadata(OAuthServerMetadata()), configuration: makeConfiguration())
        let store = MemoryTokenStore(tokens)
        let authenticator = OAuthAuthenticator(client, store: store)
        let refusal = OAuthError.unexpectedResponse(statusCode: 1, reason: "x")
        var text = ""
        for value in [tokens, client, client.authentication, store, authenticator, [tokens], refusal] as [Any] {
            dump(value, to: &text)
            text += "\(value)" + String(reflecting: value)
        }
        #expect(!text.contains("hidden") && text.contains("client_secret_basic"))
    }

    @Test func `a refusal shows no secret of its URL in reflection`() async throws {
        let page = "https://login.example/error?access_token=hidden1"
        let server = try AuthorizationServer { _, _ in try .json(["error": "invalid_scope", "error_uri": page]) }
        defer { server.stop() }
        let error = await AuthTests.error { try await server.client().tokens(by: .clientCredentials()) }
        guard case OAuthError.refused(let refusal)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(refusal.pageURL == page)
        var text = "\(refusal)"
        dump(refusal, to: &text)
        #expect(text.contains("invalid_scope") && !text.contains("hidden"))
    }

    // A4.1
    @Test(arguments: [
        "client_secret", "code", "code_verifier", "assertion", "client_assertion", "refresh_token", "subject_token", "actor_token",
        "access_token", "device_code", "id_token",
    ])
    func `a form and a URL have no secret in texts`(name: String) {
        let redaction = Redaction()
        #expect(!redaction.form("a=b&\(name)=hidden1").contains("hidden1"))
        #expect(!redaction.url("https://example.org/?\(name)=hidden1&a=b").contains("hidden1"))
        #expect(redaction.hides(header: "DPoP") && redaction.hides(header: "Authorization"))
    }
}

@Suite(.timeLimit(.minutes(1))) struct DiscoveryTests {
    private func client(_ issuer: String) -> OAuthClient {
        OAuthClient(id: "app", server: .issuer(issuer), configuration: makeConfiguration())
    }

    /// A server with one document, whose issuer is the server's URL with a suffix.
    private func makeServer(at path: String, issuer suffix: String) throws -> LoopbackServer {
        try LoopbackServer { request, _ in
            guard request.path == path else { return .status(404) }
            let host = "http://\(request.header("Host") ?? "")"
            return try .json(["issuer": host + suffix, "token_endpoint": host + "/token"])
        }
    }

    // A4.1: RFC 8414, section 3.1, and OpenID Connect Discovery
    @Test(
        arguments: [
            ("/.well-known/oauth-authorization-server", ""), ("/.well-known/openid-configuration", ""),
            ("/.well-known/oauth-authorization-server/a/b", "/a/b"), ("/.well-known/openid-configuration/a", "/a"),
            ("/a/.well-known/openid-configuration", "/a"),
        ] as [(String, String)])
    func `metadata are found once`(path: String, suffix: String) async throws {
        let server = try makeServer(at: path, issuer: suffix)
        defer { server.stop() }
        let client = client(server.url(suffix))
        #expect(try await client.metadata().tokenEndpoint == server.url("/token"))
        let count = server.requestCount
        #expect(try await client.metadata().issuer == server.url(suffix))
        #expect(server.requestCount == count)
    }

    @Test func `a document of another issuer is refused`() async throws {
        let server = try makeServer(at: "/.well-known/oauth-authorization-server", issuer: "/other")
        defer { server.stop() }
        let client = client(server.url(""))
        for _ in 0..<2 {
            let error = await AuthTests.error { try await client.metadata() }
            #expect(error.map { "\($0)" }?.hasSuffix("names another issuer.") == true)
        }
        #expect(server.requestCount == 2, "a failure is forgotten")
    }

    @Test(arguments: [
        "http://example.org", "http://127.example.org", "https://example.org/?a", "https://example.org/#a", "ftp://localhost",
        "example.org",
    ]) func `an issuer and an endpoint need TLS`(url: String) async throws {
        let error = await AuthTests.error { try await client(url).metadata() }
        #expect(error.map { "\($0)" }?.contains("https") == true)
        guard !url.hasPrefix("https:") else { return }
        let metadata = OAuthServerMetadata(tokenEndpoint: url)
        let insecure = OAuthClient(id: "app", server: .metadata(metadata), configuration: makeConfiguration())
        let second = await AuthTests.error { try await insecure.tokens(by: .clientCredentials()) }
        #expect(second.map { "\($0)" }?.contains("neither https nor on this computer") == true)
    }
}
