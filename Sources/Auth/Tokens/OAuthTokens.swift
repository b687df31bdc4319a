// SPDX-License-Identifier: Apache-2.0
public import CurlewCore
import CurlewHTTP

/// The tokens that an authorization server has issued (RFC 6749, section 5.1). No description shows them.
public struct OAuthTokens: AuthenticationCredential, Sendable, Hashable, Codable {
    /// The token with which requests are authenticated.
    public var accessToken: String
    /// How the access token is used: `Bearer` or `DPoP`, compared case-insensitively.
    public var type: String
    /// When the access token expires, by the clock of this computer; `nil` if the server has not said.
    public var expiration: Date?
    /// The token that obtains the next ones; `nil` if there is none.
    public var refreshToken: String?
    /// The granted scope; `nil` if the server has not said, which means the requested one.
    public var scope: [String]?
    /// The ID token of OpenID Connect, as it was received; its signature is not verified here.
    public var idToken: String?
    /// What a token exchange has issued (RFC 8693, section 2.2.1), such as `urn:ietf:params:oauth:token-type:access_token`.
    public var issuedTokenType: String?
    /// When the tokens were received.
    public let issued: Date
    /// How often the refresh token was sent without an answer; `nil` for never.
    var lostRefreshes: Int?
    /// The sign-in from which the tokens come, by a random name, and how often they were renewed since; `nil` for tokens that a program has
    /// made. Clocks of computers differ.
    private var lineage: String?
    private var generation: Int?

    /// Creates tokens that were obtained otherwise.
    ///
    /// - Parameters:
    ///   - accessToken: the token with which requests are authenticated.
    ///   - type: how it is used.
    ///   - expiration: when it expires.
    ///   - refreshToken: the token that obtains the next ones.
    ///   - scope: the granted scope.
    ///   - idToken: the ID token.
    public init(
        accessToken: String, type: String = "Bearer", expiration: Date? = nil, refreshToken: String? = nil, scope: [String]? = nil,
        idToken: String? = nil
    ) {
        (self.accessToken, self.type, self.expiration) = (accessToken, type, expiration)
        (self.refreshToken, self.scope, self.idToken) = (refreshToken, scope, idToken)
        issued = Date()
        lineage = CodeVerifier.randomText()
    }

    /// Whether the access token expires within a minute, or within a tenth of its lifetime if that is shorter.
    public var requiresRefresh: Bool {
        guard let expiration else { return false }
        let margin = min(60, max(expiration.timeIntervalSince(issued), 0) / 10)
        return expiration.timeIntervalSinceNow <= margin
    }

    /// The value of `Authorization`.
    var authorization: String { "\(isBound ? "DPoP" : "Bearer") \(accessToken)" }

    /// Whether a proof has to accompany the access token (RFC 9449).
    var isBound: Bool { type.equalsIgnoringASCIICase("DPoP") }

    /// Returns these tokens with what a response to a refresh of others may leave out (RFC 6749, section 6).
    func completed(by old: OAuthTokens) -> OAuthTokens {
        var tokens = self
        tokens.refreshToken = refreshToken ?? old.refreshToken
        tokens.scope = scope ?? old.scope
        tokens.idToken = idToken ?? old.idToken
        return tokens.succeeding(old)
    }

    /// Whether requests are not authenticated with the token: an exchange has issued one of another kind (RFC 8693, section 2.2.1).
    var isForOtherUse: Bool { type.equalsIgnoringASCIICase("N_A") }

    // MARK: Succession

    /// Returns these tokens as the ones that have replaced others.
    func succeeding(_ old: OAuthTokens) -> OAuthTokens {
        var tokens = self
        tokens.lineage = old.lineage ?? lineage
        tokens.generation = (old.generation ?? 0) + 1
        return tokens
    }

    /// Whether they come from the same sign-in as others.
    func isRelated(to other: OAuthTokens) -> Bool { lineage == other.lineage }

    /// Whether they come from a later sign-in than others, as far as the clocks agree. Not those that a program has made, which are new at
    /// each of its starts.
    func isLaterSignIn(than other: OAuthTokens) -> Bool { !isRelated(to: other) && generation != nil && issued > other.issued }

    /// Returns these tokens as those of a sign-in, or of another grant.
    fileprivate func received() -> OAuthTokens {
        var tokens = self
        tokens.generation = 0
        return tokens
    }

    /// Whether they have replaced others.
    func succeeds(_ other: OAuthTokens) -> Bool { isRelated(to: other) && generation ?? 0 > other.generation ?? 0 }
}

// MARK: - Responses

/// The response of a token endpoint.
struct TokenResponse: Decodable {
    private enum CodingKeys: String, CodingKey {
        case accessToken = "access_token"
        case type = "token_type"
        case expiresIn = "expires_in"
        case refreshToken = "refresh_token"
        case scope
        case idToken = "id_token"
        case issuedTokenType = "issued_token_type"
    }

    let tokens: OAuthTokens

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let type = try values.decode(String.self, forKey: .type)
        // A client must not use a token of a type that it does not know (RFC 6749, section 7.1); N_A is that of an exchange for another kind.
        guard ["Bearer", "DPoP", "N_A"].contains(where: { $0.equalsIgnoringASCIICase(type) }) else {
            throw DecodingError.dataCorruptedError(forKey: .type, in: values, debugDescription: "The type of the token is unknown")
        }
        // Some servers send the seconds as a string.
        let seconds = try? values.decodeIfPresent(Double.self, forKey: .expiresIn)
        let text = try? values.decodeIfPresent(String.self, forKey: .expiresIn)
        let lifetime = seconds ?? text.flatMap { Double($0) }
        var tokens = OAuthTokens(
            accessToken: try values.decode(String.self, forKey: .accessToken), type: type,
            expiration: lifetime.flatMap { $0.isFinite ? Date(timeIntervalSinceNow: min($0, 1e10)) : nil },
            refreshToken: try values.decodeIfPresent(String.self, forKey: .refreshToken),
            scope: try values.decodeIfPresent(String.self, forKey: .scope).map { $0.splitScalars(separator: " ").map { String($0) } },
            idToken: try values.decodeIfPresent(String.self, forKey: .idToken))
        tokens.issuedTokenType = try values.decodeIfPresent(String.self, forKey: .issuedTokenType)
        self.tokens = tokens.received()
    }
}

// MARK: - Descriptions

extension OAuthTokens: CustomStringConvertible, CustomReflectable {
    /// Type, expiration and scope; never a token.
    public var description: String {
        let parts = [
            Redaction.escaped(type), expiration.map { "until \($0)" }, refreshToken.map { _ in "with a refresh token" },
            scope.map { "scope \(Redaction.escaped($0.joined(separator: " ")))" },
        ]
        return "OAuthTokens(\(parts.compactMap(\.self).joined(separator: ", ")))"
    }

    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}
