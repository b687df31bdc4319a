// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A private or public key of Ed25519, ECDSA or RSA, by the libcrypto 3 that libcurl uses. Never shows key material.
///
/// `@unchecked`: libcrypto's keys are immutable and counted atomically; each signature has a context of its own.
package final class AsymmetricKey: @unchecked Sendable {
    /// What a key can sign by.
    package enum Kind: Sendable, Hashable {
        case ed25519, p256, p384, rsa
        /// An RSA key that is only for RSA-PSS (RFC 4055, section 1.2).
        case rsaPSS
    }

    /// How a message is signed.
    package enum Scheme: Sendable, Hashable {
        /// Ed25519 (RFC 8032).
        case ed25519
        /// ECDSA with SHA-256 on P-256, or with SHA-384 on P-384; a signature is both numbers, concatenated.
        case ecdsaP256, ecdsaP384
        /// RSASSA-PSS with SHA-512, MGF1 with it, and a salt of 64 bytes.
        case rsaPSS
        /// RSASSA-PKCS1-v1_5 with SHA-256.
        case rsaPKCS1

        fileprivate var digest: String? {
            switch self {
            case .ed25519: nil
            case .ecdsaP256, .rsaPKCS1: "SHA256"
            case .ecdsaP384: "SHA384"
            case .rsaPSS: "SHA512"
            }
        }
    }

    package let kind: Kind
    /// Whether the key signs.
    package let isPrivate: Bool
    private let functions: KeyFunctions
    private let handle: OpaquePointer

    private init(_ handle: OpaquePointer, isPrivate: Bool, _ functions: KeyFunctions) throws(CryptoError) {
        do throws(CryptoError) {
            kind = try Self.kind(of: handle, functions)
        } catch {
            functions.freeKey(handle)
            throw error
        }
        (self.handle, self.isPrivate, self.functions) = (handle, isPrivate, functions)
    }

    deinit { functions.freeKey(handle) }

    // MARK: Reading

    /// Reads the first key of a PEM text: PKCS #8, also encrypted, SPKI, or the traditional forms of RSA and EC.
    package convenience init(pem: String, password: String? = nil) throws(CryptoError) {
        let block = try PEMBlock(in: pem)
        if block.isEncrypted, password == nil { throw .passwordRequired }
        let functions = try KeyFunctions.system.get()
        let handle: OpaquePointer
        do throws(CryptoError) {
            handle = try Self.decode(Array(block.text.utf8), "PEM", isPrivate: block.isPrivate, password: password, functions)
        } catch .invalidKey where block.isEncrypted {
            throw .wrongPassword
        }
        try self.init(handle, isPrivate: block.isPrivate, functions)
    }

    /// Reads the DER encoding of a key in one of the same forms.
    package convenience init(der: [UInt8], isPrivate: Bool, password: String? = nil) throws(CryptoError) {
        let functions = try KeyFunctions.system.get()
        try self.init(
            try Self.decode(der, "DER", isPrivate: isPrivate, password: password, functions), isPrivate: isPrivate, functions)
    }

    /// Reads a JSON Web Key; the private part of one that has it, unless only the public part is wanted.
    package convenience init(_ key: JSONWebKey, isPrivate: Bool) throws(CryptoError) {
        guard !isPrivate || key.hasPrivatePart || key.isSecret else { throw .invalidKey("the JSON Web Key has no private part") }
        try self.init(der: key.encoded(isPrivate: isPrivate), isPrivate: isPrivate)
        // What libcrypto has computed from the private part.
        guard key.isPublicPart(of: try publicMembers()) else {
            throw .invalidKey("the private part of the JSON Web Key is not that of its public part")
        }
    }

    /// Reads the 32 bytes of a private key of Ed25519 (RFC 8032, section 5.1.5).
    package convenience init(ed25519Seed seed: [UInt8]) throws(CryptoError) {
        guard seed.count == 32 else { throw .invalidKey("a private key of Ed25519 has 32 bytes, not \(seed.count)") }
        try self.init(der: Ed25519.encoded(seed: seed), isPrivate: true)
    }

    /// Reads the 32 bytes of a public key of Ed25519.
    package convenience init(ed25519PublicKey point: [UInt8]) throws(CryptoError) {
        guard point.count == 32 else { throw .invalidKey("a public key of Ed25519 has 32 bytes, not \(point.count)") }
        try self.init(der: Ed25519.encoded(point: point), isPrivate: false)
    }

    /// Generates a private key for Ed25519.
    package static func generateEd25519() throws(CryptoError) -> AsymmetricKey { try AsymmetricKey(ed25519Seed: randomBytes(32)) }

    /// Generates a private key for ECDSA on P-256.
    package static func generateP256() throws(CryptoError) -> AsymmetricKey {
        var number: [UInt8]
        // Uniform from 1 to the order - 1 (FIPS 186-5, section A.2.2); the second attempt has a chance of 1 to 4 billion.
        repeat { number = randomBytes(32) } while !number.lexicographicallyPrecedes(orderOfP256) || number.allSatisfy { $0 == 0 }
        return try AsymmetricKey(der: EllipticCurve.p256.encoded(number: number), isPrivate: true)
    }

    private static let orderOfP256: [UInt8] = [
        0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E,
        0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
    ]

    private static func randomBytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: .min ... .max) } }

    // OSSL_KEYMGMT_SELECT_ALL_PARAMETERS with the public key, or with both.
    private static func selection(isPrivate: Bool) -> Int32 { isPrivate ? 0x87 : 0x86 }

    private static func decode(
        _ bytes: [UInt8], _ form: StaticString, isPrivate: Bool, password: String?, _ functions: KeyFunctions
    ) throws(CryptoError) -> OpaquePointer {
        try functions.discardingErrors { () throws(CryptoError) in
            // The decoder keeps the addresses of the result and of the form.
            let result = UnsafeMutablePointer<OpaquePointer?>.allocate(capacity: 1)
            result.initialize(to: nil)
            defer { result.deallocate() }
            guard let decoder = functions.newDecoder(result, form.permanent, nil, nil, selection(isPrivate: isPrivate), nil, nil) else {
                throw .unavailable("decoder of keys")
            }
            defer { functions.freeDecoder(decoder) }
            if let passphrase = password.map({ Array($0.utf8) }) {
                guard functions.setPassphrase(decoder, passphrase, passphrase.count) == 1 else { throw .failed }
            }
            let isDecoded = bytes.withUnsafeBufferPointer {
                var (start, count) = ($0.baseAddress, $0.count)
                return functions.decode(decoder, &start, &count) == 1 && count == 0
            }
            guard isDecoded, let key = result.pointee else {
                functions.freeKey(result.pointee)
                throw .invalidKey("it is not the \(form) encoding of a \(isPrivate ? "private" : "public") key")
            }
            return key
        }
    }

    private static func kind(of key: OpaquePointer, _ functions: KeyFunctions) throws(CryptoError) -> Kind {
        switch functions.typeName(key).map({ String(cString: $0) }) {
        case "ED25519": return .ed25519
        case "EC":
            var name = [CChar](repeating: 0, count: 64)
            guard functions.groupName(key, &name, name.count, nil) == 1 else { throw .unsupportedKey("a curve without a name") }
            let curve = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if EllipticCurve.p256.groupNames.contains(curve) { return .p256 }
            if EllipticCurve.p384.groupNames.contains(curve) { return .p384 }
            throw .unsupportedKey("the curve \(curve)")
        case let type? where type == "RSA" || type == "RSA-PSS":
            let bits = functions.bits(key)
            guard bits >= 2048 else { throw .unsupportedKey("an RSA key of \(bits) bits, fewer than 2048") }
            return type == "RSA" ? .rsa : .rsaPSS
        case let type: throw .unsupportedKey("a key of the type \(type ?? "(none)")")
        }
    }

    // MARK: Signatures

    /// Whether the key is one for a scheme.
    package func supports(_ scheme: Scheme) -> Bool {
        switch scheme {
        case .ed25519: kind == .ed25519
        case .ecdsaP256: kind == .p256
        case .ecdsaP384: kind == .p384
        case .rsaPSS: kind == .rsa || kind == .rsaPSS
        case .rsaPKCS1: kind == .rsa
        }
    }

    /// Signs a message.
    ///
    /// - Parameter isDER: whether ECDSA's numbers are encoded in DER, as in certificates and by most libraries of cryptography.
    package func sign(_ message: [UInt8], by scheme: Scheme, isDER: Bool = false) throws(CryptoError) -> [UInt8] {
        guard isPrivate else { throw .wrongAlgorithm("a public key does not sign") }
        let signature = try withContext(scheme, functions.beginSigning) { context throws(CryptoError) in
            var count = 0
            guard functions.sign(context, nil, &count, message, message.count) == 1 else { throw .failed }
            var signature = [UInt8](repeating: 0, count: count)
            guard functions.sign(context, &signature, &count, message, message.count) == 1 else { throw .failed }
            return Array(signature.prefix(count))
        }
        guard !isDER, let size = size(of: scheme) else { return signature }
        guard let raw = DER.rawSignature(of: signature, size: size) else { throw .failed }
        return raw
    }

    /// Whether a signature is that of a message.
    package func isValid(_ signature: [UInt8], of message: [UInt8], by scheme: Scheme, isDER: Bool = false) throws(CryptoError) -> Bool {
        var signature = signature
        if !isDER, let size = size(of: scheme) {
            guard signature.count == 2 * size else { return false }
            signature = DER.signature(ofRaw: signature)
        }
        return try withContext(scheme, functions.beginVerifying) { context throws(CryptoError) in
            functions.verify(context, signature, signature.count, message, message.count) == 1
        }
    }

    /// The length of each of ECDSA's numbers; `nil` for others.
    private func size(of scheme: Scheme) -> Int? {
        switch scheme {
        case .ecdsaP256: EllipticCurve.p256.size
        case .ecdsaP384: EllipticCurve.p384.size
        default: nil
        }
    }

    private func withContext<Value>(
        _ scheme: Scheme, _ begin: KeyFunctions.Begin, _ body: (OpaquePointer) throws(CryptoError) -> Value
    ) throws(CryptoError) -> Value {
        guard supports(scheme) else { throw .wrongAlgorithm("a key of the kind \(kind) does not sign by \(scheme)") }
        return try functions.discardingErrors { () throws(CryptoError) in
            guard let context = functions.newContext() else { throw .failed }
            defer { functions.freeContext(context) }
            var options: OpaquePointer?
            guard begin(context, &options, scheme.digest, nil, nil, handle, nil) == 1 else { throw .unavailable("\(scheme)") }
            if scheme == .rsaPSS {
                // RSA_PKCS1_PSS_PADDING, and the length of the digest.
                guard functions.setPadding(options, 6) == 1, functions.setSaltLength(options, 64) == 1 else { throw .failed }
            }
            return try body(context)
        }
    }

    // MARK: Writing

    /// The private key in PKCS #8, as PEM.
    package func privatePEM() throws(CryptoError) -> String {
        guard isPrivate else { throw .invalidKey("it has no private part") }
        let (pem, structure): (StaticString, StaticString) = ("PEM", "PrivateKeyInfo")
        return try functions.discardingErrors { () throws(CryptoError) in
            guard let encoder = functions.newEncoder(handle, Self.selection(isPrivate: true), pem.permanent, structure.permanent, nil)
            else {
                throw .unavailable("encoder of keys")
            }
            defer { functions.freeEncoder(encoder) }
            var (bytes, count): (UnsafeMutablePointer<UInt8>?, Int) = (nil, 0)
            guard functions.encode(encoder, &bytes, &count) == 1, let bytes else { throw .failed }
            defer { functions.freeBytes(bytes, count, nil, 0) }
            return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
        }
    }

    /// The members of the public JSON Web Key that identify it, in the order of their names (RFC 7638, section 3.2).
    package func publicMembers() throws(CryptoError) -> [(name: String, value: String)] {
        try functions.discardingErrors { () throws(CryptoError) in
            switch kind {
            case .ed25519: [("crv", "Ed25519"), ("kty", "OKP"), ("x", try publicOctets().base64URLEncoded)]
            case .p256: try publicMembers(of: .p256)
            case .p384: try publicMembers(of: .p384)
            case .rsa, .rsaPSS: [("e", try number("e").base64URLEncoded), ("kty", "RSA"), ("n", try number("n").base64URLEncoded)]
            }
        }
    }

    private func publicMembers(of curve: EllipticCurve) throws(CryptoError) -> [(name: String, value: String)] {
        let (x, y) = (try number("qx", size: curve.size), try number("qy", size: curve.size))
        return [("crv", curve.rawValue), ("kty", "EC"), ("x", x.base64URLEncoded), ("y", y.base64URLEncoded)]
    }

    private func publicOctets() throws(CryptoError) -> Data {
        var (bytes, count) = ([UInt8](repeating: 0, count: 64), 0)
        guard functions.octets(handle, "pub", &bytes, bytes.count, &count) == 1 else { throw .failed }
        return Data(bytes.prefix(count))
    }

    private func number(_ name: String, size: Int? = nil) throws(CryptoError) -> Data {
        var number: OpaquePointer?
        guard functions.number(handle, name, &number) == 1, let number else { throw .failed }
        defer { functions.freeNumber(number) }
        let count = size ?? (Int(functions.numberBits(number)) + 7) / 8
        var bytes = [UInt8](repeating: 0, count: count)
        guard functions.numberBytes(number, &bytes, Int32(count)) == Int32(count) else { throw .failed }
        return Data(bytes)
    }

    /// The thumbprint of the public key by SHA-256 (RFC 7638).
    package func thumbprint() throws(CryptoError) -> [UInt8] { SHA256.digest(of: try publicJSON().utf8) }

    /// The public JSON Web Key, with the members that identify it only.
    package func publicJSON() throws(CryptoError) -> String {
        "{\(try publicMembers().map { "\"\($0.name)\":\"\($0.value)\"" }.joined(separator: ","))}"
    }
}

extension StaticString {
    /// The characters and a zero, at an address that stays: coders keep it.
    fileprivate var permanent: UnsafePointer<CChar> { UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self) }
}

// MARK: - Descriptions

extension AsymmetricKey: CustomStringConvertible, CustomReflectable {
    /// The kind; never the key.
    package var description: String { "AsymmetricKey(\(isPrivate ? "private" : "public"), \(kind))" }
    /// Shows nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
