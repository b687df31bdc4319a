// SPDX-License-Identifier: Apache-2.0
import CurlewCrypto

/// How a key signs, by the names of the registry of HTTP message signatures (RFC 9421, section 6.2.2).
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum SignatureAlgorithm: String, Sendable, Hashable, CaseIterable {
    /// HMAC with SHA-256, by a secret of both sides (RFC 9421, section 3.3.3); `HS256` for JSON Web Tokens.
    case hmacSHA256 = "hmac-sha256"
    /// Ed25519 (section 3.3.6); `EdDSA` for JSON Web Tokens.
    case ed25519 = "ed25519"
    /// ECDSA on P-256 with SHA-256 (section 3.3.4), as the concatenation of both numbers; `ES256`.
    case ecdsaP256 = "ecdsa-p256-sha256"
    /// ECDSA on P-384 with SHA-384 (section 3.3.5), as the concatenation of both numbers; `ES384`.
    case ecdsaP384 = "ecdsa-p384-sha384"
    /// RSASSA-PSS with SHA-512 (section 3.3.1), with a salt of 64 bytes; `PS512`.
    case rsaPSS = "rsa-pss-sha512"
    /// RSASSA-PKCS1-v1_5 with SHA-256 (section 3.3.2); `RS256`. Only for peers without ``rsaPSS``.
    case rsaPKCS1 = "rsa-v1_5-sha256"

    /// The algorithm of a JSON Web Key's `alg` (RFC 7518, RFC 8037, RFC 9864); `nil` for others.
    init?(jsonWebAlgorithm name: String) {
        switch name {
        case "HS256": self = .hmacSHA256
        case "EdDSA", "Ed25519": self = .ed25519
        case "ES256": self = .ecdsaP256
        case "ES384": self = .ecdsaP384
        case "PS512": self = .rsaPSS
        case "RS256": self = .rsaPKCS1
        default: return nil
        }
    }

    /// `nil` for HMAC.
    var scheme: AsymmetricKey.Scheme? {
        switch self {
        case .hmacSHA256: nil
        case .ed25519: .ed25519
        case .ecdsaP256: .ecdsaP256
        case .ecdsaP384: .ecdsaP384
        case .rsaPSS: .rsaPSS
        case .rsaPKCS1: .rsaPKCS1
        }
    }
}
