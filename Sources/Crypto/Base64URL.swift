// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension Data {
    /// Decodes base64url without padding (RFC 7515, section 2); `nil` for other text.
    package init?(base64URLEncoded text: String) {
        guard !text.utf8.contains(where: { "+/=".utf8.contains($0) }) else { return nil }
        let standard = text.replacingScalars("-", with: "+").replacingScalars("_", with: "/")
        self.init(base64Encoded: standard + String(repeating: "=", count: (4 - standard.utf8.count % 4) % 4))
    }

    /// The bytes in base64url without padding.
    package var base64URLEncoded: String {
        base64EncodedString().replacingScalars("+", with: "-").replacingScalars("/", with: "_").filterScalars { $0 != "=" }
    }
}

extension Collection<UInt8> {
    /// Whether both have the same bytes, in a time that depends on their lengths only.
    package func isSameInConstantTime(as other: some Collection<UInt8>) -> Bool {
        guard count == other.count else { return false }
        return zip(self, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
