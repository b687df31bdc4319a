// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Observes the events of a session's requests, for logging, metrics and tracing.
///
/// The methods are called on the session's queue, one at a time, in the order of events. A slow method delays the session's other requests.
/// The session retains its monitors.
///
/// Each method has an empty default implementation. One with another label or type, such as Alamofire 5's `request(_:didCreateTask:)`, is a
/// different method and is never called.
public protocol EventMonitor: Sendable {
    /// A task was created for an attempt: the first, or a retry.
    func request(_ request: Request, didCreate task: SessionTask)
    /// The request was started or resumed.
    func requestDidResume(_ request: Request)
    /// The request was suspended.
    func requestDidSuspend(_ request: Request)
    /// The request was cancelled.
    func requestDidCancel(_ request: Request)
    /// The head of a response was received: of a redirect or challenge, or of the final response.
    func request(_ request: Request, didReceive response: HTTPURLResponse)
    /// The task sends a follow-up request: a redirect, or an authenticated retry.
    func request(_ request: Request, willContinueWith newRequest: URLRequest)
    /// An attempt has completed and was validated; `error` is `nil` if it succeeded.
    func request(_ request: Request, didComplete task: SessionTask, with error: (any Error)?)
    /// The request will be retried after a delay in seconds.
    func request(_ request: Request, willRetryAfter delay: TimeInterval, because error: any Error)
    /// The request has finished, and its handlers run. Called once: a request without a handler finishes 100 ms after its completion, even
    /// if a validation added later rejects its response and causes a retry.
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
    /// Notifies the monitors of an event of a request, on the session's queue and in the request's context.
    func tellMonitors(of request: Request, _ event: @escaping @Sendable (any EventMonitor) -> Void) {
        let monitors = layerMonitor.map { eventMonitors + [$0] } ?? eventMonitors
        guard !monitors.isEmpty else { return }
        queue.async { [driver = request.driver] in
            driver.inContext {
                for monitor in monitors { event(monitor) }
            }
        }
    }

    /// Whether the session has monitors.
    var isMonitored: Bool { !eventMonitors.isEmpty || layerMonitor != nil }

    private var layerMonitor: (any EventMonitor)? { configuration.tellsLayerMonitor ? LayerMonitor.registered : nil }
}

// MARK: - The monitor of a layer

/// The monitor that a layer above has registered in the process, for sessions whose ``SessionConfiguration/tellsLayerMonitor`` is set.
///
/// Not a part of the session: a subclass of ``SessionManager`` calls Core's initializers, which a layer cannot replace.
package enum LayerMonitor {
    private static let monitor = Lock<(any EventMonitor)?>(nil)

    static var registered: (any EventMonitor)? { monitor.withLock { $0 } }

    /// Registers a monitor, also for sessions that exist.
    package static func register(_ monitor: any EventMonitor) {
        self.monitor.withLock { $0 = monitor }
    }
}
