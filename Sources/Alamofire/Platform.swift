// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewURLLoading

#if !canImport(Darwin)
/// Seconds since 1 January 2001, 00:00 UTC.
public typealias CFAbsoluteTime = Double
#endif

// The names of Apple's Security framework that programs for Alamofire 4 use, for platforms without it.

#if !canImport(Security)
/// Checks revocation with the lists of the session's configuration or, without those, with a stapled response. Best effort in Apple's
/// framework; here a server about which neither has a status is rejected.
public let kSecRevocationUseAnyAvailableMethod: ServerTrustPolicy.RevocationFlags = .anyAvailableMethod
/// Checks revocation with a stapled response (OCSP); a server that staples none is rejected.
public let kSecRevocationOCSPMethod: ServerTrustPolicy.RevocationFlags = .stapledResponse
/// Checks revocation with the lists of the session's configuration; without any, every server is rejected.
public let kSecRevocationCRLMethod: ServerTrustPolicy.RevocationFlags = .revocationLists
/// Rejects a server whose revocation status is unknown. Empty, as this is always the case here.
public let kSecRevocationRequirePositiveResponse: ServerTrustPolicy.RevocationFlags = []

/// Combines two sets of flags, since programs written for numeric flags use `|`.
public func | (
    lhs: ServerTrustPolicy.RevocationFlags, rhs: ServerTrustPolicy.RevocationFlags
) -> ServerTrustPolicy.RevocationFlags { lhs.union(rhs) }
#endif

#if canImport(FoundationNetworking)
// The value in a notification's `userInfo` is untyped, so casting it to Foundation's task type would silently give `nil`. These types
// replace Foundation's in a file that imports only this module and Foundation; if it also imports FoundationNetworking, the names are
// ambiguous, and the compiler asks which is meant.

/// The tasks of requests, as in `notification.userInfo?[Notification.Key.Task] as? URLSessionTask`. Tasks of Foundation's sessions are
/// `FoundationNetworking.URLSessionTask`.
@available(*, deprecated, renamed: "SessionTask", message: "Tasks of requests are SessionTask, others FoundationNetworking.URLSessionTask")
public typealias URLSessionTask = SessionTask

/// The tasks of requests of every kind, which only the request distinguishes.
@available(
    *, deprecated, renamed: "SessionTask", message: "Tasks of requests are SessionTask, others FoundationNetworking.URLSessionDataTask"
)
public typealias URLSessionDataTask = SessionTask

/// Not a type of requests' tasks, since tasks are not distinguished by type.
@available(*, deprecated, message: "Tasks of requests are SessionTask; check whether the request is an UploadRequest")
public typealias URLSessionUploadTask = Never

/// Not a type of requests' tasks, since tasks are not distinguished by type.
@available(*, deprecated, message: "Tasks of requests are SessionTask; check whether the request is a DownloadRequest")
public typealias URLSessionDownloadTask = Never

// A class that conforms to one of these protocols, with methods for the tasks above, would compile and its methods would never be called:
// they are not those of the protocol, which are optional.

/// For delegates of Foundation's sessions with `FoundationNetworking.` before its name and those of tasks; requests have the closures of
/// ``/CurlewCore/SessionDelegate``.
@available(
    *, unavailable, message: "Use SessionDelegate, or FoundationNetworking.URLSessionTaskDelegate and FoundationNetworking.URLSessionTask"
)
public typealias URLSessionTaskDelegate = FoundationNetworking.URLSessionTaskDelegate

/// See ``URLSessionTaskDelegate``.
@available(
    *, unavailable,
    message: "Use SessionDelegate, or FoundationNetworking.URLSessionDataDelegate and FoundationNetworking.URLSessionDataTask"
)
public typealias URLSessionDataDelegate = FoundationNetworking.URLSessionDataDelegate

/// See ``URLSessionTaskDelegate``.
@available(
    *, unavailable,
    message: "Use SessionDelegate, or FoundationNetworking.URLSessionDownloadDelegate and FoundationNetworking.URLSessionDownloadTask"
)
public typealias URLSessionDownloadDelegate = FoundationNetworking.URLSessionDownloadDelegate

/// See ``URLSessionTaskDelegate``.
@available(
    *, unavailable,
    message: "Use SessionDelegate, or FoundationNetworking.URLSessionWebSocketDelegate and FoundationNetworking.URLSessionTask"
)
public typealias URLSessionWebSocketDelegate = FoundationNetworking.URLSessionWebSocketDelegate
#endif
