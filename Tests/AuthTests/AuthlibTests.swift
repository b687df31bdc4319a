// SPDX-License-Identifier: Apache-2.0
import CurlewAuth
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

/// An authorization server by another implementation: the package Authlib for Python.
final class AuthlibServer: Sendable {
    private let process: ChildProcess
    let url: String

    /// Whether tests with it are to be run.
    static func isInstalled() async throws -> Bool {
        if Servers.areRequired { return true }
        guard ChildProcess.path(of: Servers.python) != nil else { return false }
        return try await ChildProcess(Servers.python, "-W", "ignore", "-c", "import authlib, flask").finish().status == 0
    }

    init(_ kind: AuthorizationServer.Kind, key: String = "{}") async throws {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("authlib-server.py").path
        process = try ChildProcess(Servers.python, script, kind == .revokingFamily ? "family" : "lenient", key)
        guard let port = await process.readLine() else { throw TestError("the server has not started") }
        url = "http://127.0.0.1:\(port)"
    }

    func client(_ authentication: OAuthClientAuthentication) -> OAuthClient {
        var metadata = OAuthServerMetadata(tokenEndpoint: url + "/token", authorizationEndpoint: url + "/authorize")
        metadata.revocationEndpoint = url + "/revoke"
        return OAuthClient(id: "app", authentication: authentication, server: .metadata(metadata), configuration: makeConfiguration())
    }
}

// A4.3
@Suite(.timeLimit(.minutes(1)), .enabled { try await AuthlibServer.isInstalled() }) struct AuthlibTests {
    private struct Seen: Decodable {
        let methods: [String]
        let tokens: Int
    }

    private let plain = SessionManager(configuration: makeConfiguration())

    private func seen(_ server: AuthlibServer) async throws -> Seen {
        try await plain.request(server.url + "/seen").serializingDecodable(Seen.self).value
    }

    /// Signs in by a browser that follows the server's redirect.
    private func signIn(_ client: OAuthClient) async throws -> OAuthTokens {
        try await client.signIn(scope: ["a"]) { url in
            Task { [plain] in try await plain.request(url).validate().serializingData().value }
        }
    }

    @Test(arguments: AuthorizationServer.Kind.allCases)
    func `a user signs in, and fifty requests with an expired token are one refresh`(kind: AuthorizationServer.Kind) async throws {
        let server = try await AuthlibServer(kind)
        let client = server.client(.none)
        let tokens = try await signIn(client)
        #expect(tokens.refreshToken != nil && tokens.scope == ["a"])
        let authenticator = OAuthAuthenticator(client, store: MemoryTokenStore(tokens))
        let manager = SessionManager(
            configuration: makeConfiguration(), interceptor: AuthenticationInterceptor(authenticator: authenticator))
        _ = try await plain.request(server.url + "/expire").serializingData().value
        let right = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 {
                group.addTask { (try? await manager.request(server.url + "/api").validate().serializingData().value) != nil }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(right == 50)
        #expect(try await seen(server).tokens == 2)
        // The first refresh token once more, as after a lost answer.
        let again = await error { try await client.refresh(tokens) }
        guard kind == .revokingFamily else {
            #expect(again == nil)
            return
        }
        guard case OAuthError.refused(let refusal)? = again else {
            Issue.record("\(String(describing: again))")
            return
        }
        #expect(refusal.code == .invalidGrant)
        let response = await manager.request(server.url + "/api").validate().serializingData().response
        guard case OAuthError.signInRequired? = response.error else {
            Issue.record("\(String(describing: response.error))")
            return
        }
    }

    @Test(.enabled(if: hasLibcrypto)) func `a client authenticates in each way, and revokes`() async throws {
        let key = try SigningKey.generate(.ecdsaP256, id: "k1")
        let server = try await AuthlibServer(.lenient, key: key.verificationKey.jwk())
        for authentication in [.secret("s:/+%"), .secretInBody("s:/+%"), .key(key)] as [OAuthClientAuthentication] {
            let tokens = try await server.client(authentication).tokens(by: .clientCredentials(scope: ["b"]))
            #expect(!tokens.accessToken.isEmpty && tokens.type == "Bearer" && tokens.expiration != nil)
        }
        // Authlib asks for assertions by a name of its own, too.
        let methods = Set(try await seen(server).methods).subtracting(["client_assertion_jwt"])
        #expect(methods == ["client_secret_basic", "client_secret_post", "private_key_jwt"])
        let refusal = await error { try await server.client(.secret("wrong")).tokens(by: .clientCredentials()) }
        guard case OAuthError.refused(let refusal)? = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
        #expect(refusal.code == .invalidClient)
        let client = server.client(.secret("s:/+%"))
        let tokens = try await client.tokens(by: .clientCredentials())
        func status() async -> Int? {
            await plain.request(server.url + "/api", headers: [.authorization(bearerToken: tokens.accessToken)]).serializingData().response
                .response?.statusCode
        }
        #expect(await status() == 200)
        try await client.revoke(tokens)
        #expect(await status() == 401)
    }
}
