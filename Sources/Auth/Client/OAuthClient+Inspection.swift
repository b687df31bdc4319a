// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// What a server says of a token (RFC 7662, section 2.2).
public struct OAuthIntrospection: Sendable, Hashable {
    /// Whether the token is valid.
    public let isActive: Bool
    /// All members of the response, such as `username` or those of a server's own.
    public let members: [String: JSONValue]

    /// The token's scope.
    public var scope: [String] { text("scope")?.splitScalars(separator: " ").map { String($0) } ?? [] }
    /// The client to which the token was issued; `nil` if the server does not say.
    public var clientID: String? { text("client_id") }
    /// The user or the client on whose behalf the token is used; `nil` if the server does not say.
    public var subject: String? { text("sub") }
    /// When the token expires; `nil` if the server does not say.
    public var expiration: Date? {
        switch members["exp"] {
        case .integer(let seconds): Date(timeIntervalSince1970: Double(seconds))
        case .number(let seconds): Date(timeIntervalSince1970: seconds)
        default: nil
        }
    }

    private func text(_ name: String) -> String? { if case .string(let text) = members[name] { text } else { nil } }
}

extension OAuthClient {
    /// The kind of a token, by which a server finds it sooner.
    public enum TokenHint: String, Sendable {
        /// An access token.
        case accessToken = "access_token"
        /// A refresh token.
        case refreshToken = "refresh_token"
    }

    /// Revokes a token (RFC 7009), as at a sign-out; with a refresh token, servers revoke the access tokens as well. One that is invalid is
    /// none any more, which is no error.
    ///
    /// - Throws: ``OAuthError``; ``CurlewError`` for a failed transfer.
    public func revoke(_ token: String, _ hint: TokenHint? = nil) async throws {
        let response = try await post(["token": token, "token_type_hint": hint?.rawValue], to: .revocation)
        guard (200..<300).contains(response.status) else { throw response.error }
    }

    /// Revokes the refresh token, or the access token without one (RFC 7009).
    ///
    /// - Throws: as ``revoke(_:_:)``.
    public func revoke(_ tokens: OAuthTokens) async throws {
        if let token = tokens.refreshToken {
            try await revoke(token, .refreshToken)
        } else {
            try await revoke(tokens.accessToken, .accessToken)
        }
    }

    /// Asks what a token is, as a service does that has received one (RFC 7662).
    ///
    /// - Throws: ``OAuthError``; ``CurlewError`` for a failed transfer.
    public func introspect(_ token: String, _ hint: TokenHint? = nil) async throws -> OAuthIntrospection {
        let response = try await post(["token": token, "token_type_hint": hint?.rawValue], to: .introspection)
        guard response.status == 200 else { throw response.error }
        guard let members = try? JSONDecoder().decode([String: JSONValue].self, from: response.body),
            case .bool(let isActive) = members["active"]
        else {
            throw OAuthError.unexpectedResponse(statusCode: response.status, reason: "the body does not say whether the token is active")
        }
        return OAuthIntrospection(isActive: isActive, members: members)
    }
}
