// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
public import CurlewSigning

/// By what a client requests tokens without a user: its own credentials, an assertion or another token.
public struct OAuthGrant: Sendable {
    /// Makes the form of a request, without the client's authentication.
    let form: @Sendable () async throws -> OAuthForm

    /// The client's own credentials (RFC 6749, section 4.4).
    ///
    /// - Parameters:
    ///   - scope: the scope; empty for the server's default.
    ///   - resources: the URLs of the resources for which the access token is to be (RFC 8707).
    public static func clientCredentials(scope: [String] = [], resources: [String] = []) -> OAuthGrant {
        OAuthGrant(type: "client_credentials", scope: scope, resources: resources)
    }

    /// An assertion in the form of a JSON Web Token (RFC 7523, section 2.1).
    ///
    /// - Parameters:
    ///   - scope: the scope; empty for the server's default.
    ///   - resources: the URLs of the resources for which the access token is to be (RFC 8707).
    ///   - assertion: returns the assertion, for each request: they are valid for a short time.
    public static func jwtBearer(
        scope: [String] = [], resources: [String] = [], assertion: @escaping @Sendable () async throws -> String
    ) -> OAuthGrant {
        OAuthGrant(type: "urn:ietf:params:oauth:grant-type:jwt-bearer", scope: scope, resources: resources) { form in
            form["assertion"] = try await assertion()
        }
    }

    /// An assertion that a key signs for each request (RFC 7523, section 2.1), as accounts of services have them.
    ///
    /// - Parameters:
    ///   - key: signs the assertion.
    ///   - issuer: the party to which the key belongs.
    ///   - subject: on whose behalf tokens are requested; by default the issuer's own.
    ///   - audience: the authorization server, by its issuer or its token endpoint.
    ///   - scope: the scope; empty for the server's default.
    ///   - resources: the URLs of the resources for which the access token is to be (RFC 8707).
    ///   - claims: further claims, as some servers want the scope in one.
    public static func jwtBearer(
        signedBy key: SigningKey, issuer: String, subject: String? = nil, audience: String, scope: [String] = [],
        resources: [String] = [], claims: [String: String] = [:]
    ) -> OAuthGrant {
        jwtBearer(scope: scope, resources: resources) {
            try JSONWebToken.assertion(issuer: issuer, subject: subject ?? issuer, audience: audience, by: key, claims: claims)
        }
    }

    /// Another token (RFC 8693).
    public static func tokenExchange(_ exchange: OAuthTokenExchange) -> OAuthGrant {
        OAuthGrant(
            type: "urn:ietf:params:oauth:grant-type:token-exchange", scope: exchange.scope, resources: exchange.resources,
            exchange.add(to:))
    }

    /// A grant of another specification.
    ///
    /// - Parameters:
    ///   - type: its `grant_type`.
    ///   - scope: the scope; empty for the server's default.
    ///   - resources: the URLs of the resources for which the access token is to be (RFC 8707).
    ///   - parameters: returns its parameters, for each request.
    public static func other(
        type: String, scope: [String] = [], resources: [String] = [],
        parameters: @escaping @Sendable () async throws -> [String: String]
    ) -> OAuthGrant {
        OAuthGrant(type: type, scope: scope, resources: resources) { form in
            for (name, value) in try await parameters().sorted(by: { $0.key < $1.key }) { form[name] = value }
        }
    }

    private init(
        type: String, scope: [String], resources: [String], _ add: @escaping @Sendable (inout OAuthForm) async throws -> Void = { _ in }
    ) {
        form = {
            var form: OAuthForm = ["grant_type": type]
            form.append(scope: scope, resources: resources)
            try await add(&form)
            return form
        }
    }
}

/// What is exchanged for which token (RFC 8693, section 2.1).
public struct OAuthTokenExchange: Sendable {
    /// The identifier of a token's type (RFC 8693, section 3).
    public struct TokenType: RawRepresentable, Sendable, Hashable {
        /// The identifier.
        public let rawValue: String

        /// Creates a type from its identifier.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// An access token.
        public static let accessToken = TokenType(rawValue: "urn:ietf:params:oauth:token-type:access_token")
        /// A refresh token.
        public static let refreshToken = TokenType(rawValue: "urn:ietf:params:oauth:token-type:refresh_token")
        /// An ID token of OpenID Connect.
        public static let idToken = TokenType(rawValue: "urn:ietf:params:oauth:token-type:id_token")
        /// A JSON Web Token.
        public static let jwt = TokenType(rawValue: "urn:ietf:params:oauth:token-type:jwt")
        /// An assertion of SAML 2.
        public static let saml2 = TokenType(rawValue: "urn:ietf:params:oauth:token-type:saml2")
    }

    /// Returns a token, for each request.
    public typealias TokenSource = @Sendable () async throws -> String

    /// The token of the party on whose behalf requests are to be sent.
    public var subject: TokenSource
    /// Its type.
    public var subjectType: TokenType
    /// The token of the party that acts; `nil`, the default, if that is the same.
    public var actor: TokenSource?
    /// Its type.
    public var actorType = TokenType.accessToken
    /// The type of the requested token; `nil`, the default, for the server's choice.
    public var requestedType: TokenType?
    /// The names of the services for which the token is to be; none by default.
    public var audiences: [String] = []
    /// The URLs of the resources for which it is to be; none by default.
    public var resources: [String] = []
    /// The scope; empty, the default, for the server's choice.
    public var scope: [String] = []

    /// Creates an exchange.
    ///
    /// - Parameters:
    ///   - type: the type of the token.
    ///   - subject: returns the token of the party on whose behalf requests are to be sent.
    public init(of type: TokenType = .accessToken, _ subject: @escaping TokenSource) {
        (subjectType, self.subject) = (type, subject)
    }

    fileprivate func add(to form: inout OAuthForm) async throws {
        form["subject_token"] = try await subject()
        form["subject_token_type"] = subjectType.rawValue
        if let actor {
            form["actor_token"] = try await actor()
            form["actor_token_type"] = actorType.rawValue
        }
        form["requested_token_type"] = requestedType?.rawValue
        for audience in audiences { form.append("audience", audience) }
    }
}
