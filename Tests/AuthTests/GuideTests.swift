// SPDX-License-Identifier: Apache-2.0
import CurlewAuth
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

/// The article's code is compiled, and runs as it says.
@Suite(.timeLimit(.minutes(1))) struct GuideTests {
    /// A server that is found by its issuer.
    private func makeServer() throws -> AuthorizationServer {
        try AuthorizationServer { request, form in
            let host = "http://\(request.header("Host") ?? "")"
            switch request.path {
            case "/.well-known/oauth-authorization-server":
                return try .json([
                    "issuer": host, "token_endpoint": host + "/token", "authorization_endpoint": host + "/authorize",
                    "device_authorization_endpoint": host + "/device", "registration_endpoint": host + "/register",
                ])
            case "/.well-known/oauth-protected-resource/mcp":
                return .ok(#"{"resource": "\#(host)/mcp", "authorization_servers": ["\#(host)"]}"#)
            case "/register": return try .json(["client_id": "c1"], status: 201)
            case "/device":
                return .ok(
                    #"{"device_code": "d", "user_code": "AB", "verification_uri": "https://x.example", "expires_in": 60, "interval": 1}"#)
            default: return nil
            }
        }
    }

    @Test func `every block of the article is compiled, and everything compiled for it is in it`() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Auth/CurlewAuth.docc/SigningIn.md")
        let sources = ["Guide.swift", "GuideSnippets.swift"].map { here.appendingPathComponent($0) }
        #expect(try DocumentedCode.differences(page: page, sources: sources) == [])
    }

    @Test func `the first lines send authenticated requests`() async throws {
        let server = try makeServer()
        defer { server.stop() }
        let manager = makeReports(id: "app", secret: "s", issuer: server.url())
        for _ in 0..<2 {
            #expect(try await manager.request(server.url("/api")).validate().serializingString().value == "data")
        }
        #expect(server.forms == [["grant_type": ["client_credentials"], "scope": ["reports:read"]]])
    }

    @Test func `a tool signs in once`() async throws {
        let server = try makeServer()
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        let client = OAuthClient(id: "app", server: .issuer(server.url()), configuration: makeConfiguration())
        let browser = SessionManager(configuration: makeConfiguration())
        let opened = Log<String>()
        for _ in 0..<2 {
            let manager = try await makeTool(client, keepingTokensIn: directory.file("tokens.json")) { url in
                opened.append(url)
                let items = AuthorizationServer.form(String(url.drop { $0 != "?" }.dropFirst()))
                let callback = "\(items["redirect_uri"]?.first ?? "")?code=c&state=\(items["state"]?.first ?? "")"
                Task { try await browser.request(callback).validate().serializingData().value }
            }
            let data = try await notes(server.url("/api"), with: manager) { Issue.record("signed in again") }
            #expect(data == Data("data".utf8))
        }
        #expect(opened.count == 1)
    }

    @Test func `devices, servers, resources and simple credentials have what the article says`() async throws {
        let server = try makeServer()
        defer { server.stop() }
        let client = OAuthClient(id: "app", server: .issuer(server.url()), configuration: makeConfiguration())
        let shown = Log<String>()
        #expect(try await signIn(client) { shown.append($0) }.accessToken == "a1")
        #expect(shown.elements == ["Enter AB at https://x.example"])
        let authorization = try await begin(client)
        await #expect(throws: OAuthError.self) { try await finish(authorization, callback: "https://app.example.org/callback?code=c") }
        let (registered, resource) = try await makeClient(of: server.url("/mcp"), challenge: [:], name: "Tool")
        #expect(registered.id == "c1" && resource.identifier == server.url("/mcp"))
        #expect(makeSimple(key: "k", token: "t").allSatisfy { $0.interceptor is StaticCredential })
    }

    @Test(.enabled(if: hasLibcrypto)) func `a bound manager signs`() throws {
        let manager = try makeBoundManager(id: "app", issuer: "https://login.example.org", key: .generate(.ecdsaP256))
        #expect(manager.session.configuration.signer is DPoP && manager.interceptor is Interceptor)
    }
}
