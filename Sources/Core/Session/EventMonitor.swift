// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Observes the events of a session's requests, for logging, metrics and tracing.
///
/// The methods are called on the session's queue, one at a time, in the order of events. A slow method delays the session's other requests.
/// The session retains its monitors.
///
/// The handshake of a WebSocket is no exchange here; ``ExchangeInstrument`` is notified of it.
///
/// Each method has an empty default implementation. One with another label or type, such as Alamofire 5's `request(_:didCreateTask:)`, is a
/// different method and is never called.
public protocol EventMonitor: Sendable {
    /// The events of which the monitor is notified; ``MonitoredEvents/all`` by default.
    ///
    /// Read once, when the session is created. Each event costs its request a call on the session's queue: a monitor that needs few of them
    /// saves that.
    var monitoredEvents: MonitoredEvents { get }
    /// A task was created for an attempt: the first, or a retry.
    func request(_ request: Request, didCreate task: SessionTask)
    /// An exchange of the request has completed: the first, a follow-up, or one of a later attempt. Also one that the cache served alone.
    ///
    /// `exchange` has the request, the attempt, the number and the reason; `completion` the response's head, the error, and the metrics,
    /// with the time in the queue for a connection and what the cache did. The exchanges are those of the request's `metrics`, numbered
    /// from 1.
    func request(_ request: Request, didCompleteExchange exchange: OutgoingExchange, with completion: ExchangeCompletion)
    /// The request was started or resumed.
    func requestDidResume(_ request: Request)
    /// The request was suspended.
    func requestDidSuspend(_ request: Request)
    /// The request was cancelled.
    func requestDidCancel(_ request: Request)
    /// The head of an interim response was received (1xx; RFC 9110, section 15.2), before that of the exchange's final response; not of
    /// `100 Continue`, and not of the handshake of a WebSocket.
    func request(_ request: Request, didReceiveInterim head: ResponseHead)
    /// The head of a response was received: of a redirect or challenge, or of the final response.
    func request(_ request: Request, didReceive response: HTTPURLResponse)
    /// The task sends a follow-up request: a redirect, or an authenticated retry.
    func request(_ request: Request, willContinueWith newRequest: URLRequest)
    /// An attempt has completed and was validated; `error` is `nil` if it succeeded.
    func request(_ request: Request, didComplete task: SessionTask, with error: (any Error)?)
    /// The session's cache was used for an exchange of the request, or bypassed. Only in sessions with a cache.
    func request(_ request: Request, didUseCache outcome: TransferMetrics.CacheOutcome)
    /// The same, with the reason, and in the terms of RFC 9211. Called in place of ``request(_:didUseCache:)``, which it calls by default.
    func request(
        _ request: Request, didUseCache outcome: TransferMetrics.CacheOutcome, because reason: CacheReason, status: CacheStatus)
    /// The request has failed for good: it is not retried. `isHandled` says whether it has a handler or is awaited. Cancelled requests
    /// fail, too.
    func request(_ request: Request, didFailWith error: any Error, isHandled: Bool)
    /// The request will be retried after a delay in seconds.
    func request(_ request: Request, willRetryAfter delay: TimeInterval, because error: any Error)
    /// The request has finished, and its handlers run. Called once: a request without a handler finishes 100 ms after its completion, even
    /// if a validation added later rejects its response and causes a retry.
    func requestDidFinish(_ request: Request)
    /// A connection of the session was opened or reused, has become idle, or was closed. Not in the context of a request.
    ///
    /// Only for sessions on ``CurlTransport``.
    func connectionDidChange(_ event: ConnectionEvent)
    /// A policy that protects the session, of the product CurlewResilience, has refused, delayed or changed something. Not in the context of
    /// a request; the exchange of a report has that.
    func policyDidAct(_ report: PolicyReport)
}

extension EventMonitor {
    /// All events.
    public var monitoredEvents: MonitoredEvents { .all }
    /// Does nothing.
    public func request(_ request: Request, didCreate task: SessionTask) {}
    /// Does nothing.
    public func request(_ request: Request, didCompleteExchange exchange: OutgoingExchange, with completion: ExchangeCompletion) {}
    /// Does nothing.
    public func requestDidResume(_ request: Request) {}
    /// Does nothing.
    public func requestDidSuspend(_ request: Request) {}
    /// Does nothing.
    public func requestDidCancel(_ request: Request) {}
    /// Does nothing.
    public func request(_ request: Request, didReceiveInterim head: ResponseHead) {}
    /// Does nothing.
    public func request(_ request: Request, didReceive response: HTTPURLResponse) {}
    /// Does nothing.
    public func request(_ request: Request, willContinueWith newRequest: URLRequest) {}
    /// Does nothing.
    public func request(_ request: Request, didComplete task: SessionTask, with error: (any Error)?) {}
    /// Does nothing.
    public func request(_ request: Request, didUseCache outcome: TransferMetrics.CacheOutcome) {}
    /// Calls ``request(_:didUseCache:)``.
    public func request(
        _ request: Request, didUseCache outcome: TransferMetrics.CacheOutcome, because reason: CacheReason, status: CacheStatus
    ) {
        self.request(request, didUseCache: outcome)
    }
    /// Does nothing.
    public func request(_ request: Request, didFailWith error: any Error, isHandled: Bool) {}
    /// Does nothing.
    public func request(_ request: Request, willRetryAfter delay: TimeInterval, because error: any Error) {}
    /// Does nothing.
    public func requestDidFinish(_ request: Request) {}
    /// Does nothing.
    public func connectionDidChange(_ event: ConnectionEvent) {}
    /// Does nothing.
    public func policyDidAct(_ report: PolicyReport) {}
}
