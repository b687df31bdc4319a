// SPDX-License-Identifier: Apache-2.0
import CurlewURLLoading

// The methods have two forms where Apple's have: with a completion handler, and `async`. The engine calls the one with a handler, whose
// default calls the other, whose default does what happens without the method. So implement one of them. A method has to be declared in the
// type that declares the conformance, or in a superclass of it: one that a subclass adds is not called, as without the runtime of
// Objective-C a protocol finds its methods when the conformance is compiled.

/// Receives the events of a session that concern no single task.
///
/// Called on the session's ``URLSession/delegateQueue``, one method at a time. The session retains its delegate until it is invalidated.
@preconcurrency public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
    /// The session is invalidated: the last call, with `nil` unless an error has ended it.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// Answers a challenge that concerns a connection: the trust in its server (`NSURLAuthenticationMethodServerTrust`), Negotiate and NTLM.
    ///
    /// Without it the task's method is called: ``URLSessionTaskDelegate/urlSession(_:task:didReceive:completionHandler:)``.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The same as the method with a handler, in `async` form.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Never called: no other process runs a session's tasks.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

extension URLSessionDelegate {
    /// Does nothing.
    public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {}

    /// Calls the `async` form.
    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let shown = Shown(challenge)
        session.calls.askAsync(self, .sessionChallenge) {
            await self.urlSession(session, didReceive: shown.value)
        } answered: {
            completionHandler($0, $1)
        }
    }

    /// Leaves the challenge to the task's method.
    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        DelegateCall.noteDefault(of: self, .sessionChallenge)
        return (.performDefaultHandling, nil)
    }

    /// Does nothing.
    public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {}
}

/// Receives the events of tasks of all kinds.
@preconcurrency public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// A task was created, and not started yet. Called on the thread that has created it, before it is returned.
    ///
    /// That of a task's own delegate is called for `async` functions such as ``URLSession/data(for:delegate:)``, which do not return their task.
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

    /// A task with an ``URLSessionTask/earliestBeginDate`` is about to begin: continues it, with another request if that is wanted, or cancels
    /// it.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)

    /// The same as the method with a handler, in `async` form.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?)

    /// A task waits for a network, as `waitsForConnectivity` of its session's configuration wants. Called at most once a task.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// A redirect is about to be followed: completes with the request to follow it with, or with `nil` to have the redirect itself as the
    /// response, with its body.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    /// The same as the method with a handler, in `async` form.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest
    ) async -> URLRequest?

    /// Answers a server's challenge for credentials, and one that concerns a connection if the session's delegate does not answer that.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The same as the method with a handler, in `async` form.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Completes with the stream that is a streamed upload's body, at its start and whenever it has to be sent again; `nil` fails the task.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void)

    /// The same as the method with a handler, in `async` form.
    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream?

    /// A part of the body was sent: bytes now, bytes so far, and the length, −1 (`NSURLSessionTransferSizeUnknown`) if it is unknown.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64)

    /// An interim response was received: 102, 103 or 104 (RFC 9110, section 15.2). Not called for 100.
    func urlSession(_ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)

    /// The metrics of a task that has completed; before ``urlSession(_:task:didCompleteWithError:)`` and before a completion handler.
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

    /// A task has completed; the last call about it. Not called for one with a completion handler, nor for an `async` function.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

extension URLSessionTaskDelegate {
    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        DelegateCall.noteDefault(of: self, .creation)
    }

    /// Calls the `async` form.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        session.calls.askAsync(self, .delayedRequest) {
            await self.urlSession(session, task: task, willBeginDelayedRequest: request)
        } answered: {
            completionHandler($0, $1)
        }
    }

    /// Continues the task.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) {
        DelegateCall.noteDefault(of: self, .delayedRequest)
        return (.continueLoading, nil)
    }

    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        DelegateCall.noteDefault(of: self, in: session)
    }

    /// Calls the `async` form.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        session.calls.askAsync(self, .redirection) {
            await self.urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request)
        } answered: {
            completionHandler($0)
        }
    }

    /// Follows the redirect.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest
    ) async -> URLRequest? {
        DelegateCall.noteDefault(of: self, .redirection)
        return request
    }

    /// Calls the `async` form.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let shown = Shown(challenge)
        session.calls.askAsync(self, .taskChallenge) {
            await self.urlSession(session, task: task, didReceive: shown.value)
        } answered: {
            completionHandler($0, $1)
        }
    }

    /// Answers with the proposed credential, if there is one.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        DelegateCall.noteDefault(of: self, .taskChallenge)
        return (.performDefaultHandling, nil)
    }

    /// Calls the `async` form.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        session.calls.askAsync(self, .bodyStream) {
            Shown(await self.urlSession(session, needNewBodyStreamForTask: task))
        } answered: {
            completionHandler($0.value)
        }
    }

    /// Has no stream.
    public func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream? {
        DelegateCall.noteDefault(of: self, .bodyStream)
        return nil
    }

    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) { DelegateCall.noteDefault(of: self, in: session) }

    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(_ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse) {
        DelegateCall.noteDefault(of: self, in: session)
    }

    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        DelegateCall.noteDefault(of: self, in: session)
    }

    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        DelegateCall.noteDefault(of: self, in: session)
    }
}
