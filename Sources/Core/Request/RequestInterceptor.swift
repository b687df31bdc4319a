// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Changes requests before they are sent: adds tokens, signs or rejects requests.
///
/// One that changes header fields only is better a ``HeaderAdapter``, one that has to wait an ``AsyncRequestAdapter``. Only ``adapt(_:)`` has
/// no default.
@preconcurrency public protocol RequestAdapter: Sendable {
    /// Returns the request to send in place of `urlRequest`.
    ///
    /// Called on the thread that creates the request, and on the session's queue for each retry, always with the original. An error that it
    /// throws fails the request, unless the retrier retries.
    ///
    /// The body of the returned request is sent: its `httpBody`, its `httpBodyStream`, or none. An upload of bytes has them as `httpBody`.
    /// An upload of a file or a stream has no body here and sends its own, unless the returned request has one, which replaces it. A
    /// redirect that repeats the body repeats the returned one; a stream that is set here can't be sent twice, so that such a redirect
    /// fails with ``CurlewError/RedirectFailureReason/bodyNotRepeatable``. An adapter that changes the body also changes the fields that
    /// describe it, such as `Content-Length` and `Content-Encoding`.
    ///
    /// `setValue(_:forHTTPHeaderField:)` of Foundation on Linux drops, without an error, a field whose value has a line break or a NUL, which
    /// nothing can detect afterwards. A ``HeaderAdapter`` keeps every value, and an invalid one fails the request.
    func adapt(_ urlRequest: URLRequest) throws -> URLRequest

    /// An equivalent adapter that changes header fields only and needs no `URLRequest`; `nil`, the default, if there is none.
    ///
    /// Used in place of ``adapt(_:)`` when that saves creating a `URLRequest`.
    var headerAdapter: (any HeaderAdapter)? { get }

    /// The adapter in `async` form, which is used in place of this one; `nil`, the default, if it does not have to wait.
    var asyncAdapter: (any AsyncRequestAdapter)? { get }
}

extension RequestAdapter {
    /// `nil`, as the adapter does not have to wait.
    public var asyncAdapter: (any AsyncRequestAdapter)? { nil }
}

/// Reports whether to retry, and after which delay in seconds. To be called once, on any thread; later calls do nothing.
@preconcurrency public typealias RequestRetryCompletion = @Sendable (_ shouldRetry: Bool, _ timeDelay: TimeInterval) -> Void

/// Decides whether failed requests are retried.
///
/// One that has to wait for its decision is an ``AsyncRequestRetrier``. Only ``should(_:retry:with:completion:)`` has no default.
@preconcurrency public protocol RequestRetrier: Sendable {
    /// Decides about a request that failed with a transport, validation or adapter error.
    ///
    /// Not called for encoding errors and cancelled requests, nor for requests that can't be repeated: a body stream, or a part of
    /// ``DataRequest/bodyStream()``, has been read, or a raw connection was established.
    ///
    /// Called on the session's queue, once for each failed attempt; ``Request/retryCount`` is the number of retries so far. The request
    /// waits until `completion` is called, it is cancelled, or the session ends.
    func should(_ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion)

    /// Whether the retrier runs asynchronous code in the request's task, which is then created with the request; `false` by default, and
    /// `true` for an ``AsyncRequestRetrier``.
    var isAsynchronous: Bool { get }

    /// Whether the retrier ever retries; `true` by default, and `false` for an ``AsyncRequestAdapter`` that is no ``AsyncRequestRetrier``.
    ///
    /// Only says what is to be expected: a retrier with `false` is asked all the same. The task of a request with an asynchronous adapter
    /// ends with the first attempt's adapter if no retry is to be expected, which saves half of its cost; a retry's adapter then runs
    /// without the task-local values of the request's caller.
    var mayRetry: Bool { get }
}

extension RequestRetrier {
    /// `false`: the retrier needs no task.
    public var isAsynchronous: Bool { false }

    /// `true`: retries are to be expected.
    public var mayRetry: Bool { true }
}

/// Adapts requests and decides about their retries: a ``RequestAdapter`` that is also a ``RequestRetrier``.
///
/// Passed to a single request, or set as a session's ``SessionManager/interceptor``. If both a request and its session have one, the
/// request's adapts first, so that a session's adapter that signs requests sees their final form, and decides about retries first.
///
/// Every requirement has a default: requests are not changed, and not retried. A method that differs from a requirement in a label, its
/// type or by `async`, such as Alamofire 5's `adapt(_:for:completion:)`, is a different method and is never called. Those in `async` form
/// are the requirements of ``AsyncRequestAdapter`` and ``AsyncRequestRetrier``, which have no defaults.
public protocol RequestInterceptor: RequestAdapter, RequestRetrier {}

extension RequestInterceptor {
    /// Returns the request unchanged.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest { urlRequest }

    /// Does not retry.
    public func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        completion(false, 0)
    }
}

/// An adapter made from a closure, which may be asynchronous.
public struct Adapter: RequestInterceptor {
    private let adaptHandler: @Sendable (URLRequest) throws -> URLRequest
    /// `nil` for a closure that does not have to be awaited.
    public let asyncAdapter: (any AsyncRequestAdapter)?

    /// Creates an adapter from a closure, which is called where ``RequestAdapter/adapt(_:)`` is.
    @preconcurrency
    public init(_ adaptHandler: @escaping @Sendable (URLRequest) throws -> URLRequest) {
        self.adaptHandler = adaptHandler
        asyncAdapter = nil
    }

    /// Creates an adapter from an asynchronous closure, which is called where ``AsyncRequestAdapter/adapt(_:for:)`` is.
    public init(_ adaptHandler: @escaping @Sendable (URLRequest) async throws -> URLRequest) {
        self.adaptHandler = { _ in throw AsyncAdapterError.calledSynchronously }
        asyncAdapter = AsyncClosureAdapter(handler: adaptHandler)
    }

    /// Calls the closure.
    ///
    /// - Throws: what the closure throws; ``AsyncAdapterError/calledSynchronously`` for an asynchronous one.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest { try adaptHandler(urlRequest) }

    /// `false`: an adapter never retries.
    public var mayRetry: Bool { false }
}

private struct AsyncClosureAdapter: AsyncRequestAdapter {
    let handler: @Sendable (URLRequest) async throws -> URLRequest

    func adapt(_ urlRequest: URLRequest, for manager: SessionManager) async throws -> URLRequest { try await handler(urlRequest) }
}

/// A retrier made from a closure, which may be asynchronous.
public struct Retrier: RequestInterceptor {
    private typealias Handler =
        @Sendable (
            _ manager: SessionManager, _ request: Request, _ error: any Error, _ completion: @escaping RequestRetryCompletion
        ) -> Void

    private let retryHandler: Handler
    /// Whether the closure is asynchronous.
    public let isAsynchronous: Bool

    /// Creates a retrier from a closure, which is called on the session's queue and calls its `completion` once, on any thread.
    @preconcurrency
    public init(
        _ retryHandler:
            @escaping @Sendable (
                _ manager: SessionManager, _ request: Request, _ error: any Error, _ completion: @escaping RequestRetryCompletion
            ) -> Void
    ) {
        self.retryHandler = retryHandler
        isAsynchronous = false
    }

    /// Creates a retrier from an asynchronous closure, which runs in the request's task.
    ///
    /// - Parameter retryHandler: decides whether a request is retried; see ``AsyncRequestRetrier/retry(_:for:dueTo:)``.
    public init(
        _ retryHandler:
            @escaping @Sendable (_ manager: SessionManager, _ request: Request, _ error: any Error) async throws -> RetryDecision
    ) {
        let retrier = AsyncClosureRetrier(handler: retryHandler)
        self.retryHandler = { retrier.should($0, retry: $1, with: $2, completion: $3) }
        isAsynchronous = true
    }

    /// Calls the closure.
    public func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        retryHandler(manager, request, error, completion)
    }
}

private struct AsyncClosureRetrier: AsyncRequestRetrier {
    let handler: @Sendable (SessionManager, Request, any Error) async throws -> RetryDecision

    func retry(_ request: Request, for manager: SessionManager, dueTo error: any Error) async throws -> RetryDecision {
        try await handler(manager, request, error)
    }
}

/// An interceptor that combines adapters and retriers.
public struct Interceptor: RequestInterceptor {
    /// The adapters, each of which is called with the result of the previous one; an error of one fails the request.
    public let adapters: [any RequestAdapter]
    /// The retriers, which are called in order until one decides to retry, with its delay.
    public let retriers: [any RequestRetrier]
    /// Identifies this value and its copies.
    private let identity = Identity()

    private final class Identity: Sendable {}

    /// Whether both are copies of one value.
    func isSame(as other: Interceptor) -> Bool { identity === other.identity }

    /// All adapters as one in `async` form; `nil` if none of them has to be awaited.
    public let asyncAdapter: (any AsyncRequestAdapter)?
    /// Whether one of the retriers is asynchronous.
    public let isAsynchronous: Bool
    /// Whether one of the retriers may retry.
    public let mayRetry: Bool

    /// Combines adapters and retriers in the given order; `interceptors` come last, as both.
    public init(
        adapters: [any RequestAdapter] = [], retriers: [any RequestRetrier] = [], interceptors: [any RequestInterceptor] = []
    ) {
        self.adapters = adapters + interceptors
        self.retriers = retriers + interceptors
        asyncAdapter = self.adapters.contains { $0.asyncAdapter != nil } ? AsyncAdapters(adapters: self.adapters) : nil
        isAsynchronous = self.retriers.contains { $0.isAsynchronous }
        mayRetry = self.retriers.contains { $0.mayRetry }
    }

    /// Combines an adapter and a retrier.
    public init(adapter: any RequestAdapter, retrier: any RequestRetrier) {
        self.init(adapters: [adapter], retriers: [retrier])
    }

    /// Applies all adapters in order.
    ///
    /// - Throws: what an adapter throws; ``AsyncAdapterError/calledSynchronously`` for one that has to be awaited.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        try adapters.reduce(urlRequest) { try $1.adapt($0) }
    }

    /// Calls the retriers in order, on the session's queue, until one decides to retry.
    public func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        Self.ask(retriers[...], of: manager, about: request, error, completion)
    }

    private static func ask(
        _ retriers: ArraySlice<any RequestRetrier>, of manager: SessionManager, about request: Request, _ error: any Error,
        _ completion: @escaping RequestRetryCompletion
    ) {
        guard let retrier = retriers.first else { return completion(false, 0) }
        let isDecided = Lock(false)
        // Weak, because a retrier that never calls its completion may retain this closure.
        retrier.should(manager, retry: request, with: error) { [weak manager, weak request] shouldRetry, delay in
            let isFirst = isDecided.withLock { isDecided in
                defer { isDecided = true }
                return !isDecided
            }
            guard isFirst else { return }
            if shouldRetry { return completion(true, delay) }
            guard let manager, let request else { return }
            request.session.queue.async {
                request.driver.inContext {
                    // A retrier that declined may have replaced the error, as an authentication interceptor does.
                    ask(retriers.dropFirst(), of: manager, about: request, request.delegate.error ?? error, completion)
                }
            }
        }
    }
}

// MARK: - Waiting

/// Thrown by an adapter that can't adapt yet, and will when something has happened.
///
/// No user sees it: the request waits, as it does for a retrier, and is then adapted again.
struct PendingAdaptation: Error {
    /// Whether `prepare` runs asynchronous code, and so is called in the request's task.
    let isAsynchronous: Bool
    /// Brings about what is missing; calls back once, on any thread, with why it can't be had. Called on the session's queue.
    let prepare: @Sendable (SessionManager, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) -> Void

    /// Waits until the adapter can adapt; ends with the task.
    func prepared(for manager: SessionManager) async throws {
        let wait = CancellableWait()
        if isAsynchronous {
            prepare(manager) { wait.end($0) }
        } else {
            // Captured again, as the request's task has the task-local values of its caller.
            let context = CapturedContext(manager.session.contextCarriers)
            manager.session.queue.async {
                let prepare = { self.prepare(manager) { wait.end($0) } }
                if let context { context.run(prepare) } else { prepare() }
            }
        }
        try await wait.value
    }
}

/// A wait for a call that may never come, which the cancellation of the waiting task ends, too.
private final class CancellableWait: Sendable {
    private struct State {
        var result: Result<Void, any Error>?
        var continuation: UnsafeContinuation<Void, any Error>?
    }

    private let state = Lock(State())

    var value: Void {
        get async throws {
            try await withTaskCancellationHandler {
                try await withUnsafeThrowingContinuation { continuation in
                    let result = state.withLock { state in
                        if state.result == nil { state.continuation = continuation }
                        return state.result
                    }
                    if let result { continuation.resume(with: result) }
                }
            } onCancel: {
                end(.failure(CancellationError()))
            }
        }
    }

    /// Ends the wait; only the first call counts.
    func end(_ result: Result<Void, any Error>) {
        let continuation = state.withLock { state -> UnsafeContinuation<Void, any Error>? in
            guard state.result == nil else { return nil }
            state.result = result
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume(with: result)
    }
}

extension Request {
    /// Replaces the error about which a retrier is being asked with a better one; does nothing once the retrier has answered.
    func replaceError(with error: any Error) {
        driver.state.withLock { state in
            if state.lifecycle.stage == .betweenAttempts { state.attempt.error = error }
        }
    }
}

// MARK: - Groups

/// An adapter that consists of others.
protocol AdapterGroup: RequestAdapter {
    var members: [any RequestAdapter] { get }
}

extension Interceptor: AdapterGroup {
    var members: [any RequestAdapter] { adapters }
}
