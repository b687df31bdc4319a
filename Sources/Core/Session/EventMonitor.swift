// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Is told what happens to the requests of a session, without a part in it: for logs, counts and traces.
///
/// The methods are called on the session's queue, in the order of events, one at a time; each does nothing unless it is implemented. What
/// takes long there holds up the session's other requests. The session keeps its monitors as long as it lives.
public protocol EventMonitor: Sendable {
    /// A task was made for the request: for its first attempt, or for a retry.
    func request(_ request: Request, didCreate task: SessionTask)
    /// The request was started, or lets its task go on.
    func requestDidResume(_ request: Request)
    /// The request was stopped for a while.
    func requestDidSuspend(_ request: Request)
    /// The request was cancelled.
    func requestDidCancel(_ request: Request)
    /// The head of a response is there: that of a redirect, or that of the answer.
    func request(_ request: Request, didReceive response: HTTPURLResponse)
    /// Another request is sent by the same task: a redirect is followed, or credentials are given.
    func request(_ request: Request, willContinueWith newRequest: URLRequest)
    /// An attempt is over and validated; `error` is `nil` when it was a success.
    func request(_ request: Request, didComplete task: SessionTask, with error: (any Error)?)
    /// The request is going to be tried again, after a delay in seconds.
    func request(_ request: Request, willRetryAfter delay: TimeInterval, because error: any Error)
    /// The request is over: its handlers run now. Once for a request; one that had no handler for 100 ms has finished then, even if a
    /// validation that is added later refuses its response and has it tried again.
    func requestDidFinish(_ request: Request)
}

extension EventMonitor {
    /// Does nothing.
    public func request(_ request: Request, didCreate task: SessionTask) {}
    /// Does nothing.
    public func requestDidResume(_ request: Request) {}
    /// Does nothing.
    public func requestDidSuspend(_ request: Request) {}
    /// Does nothing.
    public func requestDidCancel(_ request: Request) {}
    /// Does nothing.
    public func request(_ request: Request, didReceive response: HTTPURLResponse) {}
    /// Does nothing.
    public func request(_ request: Request, willContinueWith newRequest: URLRequest) {}
    /// Does nothing.
    public func request(_ request: Request, didComplete task: SessionTask, with error: (any Error)?) {}
    /// Does nothing.
    public func request(_ request: Request, willRetryAfter delay: TimeInterval, because error: any Error) {}
    /// Does nothing.
    public func requestDidFinish(_ request: Request) {}
}

extension Session {
    /// Tells the monitors of an event; nothing if there are none.
    func tellMonitors(_ event: @escaping @Sendable (any EventMonitor) -> Void) {
        let monitors = configuration.eventMonitors
        guard !monitors.isEmpty else { return }
        queue.async {
            for monitor in monitors { event(monitor) }
        }
    }

    /// Whether anybody wants to know what happens.
    var isMonitored: Bool { !configuration.eventMonitors.isEmpty }
}
