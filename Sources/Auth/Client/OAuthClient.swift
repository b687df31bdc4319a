// SPDX-License-Identifier: Apache-2.0
public import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A client of an authorization server (RFC 6749), which requests tokens for a program.
///
/// ```swift
/// let client = OAuthClient(id: "reports", authentication: .secret(secret), server: .issuer("https://login.example.org"))
/// let tokens = try await client.tokens(by: .clientCredentials(scope: ["reports:read"]))
/// ```
///
/// Its requests are sent by a session of its own, without interceptors: they wait for no credential, are not retried, and follow no
/// redirect. A request whose bytes were sent is not sent again by any part of the library. Thread-safe.
public final class OAuthClient: Sendable {
    /// The client's identifier (`client_id`).
    public let id: String
    /// How the client authenticates.
    public let authentication: OAuthClientAuthentication
    /// The authorization server.
    public let server: OAuthServer
    /// The longest time of a request, with all connections; 30 seconds by default. A request that exceeds it fails with
    /// ``TransferFailure/Kind/deadline``.
    public let timeout: Duration

    /// Binds tokens to a key; `nil` for bearer tokens.
    public let dpop: DPoP?

    let manager: SessionManager
    private let discovery = Lock<Task<OAuthServerMetadata, any Error>?>(nil)

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - id: the client's identifier.
    ///   - authentication: how it authenticates; by default it is public.
    ///   - server: the authorization server.
    ///   - dpop: binds tokens to a key (RFC 9449); `nil`, the default, for bearer tokens.
    ///   - timeout: the longest time of a request.
    ///   - configuration: that of the session of its requests. Its redirects and retries are not used, nor is its signer.
    public init(
        id: String, authentication: OAuthClientAuthentication = .none, server: OAuthServer, dpop: DPoP? = nil,
        timeout: Duration = .seconds(30), configuration: SessionConfiguration = SessionConfiguration()
    ) {
        (self.id, self.authentication, self.server, self.dpop, self.timeout) = (id, authentication, server, dpop, timeout)
        var configuration = configuration
        configuration.redirects.limit = 0
        configuration.signer = nil
        configuration.maximumBodySize = min(configuration.maximumBodySize, 1 << 20)
        manager = SessionManager(configuration: configuration)
    }

    // MARK: Metadata

    /// Returns the server's metadata, which are fetched once; a failure is forgotten.
    ///
    /// - Throws: ``OAuthError/invalidMetadata(reason:)`` if no document names the issuer; ``CurlewError`` for a failed transfer.
    public func metadata() async throws -> OAuthServerMetadata {
        guard case .issuer(let issuer) = server else {
            guard case .metadata(let metadata) = server else { throw OAuthError.invalidMetadata(reason: "there is none") }
            return metadata
        }
        let task = discovery.withLock { discovery in
            if let discovery { return discovery }
            // For all that wait, so without the deadline of the first.
            let task = SharedWork.begin { Task { [self] in try await discovered(issuer) } }
            discovery = task
            return task
        }
        do {
            return try await task.value
        } catch {
            discovery.withLock { if $0 == task { $0 = nil } }
            throw error
        }
    }

    /// Returns the metadata within a time, after which others wait for them still.
    ///
    /// - Throws: as ``metadata()``; ``OAuthError/timedOut(after:)``.
    func metadata(within time: Duration) async throws -> OAuthServerMetadata {
        // Waiting for a task does not end with its own.
        let (results, result) = AsyncStream<Result<OAuthServerMetadata, any Error>>.makeStream()
        Task {
            do { result.yield(.success(try await metadata())) } catch { result.yield(.failure(error)) }
            result.finish()
        }
        return try await withTimeout(time, ContinuousClock(), throwing: OAuthError.timedOut(after: time)) {
            guard let found = await results.first(where: { _ in true }) else { throw CancellationError() }
            return try found.get()
        }
    }

    private func discovered(_ issuer: String) async throws -> OAuthServerMetadata {
        var statuses: [String] = []
        for url in try WellKnown(issuer: issuer).urls {
            let response = try await get(url)
            guard response.status == 200 else {
                statuses.append("\(response.status)")
                continue
            }
            guard let metadata = try? JSONDecoder().decode(OAuthServerMetadata.self, from: response.body) else {
                throw OAuthError.invalidMetadata(reason: "the document at \(Redaction.current.url(url)) is not one of metadata")
            }
            // A document of another issuer would lead codes and tokens to it (RFC 8414, section 3.3).
            guard metadata.issuer?.hasSameBytes(as: issuer) == true else {
                throw OAuthError.invalidMetadata(reason: "the document at \(Redaction.current.url(url)) names another issuer")
            }
            return metadata
        }
        throw OAuthError.invalidMetadata(reason: "the issuer has no document (status \(statuses.joined(separator: ", ")))")
    }

    // MARK: Tokens

    /// Requests tokens by a grant.
    ///
    /// - Throws: ``OAuthError``; ``CurlewError`` for a failed transfer; what the grant's closure throws.
    public func tokens(by grant: OAuthGrant) async throws -> OAuthTokens {
        try await tokens(try await grant.form())
    }

    /// Requests tokens by a refresh token (RFC 6749, section 6). Of what the response leaves out, the old value is kept.
    ///
    /// The server may have replaced the refresh token although no answer came; an ``OAuthAuthenticator`` knows what to do then.
    ///
    /// - Parameters:
    ///   - tokens: the tokens to replace.
    ///   - scope: less than the granted scope; empty, the default, for the same.
    ///   - resources: the resources for which the access token is to be (RFC 8707).
    /// - Throws: ``OAuthError``, ``OAuthError/signInRequired(_:)`` without a refresh token; ``CurlewError`` for a failed transfer.
    public func refresh(_ tokens: OAuthTokens, scope: [String] = [], resources: [String] = []) async throws -> OAuthTokens {
        guard let refreshToken = tokens.refreshToken else { throw OAuthError.signInRequired(nil) }
        var form: OAuthForm = ["grant_type": "refresh_token", "refresh_token": refreshToken]
        form.append(scope: scope, resources: resources)
        let new = try await self.tokens(form)
        // The tokens of another user, client or issuer (OpenID Connect Core, section 12.2).
        guard IDToken(tokens.idToken)?.isSucceeded(by: new.idToken) ?? true else {
            throw OAuthError.unexpectedResponse(statusCode: 200, reason: "the ID token is another user's, client's or issuer's")
        }
        return new.completed(by: tokens)
    }

    func tokens(_ form: OAuthForm) async throws -> OAuthTokens {
        let response = try await post(form, to: .token)
        guard response.status == 200 else { throw response.error }
        do {
            let tokens = try JSONDecoder().decode(TokenResponse.self, from: response.body).tokens
            guard dpop == nil || tokens.isBound || tokens.isForOtherUse else { throw OAuthError.unboundToken }
            return tokens
        } catch OAuthError.unboundToken {
            throw OAuthError.unboundToken
        } catch {
            // Some servers refuse with status 200.
            if let refusal = OAuthRefusal(response.body, statusCode: response.status) { throw OAuthError.refused(refusal) }
            throw OAuthError.unexpectedResponse(statusCode: response.status, reason: "the body has no tokens of a known type")
        }
    }

    // MARK: Requests

    /// A response of the authorization server.
    struct Response: Sendable {
        let status: Int
        let headers: HTTPHeaders
        let body: Data

        /// The error of a response that is no success.
        var error: OAuthError {
            if let refusal = OAuthRefusal(body, statusCode: status) { return .refused(refusal) }
            return .unexpectedResponse(statusCode: status, reason: "the body has no error of OAuth")
        }
    }

    /// Sends a form to an endpoint, with the client's authentication.
    func post(_ form: OAuthForm, to endpoint: OAuthServerMetadata.Endpoint) async throws -> Response {
        let metadata = try await metadata()
        let url = try metadata.url(of: endpoint, withCertificate: authentication.hasCertificate)
        let signer = endpoint == .token ? dpop.map { TokenRequestSigner(dpop: $0) } : nil
        var mayRepeat = signer != nil
        while true {
            var (form, headers) = (form, HTTPHeaders([.contentType("application/x-www-form-urlencoded"), .accept("application/json")]))
            try authentication.authenticate(id, to: metadata.issuer ?? url, &headers, &form)
            var request = try URLRequest(url: url, method: .post, headers: headers)
            request.httpBody = Data(form.encoded.utf8)
            let response = try await send(request, named: "POST \(endpoint.rawValue)", signer)
            // Another request may have received the same nonce meanwhile.
            let hasNonce = dpop?.learn(response.headers["DPoP-Nonce"], from: url) == true
            // The server has refused the proof, and so has not looked at what the request asks for (RFC 9449, section 8).
            guard mayRepeat, hasNonce, response.status == 400, case .refused(let refusal) = response.error, refusal.code == .useDPoPNonce
            else { return response }
            mayRepeat = false
        }
    }

    /// Fetches a document.
    func get(_ url: String) async throws -> Response {
        try await send(try URLRequest(url: url, method: .get, headers: [.accept("application/json")]), named: "GET metadata")
    }

    /// Sends a request.
    func send(_ request: URLRequest, named name: String, _ signer: (any ExchangeSigner)? = nil) async throws -> Response {
        let options = RequestOptions(deadline: timeout, signer: signer, name: name)
        let response = await manager.request(request, options: options).serializingData().response
        let body = try response.result.get()
        return Response(status: response.responseHead?.statusCode ?? 0, headers: response.responseHead?.headers ?? [:], body: body)
    }
}

// MARK: - Descriptions

extension OAuthClient: CustomStringConvertible, CustomReflectable {
    /// The identifier and the kind of authentication; never a secret.
    public var description: String { "OAuthClient(\(Redaction.escaped(id)), \(authentication))" }
    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}
