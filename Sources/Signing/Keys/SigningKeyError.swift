// SPDX-License-Identifier: Apache-2.0
import CurlewCrypto
import CurlewHTTP

/// Why a key can't be read, or can't sign. Without key material.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum SigningKeyError: Error, Sendable, Hashable {
    /// The process has no libcrypto 3 with a function or an algorithm, which is named: all but HMAC need it.
    case signingUnavailable(String)
    /// The text or the bytes are not those of a key; the reason is what is wrong.
    case invalidKey(String)
    /// A kind or size of key that is not supported, such as another curve, or an RSA key of fewer than 2048 bits.
    case unsupportedKey(String)
    /// The key is encrypted, and no password was given.
    case passwordRequired
    /// The key is encrypted with another password, or in an unknown way.
    case wrongPassword
    /// The key does not sign by the algorithm.
    case wrongAlgorithm(String)
    /// libcrypto has refused to sign.
    case signingFailed

    init(_ error: CryptoError) {
        self =
            switch error {
            case .unavailable(let name): .signingUnavailable(name)
            case .invalidKey(let reason): .invalidKey(reason)
            case .unsupportedKey(let reason): .unsupportedKey(reason)
            case .passwordRequired: .passwordRequired
            case .wrongPassword: .wrongPassword
            case .wrongAlgorithm(let reason): .wrongAlgorithm(reason)
            case .failed: .signingFailed
            }
    }
}

extension SigningKeyError: CustomStringConvertible, LocalizedError {
    /// What is wrong, as a sentence, without key material.
    public var description: String {
        switch self {
        case .signingUnavailable(let name): "Signing is not available, as the process has no libcrypto 3 with \(name)."
        case .invalidKey(let reason): "The key can't be read: \(reason)."
        case .unsupportedKey(let reason): "The key is not supported: \(reason)."
        case .passwordRequired: "The key is encrypted, and no password was given."
        case .wrongPassword: "The key can't be decrypted with this password."
        case .wrongAlgorithm(let reason): "The key can't be used: \(reason)."
        case .signingFailed: "libcrypto has refused to sign with the key."
        }
    }

    /// The same sentence.
    public var errorDescription: String? { description }
}

/// Calls what throws libcrypto's errors.
func signing<Value>(_ body: () throws(CryptoError) -> Value) throws(SigningKeyError) -> Value {
    do throws(CryptoError) {
        return try body()
    } catch {
        throw SigningKeyError(error)
    }
}
