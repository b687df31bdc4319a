// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A JSON Web Key (RFC 7517) with the members of the kinds of key that are supported (RFC 7518, section 6; RFC 8037, section 2).
package struct JSONWebKey: Decodable {
    private enum CodingKeys: String, CodingKey {
        case type = "kty"
        case curve = "crv"
        case id = "kid"
        case algorithm = "alg"
        case x, y, d, n, e, p, q, dp, dq, qi, k
    }

    package let type: String
    package let id: String?
    package let algorithm: String?
    let curve: String?
    private let x, y, d, n, e, p, q, dp, dq, qi, k: String?

    /// Decodes a key.
    package static func decode(_ json: Data) throws(CryptoError) -> JSONWebKey {
        do {
            return try JSONDecoder().decode(JSONWebKey.self, from: json)
        } catch {
            // What the decoder says may have parts of the key.
            throw .invalidKey("it is not a JSON object with the members of a JSON Web Key")
        }
    }

    /// Whether it is a secret of both sides (`oct`).
    package var isSecret: Bool { type == "oct" }

    /// The bytes of a secret.
    package func secret() throws(CryptoError) -> [UInt8] { try bytes(k, "k") }

    var hasPrivatePart: Bool { d != nil }

    /// The key as libcrypto decodes it: PKCS #8 or SPKI, and PKCS #1 for RSA.
    func encoded(isPrivate: Bool) throws(CryptoError) -> [UInt8] {
        switch type {
        case "OKP":
            guard curve == "Ed25519" else { throw unsupportedCurve }
            if isPrivate { return Ed25519.encoded(seed: try bytes(d, "d", size: 32)) }
            return Ed25519.encoded(point: try bytes(x, "x", size: 32))
        case "EC":
            guard let curve = EllipticCurve.allCases.first(where: { $0.rawValue == curve }) else { throw unsupportedCurve }
            if isPrivate { return curve.encoded(number: try bytes(d, "d", size: curve.size)) }
            return curve.encoded(point: try bytes(x, "x", size: curve.size) + bytes(y, "y", size: curve.size))
        case "RSA":
            let (modulus, exponent) = (DER.integer(try bytes(n, "n")), DER.integer(try bytes(e, "e")))
            guard isPrivate else { return DER.sequence(modulus, exponent) }
            return DER.sequence(
                DER.integer([]), modulus, exponent, DER.integer(try bytes(d, "d")), DER.integer(try bytes(p, "p")),
                DER.integer(try bytes(q, "q")), DER.integer(try bytes(dp, "dp")), DER.integer(try bytes(dq, "dq")),
                DER.integer(try bytes(qi, "qi")))
        case "oct": throw .invalidKey("it is a secret of both sides, which only HMAC uses")
        default: throw .unsupportedKey("a JSON Web Key of the type \(Redaction.escaped(type))")
        }
    }

    private var unsupportedCurve: CryptoError { .unsupportedKey("the curve \(Redaction.escaped(curve ?? "(none)"))") }

    /// Whether the public members are those of a key; members that are missing are.
    func isPublicPart(of others: [(name: String, value: String)]) -> Bool {
        let own = ["x": x, "y": y, "n": n, "e": e].compactMapValues(\.self)
        return others.allSatisfy { own[$0.name].map($0.value.hasSameBytes) ?? true }
    }

    private func bytes(_ member: String?, _ name: String, size: Int? = nil) throws(CryptoError) -> [UInt8] {
        guard let member else { throw .invalidKey("the JSON Web Key has no \(name)") }
        guard let data = Data(base64URLEncoded: member) else { throw .invalidKey("\(name) of the JSON Web Key is not base64url") }
        guard size.map({ $0 == data.count }) ?? !data.isEmpty else {
            throw .invalidKey("\(name) of the JSON Web Key has \(data.count) bytes\(size.map { ", not \($0)" } ?? "")")
        }
        return Array(data)
    }
}

/// The curves of ECDSA, by their names in JSON Web Keys.
enum EllipticCurve: String, CaseIterable {
    case p256 = "P-256"
    case p384 = "P-384"

    /// The length of a coordinate in bytes.
    var size: Int { self == .p256 ? 32 : 48 }

    /// libcrypto's names.
    var groupNames: [String] { self == .p256 ? ["prime256v1", "P-256"] : ["secp384r1", "P-384"] }

    private var identifier: [UInt8] {
        let curve: [UInt8] =
            self == .p256 ? [0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07] : [0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x22]
        return DER.sequence([0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01], curve)
    }

    /// A private key in PKCS #8, whose public part is computed when it is decoded.
    func encoded(number: [UInt8]) -> [UInt8] {
        DER.sequence(DER.integer([]), identifier, DER.octets(DER.sequence(DER.integer([1]), DER.octets(number))))
    }

    /// A public key in SPKI.
    func encoded(point: [UInt8]) -> [UInt8] { DER.sequence(identifier, DER.bits([4] + point)) }
}

/// Keys of Ed25519 as libcrypto decodes them (RFC 8410).
enum Ed25519 {
    /// A private key in PKCS #8.
    static func encoded(seed: [UInt8]) -> [UInt8] {
        [0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20] + seed
    }

    /// A public key in SPKI.
    static func encoded(point: [UInt8]) -> [UInt8] {
        [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00] + point
    }
}
