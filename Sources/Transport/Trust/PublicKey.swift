// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A public key in the form of certificates: a `SubjectPublicKeyInfo` (RFC 5280, section 4.1).
///
/// Two keys are equal if their bytes are.
public struct PublicKey: Sendable, Hashable {
    /// The `SubjectPublicKeyInfo` in DER.
    public let der: Data
    /// The key's algorithm as an object identifier, such as `1.2.840.113549.1.1.1` for RSA.
    public let algorithm: String

    /// Parses a `SubjectPublicKeyInfo` in DER; `nil` if it is malformed or followed by further bytes.
    public init?(der: Data) {
        do {
            var reader = DERReader([UInt8](der)[...])
            try self.init(from: reader.next(.sequence))
            try reader.end()
        } catch {
            return nil
        }
    }

    /// Parses the first `PUBLIC KEY` of a text in PEM (RFC 7468, section 13); `nil` if there is none.
    public init?(pem: Data) {
        guard let key = PublicKey.all(inPEM: pem).first else { return nil }
        self = key
    }

    /// All keys of a text in PEM; blocks that are not keys are skipped.
    public static func all(inPEM pem: Data) -> [PublicKey] {
        PEM.blocks(["PUBLIC KEY"], in: pem).compactMap { PublicKey(der: $0) }
    }

    init(from element: DERReader.Element) throws(DERReader.Malformed) {
        var reader = DERReader(element.contents)
        var identifier = try reader.enter()
        guard let algorithm = try identifier.next(.objectIdentifier).objectIdentifier else { throw DERReader.Malformed() }
        _ = try reader.next(.bitString)
        try reader.end()
        der = Data(element.bytes)
        self.algorithm = algorithm
    }
}
