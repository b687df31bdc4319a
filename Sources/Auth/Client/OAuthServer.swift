// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewSigning

/// An authorization server.
public enum OAuthServer: Sendable, Hashable {
    /// The server's endpoints and abilities.
    case metadata(OAuthServerMetadata)
    /// The issuer, whose metadata are fetched once: by RFC 8414, or from the document of OpenID Connect Discovery. They have to name the
    /// same issuer.
    case issuer(String)
}

/// The endpoints and abilities of an authorization server (RFC 8414, section 2). URLs are `https`, or lead to this computer.
public struct OAuthServerMetadata: Sendable, Hashable, Codable {
    private enum CodingKeys: String, CodingKey {
        case issuer
        case authorizationEndpoint = "authorization_endpoint"
        case tokenEndpoint = "token_endpoint"
        case deviceAuthorizationEndpoint = "device_authorization_endpoint"
        case pushedAuthorizationEndpoint = "pushed_authorization_request_endpoint"
        case revocationEndpoint = "revocation_endpoint"
        case introspectionEndpoint = "introspection_endpoint"
        case registrationEndpoint = "registration_endpoint"
        case keysURL = "jwks_uri"
        case scopes = "scopes_supported"
        case authenticationMethods = "token_endpoint_auth_methods_supported"
        case challengeMethods = "code_challenge_methods_supported"
        case sendsIssuer = "authorization_response_iss_parameter_supported"
        case requiresPushedAuthorization = "require_pushed_authorization_requests"
        case proofAlgorithms = "dpop_signing_alg_values_supported"
        case certificateEndpoints = "mtls_endpoint_aliases"
    }

    /// The issuer's identifier, a URL; `nil` if endpoints were given without it.
    public var issuer: String?
    /// Where the user's browser is sent.
    public var authorizationEndpoint: String?
    /// Where tokens are requested.
    public var tokenEndpoint: String?
    /// Where a device without a browser asks for a code (RFC 8628).
    public var deviceAuthorizationEndpoint: String?
    /// Where authorization requests are sent ahead (RFC 9126).
    public var pushedAuthorizationEndpoint: String?
    /// Where tokens are revoked (RFC 7009).
    public var revocationEndpoint: String?
    /// Where tokens are inspected (RFC 7662).
    public var introspectionEndpoint: String?
    /// Where clients are registered (RFC 7591).
    public var registrationEndpoint: String?
    /// Where the server's public keys are, as a JSON Web Key set (`jwks_uri`).
    public var keysURL: String?
    /// Scopes that the server knows.
    public var scopes: [String]?
    /// How clients authenticate at the token endpoint, such as `client_secret_basic`.
    public var authenticationMethods: [String]?
    /// How codes are bound to clients (RFC 7636), such as `S256`.
    public var challengeMethods: [String]?
    /// Whether responses to authorization requests name the issuer (RFC 9207).
    public var sendsIssuer: Bool?
    /// Whether authorization requests have to be sent ahead (RFC 9126).
    public var requiresPushedAuthorization: Bool?
    /// The algorithms of proofs (RFC 9449).
    public var proofAlgorithms: [String]?
    /// The endpoints at which a client's certificate is asked for, by their names (RFC 8705, section 5).
    public var certificateEndpoints: [String: String]?

    /// Creates metadata of a server without discovery.
    public init(issuer: String? = nil, tokenEndpoint: String? = nil, authorizationEndpoint: String? = nil) {
        (self.issuer, self.tokenEndpoint, self.authorizationEndpoint) = (issuer, tokenEndpoint, authorizationEndpoint)
    }

    /// An endpoint, by its name in the metadata.
    enum Endpoint: String, CaseIterable {
        case authorization = "authorization_endpoint"
        case token = "token_endpoint"
        case deviceAuthorization = "device_authorization_endpoint"
        case pushedAuthorization = "pushed_authorization_request_endpoint"
        case revocation = "revocation_endpoint"
        case introspection = "introspection_endpoint"
        case registration = "registration_endpoint"
    }

    /// Returns the URL of an endpoint.
    ///
    /// - Throws: ``OAuthError/missingEndpoint(_:)``; ``OAuthError/invalidMetadata(reason:)`` for a URL without TLS.
    func url(of endpoint: Endpoint, withCertificate: Bool = false) throws(OAuthError) -> String {
        let plain =
            switch endpoint {
            case .authorization: authorizationEndpoint
            case .token: tokenEndpoint
            case .deviceAuthorization: deviceAuthorizationEndpoint
            case .pushedAuthorization: pushedAuthorizationEndpoint
            case .revocation: revocationEndpoint
            case .introspection: introspectionEndpoint
            case .registration: registrationEndpoint
            }
        let url = withCertificate ? certificateEndpoints?[endpoint.rawValue] ?? plain : plain
        guard let url else { throw .missingEndpoint(endpoint.rawValue) }
        guard url.isProtectedURL else { throw .invalidMetadata(reason: "the \(endpoint.rawValue) is neither https nor on this computer") }
        return url
    }
}

// MARK: - Discovery

/// Where the metadata of an issuer or a resource may be.
struct WellKnown {
    /// The URLs to ask one after the other, with the identifier that the document has to name.
    let urls: [String]

    /// For the metadata of an authorization server: where RFC 8414 puts them, and where OpenID Connect does, in both forms of an identifier
    /// with a path.
    init(issuer: String) throws(OAuthError) {
        let inserted = try Self.inserting(["oauth-authorization-server", "openid-configuration"], into: issuer)
        let appended = "\(issuer.withoutLastSlash)/.well-known/openid-configuration"
        urls = inserted.contains { $0.hasSameBytes(as: appended) } ? inserted : inserted + [appended]
    }

    /// Returns URLs with a path between the identifier's host and its path (RFC 8414, section 3.1).
    static func inserting(_ names: [String], into identifier: String) throws(OAuthError) -> [String] {
        guard identifier.isProtectedURL, let scheme = identifier.firstScalarRange(of: "://"),
            !identifier.utf8.contains(where: { "?#".utf8.contains($0) })
        else { throw .invalidMetadata(reason: "the identifier is not an https URL without query and fragment") }
        let rest = identifier[scheme.upperBound...]
        let host = rest.prefixScalars { $0 != "/" }
        let path = String(rest[host.endIndex...]).withoutLastSlash
        return names.map { "\(identifier[..<scheme.upperBound])\(host)/.well-known/\($0)\(path)" }
    }
}

extension String {
    /// The text without a slash at its end.
    var withoutLastSlash: String { utf8.last == UInt8(ascii: "/") ? String(dropLastScalars(1)) : self }
}
