// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

/// A closure's completion for a challenge.
package typealias ChallengeCompletion = @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void

/// The closures of a session's delegate: those that decide about tasks, and those that are notified of events.
package struct SessionClosures: Sendable {
    var sessionDidBecomeInvalidWithError: (@Sendable (Session, (any Error)?) -> Void)?
    package var sessionDidReceiveChallenge: (@Sendable (Session, URLAuthenticationChallenge, @escaping ChallengeCompletion) -> Void)? {
        didSet { trustVersion += 1 }
    }
    var serverTrustDecision: (@Sendable (ServerTrust) async throws -> ServerTrustDecision)? {
        didSet { trustVersion += 1 }
    }
    /// Changes with the closures that evaluate servers: what one has accepted, another may not.
    private(set) var trustVersion = 0
    package var taskWillPerformHTTPRedirection:
        (@Sendable (Session, SessionTask, HTTPURLResponse, URLRequest, @escaping @Sendable (URLRequest?) -> Void) -> Void)?
    package var taskDidReceiveChallenge:
        (@Sendable (Session, SessionTask, URLAuthenticationChallenge, @escaping ChallengeCompletion) -> Void)?
    package var taskNeedNewBodyStream: (@Sendable (Session, SessionTask, @escaping @Sendable (InputStream?) -> Void) -> Void)?
    package var taskDidSendBodyData: (@Sendable (Session, SessionTask, Int64, Int64, Int64) -> Void)?
    var taskDidComplete: (@Sendable (Session, SessionTask, (any Error)?) -> Void)?
    /// In place of ``sessionDidReceiveChallenge``, where the closure of a request evaluates servers and chooses client certificates: with the
    /// task for which a connection was made.
    package var taskDidReceiveConnectionChallenge:
        (@Sendable (Session, SessionTask, URLAuthenticationChallenge, @escaping ChallengeCompletion) -> Void)?
    package var dataTaskDidReceiveResponse:
        (@Sendable (Session, SessionTask, HTTPURLResponse, @escaping @Sendable (URLSession.ResponseDisposition) -> Void) -> Void)?
    package var dataTaskDidBecomeDownloadTask: (@Sendable (Session, SessionTask, SessionTask) -> Void)?
    var dataTaskDidReceiveData: (@Sendable (Session, SessionTask, Data) -> Void)?
    /// In place of ``dataTaskDidReceiveData``, for code that takes a piece on another queue: calls the completion when it has taken it.
    package var dataTaskTakesData: (@Sendable (Session, SessionTask, Data, _ taken: @escaping @Sendable () -> Void) -> Void)?
    package var dataTaskWillCacheResponse:
        (@Sendable (Session, SessionTask, CachedURLResponse, @escaping @Sendable (CachedURLResponse?) -> Void) -> Void)?
    package var downloadTaskDidFinishDownloadingToURL: (@Sendable (Session, SessionTask, URL) -> Void)?
    package var downloadTaskDidWriteData: (@Sendable (Session, SessionTask, Int64, Int64, Int64) -> Void)?
    package var downloadTaskDidResumeAtOffset: (@Sendable (Session, SessionTask, Int64, Int64) -> Void)?
    /// The closures that layers above offer under names of their own.
    package var values = LayerValues()

    package init() {}
}

/// Closures that replace a default decision, or are notified of an event.
///
/// All are `nil` by default, and called on the session's queue, one at a time for all requests of the session, which wait for it.
///
/// A closure with a completion calls it with its decision, at once or later, on any thread. The first call counts; until then the request
/// waits. A decision that arrives after the request was cancelled, or its transfer has failed, is ignored.
extension SessionDelegate {
    /// Calls `body` with exclusive access to the closures.
    package func withClosures<Value>(_ body: (inout SessionClosures) -> Value) -> Value {
        closures.withLock { body(&$0) }
    }

    /// Called when the session has ended, with an error if it did not end by itself.
    @preconcurrency public var sessionDidBecomeInvalidWithError: (@Sendable (Session, (any Error)?) -> Void)? {
        get { closures.withLock { $0.sessionDidBecomeInvalidWithError } }
        set { closures.withLock { $0.sessionDidBecomeInvalidWithError = newValue } }
    }

    /// Answers challenges that concern the connection: the trust of its server, the client's certificate, Negotiate (RFC 4559) and NTLM.
    /// Without it, the host's
    /// ``ServerTrustPolicy`` and the TLS options decide about trust, and ``taskDidReceiveChallenge`` is asked about the others.
    ///
    /// A challenge about trust has the method `NSURLAuthenticationMethodServerTrust`, and the certificates are its `serverTrust`. The
    /// closure is called once for each chain that a host presents, while all requests to the host wait, and not again for a chain that it
    /// has accepted until the leaf expires, at most for a day; with several loops (``SessionConfiguration/loops``), by each of them. A
    /// rejected chain is asked about with the next connection. A decision has to come within ``TransferOptions/connectTimeout``. If the
    /// request for which the closure was called ends without one, by that timeout for example, the next request has it called again; a
    /// decision after the last waiting request has ended is ignored.
    /// Setting another closure has every chain asked about again. `useCredential` with
    /// `URLCredential(trust:)` accepts it, regardless of the host's policy; `cancelAuthenticationChallenge` and `rejectProtectionSpace`
    /// reject it, and the request fails with ``TransferFailure/Kind/serverCertificate``; everything else, such as a user name with a
    /// password, leaves it to the policy and the TLS options. Nothing is sent to the server before that. A stapled response that these
    /// require, and pinned hashes of keys (``TLSOptions/publicKeyHashes``), are checked before the closure is called; where a client
    /// certificate is requested, the stapled response only after it. Set it before the session's first request. The host of the challenge is
    /// in normal form, as that of ``ServerTrustPolicyManager/serverTrustPolicy(forHost:)``.
    ///
    /// A challenge about the client's certificate has the method `NSURLAuthenticationMethodClientCertificate`, and
    /// `URLAuthenticationChallenge.certificateIssuers`. The closure is called when a server has requested a certificate in the handshake, and
    /// was accepted itself, unless ``TLSOptions/clientCertificate`` is one for its origin. `useCredential` with `URLCredential(identity:)`
    /// has the connection made again with that certificate; `cancelAuthenticationChallenge` fails the requests that wait for the decision
    /// with ``CurlewError/cancelled``; everything else has it made again without a certificate, which the server may accept or refuse. The
    /// session remembers the decision for the origin, but for a cancellation, until no connection can be made with it, another closure is
    /// set, or the session ends: the next connection then asks again, with a `previousFailureCount` that counts the certificates that were
    /// refused. With several loops, each of them may ask before the first decision. A connection with a certificate is not used for requests
    /// of another session, and a response that was requested after the decision is not shared with those of another certificate. It needs a
    /// libcurl with OpenSSL; otherwise, and for a server that requests a certificate only after the handshake (RFC 8446, section 4.6.2),
    /// the closure is not called, and there is no certificate. Nor is it for a proxy's own.
    @preconcurrency public var sessionDidReceiveChallenge:
        (
            @Sendable (
                Session, URLAuthenticationChallenge, @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) -> Void
        )?
    {
        get { closures.withLock { $0.sessionDidReceiveChallenge } }
        set { closures.withLock { $0.sessionDidReceiveChallenge = newValue } }
    }

    /// Decides about each redirect that the session's ``RedirectPolicy`` allows: completes with the request to follow it with, or with
    /// `nil` to have the redirect itself as the response.
    ///
    /// The proposed request has bytes as its `httpBody`. A body that is a file or a stream is not visible in it; that body follows only if
    /// the policy keeps it (307, 308, and 301 or 302 of any method but POST) and the chosen request has the proposed method and origin,
    /// and no body of its own. To have it sent with another method or to another origin, complete with a request that has the body. Bytes
    /// left in `httpBody` follow wherever the chosen request leads, but not with GET, HEAD or TRACE in place of another method. Where the
    /// body does not follow, the fields that describe it are removed unless they were changed; where another body replaces it, its
    /// `Content-Length` is. A stream set here can't be sent again: ``taskNeedNewBodyStream`` is not called for it. A retry starts with the
    /// original request and its body.
    @preconcurrency public var taskWillPerformHTTPRedirection:
        (@Sendable (Session, SessionTask, HTTPURLResponse, URLRequest, @escaping @Sendable (URLRequest?) -> Void) -> Void)?
    {
        get { closures.withLock { $0.taskWillPerformHTTPRedirection } }
        set { closures.withLock { $0.taskWillPerformHTTPRedirection = newValue } }
    }

    /// Answers the challenge of a server that asks for credentials (RFC 9110, section 11), in place of the request's credential and the
    /// session's storage.
    @preconcurrency public var taskDidReceiveChallenge:
        (
            @Sendable (
                Session, SessionTask, URLAuthenticationChallenge,
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) -> Void
        )?
    {
        get { closures.withLock { $0.taskDidReceiveChallenge } }
        set { closures.withLock { $0.taskDidReceiveChallenge = newValue } }
    }

    /// Completes with a new stream where the stream that is a request's body has to be sent again: after a redirect, a challenge, or for a
    /// retry. `nil` fails the request.
    ///
    /// Called after ``taskWillPerformHTTPRedirection``, and only if the body follows the redirect. Not called for a stream that an adapter
    /// or a redirect closure set as the body.
    @preconcurrency public var taskNeedNewBodyStream:
        (@Sendable (Session, SessionTask, @escaping @Sendable (InputStream?) -> Void) -> Void)?
    {
        get { closures.withLock { $0.taskNeedNewBodyStream } }
        set { closures.withLock { $0.taskNeedNewBodyStream = newValue } }
    }

    /// Receives the progress of sending a body, in place of the request's upload progress: bytes sent now, bytes sent so far, and the
    /// length, −1 if unknown.
    @preconcurrency public var taskDidSendBodyData: (@Sendable (Session, SessionTask, Int64, Int64, Int64) -> Void)? {
        get { closures.withLock { $0.taskDidSendBodyData } }
        set { closures.withLock { $0.taskDidSendBodyData = newValue } }
    }

    /// Called when a task has completed, after its validations and before its handlers, which run as well.
    @preconcurrency public var taskDidComplete: (@Sendable (Session, SessionTask, (any Error)?) -> Void)? {
        get { closures.withLock { $0.taskDidComplete } }
        set { closures.withLock { $0.taskDidComplete = newValue } }
    }

    /// Decides at the head of each response to a data or upload request whether its body is received.
    @preconcurrency public var dataTaskDidReceiveResponse:
        (@Sendable (Session, SessionTask, HTTPURLResponse, @escaping @Sendable (URLSession.ResponseDisposition) -> Void) -> Void)?
    {
        get { closures.withLock { $0.dataTaskDidReceiveResponse } }
        set { closures.withLock { $0.dataTaskDidReceiveResponse = newValue } }
    }

    /// Called when a body is to be written to a file, because its disposition was `becomeDownload`. The task stays the same, and is passed
    /// twice.
    ///
    /// ``downloadTaskDidFinishDownloadingToURL`` receives the file; the request's data is `nil`.
    @preconcurrency public var dataTaskDidBecomeDownloadTask: (@Sendable (Session, SessionTask, SessionTask) -> Void)? {
        get { closures.withLock { $0.dataTaskDidBecomeDownloadTask } }
        set { closures.withLock { $0.dataTaskDidBecomeDownloadTask = newValue } }
    }

    /// Receives the pieces of bodies in place of the requests, whose data stays empty. A slow closure slows down the transfer.
    @preconcurrency public var dataTaskDidReceiveData: (@Sendable (Session, SessionTask, Data) -> Void)? {
        get { closures.withLock { $0.dataTaskDidReceiveData } }
        set { closures.withLock { $0.dataTaskDidReceiveData = newValue } }
    }

    /// Decides what of a response is stored in the cache: the proposed one, another one, or `nil` for none.
    ///
    /// Called only if ``SessionConfiguration/urlCache`` is set and HTTP allows storing the response; the request ends after it. Of requests
    /// that share a transfer (`Coalescing`) it is called for each, with what it has chosen for the one before.
    ///
    /// With a closure a stale response is validated before it is served, as if it had no `stale-while-revalidate`: a validation in the
    /// background would call the closure after the request has ended.
    @preconcurrency public var dataTaskWillCacheResponse:
        (@Sendable (Session, SessionTask, CachedURLResponse, @escaping @Sendable (CachedURLResponse?) -> Void) -> Void)?
    {
        get { closures.withLock { $0.dataTaskWillCacheResponse } }
        set { closures.withLock { $0.dataTaskWillCacheResponse = newValue } }
    }

    /// Receives a complete download's temporary file, in place of the request's destination. The file is removed after the call unless it
    /// was moved.
    @preconcurrency public var downloadTaskDidFinishDownloadingToURL: (@Sendable (Session, SessionTask, URL) -> Void)? {
        get { closures.withLock { $0.downloadTaskDidFinishDownloadingToURL } }
        set { closures.withLock { $0.downloadTaskDidFinishDownloadingToURL = newValue } }
    }

    /// Receives the progress of a download, in place of the request's progress: bytes received now, bytes received so far, and the length,
    /// −1 if unknown.
    @preconcurrency public var downloadTaskDidWriteData: (@Sendable (Session, SessionTask, Int64, Int64, Int64) -> Void)? {
        get { closures.withLock { $0.downloadTaskDidWriteData } }
        set { closures.withLock { $0.downloadTaskDidWriteData = newValue } }
    }

    /// Receives the offset at which a download is resumed, and its length, −1 if unknown.
    @preconcurrency public var downloadTaskDidResumeAtOffset: (@Sendable (Session, SessionTask, Int64, Int64) -> Void)? {
        get { closures.withLock { $0.downloadTaskDidResumeAtOffset } }
        set { closures.withLock { $0.downloadTaskDidResumeAtOffset = newValue } }
    }
}

// MARK: - Decisions

/// How a challenge for credentials is answered.
public enum ChallengeDecision: Sendable {
    /// With this credential.
    case useCredential(URLCredential)
    /// As without the closure: with the request's credential, the URL's, or a stored one.
    case performDefaultHandling
    /// Not at all: the response with the challenge is the request's response.
    case rejectProtectionSpace
    /// Not at all: the request is cancelled.
    case cancel
}

/// Whether a server is trusted.
public enum ServerTrustDecision: Sendable {
    /// It is, regardless of its host's ``ServerTrustPolicy``.
    case accept
    /// It is not: the request fails with ``TransferFailure/Kind/serverCertificate``.
    case reject
    /// As without the closure: the host's policy and the TLS options decide.
    case performDefaultHandling
}
