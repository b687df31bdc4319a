// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

/// The Basic scheme (RFC 7617), in UTF-8.
enum BasicAuthentication {
    /// Returns the value of `Authorization`; `nil` if the user has a colon, which separates it from the password, or either has a control
    /// character, which the RFC forbids.
    static func authorization(user: String, password: String) -> String? {
        let hasControls = (user + password).utf8.contains { $0 < 0x20 || $0 == 0x7F }
        guard !hasControls, !user.utf8.contains(UInt8(ascii: ":")) else { return nil }
        return "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }
}
