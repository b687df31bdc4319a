// SPDX-License-Identifier: Apache-2.0
import CurlewCrypto
import CurlewHTTP
import CurlewSigning

/// Signs JSON Web Tokens (RFC 7519) in the compact form (RFC 7515, section 3.1).
enum JSONWebToken {
    /// Returns a token.
    ///
    /// - Parameters:
    ///   - claims: its claims.
    ///   - key: signs it; its identifier is the header's `kid`.
    ///   - header: further members of the header.
    static func signed(_ claims: [String: JSONValue], by key: SigningKey, header: [String: JSONValue] = [:]) throws -> String {
        var header = header
        header["alg"] = .string(key.algorithm.jsonWebName)
        // A key that is in the header needs no identifier.
        if header["jwk"] == nil { header["kid"] = key.id.map { .string($0) } }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let parts = try [header, claims].map { try encoder.encode($0).base64URLEncoded }
        let message = parts.joined(separator: ".")
        return "\(message).\(try key.signature(of: Data(message.utf8)).base64URLEncoded)"
    }

    /// Returns an assertion (RFC 7523, section 3) that is valid for a minute.
    static func assertion(
        issuer: String, subject: String, audience: String, by key: SigningKey, claims: [String: String] = [:]
    ) throws -> String {
        let now = Int(Date().timeIntervalSince1970)
        var all = claims.mapValues { JSONValue.string($0) }
        all["iss"] = .string(issuer)
        all["sub"] = .string(subject)
        all["aud"] = .string(audience)
        all["jti"] = .string(CodeVerifier.randomText())
        all["iat"] = .integer(now)
        all["exp"] = .integer(now + 60)
        return try signed(all, by: key)
    }
}

extension SignatureAlgorithm {
    /// The name in JSON Web Tokens (RFC 7518, section 3.1; RFC 8037).
    var jsonWebName: String {
        switch self {
        case .hmacSHA256: "HS256"
        case .ed25519: "EdDSA"
        case .ecdsaP256: "ES256"
        case .ecdsaP384: "ES384"
        case .rsaPSS: "PS512"
        case .rsaPKCS1: "RS256"
        }
    }
}
