// SPDX-License-Identifier: Apache-2.0

/// The SHA-256 message digest (FIPS 180-4).
package enum SHA256 {
    /// Returns the 32 bytes of the digest.
    package static func digest(of message: some Sequence<UInt8>) -> [UInt8] {
        digest(of: Data(message))
    }

    /// Returns the 32 bytes of the digest.
    package static func digest(of message: Data) -> [UInt8] {
        message.withUnsafeBytes { LargeDigest<UInt32>.digest(of: $0) }
    }
}
