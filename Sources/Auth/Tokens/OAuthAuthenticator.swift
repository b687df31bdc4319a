// SPDX-License-Identifier: Apache-2.0
public import CurlewCore
public import CurlewEncoding
import CurlewHTTP
import CurlewSigning

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
/// Tokens are sent to the origins of ``Options/origins`` by `https` only, or to this computer; another request is sent without.
///
/// Where the interceptor's tokens are not those of the store's sign-in, the store's count, as a program may have signed in since; unless the
/// interceptor's were received later, and not from this authenticator: a program has set them, or a fleet has signed in.
///
/// With `FleetAuthenticator` of `CurlewRedis` around it, the processes of a fleet share the tokens; its `isRefusal` is
/// ``OAuthError/isRefusal(_:)``.
public final class OAuthAuthenticator: AsyncAuthenticator {
    /// The tokens.
    public typealias Credential = OAuthTokens

    /// What an authenticator does.
    public struct Options: Sendable {
        /// The longest time of a renewal, all its requests included, also those that find the server's endpoints; 30 seconds by default.
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
        /// URLs of the origins to which access tokens are sent; `nil`, the default, for all. By `http` to this computer only.
        public var origins: [String]?

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
    private let origins: Set<HTTPOrigin>?
    /// Renewed tokens that could not be stored.
    private let unstored = Lock<OAuthTokens?>(nil)
    /// The tokens that were returned last.
    private let returned = Lock<OAuthTokens?>(nil)

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
        origins = options.origins.map { Set($0.compactMap { HTTPOrigin(url: $0) }) }
    }

    // MARK: Authenticator

    /// Sets `Authorization`, if the URL has one of the origins, and `https` or a host that is this computer. Another request stays as it is.
    public func apply(_ credential: OAuthTokens, to urlRequest: inout URLRequest) {
        guard isMeant(urlRequest.url) else { return }
        urlRequest.setValue(credential.authorization, forHTTPHeaderField: "Authorization")
    }

    /// Whether the status is 401, and the response is from the origin of a request to which tokens are sent.
    public func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool
    {
        guard response.statusCode == 401, isMeant(urlRequest.url), urlRequest.value(forHTTPHeaderField: "Authorization") != nil,
            let origin = urlRequest.url.flatMap({ HTTPOrigin(url: $0.absoluteString) })
        else { return false }
        return response.url.flatMap { HTTPOrigin(url: $0.absoluteString) } == origin
    }

    /// Whether `Authorization` has the access token, or the request is none to which tokens are sent.
    public func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: OAuthTokens) -> Bool {
        guard isMeant(urlRequest.url) else { return true }
        return urlRequest.value(forHTTPHeaderField: "Authorization")?.hasSameBytes(as: credential.authorization) == true
    }

    private func isMeant(_ url: URL?) -> Bool {
        guard let url = url?.absoluteString, url.isProtectedURL, let origin = HTTPOrigin(url: url) else { return false }
        return origins?.contains(origin) ?? true
    }

    /// Returns the tokens in the store if they are valid and others than those to replace; otherwise renews them. Renewed tokens that can't be
    /// stored are returned, and stored with the next change.
    ///
    /// - Throws: ``OAuthError``; ``CurlewError`` for a failed transfer; what the store and the grant throw.
    public func credential(replacing expired: OAuthTokens?, for manager: SessionManager) async throws -> OAuthTokens {
        let tokens = try await tokens(replacing: expired)
        returned.withLock { $0 = tokens }
        return tokens
    }

    private func tokens(replacing expired: OAuthTokens?) async throws -> OAuthTokens {
        if unstored.withLock({ $0 == nil }), let current = current(expired, try await store.credential()),
            isUsable(current, inPlaceOf: expired)
        {
            return current
        }
        // Before the store is locked, which may wait for other processes; and so that only the request of tokens can have an unknown outcome.
        let deadline = Deadline.after(options.renewalTimeout)
        _ = try await client.metadata(within: options.renewalTimeout)
        let left = deadline.remaining
        // A refresh whose answer comes too late has an unknown outcome. The metadata are known then, so that the next one has all the time.
        guard left >= min(options.renewalTimeout / 2, .seconds(5)) else { throw OAuthError.timedOut(after: options.renewalTimeout) }
        let outcome = Lock<Outcome?>(nil)
        do {
            let tokens = try await store.update { [self] stored in
                let current = current(expired, stored)
                if let current, isUsable(current, inPlaceOf: expired) {
                    outcome.withLock { $0 = .obtained(current) }
                    return current
                }
                do {
                    let renewed = try await withDeadline(left) { try await renew(current) }
                    outcome.withLock { $0 = .obtained(renewed) }
                    return renewed
                } catch let lost as UnusableRefreshToken {
                    outcome.withLock { $0 = .failed(lost.error) }
                    return lost.tokens
                }
            }
            // Unless a renewal that came after this one could not be stored.
            unstored.withLock { unstored in
                if let tokens, unstored?.succeeds(tokens) == true { return }
                unstored = nil
            }
            if case .failed(let error) = outcome.withLock({ $0 }) { throw error }
            guard let tokens else { throw OAuthError.signInRequired(nil) }
            return tokens
        } catch {
            switch outcome.withLock({ $0 }) {
            case .obtained(let tokens):
                // Obtained, and not stored: the token that they replace is of no use any more.
                unstored.withLock { $0 = tokens }
                return tokens
            case .failed(let error): throw error
            case nil: throw error
            }
        }
    }

    // MARK: Sign-in

    /// Stores the tokens of a sign-in; requests that an interceptor creates from then on use them if it has none, or needs others.
    ///
    /// - Throws: what the store throws; ``OAuthError/unexpectedResponse(statusCode:reason:)`` for tokens of the type `N_A`.
    public func signIn(with tokens: OAuthTokens) async throws {
        try await store.store(try authenticating(tokens))
        unstored.withLock { $0 = nil }
    }

    /// Removes the tokens from the store. An interceptor keeps its own: set its `credential` to `nil`.
    public func signOut() async throws {
        unstored.withLock { $0 = nil }
        try await store.remove()
    }

    // MARK: Renewal

    /// A refresh token that has to be stored with what has become of it, and the error of the renewal.
    private struct UnusableRefreshToken: Error {
        let tokens: OAuthTokens
        let error: any Error
    }

    /// What a renewal has come to, whether or not the store could write it.
    private enum Outcome {
        case obtained(OAuthTokens)
        case failed(any Error)
    }

    /// The tokens to use or to renew: those in the store, unless they are known to have been replaced.
    private func current(_ expired: OAuthTokens?, _ stored: OAuthTokens?) -> OAuthTokens? {
        guard var stored else { return expired }
        if let unstored = unstored.withLock({ $0 }), unstored.succeeds(stored) { stored = unstored }
        guard let expired else { return stored }
        if expired.isLaterSignIn(than: stored), returned.withLock({ $0?.isRelated(to: expired) != true }) { return expired }
        // Of a configuration that was changed after a refusal.
        let isSpent = stored.refreshToken == nil && stored.requiresRefresh && expired.refreshToken != nil && !expired.isRelated(to: stored)
        return isSpent || expired.succeeds(stored) ? expired : stored
    }

    private func isUsable(_ current: OAuthTokens, inPlaceOf expired: OAuthTokens?) -> Bool {
        !current.requiresRefresh && (expired.map { !current.accessToken.hasSameBytes(as: $0.accessToken) } ?? true)
    }

    private func renew(_ current: OAuthTokens?) async throws -> OAuthTokens {
        guard let current, current.refreshToken != nil else { return try await request(after: nil, for: current) }
        guard current.lostRefreshes ?? 0 <= (options.resendsRefreshToken ? 1 : 0) else {
            // It stays, as the server may not have used it.
            guard grant != nil else { throw OAuthError.signInRequired(nil) }
            return try await request(after: nil, for: current)
        }
        do {
            return try authenticating(try await client.refresh(current, scope: options.scope, resources: options.resources))
        } catch OAuthError.refused(let refusal) where refusal.code == .invalidGrant && refusal.statusCode < 500 {
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
        let tokens = try authenticating(try await client.tokens(form))
        return current.map { tokens.succeeding($0) } ?? tokens
    }

    /// Returns tokens with which requests can be authenticated: not those of an exchange for another kind (RFC 8693, section 2.2.1).
    private func authenticating(_ tokens: OAuthTokens) throws(OAuthError) -> OAuthTokens {
        guard !tokens.isForOtherUse else {
            throw .unexpectedResponse(statusCode: 200, reason: "its token is not one with which requests are authenticated")
        }
        return tokens
    }

    /// Whether a refresh token may have been used by the server although the request failed.
    private static func isOutcomeUnknown(_ error: any Error) -> Bool {
        switch error {
        case CurlewError.transferFailed(let failure): failure.requestWasSent
        case CurlewError.cancelled, CurlewError.sessionInvalidated, CurlewError.sessionShutDown, is CancellationError: true
        // The response of a gateway, or one of the server that was damaged. With 503 the request was not handled (RFC 9110, section 15.6.4).
        case OAuthError.unexpectedResponse(let status, _): status >= 500 && status != 503 || status < 300
        case OAuthError.refused(let refusal):
            refusal.statusCode >= 500 && refusal.statusCode != 503 && refusal.code != .temporarilyUnavailable
        case OAuthError.unboundToken: true
        default: false
        }
    }
}
