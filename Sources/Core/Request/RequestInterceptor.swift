// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Adapts requests and decides about their retries: ``RequestAdapter`` and ``RequestRetrier`` in one.
///
/// Given to a single request, or to a session as its ``SessionManager/adapter``, its ``SessionManager/retrier`` or both. Where a request
/// and its session have one each, the request's adapts first, so that a session's adapter that signs sees all there is to sign; and the
/// request's is asked about retries first. Both requirements have a default: nothing is adapted, and nothing tried again.
public protocol RequestInterceptor: RequestAdapter, RequestRetrier {}

extension RequestInterceptor {
    /// Leaves the request as it is.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest { urlRequest }

    /// Tries nothing again.
    public func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        completion(false, 0)
    }
}

/// An adapter out of a closure.
public struct Adapter: RequestInterceptor {
    /// Gives the request to send in place of another; see ``RequestAdapter/adapt(_:)``.
    public typealias AdaptHandler = @Sendable (URLRequest) throws -> URLRequest

    private let adaptHandler: AdaptHandler

    /// Makes an adapter of a closure, which runs where ``RequestAdapter/adapt(_:)`` does.
    @preconcurrency
    public init(_ adaptHandler: @escaping AdaptHandler) {
        self.adaptHandler = adaptHandler
    }

    /// Calls the closure.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest { try adaptHandler(urlRequest) }
}

/// A retrier out of a closure.
public struct Retrier: RequestInterceptor {
    /// Decides whether a request is tried again; see ``RequestRetrier/should(_:retry:with:completion:)``.
    public typealias RetryHandler =
        @Sendable (
            _ manager: SessionManager, _ request: Request, _ error: any Error, _ completion: @escaping RequestRetryCompletion
        ) -> Void

    private let retryHandler: RetryHandler

    /// Makes a retrier of a closure, which runs on the session's queue and calls its `completion` once, from any thread.
    @preconcurrency
    public init(_ retryHandler: @escaping RetryHandler) {
        self.retryHandler = retryHandler
    }

    /// Calls the closure.
    public func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        retryHandler(manager, request, error, completion)
    }
}

/// Several adapters and retriers as one.
public struct Interceptor: RequestInterceptor {
    /// Adapt one after the other, each what the one before it gave; the first that throws ends the request.
    public let adapters: [any RequestAdapter]
    /// Are asked one after the other until one wants a retry; its delay counts.
    public let retriers: [any RequestRetrier]

    /// Puts adapters and retriers together, each in the given order; `interceptors` come last, as both.
    public init(
        adapters: [any RequestAdapter] = [], retriers: [any RequestRetrier] = [], interceptors: [any RequestInterceptor] = []
    ) {
        self.adapters = adapters + interceptors
        self.retriers = retriers + interceptors
    }

    /// Puts an adapter and a retrier together.
    public init(adapter: any RequestAdapter, retrier: any RequestRetrier) {
        self.init(adapters: [adapter], retriers: [retrier])
    }

    /// Has all adapters change the request, in their order.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        try adapters.reduce(urlRequest) { try $1.adapt($0) }
    }

    /// Asks the retriers in their order, on the session's queue.
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
        let isAnswered = Lock(false)
        // Weak, as a retrier that never answers keeps this closure.
        retrier.should(manager, retry: request, with: error) { [weak manager, weak request] shouldRetry, delay in
            let isFirst = isAnswered.withLock { isAnswered in
                defer { isAnswered = true }
                return !isAnswered
            }
            guard isFirst else { return }
            if shouldRetry { return completion(true, delay) }
            guard let manager, let request else { return }
            request.session.queue.async {
                // One that refused may have put a better error in place of the first.
                ask(retriers.dropFirst(), of: manager, about: request, request.delegate.error ?? error, completion)
            }
        }
    }
}

// MARK: - Requests with an interceptor of their own

extension Request {
    /// The adapter of the request's attempts: its own before its session's.
    func adapter(before next: (any RequestAdapter)?) -> (any RequestAdapter)? {
        guard let interceptor else { return next }
        guard let next else { return interceptor }
        return Interceptor(adapters: [interceptor, next])
    }

    /// The retrier that is asked about the request: its own before its session's.
    func retrier(before next: (any RequestRetrier)?) -> (any RequestRetrier)? {
        guard let interceptor else { return next }
        guard let next else { return interceptor }
        return Interceptor(retriers: [interceptor, next])
    }
}
