// SPDX-License-Identifier: Apache-2.0
import CurlewAuth
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct OAuthAuthenticatorTests {
    private func makeManager(_ authenticator: OAuthAuthenticator) -> SessionManager {
        SessionManager(configuration: makeConfiguration(), interceptor: AuthenticationInterceptor(authenticator: authenticator))
    }

    private func status(_ server: AuthorizationServer, _ manager: SessionManager) async -> (status: Int?, error: (any Error)?) {
        let response = await manager.request(server.url("/api")).validate().serializingData().response
        return (response.response?.statusCode, response.error)
    }

    // A4.2, A4.3
    @Test(arguments: AuthorizationServer.Kind.allCases)
    func `fifty requests with an expired token are one refresh`(kind: AuthorizationServer.Kind) async throws {
        let server = try AuthorizationServer(kind)
        defer { server.stop() }
        let manager = makeManager(OAuthAuthenticator(server.client(), store: MemoryTokenStore(.expired())))
        let statuses = await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<50 { group.addTask { await status(server, manager).status } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == Array(repeating: 200, count: 50))
        #expect(server.forms.map { $0["refresh_token"] } == [["r0"]])
        // The token that has replaced the first one is sent next.
        server.state.update { $0.valid = [] }
        #expect(await status(server, manager).status == 200)
        #expect(server.forms.map { $0["refresh_token"] } == [["r0"], ["r1"]])
    }

    // A4.2
    @Test func `two authenticators with one store make one refresh`() async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let store = MemoryTokenStore(OAuthTokens.expired())
        let managers = (0..<2).map { _ in makeManager(OAuthAuthenticator(server.client(), store: store)) }
        async let first = status(server, managers[0]).status
        async let second = status(server, managers[1]).status
        #expect(await [first, second] == [200, 200])
        #expect(server.forms.count == 1)
    }

    // A4.2
    @Test func `an answer that is lost is an unknown outcome, and the old token is sent once more`() async throws {
        let server = try AuthorizationServer(.lenient)
        defer { server.stop() }
        server.state.update { $0.next = [{ $0.misbehaving(.cut(after: 0)) }] }
        let manager = makeManager(OAuthAuthenticator(server.client(), store: MemoryTokenStore(.expired())))
        guard case OAuthError.refreshOutcomeUnknown(let cause)? = await status(server, manager).error else {
            Issue.record("the outcome is known")
            return
        }
        guard case CurlewError.transferFailed(let failure) = cause else {
            Issue.record("\(cause)")
            return
        }
        #expect(failure.requestWasSent)
        #expect(server.forms.count == 1, "not retried")
        #expect(await status(server, manager).status == 200)
        #expect(server.forms.map { $0["refresh_token"] } == [["r0"], ["r0"]])
    }

    // A4.2
    @Test func `no request of tokens is sent twice, on a connection that is used again either`() async throws {
        let server = try AuthorizationServer(.lenient)
        defer { server.stop() }
        let client = server.client()
        _ = try await client.tokens(by: .clientCredentials())
        for misbehaviour in [.cut(after: 0), .reset(after: 0), .cut(after: 20)] as [ServerResponse.Misbehaviour] {
            let before = server.forms.count
            server.state.update { $0.next = [{ $0.misbehaving(misbehaviour) }] }
            let error = await AuthTests.error { try await client.refresh(.expired()) }
            guard case CurlewError.transferFailed(let failure)? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(failure.requestWasSent && server.forms.count == before + 1)
            _ = try await client.tokens(by: .clientCredentials())
        }
        let requests = server.state.read { $0.tokenRequests.map(\.request) }
        #expect(requests[1].connection == requests[0].connection, "the connection is used again")
    }

    // A4.2, A4.3
    @Test func `a server that revokes a family for that asks for a sign-in`() async throws {
        let server = try AuthorizationServer(.revokingFamily)
        defer { server.stop() }
        server.state.update { $0.next = [{ $0.misbehaving(.cut(after: 0)) }] }
        let authenticator = OAuthAuthenticator(server.client(), store: MemoryTokenStore(.expired()))
        let manager = makeManager(authenticator)
        #expect(await status(server, manager).error is OAuthError)
        let second = await status(server, manager).error
        guard case OAuthError.signInRequired(let refusal?)? = second else {
            Issue.record("\(String(describing: second))")
            return
        }
        #expect(refusal.code == .invalidGrant && refusal.explanation == "because" && refusal.statusCode == 400)
        // The refused token is not sent again.
        guard case OAuthError.signInRequired(nil)? = await status(server, manager).error else {
            Issue.record("no sign-in is asked for")
            return
        }
        #expect(server.forms.count == 2)
        server.state.update { $0.valid = ["new"] }
        try await authenticator.signIn(with: OAuthTokens(accessToken: "new"))
        #expect(await status(server, manager).status == 200)
    }

    // A4.2
    @Test func `without sending it again, and after the second time, a sign-in is asked for`() async throws {
        let server = try AuthorizationServer(.lenient)
        defer { server.stop() }
        for (resends, count) in [(false, 1), (true, 2)] as [(Bool, Int)] {
            let before = server.forms.count
            server.state.update { state in
                state.next = Array(repeating: { $0.misbehaving(.cut(after: 0)) }, count: count)
                (state.refreshToken, state.earlierRefreshTokens) = ("r0", [])
            }
            var options = OAuthAuthenticator.Options()
            options.resendsRefreshToken = resends
            let store = MemoryTokenStore(OAuthTokens.expired())
            let manager = makeManager(OAuthAuthenticator(server.client(), store: store, options: options))
            for _ in 0..<count {
                guard case OAuthError.refreshOutcomeUnknown? = await status(server, manager).error else {
                    Issue.record("the outcome is known")
                    return
                }
            }
            guard case OAuthError.signInRequired? = await status(server, manager).error else {
                Issue.record("no sign-in is asked for")
                return
            }
            #expect(server.forms.count - before == count)
            #expect(await store.credential()?.refreshToken == "r0", "it may still be of use")
        }
    }

    // A4.2
    @Test func `a gateway's error is an unknown outcome, a refusal is none`() async throws {
        let server = try AuthorizationServer(.lenient)
        defer { server.stop() }
        let responses: [ServerResponse] = [
            .status(502), .ok("no JSON"), try AuthorizationServer.error("invalid_grant", status: 500),
            try AuthorizationServer.error("temporarily_unavailable", status: 503), .status(503),
        ]
        server.state.update { $0.next = responses.map { response in { _ in response } } }
        let authenticator = OAuthAuthenticator(server.client())
        var descriptions: [String] = []
        for _ in responses {
            let manager = makeManager(authenticator)
            try await authenticator.signIn(with: .expired())
            defer { server.state.update { ($0.refreshToken, $0.earlierRefreshTokens) = ("r0", []) } }
            descriptions.append("\(await status(server, manager).error.map { "\($0)" } ?? "")".prefix(44).description)
        }
        #expect(
            descriptions == [
                "The refresh token was sent, and no answer ha", "The refresh token was sent, and no answer ha",
                "The refresh token was sent, and no answer ha", "The authorization server has refused the req",
                "The authorization server's response, of stat",
            ])
        #expect(try await authenticator.store.credential()?.refreshToken == "r0")
        let refusals = [("invalid_grant", 400, true), ("server_error", 500, false), ("temporarily_unavailable", 400, false)]
        for (code, status, isRefusal) in refusals {
            server.state.update { $0.next = [{ _ in (try? AuthorizationServer.error(code, status: status)) ?? .status(404) }] }
            let error = try #require(await AuthTests.error { try await server.client().refresh(.expired()) })
            #expect(OAuthError.isRefusal(error) == isRefusal, "\(error)")
        }
    }

    // A4.2
    @Test func `a waiter's deadline ends its wait only`() async throws {
        let gate = Gate()
        let server = try AuthorizationServer()
        defer {
            gate.open()
            server.stop()
        }
        server.state.update { $0.gate = gate }
        let manager = makeManager(OAuthAuthenticator(server.client(), store: MemoryTokenStore(.expired())))
        let first = Task { await withDeadline(.seconds(1)) { await status(server, manager).error } }
        #expect(await gate.arrivals(1))
        let second = Task { await status(server, manager).status }
        guard case CurlewError.transferFailed(let failure)? = await first.value else {
            Issue.record("the deadline has not passed")
            return
        }
        #expect(failure.kind == .deadline)
        gate.open()
        #expect(await second.value == 200)
        #expect(server.forms.count == 1)
    }

    // A4.2
    @Test func `a renewal is bounded by its own timeout`() async throws {
        let gate = Gate()
        let server = try AuthorizationServer()
        defer {
            gate.open()
            server.stop()
        }
        server.state.update { $0.gate = gate }
        var options = OAuthAuthenticator.Options()
        #expect(options.renewalTimeout == .seconds(30))
        options.renewalTimeout = .seconds(2)
        let manager = makeManager(OAuthAuthenticator(server.client(), store: MemoryTokenStore(.expired()), options: options))
        guard case OAuthError.refreshOutcomeUnknown(CurlewError.transferFailed(let failure))? = await status(server, manager).error else {
            Issue.record("the outcome is known")
            return
        }
        #expect(failure.kind == .deadline)
        // A grant's closure, too.
        let slow = OAuthGrant.jwtBearer {
            try await Task.sleep(nanoseconds: 60_000_000_000)
            return ""
        }
        let other = makeManager(OAuthAuthenticator(server.client(), renewingBy: slow, options: options))
        guard case OAuthError.timedOut(after: .seconds(2))? = await status(server, other).error else {
            Issue.record("the grant has no limit")
            return
        }
    }

    @Test func `a grant takes the place of the refresh token`() async throws {
        let server = try AuthorizationServer()
        defer { server.stop() }
        let grant = OAuthGrant.clientCredentials(scope: ["a", "b"], resources: ["https://x.example/"])
        let manager = makeManager(OAuthAuthenticator(server.client(.secret("s")), renewingBy: grant))
        #expect(await status(server, manager).status == 200)
        #expect(server.forms == [["grant_type": ["client_credentials"], "scope": ["a b"], "resource": ["https://x.example/"]]])
        let refusing = OAuthAuthenticator(server.client(.secret("s")), store: MemoryTokenStore(.expired()), renewingBy: grant)
        server.state.update { $0.isRevoked = true }
        #expect(await status(server, makeManager(refusing)).status == 200)
        #expect(server.forms.map { $0["grant_type"] } == [["client_credentials"], ["refresh_token"], ["client_credentials"]])
    }

    @Test func `a connection that can't be made is no unknown outcome`() async throws {
        let server = try AuthorizationServer()
        let client = server.client()
        server.stop()
        let authenticator = OAuthAuthenticator(client, store: MemoryTokenStore(.expired()))
        let error = await AuthTests.error { try await authenticator.credential(replacing: nil, for: makeManager(authenticator)) }
        guard case CurlewError.transferFailed(let failure)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(!failure.requestWasSent)
        #expect(try await authenticator.store.credential()?.refreshToken == "r0")
    }
}
