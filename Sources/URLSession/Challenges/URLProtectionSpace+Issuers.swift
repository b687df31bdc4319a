// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewURLLoading

extension URLProtectionSpace {
    /// The distinguished names of the issuers whose certificates the server accepts, in DER (RFC 5280, section 4.1.2.4), in a challenge with the
    /// method `NSURLAuthenticationMethodClientCertificate`; empty if it has named none. `nil` in other challenges.
    ///
    /// In place of Foundation's property, which is always `nil` on Linux: in a file that imports FoundationNetworking as well, the name is
    /// ambiguous.
    public var distinguishedNames: [Data]? { shownIssuers }
}
