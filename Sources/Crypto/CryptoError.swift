// SPDX-License-Identifier: Apache-2.0

/// Why a key can't be read or used. Never with key material.
package enum CryptoError: Error, Sendable, Hashable {
    /// The process has no libcrypto with this function or algorithm.
    case unavailable(String)
    /// What is wrong with the text or bytes of a key.
    case invalidKey(String)
    /// The key is of a kind or size that is not supported.
    case unsupportedKey(String)
    /// The key is encrypted.
    case passwordRequired
    /// The key is encrypted, with another password or in an unknown way.
    case wrongPassword
    /// The key does not sign by this algorithm.
    case wrongAlgorithm(String)
    /// libcrypto has refused to compute a signature.
    case failed
}
