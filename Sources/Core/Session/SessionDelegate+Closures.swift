// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What users decide about a session's tasks, or want to be told of.
struct SessionClosures: Sendable {
    var sessionDidBecomeInvalidWithError: (@Sendable (Session, (any Error)?) -> Void)?
    var sessionDidReceiveChallenge:
        (@Sendable (Session, URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?))?
    var sessionDidReceiveChallengeWithCompletion:
        (
            @Sendable (
                Session, URLAuthenticationChallenge, @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) -> Void
        )?
    var sessionDidFinishEventsForBackgroundURLSession: (@Sendable (Session) -> Void)?
    var taskWillPerformHTTPRedirection: (@Sendable (Session, SessionTask, HTTPURLResponse, URLRequest) -> URLRequest?)?
    var taskWillPerformHTTPRedirectionWithCompletion:
        (@Sendable (Session, SessionTask, HTTPURLResponse, URLRequest, @escaping @Sendable (URLRequest?) -> Void) -> Void)?
    var taskDidReceiveChallenge:
        (@Sendable (Session, SessionTask, URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?))?
    var taskDidReceiveChallengeWithCompletion:
        (
            @Sendable (
                Session, SessionTask, URLAuthenticationChallenge,
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) -> Void
        )?
    var taskNeedNewBodyStream: (@Sendable (Session, SessionTask) -> InputStream?)?
    var taskNeedNewBodyStreamWithCompletion: (@Sendable (Session, SessionTask, @escaping @Sendable (InputStream?) -> Void) -> Void)?
    var taskDidSendBodyData: (@Sendable (Session, SessionTask, Int64, Int64, Int64) -> Void)?
    var taskDidComplete: (@Sendable (Session, SessionTask, (any Error)?) -> Void)?
    var dataTaskDidReceiveResponse: (@Sendable (Session, SessionTask, HTTPURLResponse) -> URLSession.ResponseDisposition)?
    var dataTaskDidReceiveResponseWithCompletion:
        (@Sendable (Session, SessionTask, HTTPURLResponse, @escaping @Sendable (URLSession.ResponseDisposition) -> Void) -> Void)?
    var dataTaskDidBecomeDownloadTask: (@Sendable (Session, SessionTask, SessionTask) -> Void)?
    var dataTaskDidReceiveData: (@Sendable (Session, SessionTask, Data) -> Void)?
    var dataTaskWillCacheResponse: (@Sendable (Session, SessionTask, CachedURLResponse) -> CachedURLResponse?)?
    var dataTaskWillCacheResponseWithCompletion:
        (@Sendable (Session, SessionTask, CachedURLResponse, @escaping @Sendable (CachedURLResponse?) -> Void) -> Void)?
    var downloadTaskDidFinishDownloadingToURL: (@Sendable (Session, SessionTask, URL) -> Void)?
    var downloadTaskDidWriteData: (@Sendable (Session, SessionTask, Int64, Int64, Int64) -> Void)?
    var downloadTaskDidResumeAtOffset: (@Sendable (Session, SessionTask, Int64, Int64) -> Void)?
}

/// Closures that decide, or are told, instead of what is done by default.
///
/// All are `nil` at first, and called on the session's queue, which waits for them: one after the other, for all requests of the session.
extension SessionDelegate {
    /// Is told that the session is over: with an error when it did not end by itself. On the session's queue.
    @preconcurrency public var sessionDidBecomeInvalidWithError: (@Sendable (Session, (any Error)?) -> Void)? {
        get { closures.withLock { $0.sessionDidBecomeInvalidWithError } }
        set { closures.withLock { $0.sessionDidBecomeInvalidWithError = newValue } }
    }

    /// Answers a challenge that concerns the connection: whether its server is trusted, Negotiate (RFC 4559) and NTLM. Without it the
    /// host's ``ServerTrustPolicy`` and the TLS options decide about trust, and ``taskDidReceiveChallenge`` is asked about the others.
    ///
    /// A server's trust has the method `NSURLAuthenticationMethodServerTrust`, and is the challenge's `serverTrust`; each chain that a host
    /// shows is asked about once, and one that was accepted is trusted as long as the session lives. `useCredential` with
    /// `URLCredential(trust:)` accepts it, whatever its host's policy says; `cancelAuthenticationChallenge` and `rejectProtectionSpace`
    /// refuse it, and the request fails with ``TransferFailure/Kind/serverCertificate``; everything else, such as a name with a password,
    /// leaves it to policy and TLS options. Nothing is sent to the server before that. A stapled response that these require, and pinned
    /// hashes of keys (``TLSOptions/publicKeyHashes``), are checked before it is asked. Set it before the session's first request.
    @preconcurrency public var sessionDidReceiveChallenge:
        (@Sendable (Session, URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?))?
    {
        get { closures.withLock { $0.sessionDidReceiveChallenge } }
        set { closures.withLock { $0.sessionDidReceiveChallenge = newValue } }
    }

    /// The same, with an answer that may come later; it is asked instead of the one without completion.
    @preconcurrency public var sessionDidReceiveChallengeWithCompletion:
        (
            @Sendable (
                Session, URLAuthenticationChallenge, @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) -> Void
        )?
    {
        get { closures.withLock { $0.sessionDidReceiveChallengeWithCompletion } }
        set { closures.withLock { $0.sessionDidReceiveChallengeWithCompletion = newValue } }
    }

    /// For background sessions, of which there are none here: never called.
    @preconcurrency public var sessionDidFinishEventsForBackgroundURLSession: (@Sendable (Session) -> Void)? {
        get { closures.withLock { $0.sessionDidFinishEventsForBackgroundURLSession } }
        set { closures.withLock { $0.sessionDidFinishEventsForBackgroundURLSession = newValue } }
    }

    /// Decides about each redirect that the session's ``RedirectPolicy`` allows: returns the request to follow it with, or `nil` to have
    /// the redirect itself as the response.
    ///
    /// The proposed request shows bytes as its `httpBody`. A body that is a file or a stream can't be shown; it follows only if the policy
    /// keeps it (307, 308, and 301 or 302 of any method but POST) and the returned request has the proposed method and origin, and no body
    /// of its own. To have it sent with another method or to another origin, return a request with that body. Bytes that are left in
    /// `httpBody` follow wherever the returned request leads, but not with GET, HEAD or TRACE in place of another method. Where the body
    /// does not follow, the fields that describe it are removed as far as they are as proposed; where another body takes its place, its
    /// `Content-Length` is. A stream that was returned here can't be sent again: ``taskNeedNewBodyStream`` is not asked for it. A retry
    /// begins with the original request and its body.
    @preconcurrency public var taskWillPerformHTTPRedirection:
        (@Sendable (Session, SessionTask, HTTPURLResponse, URLRequest) -> URLRequest?)?
    {
        get { closures.withLock { $0.taskWillPerformHTTPRedirection } }
        set { closures.withLock { $0.taskWillPerformHTTPRedirection = newValue } }
    }

    /// The same, with an answer that may come later; it is asked instead of the one without completion.
    @preconcurrency public var taskWillPerformHTTPRedirectionWithCompletion:
        (@Sendable (Session, SessionTask, HTTPURLResponse, URLRequest, @escaping @Sendable (URLRequest?) -> Void) -> Void)?
    {
        get { closures.withLock { $0.taskWillPerformHTTPRedirectionWithCompletion } }
        set { closures.withLock { $0.taskWillPerformHTTPRedirectionWithCompletion = newValue } }
    }

    /// Answers a server that asks for credentials (RFC 9110, section 11), instead of the request's credential and the session's
    /// storage.
    @preconcurrency public var taskDidReceiveChallenge:
        (@Sendable (Session, SessionTask, URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?))?
    {
        get { closures.withLock { $0.taskDidReceiveChallenge } }
        set { closures.withLock { $0.taskDidReceiveChallenge = newValue } }
    }

    /// The same, with an answer that may come later; it is asked instead of the one without completion.
    @preconcurrency public var taskDidReceiveChallengeWithCompletion:
        (
            @Sendable (
                Session, SessionTask, URLAuthenticationChallenge,
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) -> Void
        )?
    {
        get { closures.withLock { $0.taskDidReceiveChallengeWithCompletion } }
        set { closures.withLock { $0.taskDidReceiveChallengeWithCompletion = newValue } }
    }

    /// Returns a new stream where the stream that is a request's body has to be sent again: after a redirect, a challenge, or for a retry.
    /// `nil` fails the request.
    ///
    /// Called after ``taskWillPerformHTTPRedirection``, and only if the body follows the redirect. Not called for a stream that an adapter
    /// or a redirect closure put in the body's place.
    @preconcurrency public var taskNeedNewBodyStream: (@Sendable (Session, SessionTask) -> InputStream?)? {
        get { closures.withLock { $0.taskNeedNewBodyStream } }
        set { closures.withLock { $0.taskNeedNewBodyStream = newValue } }
    }

    /// The same, with an answer that may come later; it is asked instead of the one without completion.
    @preconcurrency public var taskNeedNewBodyStreamWithCompletion:
        (@Sendable (Session, SessionTask, @escaping @Sendable (InputStream?) -> Void) -> Void)?
    {
        get { closures.withLock { $0.taskNeedNewBodyStreamWithCompletion } }
        set { closures.withLock { $0.taskNeedNewBodyStreamWithCompletion = newValue } }
    }

    /// Is told how much of a body left, instead of the request's upload progress: bytes now, bytes so far, bytes in all (−1 if
    /// unknown).
    @preconcurrency public var taskDidSendBodyData: (@Sendable (Session, SessionTask, Int64, Int64, Int64) -> Void)? {
        get { closures.withLock { $0.taskDidSendBodyData } }
        set { closures.withLock { $0.taskDidSendBodyData = newValue } }
    }

    /// Is told that a task is over, after its validations and before its handlers; not instead of them.
    @preconcurrency public var taskDidComplete: (@Sendable (Session, SessionTask, (any Error)?) -> Void)? {
        get { closures.withLock { $0.taskDidComplete } }
        set { closures.withLock { $0.taskDidComplete = newValue } }
    }

    /// Decides about each response to a data or upload request at its head: whether its body is received.
    @preconcurrency public var dataTaskDidReceiveResponse:
        (@Sendable (Session, SessionTask, HTTPURLResponse) -> URLSession.ResponseDisposition)?
    {
        get { closures.withLock { $0.dataTaskDidReceiveResponse } }
        set { closures.withLock { $0.dataTaskDidReceiveResponse = newValue } }
    }

    /// The same, with an answer that may come later; it is asked instead of the one without completion.
    @preconcurrency public var dataTaskDidReceiveResponseWithCompletion:
        (@Sendable (Session, SessionTask, HTTPURLResponse, @escaping @Sendable (URLSession.ResponseDisposition) -> Void) -> Void)?
    {
        get { closures.withLock { $0.dataTaskDidReceiveResponseWithCompletion } }
        set { closures.withLock { $0.dataTaskDidReceiveResponseWithCompletion = newValue } }
    }

    /// Is told that a body is written to a file, because a disposition was `becomeDownload`; the task stays the same, and is given twice.
    ///
    /// ``downloadTaskDidFinishDownloadingToURL`` gets the file; the request's data is `nil`.
    @preconcurrency public var dataTaskDidBecomeDownloadTask: (@Sendable (Session, SessionTask, SessionTask) -> Void)? {
        get { closures.withLock { $0.dataTaskDidBecomeDownloadTask } }
        set { closures.withLock { $0.dataTaskDidBecomeDownloadTask = newValue } }
    }

    /// Gets the pieces of bodies instead of the requests, whose data stays empty. A slow closure slows down the transfer.
    @preconcurrency public var dataTaskDidReceiveData: (@Sendable (Session, SessionTask, Data) -> Void)? {
        get { closures.withLock { $0.dataTaskDidReceiveData } }
        set { closures.withLock { $0.dataTaskDidReceiveData = newValue } }
    }

    /// Decides what of a response goes into the cache: the one given, another one, or `nil` for none.
    ///
    /// Only asked where ``SessionConfiguration/urlCache`` is set and HTTP allows storing; the request ends after it.
    @preconcurrency public var dataTaskWillCacheResponse: (@Sendable (Session, SessionTask, CachedURLResponse) -> CachedURLResponse?)? {
        get { closures.withLock { $0.dataTaskWillCacheResponse } }
        set { closures.withLock { $0.dataTaskWillCacheResponse = newValue } }
    }

    /// The same, with an answer that may come later; it is asked instead of the one without completion.
    @preconcurrency public var dataTaskWillCacheResponseWithCompletion:
        (@Sendable (Session, SessionTask, CachedURLResponse, @escaping @Sendable (CachedURLResponse?) -> Void) -> Void)?
    {
        get { closures.withLock { $0.dataTaskWillCacheResponseWithCompletion } }
        set { closures.withLock { $0.dataTaskWillCacheResponseWithCompletion = newValue } }
    }

    /// Takes a complete download's temporary file, instead of the request's destination. The file is removed unless it was moved away.
    @preconcurrency public var downloadTaskDidFinishDownloadingToURL: (@Sendable (Session, SessionTask, URL) -> Void)? {
        get { closures.withLock { $0.downloadTaskDidFinishDownloadingToURL } }
        set { closures.withLock { $0.downloadTaskDidFinishDownloadingToURL = newValue } }
    }

    /// Is told how much of a download came, instead of the request's progress: bytes now, bytes so far, bytes in all (−1 if unknown).
    @preconcurrency public var downloadTaskDidWriteData: (@Sendable (Session, SessionTask, Int64, Int64, Int64) -> Void)? {
        get { closures.withLock { $0.downloadTaskDidWriteData } }
        set { closures.withLock { $0.downloadTaskDidWriteData = newValue } }
    }

    /// Is told where a resumed download goes on: offset, and bytes in all (−1 if unknown).
    @preconcurrency public var downloadTaskDidResumeAtOffset: (@Sendable (Session, SessionTask, Int64, Int64) -> Void)? {
        get { closures.withLock { $0.downloadTaskDidResumeAtOffset } }
        set { closures.withLock { $0.downloadTaskDidResumeAtOffset = newValue } }
    }
}
