// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Authentication of a connection, in several exchanges of which the observer receives the last one (RFC 4559).
///
/// Everything sent on the connection afterwards belongs to that user; libcurl doesn't reuse it for requests of another user or of none.
/// HTTP/1.1 only.
///
/// The exchanges are libcurl's, because all of them have to use one connection. libcurl does not report whether it is going to answer a
/// 401, so its head is held back until body bytes arrive, the transfer completes (the 401 is the response), or libcurl sends another
/// request (it is not).
///
/// A transfer sends at most 10 requests; a server that asks for more fails it with ``TransferFailure/Kind/protocolViolation``.
package enum ConnectionAuthentication: Sendable, Hashable {
    /// NTLM. The user name may begin with a domain, such as `DOMAIN\user`.
    case ntlm(user: String, password: String)
    /// Negotiate, with the Kerberos tickets of the process. libcurl calls Kerberos on the transport's thread, which blocks meanwhile.
    case negotiate
}

// MARK: - Descriptions

extension ConnectionAuthentication: LineConvertible, RedactedReflectable {
    /// The scheme, and the user name if there is one.
    package var line: String {
        switch self {
        case .ntlm(let user, _): "ntlm(user: \(user))"
        case .negotiate: "negotiate"
        }
    }
}
