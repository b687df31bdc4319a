// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

/// Basic authentication (RFC 7617), in UTF-8.
enum BasicAuthentication {
    /// The value of `Authorization`; `nil` when the name has a colon, or either has a control character: they can't be told apart then.
    static func authorization(user: String, password: String) -> String? {
        let hasControls = (user + password).utf8.contains { $0 < 0x20 || $0 == 0x7F }
        guard !hasControls, !user.utf8.contains(UInt8(ascii: ":")) else { return nil }
        return "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }
}
