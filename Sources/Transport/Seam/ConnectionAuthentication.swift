// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// How a connection is authenticated, in several exchanges on it of which the observer sees the last (RFC 4559).
///
/// What is sent over it belongs to that user from then on; libcurl lets no request of another user, or of none, have it. HTTP/1.1 only.
public enum ConnectionAuthentication: Sendable, Hashable {
    /// NTLM. The name may begin with a domain, as `DOMAIN\user`.
    case ntlm(user: String, password: String)
    /// Negotiate, with the Kerberos tickets of the process. libcurl asks Kerberos on the transport's thread, and waits for it.
    case negotiate
}

// MARK: - Descriptions

extension ConnectionAuthentication: CustomStringConvertible, CustomReflectable {
    /// The scheme, and the user's name if there is one.
    public var description: String {
        switch self {
        case .ntlm(let user, _): "ntlm(user: \(user))"
        case .negotiate: "negotiate"
        }
    }

    /// Nothing beyond the description.
    public var customMirror: Mirror { .redacted(self) }
}
