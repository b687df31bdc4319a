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
#endif
