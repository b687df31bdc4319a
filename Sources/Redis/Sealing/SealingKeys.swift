// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewCrypto
import CurlewEncoding
import CurlewHTTP

/// The keys with which values are sealed before they are stored: encrypted and authenticated with AES-256-GCM, each bound to the key under
/// which it is stored, so that a person or program with access to the server can neither read nor exchange them.
///
/// The first key seals, all of them open: to change keys, put the new one in front on all processes after all know it, and drop the old one
/// when nothing is sealed with it any more. A key may seal 2³² values at most (NIST SP 800-38D, section 8.3), as nonces are random.
public struct SealingKeys: Sendable {
    /// A key and its identifier, which is stored with what it has sealed.
    public struct Key: Sendable {
        /// The identifier, of 1 to 64 bytes.
        public let id: String
        let bytes: [UInt8]

        /// Creates a key of its bytes: 32, which were generated at random, and are kept secret.
        ///
        /// - Throws: ``RedisError/invalidSetting(_:)`` for an identifier or a key of another length.
        public init(id: String, bytes: some Sequence<UInt8>) throws(RedisError) {
            self.id = id
            self.bytes = Array(bytes)
            guard (1...64).contains(id.utf8.count) else { throw .invalidSetting("The identifier of a sealing key has 1 to 64 bytes.") }
            guard self.bytes.count == 32 else { throw .invalidSetting("A sealing key has 32 bytes, not \(self.bytes.count).") }
        }
    }

    let current: Key
    let others: [Key]

    /// Creates keys: one that seals, and others that open what they have sealed earlier.
    ///
    /// - Throws: ``RedisError/sealingUnavailable`` if the process has no libcrypto with AES-256-GCM.
    public init(_ current: Key, alsoOpening others: Key...) throws(RedisError) {
        self.current = current
        self.others = others
        guard Cipher.system != nil else { throw .sealingUnavailable }
    }
}

extension SealingKeys: CustomReflectable, CustomStringConvertible {
    /// The identifier of the current key; never a key.
    public var description: String { "SealingKeys(\(current.id))" }
    /// Shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension SealingKeys.Key: CustomReflectable, CustomStringConvertible {
    /// The identifier; never the key.
    public var description: String { "Key(\(id))" }
    /// Shows the identifier only.
    public var customMirror: Mirror { Mirror(self, children: ["id": id]) }
}

/// Values as they are stored: a byte with the version of the format, and the bytes, sealed or not.
struct ValueFormat: Sendable {
    private static let plain: UInt8 = 1
    private static let sealed: UInt8 = 2

    let keys: SealingKeys?

    /// The bytes to store under a key.
    func encode(_ value: Data, for name: String) throws(RedisError) -> Data {
        guard let keys else { return Data([Self.plain]) + value }
        let nonce = (0..<Cipher.nonceLength).map { _ in UInt8.random(in: .min ... .max) }
        let key = keys.current
        guard let sealed = Cipher.system?.seal(Array(value), key: key.bytes, nonce: nonce, context: Array((key.id + "\n" + name).utf8))
        else { throw .sealingUnavailable }
        return Data([Self.sealed, UInt8(key.id.utf8.count)] + Array(key.id.utf8) + nonce + sealed)
    }

    /// The length of a value of which so many bytes are stored; of one sealed with another key, that differs by the lengths of the identifiers.
    func length(ofStored count: Int) -> Int {
        let overhead = keys.map { 2 + $0.current.id.utf8.count + Cipher.nonceLength + Cipher.tagLength } ?? 1
        return max(count - overhead, 0)
    }

    /// The value of what is stored under a key. The bytes are untrusted.
    func decode(_ data: Data, of name: String) throws(RedisError) -> Data {
        let bytes = Array(data)
        guard let version = bytes.first else { throw .unreadableValue(key: name, .damaged) }
        switch version {
        case Self.plain:
            guard keys == nil else { throw .unreadableValue(key: name, .notSealed) }
            return Data(bytes.dropFirst())
        case Self.sealed: return try open(bytes, of: name)
        default: throw .unreadableValue(key: name, .version(version))
        }
    }

    private func open(_ bytes: [UInt8], of name: String) throws(RedisError) -> Data {
        guard bytes.count >= 2, case let start = 2 + Int(bytes[1]), bytes.count >= start + Cipher.nonceLength + Cipher.tagLength,
            let id = String(validating: bytes[2..<start], as: UTF8.self)
        else { throw .unreadableValue(key: name, .damaged) }
        guard let keys else { throw .unreadableValue(key: name, .unknownKey("")) }
        guard let key = ([keys.current] + keys.others).first(where: { $0.id == id }) else {
            throw .unreadableValue(key: name, .unknownKey(id))
        }
        guard let cipher = Cipher.system else { throw .sealingUnavailable }
        let nonce = Array(bytes[start..<(start + Cipher.nonceLength)])
        let sealed = Array(bytes[(start + Cipher.nonceLength)...])
        guard let plain = cipher.open(sealed, key: key.bytes, nonce: nonce, context: Array((id + "\n" + name).utf8)) else {
            throw .unreadableValue(key: name, .wrongSeal)
        }
        return Data(plain)
    }
}
#endif
