// SPDX-License-Identifier: Apache-2.0
import CurlewAuth
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTesting
import Testing

/// A store whose changes are not written, as on a disk that is full, as long as that is wanted.
private final class FullStore: TokenStore {
    let isFull = Monitor(true)
    let updates = Monitor(0)
    private let base: MemoryTokenStore<OAuthTokens>

    init(_ tokens: OAuthTokens?) { base = MemoryTokenStore(tokens) }

    func credential() async -> OAuthTokens? { await base.credential() }

    func update(_ change: @escaping @Sendable (OAuthTokens?) async throws -> OAuthTokens?) async throws -> OAuthTokens? {
        updates.update { $0 += 1 }
        guard isFull.read({ $0 }) else { return try await base.update(change) }
        _ = try await change(await base.credential())
        throw POSIXError(.ENOSPC)
    }
}

// A4.2, A4.3
@Suite(.timeLimit(.minutes(1))) struct RenewalTests {
    private func sent(_ server: AuthorizationServer) -> [String?] { server.forms.map { $0["refresh_token"]?.first } }

    private func renew(_ authenticator: OAuthAuthenticator, replacing expired: OAuthTokens? = nil) async throws -> OAuthTokens {
        try await authenticator.credential(replacing: expired, for: makeManager())
    }

    @Test func `renewed tokens that can't be stored are used, and stored later`() async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let store = FullStore(.expired())
        let authenticator = OAuthAuthenticator(server.client(), store: store)
        let renewed = try await renew(authenticator)
        #expect(renewed.accessToken == "a1" && renewed.refreshToken == "r1")
        #expect(try await renew(authenticator) == renewed, "not renewed by the token that is of no use any more")
        #expect(try await renew(authenticator, replacing: renewed).accessToken == "a2")
        #expect(sent(server) == ["r0", "r1"])
        #expect(await store.credential()?.refreshToken == "r0")
        store.isFull.update { $0 = false }
        let last = try await renew(authenticator, replacing: renewed)
        #expect(last.accessToken == "a2")
        #expect(await store.credential() == last)
        #expect(sent(server).count == 2)
    }

    @Test func `tokens of a configuration don't replace renewed ones`() async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let store = MemoryTokenStore(OAuthTokens.expired())
        let renewed = try await renew(OAuthAuthenticator(server.client(), store: store))
        // As a program does at each start.
        let authenticator = OAuthAuthenticator(server.client(), store: store)
        #expect(try await renew(authenticator, replacing: .expired()) == renewed)
        var expired = renewed
        expired.expiration = Date(timeIntervalSinceNow: -1)
        try await store.store(expired)
        #expect(try await renew(authenticator, replacing: .expired()).refreshToken == "r2")
        #expect(sent(server) == ["r0", "r1"])
        // Unless there is nothing to renew: the configuration was changed.
        try await store.store(OAuthTokens(accessToken: "x", expiration: Date(timeIntervalSinceNow: -1)))
        let changed = OAuthTokens(accessToken: "y", expiration: Date(timeIntervalSinceNow: -1), refreshToken: "r2")
        #expect(try await renew(authenticator, replacing: changed).refreshToken == "r3")
    }

    @Test func `tokens that are known to have replaced the stored ones are renewed, after a new sign-in not`() async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let old = OAuthTokens.expired()
        let refreshed = try await server.client().refresh(old)
        let copy = try JSONDecoder().decode(OAuthTokens.self, from: JSONEncoder().encode(refreshed))
        let authenticator = OAuthAuthenticator(server.client(), store: MemoryTokenStore(old))
        let newest = try await renew(authenticator, replacing: copy)
        #expect(sent(server) == ["r0", "r1"])
        let signedIn = OAuthTokens(accessToken: "new", refreshToken: "n")
        try await authenticator.signIn(with: signedIn)
        #expect(try await renew(authenticator, replacing: newest) == signedIn)
    }

    @Test func `the store is not changed before the server's endpoints are known`() async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let store = FullStore(.expired())
        let client = OAuthClient(id: "app", server: .issuer(server.url()), configuration: makeConfiguration())
        let authenticator = OAuthAuthenticator(client, store: store)
        let error = await AuthTests.error { try await renew(authenticator) }
        guard case OAuthError.invalidMetadata? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(store.updates.read { $0 } == 0)
    }

    // A4.2
    @Test func `a renewal's time includes the search for the server's endpoints, which others wait for longer`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let issuer = Monitor("")
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return try .json(["issuer": issuer.read { $0 }, "token_endpoint": issuer.read { $0 } + "/token"])
        }
        defer { server.stop() }
        issuer.update { $0 = server.url("") }
        let client = OAuthClient(id: "app", server: .issuer(server.url("")), configuration: makeConfiguration())
        var options = OAuthAuthenticator.Options()
        options.renewalTimeout = .milliseconds(100)
        let store = FullStore(.expired())
        let other = Task { try await client.metadata() }
        #expect(await gate.arrivals(1))
        let start = ContinuousClock.now
        let error = await AuthTests.error { try await renew(OAuthAuthenticator(client, store: store, options: options)) }
        #expect(ContinuousClock.now - start < .seconds(10))
        guard case OAuthError.timedOut(.milliseconds(100))? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(store.updates.read { $0 } == 0)
        gate.open()
        #expect(try await other.value.tokenEndpoint == server.url("/token"))
        #expect(server.requestCount == 1)
    }

    // A4.2
    @Test func `a token is not refreshed in what a long search has left of the time, but by the next renewal`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let issuer = Monitor("")
        let server = try LoopbackServer { request, connection in
            if request.path == "/token" { return try .json(["access_token": "new", "token_type": "Bearer"]) }
            connection.wait(until: gate)
            return try .json(["issuer": issuer.read { $0 }, "token_endpoint": issuer.read { $0 } + "/token"])
        }
        defer { server.stop() }
        issuer.update { $0 = server.url("") }
        let client = OAuthClient(id: "app", server: .issuer(server.url("")), configuration: makeConfiguration())
        var options = OAuthAuthenticator.Options()
        options.renewalTimeout = .seconds(8)
        let authenticator = OAuthAuthenticator(client, store: FullStore(.expired()), options: options)
        // What is left is counted on this clock.
        let clock = VirtualClock()
        async let first = clock.run { await AuthTests.error { try await renew(authenticator) } }
        #expect(await gate.arrivals(1))
        await clock.advance(by: .seconds(5))
        gate.open()
        guard case OAuthError.timedOut(.seconds(8))? = await first else {
            Issue.record("refreshed in three seconds")
            return
        }
        _ = try await client.metadata()
        #expect(server.requestCount == 1)
        #expect(try await renew(authenticator).accessToken == "new")
    }

    /// Tokens as a server has issued them, of a sign-in of their own.
    private func signedIn(_ server: AuthorizationServer, _ name: String, lifetime: Int, refreshToken: String) async throws -> OAuthTokens {
        let members = [
            "access_token": name, "token_type": "Bearer", "expires_in": "\(lifetime)", "refresh_token": refreshToken,
        ]
        let response = try ServerResponse.json(members)
        server.state.update { $0.next = [{ _ in response }] }
        return try await server.client().tokens(by: .clientCredentials())
    }

    // A4.2
    @Test func `a later sign-in of another process is not replaced by the store's, nor an earlier one preferred`() async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let earlier = try await signedIn(server, "a", lifetime: 3600, refreshToken: "x")
        let store = MemoryTokenStore(earlier)
        let authenticator = OAuthAuthenticator(server.client(), store: store)
        #expect(try await renew(authenticator) == earlier)
        // As a FleetAuthenticator hands over what another process has shared.
        let later = try await signedIn(server, "b", lifetime: 0, refreshToken: "r0")
        let renewed = try await renew(authenticator, replacing: later)
        #expect(renewed.refreshToken == "r3" && sent(server) == [nil, nil, "r0"])
        #expect(await store.credential() == renewed)
        // As an interceptor asks that has the tokens of before.
        #expect(try await renew(authenticator, replacing: earlier) == renewed)
        // The program has signed in with tokens of its own: the interceptor has those that were returned last.
        try await store.store(earlier)
        #expect(try await renew(authenticator, replacing: renewed) == earlier)
    }

    @Test func `a 401 of another origin renews nothing`() async throws {
        let other = try LoopbackServer { _, _ in .status(401) }
        defer { other.stop() }
        let place = other.url("/x")
        let server = try AuthorizationServer { request, _ in request.path == "/away" ? .redirect(to: place) : nil }
        defer { server.stop() }
        var options = OAuthAuthenticator.Options()
        options.origins = [server.url()]
        let store = MemoryTokenStore(OAuthTokens(accessToken: "x", refreshToken: "r0"))
        let authenticator = OAuthAuthenticator(server.client(), store: store, options: options)
        let manager = SessionManager(
            configuration: makeConfiguration(), interceptor: AuthenticationInterceptor(authenticator: authenticator))
        for url in [server.url("/away"), place] {
            #expect(await manager.request(url).validate().serializingData().response.response?.statusCode == 401)
        }
        #expect(server.requests.map { $0.header("Authorization") } == ["Bearer x"])
        #expect(other.requests.map { $0.header("Authorization") } == [nil, nil])
        #expect(server.forms.isEmpty)
    }

    // RFC 8693, section 2.2.1
    @Test func `a token for another use is not one for requests`() async throws {
        let server = try AuthorizationServer { _, form in
            guard form["grant_type"] == ["urn:ietf:params:oauth:grant-type:token-exchange"] else { return nil }
            return try .json(["access_token": "x", "token_type": "N_A"])
        }
        defer { server.stop() }
        let grant = OAuthGrant.tokenExchange(OAuthTokenExchange { "s" })
        #expect(try await server.client().tokens(by: grant).type == "N_A")
        if hasLibcrypto {
            let bound = OAuthClient(
                id: "app", server: .metadata(OAuthServerMetadata(tokenEndpoint: server.url("/token"))),
                dpop: try DPoP(key: .generate()), configuration: makeConfiguration())
            #expect(try await bound.tokens(by: grant).accessToken == "x")
        }
        let authenticator = OAuthAuthenticator(server.client(), renewingBy: grant)
        let errors = [
            await AuthTests.error { try await renew(authenticator) },
            await AuthTests.error { try await authenticator.signIn(with: OAuthTokens(accessToken: "x", type: "N_A")) },
        ]
        for error in errors { #expect(error.map { "\($0)" }?.contains("not one with which requests are authenticated") == true) }
        #expect(try await authenticator.store.credential() == nil)
    }

    @Test(
        arguments: [
            ("https://api.example/x", nil, true), ("http://api.example/x", nil, false), ("http://127.0.0.1:8080/x", nil, true),
            ("https://api.example/x", ["https://api.example"], true), ("https://api.example:444/x", ["https://api.example"], false),
            ("https://other.example/x", ["https://api.example"], false), ("http://api.example/x", ["http://api.example"], false),
        ] as [(String, [String]?, Bool)])
    func `tokens are sent to their origins, not in the clear`(url: String, origins: [String]?, isMeant: Bool) throws {
        var options = OAuthAuthenticator.Options()
        options.origins = origins
        let client = OAuthClient(id: "app", server: .metadata(OAuthServerMetadata(tokenEndpoint: "https://login.example/token")))
        let authenticator = OAuthAuthenticator(client, options: options)
        let tokens = OAuthTokens(accessToken: "x")
        var request = try URLRequest(url: url, method: .get)
        authenticator.apply(tokens, to: &request)
        #expect(request.value(forHTTPHeaderField: "Authorization") == (isMeant ? "Bearer x" : nil))
        #expect(authenticator.isRequest(request, authenticatedWith: tokens))
        // A 401 of another origin says nothing about the token.
        for (place, isSame) in [(url, true), ("https://elsewhere.example/x", false)] {
            let location = try #require(URL(string: place))
            let response = try #require(HTTPURLResponse(url: location, statusCode: 401, httpVersion: nil, headerFields: nil))
            let isFailure = authenticator.didRequest(request, with: response, failDueToAuthenticationError: CancellationError())
            #expect(isFailure == (isMeant && isSame))
        }
    }
}
