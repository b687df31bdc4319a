// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A request of a session: its current task, its validators, and the handlers that run when it has finished.
///
/// Created by a ``SessionManager``, and retained until it has finished. Thread-safe.
public class Request: @unchecked Sendable {  // the state is the driver's, behind a lock
    /// Receives the request's own `Progress` object, which is updated while the body is transferred.
    @preconcurrency public typealias ProgressHandler = @Sendable (Progress) -> Void

    /// The kind of a request, with the original, from which each attempt is made, and the current attempt's task.
    enum RequestTask {
        case data(any TaskConvertible, SessionTask?)
        case download(any TaskConvertible, SessionTask?)
        case upload(any TaskConvertible, SessionTask?)
        case stream(any TaskConvertible, SessionTask?)

        /// The original, from which each attempt's task is made.
        var original: any TaskConvertible {
            switch self {
            case .data(let original, _), .download(let original, _), .upload(let original, _), .stream(let original, _): original
            }
        }

        /// Returns the same kind and original with the task of a new attempt.
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
    /// The kind and original, as in ``requestTask``, but without a task; the error if the request could not be made.
    let original: Result<RequestTask, any Error>

    init(original: Result<RequestTask, any Error>, driver: RequestDriver) {
        self.original = original
        self.driver = driver
        delegate = TaskDelegate(driver)
    }

    // MARK: Properties

    /// The session in which the request runs.
    public var session: Session { driver.session }

    package var sessionDelegate: SessionDelegate { driver.sessionDelegate }

    /// The request's own interceptor and options; `nil` if it has neither.
    var settings: RequestSettings? { driver.settings }

    /// The kind of the request, its original and the current attempt's task; the error if the request could not be made.
    var requestTask: Result<RequestTask, any Error> {
        guard let task else { return original }
        return original.map { $0.with(task) }
    }

    /// The current attempt's task; `nil` if the request could not be made.
    public var task: SessionTask? { driver.state.withLock { $0.task } }

    /// The adapted request; before it was adapted, or if the adapter failed, the original. `nil` if the request could not be made.
    public var request: URLRequest? {
        task?.originalRequest ?? originalRequest
    }

    /// The response's status and header fields; `nil` until they are received.
    public var response: HTTPURLResponse? { context.response }

    /// The response's status line and header fields as received, with their order and repetitions, which ``response`` loses; `nil` until
    /// they are received.
    public var responseHead: ResponseHead? { driver.state.withLock { $0.attempt.head } }

    /// The fields that followed the response's body, such as a checksum of it, in the order received (RFC 9110, section 6.5): with HTTP/1.1
    /// those after a chunked body.
    ///
    /// Complete when the request has finished; empty before, without any, and for a response from the cache. They are as trustworthy as the
    /// body, and are not part of ``responseHead``.
    public var responseTrailers: HTTPHeaders { driver.state.withLock { $0.attempt.trailers } }

    /// The options with which the request was created, or the defaults.
    public var options: RequestOptions { settings?.options ?? RequestOptions() }

    /// The request's ``RequestOptions/name``; `nil` if it has none.
    public var name: String? { settings?.options.name }

    /// The number of retries that were started; redirects and authenticated retries are not counted.
    public var retryCount: UInt { driver.state.withLock { $0.retryCount } }

    /// Request and response of the current attempt.
    var context: ResponseContext {
        if let context = driver.state.withLock({ $0.attempt.context }) { return context }
        let request = task?.currentTransfer == nil ? originalRequest : nil
        return driver.state.withLock { state in
            if let context = state.attempt.context { return context }
            let context = ResponseContext(
                transfer: state.task?.currentTransfer, head: state.attempt.head, trailers: state.attempt.trailers, request: request)
            if state.lifecycle.stage == .finished { state.attempt.context = context }
            return context
        }
    }

    private var originalRequest: URLRequest? {
        (try? original.get())?.original.urlRequest
    }

    /// The URL of the original; `nil` if there is none.
    var originalURL: String? { (try? original.get())?.original.urlRequest?.url?.absoluteString }

    /// Whether another attempt would send the same request: a stream that was read, for example, can't be sent again.
    var isRepeatable: Bool { (try? original.get())?.original.isRepeatable ?? false }

    /// The request's body, if that is a stream.
    var streamBody: StreamBody? { (try? original.get())?.original.streamBody }

    /// Whether a body was received, whose content type validators check.
    var hasBody: Bool { false }

    // MARK: Control

    /// Starts the request, or resumes it after ``suspend()``. Does nothing for one that could not be made, whose handlers run anyway.
    public func resume() {
        driver.resumedByUser(self)
    }

    /// Suspends the request until ``resume()``: nothing is sent or received. Before a retry, or while a credential is refreshed, the next
    /// attempt is not started.
    public func suspend() {
        driver.suspendedByUser(self)
    }

    /// Cancels the request; its handlers run with ``CurlewError/cancelled``. Also between two attempts.
    ///
    /// A cancelled request is not retried. A request whose response is complete keeps it.
    public func cancel() {
        driver.cancelledByUser(self)
    }

    // MARK: Handlers

    /// Adds a handler, which runs when the request has finished, after the handlers added before.
    func addHandler(_ handler: @escaping @Sendable () -> Void) {
        driver.addHandler(handler, to: self)
    }

    /// Calls a closure when the request has finished, or at once if it has, on the thread that finishes it; until then the request retains its
    /// manager, as one that is awaited does.
    package func whenFinished(_ closure: @escaping @Sendable () -> Void) {
        driver.addWaiter(.closure(closure), to: self)
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

extension Request: LineConvertible {
    /// The method, the redacted URL (``Redaction``) and, once it is received, the response's status.
    package var line: String {
        guard let request else { return "No request could be made." }
        var parts = [request.httpMethod ?? "GET", request.url?.absoluteString.redactedURL ?? ""]
        if let status = driver.state.withLock({ $0.attempt.head })?.statusCode { parts.append("(\(status))") }
        return parts.joined(separator: " ")
    }
}
