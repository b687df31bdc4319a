// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewAuth
import CurlewCore
import CurlewHTTP
import CurlewRedis
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// An OAuth sign-in that a fleet shares: the authenticator of each process has a store of its own in memory.
@Suite(.enabled(if: RedisServer.isInstalled), .timeLimit(.minutes(2))) struct FleetSignInTests {
    private func client(_ server: LoopbackServer) -> OAuthClient {
        OAuthClient(
            id: "app", server: .metadata(OAuthServerMetadata(tokenEndpoint: server.url("/token"))),
            configuration: makeManager().session.configuration)
    }

    // A4.2
    @Test("a sign-in that another process shares is renewed, and not this process' earlier one") func later() async throws {
        let server = try LoopbackServer { request, _ in
            let form = String(decoding: request.body, as: UTF8.self)
            let user = form.contains("Ada") ? "Ada" : "Grace"
            // Those of Grace expire at once when she signs in.
            let isRefresh = form.contains("grant_type=refresh_token")
            let lifetime = isRefresh || user == "Ada" ? "3600" : "0"
            let number = "\(isRefresh ? "renewed" : "first")-\(user)"
            return try .json(["access_token": number, "token_type": "Bearer", "expires_in": lifetime, "refresh_token": user])
        }
        defer { server.stop() }
        let redis = try await RedisServer()
        let oauth = client(server)
        let fleets = try (0..<2).map { _ in
            FleetAuthenticator(
                OAuthAuthenticator(oauth), client: try redis.client(), name: "sign-in", whenUnavailable: .fail,
                isRefusal: { OAuthError.isRefusal($0) })
        }
        let manager = makeManager()
        let first = try await oauth.tokens(by: .clientCredentials(scope: ["Ada"]))
        try await fleets[0].base.signIn(with: first)
        #expect(try await fleets[0].credential(replacing: nil, for: manager) == first)
        let second = try await oauth.tokens(by: .clientCredentials(scope: ["Grace"]))
        try await fleets[1].share(second)
        let current = try await fleets[0].credential(replacing: first, for: manager)
        #expect(current.accessToken == "renewed-Grace")
        #expect(try await fleets[1].credential(replacing: second, for: manager) == current)
        #expect(server.requestCount == 3)
    }
}
#endif
