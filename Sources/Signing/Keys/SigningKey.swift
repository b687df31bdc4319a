// SPDX-License-Identifier: Apache-2.0
import CurlewCrypto
import CurlewHTTP

/// A key that signs: a secret of both sides, or a private key of Ed25519, ECDSA or RSA.
///
/// Private keys are those of the libcrypto 3 that libcurl uses: without one, ``SigningKeyError/signingUnavailable(_:)``. Any thread may sign.
public struct SigningKey: Sendable {
    let material: KeyMaterial
    /// How the key signs.
    public let algorithm: SignatureAlgorithm
    /// The identifier by which the verifier finds the key; `nil` if there is none.
    public let id: String?

    init(_ key: AsymmetricKey, _ algorithm: SignatureAlgorithm? = nil, id: String? = nil) throws(SigningKeyError) {
        guard key.isPrivate else { throw .invalidKey("it is a public key, which only verifies") }
        self.algorithm = try key.algorithm(algorithm)
        self.id = id
        material = .asymmetric(key)
    }

    /// Creates a key of a secret of both sides, for HMAC with SHA-256: of 32 random bytes or more (RFC 2104, section 3).
    ///
    /// - Throws: ``SigningKeyError/invalidKey(_:)`` for an empty secret.
    public init(secret: some Sequence<UInt8>, id: String? = nil) throws(SigningKeyError) {
        material = try .secret(Array(secret))
        algorithm = .hmacSHA256
        self.id = id
    }

    /// Reads the first key of a PEM text: PKCS #8 (`PRIVATE KEY`, `ENCRYPTED PRIVATE KEY`), or the traditional forms of RSA and EC.
    ///
    /// - Parameters:
    ///   - pem: the text; blocks of certificates and parameters are skipped.
    ///   - password: that of an encrypted key.
    ///   - algorithm: how the key signs; by default ``SignatureAlgorithm/rsaPSS`` for RSA, and the only one for other keys.
    ///   - id: the identifier by which the verifier finds the key.
    /// - Throws: ``SigningKeyError``.
    public init(pem: String, password: String? = nil, algorithm: SignatureAlgorithm? = nil, id: String? = nil) throws(SigningKeyError) {
        try self.init(try signing { () throws(CryptoError) in try AsymmetricKey(pem: pem, password: password) }, algorithm, id: id)
    }

    /// Reads the DER encoding of a key in one of these forms.
    public init(der: Data, password: String? = nil, algorithm: SignatureAlgorithm? = nil, id: String? = nil) throws(SigningKeyError) {
        let key = try signing { () throws(CryptoError) in
            try AsymmetricKey(der: Array(der), isPrivate: true, password: password)
        }
        try self.init(key, algorithm, id: id)
    }

    /// Reads a JSON Web Key (RFC 7517): `OKP` with Ed25519, `EC` with P-256 or P-384, `RSA` with its prime factors, or `oct`.
    ///
    /// - Parameters:
    ///   - jwk: the JSON object.
    ///   - algorithm: how the key signs; by default as its `alg` names, or as for ``init(pem:password:algorithm:id:)``.
    ///   - id: the identifier by which the verifier finds the key; `kid` by default.
    /// - Throws: ``SigningKeyError``.
    public init(jwk: Data, algorithm: SignatureAlgorithm? = nil, id: String? = nil) throws(SigningKeyError) {
        let key = try ReadKey(jwk, isPrivate: true, algorithm)
        (material, self.algorithm, self.id) = (key.material, key.algorithm, id ?? key.id)
    }

    /// Generates a private key.
    ///
    /// - Parameters:
    ///   - algorithm: ``SignatureAlgorithm/ed25519``, ``SignatureAlgorithm/ecdsaP256``, or ``SignatureAlgorithm/hmacSHA256`` for a secret of
    ///     32 bytes.
    ///   - id: the identifier by which the verifier finds the key.
    /// - Throws: ``SigningKeyError/unsupportedKey(_:)`` for other algorithms.
    public static func generate(_ algorithm: SignatureAlgorithm = .ed25519, id: String? = nil) throws(SigningKeyError) -> SigningKey {
        switch algorithm {
        case .hmacSHA256: try SigningKey(secret: (0..<32).map { _ in UInt8.random(in: .min ... .max) }, id: id)
        case .ed25519: try SigningKey(try signing { () throws(CryptoError) in try .generateEd25519() }, algorithm, id: id)
        case .ecdsaP256: try SigningKey(try signing { () throws(CryptoError) in try .generateP256() }, algorithm, id: id)
        default: throw .unsupportedKey("no key is generated for \(algorithm.rawValue)")
        }
    }

    /// Returns the signature of a message.
    ///
    /// - Throws: ``SigningKeyError/signingFailed``, and ``SigningKeyError/signingUnavailable(_:)`` without the algorithm.
    public func signature(of message: Data) throws(SigningKeyError) -> Data {
        switch material {
        case .secret(let secret): return Data(HMAC.sha256("", message, key: secret))
        case .asymmetric(let key):
            guard let scheme = algorithm.scheme else { throw .signingFailed }
            return Data(try signing { () throws(CryptoError) in try key.sign(Array(message), by: scheme) })
        }
    }

    /// What verifies the signatures of this key: the public key, or the secret itself.
    public var verificationKey: VerificationKey { VerificationKey(material, algorithm, id: id) }

    /// Returns the private key in PKCS #8 as PEM, not encrypted, to be stored.
    ///
    /// - Throws: ``SigningKeyError/unsupportedKey(_:)`` for a secret.
    public func pem() throws(SigningKeyError) -> String {
        guard case .asymmetric(let key) = material else { throw .unsupportedKey("a secret has no PEM form") }
        return try signing { () throws(CryptoError) in try key.privatePEM() }
    }
}

/// A key that verifies signatures: a secret of both sides, or a public key of Ed25519, ECDSA or RSA.
public struct VerificationKey: Sendable {
    let material: KeyMaterial
    /// How signatures are verified.
    public let algorithm: SignatureAlgorithm
    /// The identifier of the key; `nil` if there is none.
    public let id: String?

    init(_ material: KeyMaterial, _ algorithm: SignatureAlgorithm, id: String?) {
        (self.material, self.algorithm, self.id) = (material, algorithm, id)
    }

    init(_ key: AsymmetricKey, _ algorithm: SignatureAlgorithm? = nil, id: String? = nil) throws(SigningKeyError) {
        guard !key.isPrivate else { throw .invalidKey("it is a private key, which a verifier does not need") }
        self.init(.asymmetric(key), try key.algorithm(algorithm), id: id)
    }

    /// Creates a key of a secret of both sides, for HMAC with SHA-256.
    ///
    /// - Throws: ``SigningKeyError/invalidKey(_:)`` for an empty secret.
    public init(secret: some Sequence<UInt8>, id: String? = nil) throws(SigningKeyError) {
        self.init(try .secret(Array(secret)), .hmacSHA256, id: id)
    }

    /// Reads the first key of a PEM text: SPKI (`PUBLIC KEY`) or `RSA PUBLIC KEY`.
    ///
    /// - Throws: ``SigningKeyError``, also for a private key.
    public init(pem: String, algorithm: SignatureAlgorithm? = nil, id: String? = nil) throws(SigningKeyError) {
        try self.init(try signing { () throws(CryptoError) in try AsymmetricKey(pem: pem) }, algorithm, id: id)
    }

    /// Reads the DER encoding of a key in one of these forms.
    public init(der: Data, algorithm: SignatureAlgorithm? = nil, id: String? = nil) throws(SigningKeyError) {
        let key = try signing { () throws(CryptoError) in try AsymmetricKey(der: Array(der), isPrivate: false) }
        try self.init(key, algorithm, id: id)
    }

    /// Reads a JSON Web Key (RFC 7517), of which a private part is ignored.
    ///
    /// - Throws: ``SigningKeyError``.
    public init(jwk: Data, algorithm: SignatureAlgorithm? = nil, id: String? = nil) throws(SigningKeyError) {
        let key = try ReadKey(jwk, isPrivate: false, algorithm)
        self.init(key.material, key.algorithm, id: id ?? key.id)
    }

    /// Returns whether a signature is that of a message. A secret's are compared in constant time.
    ///
    /// - Throws: ``SigningKeyError/signingUnavailable(_:)`` without the algorithm.
    public func isValid(_ signature: Data, of message: Data) throws(SigningKeyError) -> Bool {
        switch material {
        case .secret(let secret): return HMAC.sha256("", message, key: secret).isSameInConstantTime(as: signature)
        case .asymmetric(let key):
            guard let scheme = algorithm.scheme else { return false }
            return try signing { () throws(CryptoError) in try key.isValid(Array(signature), of: Array(message), by: scheme) }
        }
    }

    /// Returns the public key as a JSON Web Key, with the members that identify it only.
    ///
    /// - Throws: ``SigningKeyError/unsupportedKey(_:)`` for a secret.
    public func jwk() throws(SigningKeyError) -> String {
        let key = try publicKey()
        return try signing { () throws(CryptoError) in try key.publicJSON() }
    }

    /// Returns the key's thumbprint by SHA-256 in base64url (RFC 7638): an identifier that both sides can compute.
    ///
    /// - Throws: ``SigningKeyError/unsupportedKey(_:)`` for a secret.
    public func thumbprint() throws(SigningKeyError) -> String {
        let key = try publicKey()
        return Data(try signing { () throws(CryptoError) in try key.thumbprint() }).base64URLEncoded
    }

    /// What distinguishes the key from others: the identifier, otherwise a part of a digest.
    var distinction: String {
        if let id { return id }
        switch material {
        case .secret(let secret): return HMAC.sha256("identity of a signer".utf8, key: secret).prefix(16).hexDigits
        case .asymmetric(let key): return (try? key.thumbprint())?.hexDigits ?? ""
        }
    }

    private func publicKey() throws(SigningKeyError) -> AsymmetricKey {
        guard case .asymmetric(let key) = material else { throw .unsupportedKey("a secret has no public part") }
        return key
    }
}

enum KeyMaterial: Sendable {
    case secret(Secret)
    case asymmetric(AsymmetricKey)

    /// The bytes of a secret, which no description shows.
    struct Secret: Sendable, Sequence, CustomStringConvertible, CustomReflectable {
        let bytes: [UInt8]

        func makeIterator() -> IndexingIterator<[UInt8]> { bytes.makeIterator() }
        var description: String { "Secret" }
        var customMirror: Mirror { Mirror(self, children: []) }
    }

    static func secret(_ bytes: [UInt8]) throws(SigningKeyError) -> KeyMaterial {
        guard !bytes.isEmpty else { throw .invalidKey("the secret is empty") }
        return .secret(Secret(bytes: bytes))
    }
}

/// A JSON Web Key that was read.
private struct ReadKey {
    let material: KeyMaterial
    let algorithm: SignatureAlgorithm
    let id: String?

    init(_ json: Data, isPrivate: Bool, _ algorithm: SignatureAlgorithm?) throws(SigningKeyError) {
        let key = try signing { () throws(CryptoError) in try JSONWebKey.decode(json) }
        id = key.id
        var wanted = algorithm
        if wanted == nil, let name = key.algorithm {
            wanted = SignatureAlgorithm(jsonWebAlgorithm: name)
            if wanted == nil { throw .unsupportedKey("the algorithm \(Redaction.escaped(name))") }
        }
        if key.isSecret {
            guard wanted == nil || wanted == .hmacSHA256 else { throw .wrongAlgorithm("a secret signs by hmac-sha256 only") }
            material = try .secret(try signing { () throws(CryptoError) in try key.secret() })
            self.algorithm = .hmacSHA256
        } else {
            let read = try signing { () throws(CryptoError) in try AsymmetricKey(key, isPrivate: isPrivate) }
            material = .asymmetric(read)
            self.algorithm = try read.algorithm(wanted)
        }
    }
}

extension AsymmetricKey {
    /// The algorithm by which the key signs.
    fileprivate func algorithm(_ wanted: SignatureAlgorithm?) throws(SigningKeyError) -> SignatureAlgorithm {
        guard let wanted else {
            switch kind {
            case .ed25519: return .ed25519
            case .p256: return .ecdsaP256
            case .p384: return .ecdsaP384
            case .rsa, .rsaPSS: return .rsaPSS
            }
        }
        guard let scheme = wanted.scheme, supports(scheme) else {
            throw .wrongAlgorithm("a key of the kind \(kind) does not sign by \(wanted.rawValue)")
        }
        return wanted
    }
}

// MARK: - Descriptions

extension SigningKey: CustomStringConvertible, CustomReflectable {
    /// The algorithm and the identifier; never the key.
    public var description: String { "SigningKey(\(algorithm.rawValue)\(id.map { ", \(Redaction.escaped($0))" } ?? ""))" }
    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}

extension VerificationKey: CustomStringConvertible, CustomReflectable {
    /// The algorithm and the identifier; never the key.
    public var description: String { "VerificationKey(\(algorithm.rawValue)\(id.map { ", \(Redaction.escaped($0))" } ?? ""))" }
    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}
