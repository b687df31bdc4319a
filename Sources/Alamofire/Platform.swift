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

#if canImport(FoundationNetworking)
// The value of a notification's `userInfo` has no type, so that a cast of it to a task of Foundation's would give nothing without a word.
// These take the place of Foundation's where a file imports no more than this module and Foundation; with FoundationNetworking beside them
// the names are ambiguous, and the compiler asks which is meant.

/// The tasks of requests, as in `notification.userInfo?[Notification.Key.Task] as? URLSessionTask`. Those of sessions of Foundation's own
/// are `FoundationNetworking.URLSessionTask`.
@available(*, deprecated, renamed: "SessionTask", message: "Tasks of requests are SessionTask, others FoundationNetworking.URLSessionTask")
public typealias URLSessionTask = SessionTask

/// The tasks of requests, of whichever kind: that, the request tells.
@available(
    *, deprecated, renamed: "SessionTask", message: "Tasks of requests are SessionTask, others FoundationNetworking.URLSessionDataTask"
)
public typealias URLSessionDataTask = SessionTask

/// No task of a request: by their types they can't be told apart.
@available(*, deprecated, message: "Tasks of requests are SessionTask; whether it is an UploadRequest, the request tells")
public typealias URLSessionUploadTask = Never

/// No task of a request: by their types they can't be told apart.
@available(*, deprecated, message: "Tasks of requests are SessionTask; whether it is a DownloadRequest, the request tells")
public typealias URLSessionDownloadTask = Never
#endif
