// SPDX-License-Identifier: Apache-2.0
import CurlewAuth
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct InspectionTests {
    // A4.1: RFC 7009
    @Test func `tokens are revoked`() async throws {
        let server = try AuthorizationServer { request, form in
            guard request.path == "/revoke" else { return nil }
            return form["token"] == ["bad"] ? try AuthorizationServer.error("unsupported_token_type") : .ok()
        }
        defer { server.stop() }
        let client = server.client(.secret("s")) { $0.revocationEndpoint = server.url("/revoke") }
        try await client.revoke(OAuthTokens(accessToken: "a", refreshToken: "r"))
        try await client.revoke(OAuthTokens(accessToken: "a"))
        try await client.revoke("x")
        let forms = server.requests.map { AuthorizationServer.form(String(decoding: $0.body, as: UTF8.self)) }
        #expect(
            forms == [
                ["token": ["r"], "token_type_hint": ["refresh_token"]], ["token": ["a"], "token_type_hint": ["access_token"]],
                ["token": ["x"]],
            ])
        #expect(server.requests.allSatisfy { $0.header("Authorization")?.hasPrefix("Basic ") == true })
        guard case OAuthError.refused(let refusal)? = await error(of: { try await client.revoke("bad") }) else {
            Issue.record("not refused")
            return
        }
        #expect(refusal.code.rawValue == "unsupported_token_type")
        guard case OAuthError.missingEndpoint("revocation_endpoint")? = await error(of: { try await server.client().revoke("x") }) else {
            Issue.record("an endpoint was found")
            return
        }
    }

    // A4.1: RFC 7662
    @Test func `tokens are inspected`() async throws {
        let server = try AuthorizationServer { request, form in
            guard request.path == "/introspect" else { return nil }
            guard form["token"] == ["a"] else { return .ok(#"{"active": false}"#) }
            return .ok(#"{"active": true, "scope": "a b", "client_id": "c", "sub": "s", "exp": 1419356238, "ext": {"x": 1}}"#)
        }
        defer { server.stop() }
        let client = server.client(.secret("s")) { $0.introspectionEndpoint = server.url("/introspect") }
        let token = try await client.introspect("a", .accessToken)
        #expect(token.isActive && token.scope == ["a", "b"] && token.clientID == "c" && token.subject == "s")
        #expect(token.expiration == Date(timeIntervalSince1970: 1_419_356_238) && token.members["ext"] == .object(["x": .integer(1)]))
        #expect(try await client.introspect("b").isActive == false)
    }

    // A4.1: RFC 7591
    @Test func `a program registers itself`() async throws {
        let server = try LoopbackServer { request, _ in
            guard request.path == "/register" else {
                return try .json(
                    [
                        "issuer": "http://\(request.header("Host") ?? "")",
                        "registration_endpoint": "http://\(request.header("Host") ?? "")/register",
                    ])
            }
            guard request.header("Authorization") == "Bearer i" else {
                return try .json(["error": "invalid_client_metadata"], status: 400)
            }
            return try .json(
                ["client_id": "c1", "client_secret": "hidden1", "token_endpoint_auth_method": "client_secret_post"], status: 201)
        }
        defer { server.stop() }
        var registration = OAuthRegistration(name: "Tool")
        registration.authenticationMethod = "client_secret_post"
        let client = try await OAuthClient.register(
            registration, with: .issuer(server.url("")), token: "i", configuration: makeConfiguration())
        #expect(client.id == "c1" && "\(client.authentication)" == "client_secret_post" && !"\(client)".contains("hidden"))
        let body = try #require(server.requests.last?.body)
        #expect(
            try JSONDecoder().decode([String: JSONValue].self, from: body) == [
                "client_name": .string("Tool"), "redirect_uris": .array([.string("http://127.0.0.1/callback")]),
                "token_endpoint_auth_method": .string("client_secret_post"), "response_types": .array([.string("code")]),
                "grant_types": .array([.string("authorization_code"), .string("refresh_token")]),
            ])
        let failure = await error {
            try await OAuthClient.register(registration, with: .issuer(server.url("")), configuration: makeConfiguration())
        }
        guard case OAuthError.refused(let refusal)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(refusal.code.rawValue == "invalid_client_metadata")
    }
}

@Suite(.timeLimit(.minutes(1))) struct ResourceTests {
    private let manager = SessionManager(configuration: makeConfiguration())

    /// A server with metadata of a resource at a path; the identifier is its URL with a suffix.
    private func makeServer(at path: String, _ suffix: String) throws -> LoopbackServer {
        try LoopbackServer { request, _ in
            guard request.path == path else { return .status(404) }
            return try .json(["resource": "http://\(request.header("Host") ?? "")\(suffix)"])
        }
    }

    // A4.1: RFC 9728, section 3.1
    @Test(
        arguments: [
            ("/.well-known/oauth-protected-resource/mcp", "/mcp", "/mcp"), ("/.well-known/oauth-protected-resource", "", "/mcp?a"),
            ("/.well-known/oauth-protected-resource", "/", ""), ("/.well-known/oauth-protected-resource/a/b", "/a", "/a/b"),
        ] as [(String, String, String)])
    func `metadata are at the well-known place`(path: String, suffix: String, url: String) async throws {
        let server = try makeServer(at: path, suffix)
        defer { server.stop() }
        let metadata = try await OAuthResource.metadata(of: server.url(url), with: manager)
        #expect(metadata.identifier == server.url(suffix))
    }

    // A4.1: RFC 9728, section 5.1
    @Test func `a challenge names the place`() async throws {
        let server = try makeServer(at: "/here", "/mcp")
        defer { server.stop() }
        let challenge: HTTPHeaders = ["WWW-Authenticate": #"Bearer error="invalid_token", resource_metadata="\#(server.url("/here"))""#]
        let metadata = try await OAuthResource.metadata(of: server.url("/mcp/tools"), challenge: challenge, with: manager)
        #expect(metadata.identifier == server.url("/mcp"))
        #expect(server.requestCount == 1)
    }

    @Test(arguments: [("/mcp", "/mc"), ("/mcp", "/"), ("/mcp/a", "/mcp/")] as [(String, String)])
    func `metadata of another resource are refused`(identifier: String, url: String) async throws {
        let server = try makeServer(at: "/here", identifier)
        defer { server.stop() }
        let challenge: HTTPHeaders = ["WWW-Authenticate": #"Bearer resource_metadata="\#(server.url("/here"))""#]
        let error = await AuthTests.error { try await OAuthResource.metadata(of: server.url(url), challenge: challenge, with: manager) }
        #expect(error.map { "\($0)" }?.contains("of another resource") == true)
        let elsewhere: HTTPHeaders = ["WWW-Authenticate": #"Bearer resource_metadata="http://example.org/""#]
        let second = await AuthTests.error { try await OAuthResource.metadata(of: server.url(url), challenge: elsewhere, with: manager) }
        #expect(second.map { "\($0)" }?.contains("https") == true)
    }
}
