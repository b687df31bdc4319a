// SPDX-License-Identifier: Apache-2.0
import CurlewAuth
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport

/// The configuration of sessions for servers on the loopback.
func makeConfiguration() -> SessionConfiguration { makeManager().session.configuration }

extension AuthorizationServer {
    /// A client of this server.
    func client(
        _ authentication: OAuthClientAuthentication = .none, timeout: Duration = .seconds(30),
        _ change: (inout OAuthServerMetadata) -> Void = { _ in }
    ) -> OAuthClient {
        var metadata = OAuthServerMetadata(issuer: url(), tokenEndpoint: url("/token"), authorizationEndpoint: url("/authorize"))
        change(&metadata)
        return OAuthClient(
            id: "app", authentication: authentication, server: .metadata(metadata), timeout: timeout, configuration: makeConfiguration())
    }
}

extension OAuthTokens {
    /// Expired tokens, with the first refresh token of the tests' server.
    static func expired() -> OAuthTokens {
        OAuthTokens(accessToken: "a0", expiration: Date(timeIntervalSinceNow: -1), refreshToken: "r0")
    }
}

/// The error of an operation; `nil` if it succeeds.
func error(of operation: () async throws -> some Any) async -> (any Error)? {
    do {
        _ = try await operation()
        return nil
    } catch {
        return error
    }
}
