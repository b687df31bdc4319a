// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A request of a session: its current task, its validations, and the handlers that wait for its end.
///
/// Made by a ``SessionManager``. All members may be used from any thread.
open class Request: @unchecked Sendable {  // the state is the driver's, behind a lock
    /// Tells of progress; the object is the request's own, and goes on changing.
    @preconcurrency public typealias ProgressHandler = @Sendable (Progress) -> Void

    /// What a request is made of, by kind: the original, from which each attempt is made, and the current attempt's task.
    enum RequestTask {
        case data(any TaskConvertible, SessionTask?)
        case download(any TaskConvertible, SessionTask?)
        case upload(any TaskConvertible, SessionTask?)
        case stream(any TaskConvertible, SessionTask?)

        /// From what a task is made, at first and for each retry.
        var original: any TaskConvertible {
            switch self {
            case .data(let original, _), .download(let original, _), .upload(let original, _), .stream(let original, _): original
            }
        }

        /// The same with the task of a new attempt.
        func with(_ task: SessionTask) -> RequestTask {
            switch self {
            case .data(let original, _): .data(original, task)
            case .download(let original, _): .download(original, task)
            case .upload(let original, _): .upload(original, task)
            case .stream(let original, _): .stream(original, task)
            }
        }
    }

    /// The request's body and error, and the queue of its handlers.
    public let delegate: TaskDelegate
    let driver: RequestDriver
    /// What it is made of, by kind, as in ``requestTask``; without a task.
    let original: Result<RequestTask, any Error>
    /// Adapts this request, and is asked about its retries, before the session's.
    let interceptor: (any RequestInterceptor)?

    init(original: Result<RequestTask, any Error>, driver: RequestDriver, interceptor: (any RequestInterceptor)? = nil) {
        self.original = original
        self.driver = driver
        delegate = TaskDelegate(driver)
        self.interceptor = interceptor
    }

    // MARK: What it is

    /// The session in which the request runs.
    public var session: Session { driver.session }

    package var sessionDelegate: SessionDelegate { driver.sessionDelegate }

    /// The kind of the request, its original and the current attempt's task; what it could not be made for, if so.
    var requestTask: Result<RequestTask, any Error> {
        guard let task else { return original }
        return original.map { $0.with(task) }
    }

    /// The current attempt's task; `nil` when the request could not be made.
    open var task: SessionTask? { driver.state.withLock { $0.task } }

    /// The request as it goes out, adapted; before that, or if the adapter failed, as it was given. `nil` when none could be made.
    open var request: URLRequest? {
        task?.originalRequest ?? originalRequest
    }

    /// The response's status and header fields; `nil` until they are there.
    open var response: HTTPURLResponse? { context.response }

    /// The response's status line and header fields as they came, in their order and with their repetitions, which ``response`` loses;
    /// `nil` until they are there.
    public var responseHead: ResponseHead? { driver.state.withLock { $0.head } }

    /// The number of retries that were started.
    public var retryCount: UInt { driver.state.withLock { $0.retryCount } }

    /// Request and response of the current attempt.
    var context: ResponseContext {
        if let context = driver.state.withLock({ $0.context }) { return context }
        let request = task?.currentTransfer == nil ? originalRequest : nil
        return driver.state.withLock { state in
            if let context = state.context { return context }
            let context = ResponseContext(transfer: state.task?.currentTransfer, head: state.head, request: request)
            if state.lifecycle.stage == .finished { state.context = context }
            return context
        }
    }

    private var originalRequest: URLRequest? {
        (try? original.get())?.original.urlRequest
    }

    /// Whether another attempt would send the same.
    var isRepeatable: Bool { (try? original.get())?.original.isRepeatable ?? false }

    /// The stream that is the request's body, if it is one.
    var streamBody: StreamBody? { (try? original.get())?.original.streamBody }

    /// Whether there is a body to be judged.
    var hasBody: Bool { false }

    // MARK: Control

    /// Starts the request, or resumes it after ``suspend()``. A request that could not be made runs its handlers anyway.
    open func resume() {
        driver.resumedByUser()?.resume()
        if session.isMonitored { session.tellMonitors { [self] in $0.requestDidResume(self) } }
    }

    /// Suspends the request until ``resume()``: nothing is sent or received. While a retry is due or a credential is refreshed, the next
    /// attempt waits.
    open func suspend() {
        driver.suspendedByUser()?.suspend()
        if session.isMonitored { session.tellMonitors { [self] in $0.requestDidSuspend(self) } }
    }

    /// Cancels the request; its handlers run with ``CurlewError/cancelled``. Also while a retry is due.
    ///
    /// A cancelled request is not retried. One whose response is complete already keeps it.
    open func cancel() {
        driver.cancel(self)
        if session.isMonitored { session.tellMonitors { [self] in $0.requestDidCancel(self) } }
    }

    // MARK: Handlers

    /// Adds a handler, which runs after those added before, when the request has finished.
    func addHandler(_ handler: @escaping @Sendable () -> Void) {
        driver.addHandler(handler, to: self)
    }

    /// Waits until the request has finished; cancelling the waiting task cancels the request.
    func waitForEnd() async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                driver.addWaiter(.task(SuspendedTask(continuation)), to: self)
            }
        } onCancel: {
            cancel()
        }
    }
}

// MARK: - CustomStringConvertible

extension Request: CustomStringConvertible {
    /// Method, URL without its secrets (``Redaction``) and, once there is one, the response's status.
    public var description: String {
        guard let request else { return "No request could be made." }
        var parts = [request.httpMethod ?? "GET", request.url?.absoluteString.redactedURL ?? ""]
        if let status = driver.state.withLock({ $0.head })?.statusCode { parts.append("(\(status))") }
        return parts.joined(separator: " ")
    }
}
