// SPDX-License-Identifier: Apache-2.0

/// Keyed-hash message authentication codes (RFC 2104).
package enum HMAC {
    /// Returns the 32 bytes of HMAC-SHA-256.
    package static func sha256(_ message: some Sequence<UInt8>, key: some Sequence<UInt8>) -> [UInt8] {
        let block = block(of: key)
        let inner = SHA256.digest(of: block.map { $0 ^ 0x36 } + message)
        return SHA256.digest(of: block.map { $0 ^ 0x5C } + inner)
    }

    /// The same for a message in two parts, of which the second may be large.
    package static func sha256(_ beginning: some StringProtocol, _ rest: Data, key: some Sequence<UInt8>) -> [UInt8] {
        let block = block(of: key)
        let start = block.map { $0 ^ 0x36 } + Array(beginning.utf8)
        var hash = LargeDigest<UInt32>()
        start.withUnsafeBytes { hash.update($0) }
        rest.withUnsafeBytes { hash.update($0) }
        var inner = hash.finish()
        if inner.isEmpty { inner = SHA256.digest(of: start + rest) }
        return SHA256.digest(of: block.map { $0 ^ 0x5C } + inner)
    }

    private static func block(of key: some Sequence<UInt8>) -> [UInt8] {
        let size = 64
        var block = Array(key)
        if block.count > size { block = SHA256.digest(of: block) }
        return block + repeatElement(0, count: size - block.count)
    }
}
