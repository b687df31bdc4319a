// SPDX-License-Identifier: Apache-2.0
public import CurlewCore
public import CurlewEncoding
public import CurlewHTTP

/// Authenticates requests with the tokens of an ``OAuthClient``, and renews them: by the refresh token, or by a grant.
///
/// ```swift
/// let authenticator = OAuthAuthenticator(client, renewingBy: .clientCredentials(scope: ["reports:read"]))
/// manager.interceptor = AuthenticationInterceptor(authenticator: authenticator)
/// ```
///
/// However many requests wait, the tokens are renewed once, within ``Options/renewalTimeout``; the deadline or cancellation of a request
/// ends its own wait only. A renewal is not retried once bytes were sent. If no answer comes to a refresh token, the waiting requests fail
/// with ``OAuthError/refreshOutcomeUnknown(_:)``, and the next renewal sends the same token once more: a server that gives clients leeway
/// accepts it, another one revokes all tokens of the sign-in, and the error is then ``OAuthError/signInRequired(_:)``.
///
/// With `FleetAuthenticator` of `CurlewRedis` around it, the processes of a fleet share the tokens; its `isRefusal` is
/// ``OAuthError/isRefusal(_:)``.
public final class OAuthAuthenticator: HeaderAuthenticator, AsyncAuthenticator {
    /// The tokens.
    public typealias Credential = OAuthTokens

    /// What an authenticator does.
    public struct Options: Sendable {
        /// The longest time of a renewal, all its requests included; 30 seconds by default.
        public var renewalTimeout = Duration.seconds(30)
        /// Whether a refresh token to which no answer came is sent once more; `true` by default.
        ///
        /// A server that has replaced the token, and that does not accept the old one for a short time, then revokes the sign-in, as
        /// RFC 9700, section 4.14.2, demands. With `false` the user has to sign in again in any case.
        public var resendsRefreshToken = true
        /// The scope of refreshed tokens; empty, the default, for the granted one.
        public var scope: [String] = []
        /// The resources for which refreshed access tokens are to be (RFC 8707); none by default.
        public var resources: [String] = []

        /// Creates options with the defaults.
        public init() {}
    }

    /// The client that requests tokens.
    public let client: OAuthClient
    /// Where the tokens are kept.
    public let store: any TokenStore<OAuthTokens>
    /// What the authenticator does.
    public let options: Options
    private let grant: OAuthGrant?

    /// Creates an authenticator.
    ///
    /// - Parameters:
    ///   - client: requests tokens.
    ///   - store: where the tokens are kept; in memory by default. With a file, other processes use the same tokens.
    ///   - grant: requests tokens where there is no refresh token, or it is not accepted; with `nil`, the default, requests then fail with
    ///     ``OAuthError/signInRequired(_:)``.
    ///   - options: what the authenticator does.
    public init(
        _ client: OAuthClient, store: any TokenStore<OAuthTokens> = .memory, renewingBy grant: OAuthGrant? = nil,
        options: Options = Options()
    ) {
        (self.client, self.store, self.grant, self.options) = (client, store, grant, options)
    }

    // MARK: Authenticator

    /// Sets `Authorization`.
    public func apply(_ credential: OAuthTokens, to headers: inout HTTPHeaders) {
        headers.update(.authorization(credential.authorization))
    }

    /// Whether the status is 401.
    public func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool
    {
        response.statusCode == 401
    }

    /// Whether `Authorization` has the access token.
    public func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: OAuthTokens) -> Bool {
        urlRequest.value(forHTTPHeaderField: "Authorization")?.hasSameBytes(as: credential.authorization) == true
    }

    /// Returns the tokens in the store if they are valid and others than those to replace; otherwise renews them.
    ///
    /// - Throws: ``OAuthError``; ``CurlewError`` for a failed transfer; what the store and the grant throw.
    public func credential(replacing expired: OAuthTokens?, for manager: SessionManager) async throws -> OAuthTokens {
        let failure = Lock<(any Error)?>(nil)
        let tokens = try await store.update { [self] stored in
            let current = newer(expired, stored)
            if let current, !current.requiresRefresh, expired.map({ !current.accessToken.hasSameBytes(as: $0.accessToken) }) ?? true {
                return current
            }
            do {
                return try await withDeadline(options.renewalTimeout) { try await renew(current) }
            } catch let lost as UnusableRefreshToken {
                failure.withLock { $0 = lost.error }
                return lost.tokens
            }
        }
        if let error = failure.withLock({ $0 }) { throw error }
        guard let tokens else { throw OAuthError.signInRequired(nil) }
        return tokens
    }

    // MARK: Sign-in

    /// Stores the tokens of a sign-in; requests that an interceptor creates from then on use them if it has none, or needs others.
    public func signIn(with tokens: OAuthTokens) async throws { try await store.store(tokens) }

    /// Removes the tokens from the store. An interceptor keeps its own: set its `credential` to `nil`.
    public func signOut() async throws { try await store.remove() }

    // MARK: Renewal

    /// A refresh token that has to be stored with what has become of it, and the error of the renewal.
    private struct UnusableRefreshToken: Error {
        let tokens: OAuthTokens
        let error: any Error
    }

    private func newer(_ expired: OAuthTokens?, _ stored: OAuthTokens?) -> OAuthTokens? {
        guard let expired, let stored else { return stored ?? expired }
        return expired.issued > stored.issued ? expired : stored
    }

    private func renew(_ current: OAuthTokens?) async throws -> OAuthTokens {
        // So that only the request of tokens can have an unknown outcome.
        _ = try await client.metadata()
        guard let current, current.refreshToken != nil else { return try await request(after: nil, for: current) }
        guard current.lostRefreshes ?? 0 <= (options.resendsRefreshToken ? 1 : 0) else {
            return try await request(after: nil, for: current)
        }
        do {
            return try await client.refresh(current, scope: options.scope, resources: options.resources)
        } catch OAuthError.refused(let refusal) where refusal.code == .invalidGrant {
            return try await request(after: refusal, for: current)
        } catch  where Self.isOutcomeUnknown(error) {
            var tokens = current
            tokens.lostRefreshes = (current.lostRefreshes ?? 0) + 1
            throw UnusableRefreshToken(tokens: tokens, error: OAuthError.refreshOutcomeUnknown(error))
        }
    }

    /// Requests tokens without the refresh token, which is not sent again.
    private func request(after refusal: OAuthRefusal?, for current: OAuthTokens?) async throws -> OAuthTokens {
        guard let grant else {
            let error = OAuthError.signInRequired(refusal)
            guard var tokens = current, tokens.refreshToken != nil else { throw error }
            tokens.refreshToken = nil
            throw UnusableRefreshToken(tokens: tokens, error: error)
        }
        let left = Deadline.current?.remaining
        let form = try await withTimeout(left, ContinuousClock(), throwing: OAuthError.timedOut(after: options.renewalTimeout)) {
            try await grant.form()
        }
        return try await client.tokens(form)
    }

    /// Whether a refresh token may have been used by the server although the request failed.
    private static func isOutcomeUnknown(_ error: any Error) -> Bool {
        switch error {
        case CurlewError.transferFailed(let failure): failure.requestWasSent
        case CurlewError.cancelled, CurlewError.sessionInvalidated, CurlewError.sessionShutDown, is CancellationError: true
        // The response of a gateway, or one of the server that was damaged.
        case OAuthError.unexpectedResponse(let status, _): status >= 500 || status < 300
        default: false
        }
    }
}
