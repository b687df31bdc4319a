// SPDX-License-Identifier: Apache-2.0
public import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// What a program registers of itself with an authorization server (RFC 7591, section 2).
public struct OAuthRegistration: Sendable, Hashable, Codable {
    private enum CodingKeys: String, CodingKey {
        case name = "client_name"
        case pageURL = "client_uri"
        case redirectURLs = "redirect_uris"
        case authenticationMethod = "token_endpoint_auth_method"
        case grantTypes = "grant_types"
        case responseTypes = "response_types"
        case scope
        case softwareID = "software_id"
        case softwareVersion = "software_version"
    }

    /// The name that users see.
    public var name: String?
    /// The URL of a page about the program.
    public var pageURL: String?
    /// Where browsers may be redirected; of `http://127.0.0.1/…`, ports don't count (RFC 8252, section 7.3).
    public var redirectURLs: [String]
    /// How the client authenticates; `none`, the default, for a program on a user's computer.
    public var authenticationMethod = "none"
    /// The grants that it uses.
    public var grantTypes = ["authorization_code", "refresh_token"]
    /// The responses to authorization requests that it uses.
    public var responseTypes = ["code"]
    /// The scopes that it may request, separated by spaces.
    public var scope: String?
    /// An identifier of the program, the same for all its installations.
    public var softwareID: String?
    /// Its version.
    public var softwareVersion: String?

    /// Creates a registration.
    public init(name: String? = nil, redirectURLs: [String] = ["http://127.0.0.1/callback"]) {
        (self.name, self.redirectURLs) = (name, redirectURLs)
    }
}

/// A client as a server has registered it (RFC 7591, section 3.2.1). No description shows its secrets.
public struct OAuthRegisteredClient: Sendable, Hashable, Codable {
    private enum CodingKeys: String, CodingKey {
        case id = "client_id"
        case secret = "client_secret"
        case authenticationMethod = "token_endpoint_auth_method"
        case registrationURL = "registration_client_uri"
        case registrationToken = "registration_access_token"
    }

    /// The client's identifier.
    public let id: String
    /// Its secret; `nil` for a public client.
    public let secret: String?
    /// How it authenticates.
    public let authenticationMethod: String?
    /// Where the registration is changed or removed (RFC 7592).
    public let registrationURL: String?
    /// The token for that.
    public let registrationToken: String?

    /// How an ``OAuthClient`` of it authenticates.
    public var authentication: OAuthClientAuthentication {
        guard let secret else { return .none }
        return authenticationMethod?.hasSameBytes(as: "client_secret_post") == true ? .secretInBody(secret) : .secret(secret)
    }
}

extension OAuthRegisteredClient: CustomStringConvertible, CustomReflectable {
    /// The identifier; never a secret.
    public var description: String { "OAuthRegisteredClient(\(Redaction.escaped(id)))" }
    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["id": id]) }
}

extension OAuthClient {
    /// Registers a program with an authorization server (RFC 7591). To be kept: each call makes another client.
    ///
    /// - Parameters:
    ///   - registration: what the program registers of itself.
    ///   - server: the authorization server.
    ///   - token: the initial access token, where the server demands one.
    ///   - configuration: that of the session of the request.
    /// - Throws: ``OAuthError``; ``CurlewError`` for a failed transfer.
    public static func register(
        _ registration: OAuthRegistration, with server: OAuthServer, token: String? = nil,
        configuration: SessionConfiguration = SessionConfiguration()
    ) async throws -> OAuthRegisteredClient {
        let client = OAuthClient(id: "", server: server, configuration: configuration)
        let url = try await client.metadata().url(of: .registration)
        var headers: HTTPHeaders = [.contentType("application/json"), .accept("application/json")]
        if let token { headers.update(.authorization(bearerToken: token)) }
        var request = try URLRequest(url: url, method: .post, headers: headers)
        request.httpBody = try JSONEncoder().encode(registration)
        let response = try await client.send(request, named: "POST registration_endpoint")
        guard response.status == 201 || response.status == 200 else { throw response.error }
        guard let registered = try? JSONDecoder().decode(OAuthRegisteredClient.self, from: response.body) else {
            throw OAuthError.unexpectedResponse(statusCode: response.status, reason: "the body has no client")
        }
        return registered
    }
}
