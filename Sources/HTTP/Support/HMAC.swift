// SPDX-License-Identifier: Apache-2.0

/// Keyed-hash message authentication codes (RFC 2104).
package enum HMAC {
    /// Returns the 32 bytes of HMAC-SHA-256.
    package static func sha256(_ message: some Sequence<UInt8>, key: some Sequence<UInt8>) -> [UInt8] {
        let blockSize = 64
        var block = Array(key)
        if block.count > blockSize { block = SHA256.digest(of: block) }
        block += repeatElement(0, count: blockSize - block.count)
        let inner = SHA256.digest(of: block.map { $0 ^ 0x36 } + message)
        return SHA256.digest(of: block.map { $0 ^ 0x5C } + inner)
    }
}
