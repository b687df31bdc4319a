// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding

// What programs for Alamofire 4 take from Apple's Security framework, where there is none.

#if !canImport(Security)
/// The method of a challenge that asks whether a server is trusted: those that ``/CurlewCore/SessionDelegate/sessionDidReceiveChallenge``
/// gets for each host.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

extension URLProtectionSpace {
    /// What the server has shown, in a challenge whose method is ``NSURLAuthenticationMethodServerTrust``; `nil` in others.
    public var serverTrust: ServerTrust? { shownTrust }
}

/// Checks revocation by the lists of the session's configuration or, without those, by a response that the server staples. Best effort in
/// Apple's framework; here a server about which neither says anything is refused.
public let kSecRevocationUseAnyAvailableMethod: ServerTrustPolicy.RevocationFlags = .anyAvailableMethod
/// Checks revocation by a response that the server staples (OCSP); one that staples none is refused.
public let kSecRevocationOCSPMethod: ServerTrustPolicy.RevocationFlags = .stapledResponse
/// Checks revocation by the lists of the session's configuration; without any, every server is refused.
public let kSecRevocationCRLMethod: ServerTrustPolicy.RevocationFlags = .revocationLists
/// A server about which nothing is known is refused: so it is anyway, and the value is empty.
public let kSecRevocationRequirePositiveResponse: ServerTrustPolicy.RevocationFlags = []

/// Both sets of flags together, as programs write it for numbers.
public func | (
    lhs: ServerTrustPolicy.RevocationFlags, rhs: ServerTrustPolicy.RevocationFlags
) -> ServerTrustPolicy.RevocationFlags { lhs.union(rhs) }
#endif
