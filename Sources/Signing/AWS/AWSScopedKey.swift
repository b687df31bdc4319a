// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The key of a day, a region and a service, with the time and scope that it signs with each text.
struct AWSScopedKey {
    let timestamp: String
    let scope: String
    private let bytes: [UInt8]

    init(_ signer: AWSSignatureV4, _ credentials: AWSCredentials, timestamp: String) {
        self.timestamp = timestamp
        let parts = [String(timestamp.prefix(8)), signer.region, signer.service, "aws4_request"]
        scope = parts.joined(separator: "/")
        bytes = parts.reduce(Array("AWS4\(credentials.secretAccessKey)".utf8)) { HMAC.sha256($1.utf8, key: $0) }
    }

    /// Returns the signature of lines, in hexadecimal digits.
    func signature(_ algorithm: String, _ lines: String...) -> String {
        HMAC.sha256(([algorithm, timestamp, scope] + lines).joined(separator: "\n").utf8, key: bytes).hexDigits
    }
}
