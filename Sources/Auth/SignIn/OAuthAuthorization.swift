// SPDX-License-Identifier: Apache-2.0
import CurlewCrypto
import CurlewHTTP

/// An authorization request that the user is to answer in a browser: with a code that is bound to it by PKCE (RFC 7636, S256).
///
/// ```swift
/// let authorization = try await client.authorization(redirectingTo: "https://app.example.org/callback", scope: ["calendar"])
/// // Send the browser to authorization.url, and keep the value until the redirect comes, whose URL is `callback`.
/// let tokens = try await authorization.tokens(from: callback)
/// ```
///
/// It has secrets, which no description shows: keep it in the user's session, and use it once.
public struct OAuthAuthorization: Sendable {
    /// The URL to which the browser is sent.
    public let url: String
    /// Where the browser is redirected with the answer.
    public let redirectURL: String
    /// What the answer has to repeat (`state`): by it a server finds the user's request.
    public let state: String
    let client: OAuthClient
    let metadata: OAuthServerMetadata
    let verifier: CodeVerifier
    /// The value that an ID token has to repeat; `nil` if none was sent.
    let nonce: String?
    let resources: [String]

    /// Checks the redirect, and exchanges its code for tokens.
    ///
    /// `state` has to be that of the request, and `iss` the server's issuer, if it sends one (RFC 9207). Of an ID token the issuer, the
    /// audience, the authorized party (`azp`), the expiration and `nonce`, if one was sent, are checked; its signature is not, as it comes
    /// from the server itself over TLS (OpenID Connect Core, section 3.1.3.7).
    ///
    /// - Parameter callback: the URL to which the browser was redirected, or its path and query.
    /// - Throws: ``OAuthError/refused(_:)`` if the user or the server has refused; ``OAuthError/invalidCallback(reason:)``; as
    ///   ``OAuthClient/tokens(by:)``.
    public func tokens(from callback: String) async throws -> OAuthTokens {
        var form: OAuthForm = [
            "grant_type": "authorization_code", "code": try code(from: callback), "redirect_uri": redirectURL,
            "code_verifier": verifier.text,
        ]
        form.append(scope: [], resources: resources)
        let tokens = try await client.tokens(form)
        try check(tokens.idToken)
        return tokens
    }

    private func code(from callback: String) throws(OAuthError) -> String {
        let items = try Self.items(of: callback)
        guard let state = items["state"], state.utf8.elementsEqual(self.state.utf8) else {
            throw .invalidCallback(reason: "its state is not that of the request")
        }
        if let issuer = metadata.issuer {
            guard items["iss"].map({ $0.hasSameBytes(as: issuer) }) ?? (metadata.sendsIssuer != true) else {
                throw .invalidCallback(reason: "it is not from the issuer to which the request was sent")
            }
        }
        if let error = items["error"] {
            let refusal = OAuthRefusal(
                OAuthRefusal.Code(rawValue: error), explanation: items["error_description"], pageURL: items["error_uri"])
            throw .refused(refusal)
        }
        guard let code = items["code"] else { throw .invalidCallback(reason: "it has neither a code nor an error") }
        return code
    }

    /// The items of a redirect's query, each of which occurs once (RFC 6749, section 3.1).
    static func items(of callback: String) throws(OAuthError) -> [String: String] {
        let query = callback.prefixScalars { $0 != "#" }.dropScalars { $0 != "?" }
        var items: [String: String] = [:]
        for item in query.dropFirstScalars(query.isEmpty ? 0 : 1).splitScalars(separator: "&") {
            let name = item.prefixScalars { $0 != "=" }
            let value = item[name.endIndex...]
            let decoded = [name, value.dropFirstScalars(value.isEmpty ? 0 : 1)].map {
                String($0).replacingScalars("+", with: " ").removingPercentEncoding
            }
            guard let name = decoded[0], let value = decoded[1], items.updateValue(value, forKey: name) == nil else {
                throw .invalidCallback(reason: "a parameter occurs twice, or is not UTF-8")
            }
        }
        return items
    }

    private func check(_ idToken: String?) throws(OAuthError) {
        guard idToken != nil || nonce != nil else { return }
        guard let token = IDToken(idToken) else { throw .invalidCallback(reason: "there is no ID token") }
        guard nonce.map({ token.nonce?.hasSameBytes(as: $0) == true }) ?? true,
            token.isMeant(for: client.id),
            metadata.issuer.map({ $0.hasSameBytes(as: token.iss) }) ?? true, Date(timeIntervalSince1970: token.exp + 60) > Date()
        else { throw .invalidCallback(reason: "the ID token is another request's, client's or issuer's, or has expired") }
    }
}

/// The claims of an ID token that are checked (OpenID Connect Core, section 2).
struct IDToken: Decodable {
    let iss: String
    let aud: Audience
    let exp: Double
    let sub: String?
    let nonce: String?
    let azp: String?

    /// Reads a token; `nil` if it is none.
    init?(_ text: String?) {
        let parts = (text ?? "").splitScalars(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Data(base64URLEncoded: String(parts[1])),
            let token = try? JSONDecoder().decode(Self.self, from: payload)
        else { return nil }
        self = token
    }

    /// Whether a client is in the audience, and the authorized party: `azp`, which has to be there for an audience of several (section
    /// 3.1.3.7, points 3 to 5).
    func isMeant(for client: String) -> Bool {
        guard aud.names.contains(where: { $0.hasSameBytes(as: client) }) else { return false }
        return azp.map { $0.hasSameBytes(as: client) } ?? (aud.names.count == 1)
    }

    /// Whether the token of a refresh, if there is one, has the same issuer, user, audience and authorized party (section 12.2).
    func isSucceeded(by text: String?) -> Bool {
        guard let text else { return true }
        guard let new = IDToken(text) else { return false }
        return new.iss.hasSameBytes(as: iss) && (new.sub ?? "").hasSameBytes(as: sub ?? "") && (new.azp ?? "").hasSameBytes(as: azp ?? "")
            && aud.names.allSatisfy { name in new.aud.names.contains { $0.hasSameBytes(as: name) } }
    }
}

/// The audience of a token: one name or several (RFC 7519, section 4.1.3).
struct Audience: Decodable {
    let names: [String]

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        names = try (try? [value.decode(String.self)]) ?? value.decode([String].self)
    }
}

/// The secret by which a code is bound to its request (RFC 7636).
struct CodeVerifier: Sendable {
    let text: String

    /// Creates a verifier of 32 random bytes.
    init() { text = Self.randomText() }

    init(_ text: String) { self.text = text }

    /// What the request has of it (section 4.2, S256).
    var challenge: String { Data(SHA256.digest(of: text.utf8)).base64URLEncoded }

    /// 43 characters, of 32 random bytes.
    static func randomText() -> String {
        var generator = SystemRandomNumberGenerator()
        return Data((0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }).base64URLEncoded
    }
}

extension OAuthAuthorization: CustomStringConvertible, CustomReflectable {
    /// The client and the redirect URL; never a secret.
    public var description: String { "OAuthAuthorization(\(client), \(Redaction.current.url(redirectURL)))" }
    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}
