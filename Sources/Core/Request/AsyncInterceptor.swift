// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// An adapter that has to wait, for a token from an actor or another service: a ``RequestAdapter`` in `async` form.
///
/// ```swift
/// struct TokenAdapter: AsyncRequestAdapter {
///     let tokens: Tokens  // an actor
///
///     func adapt(_ urlRequest: URLRequest, for manager: SessionManager) async throws -> URLRequest {
///         var urlRequest = urlRequest
///         urlRequest.setValue("Bearer \(try await tokens.token())", forHTTPHeaderField: "Authorization")
///         return urlRequest
///     }
/// }
/// ```
///
/// It can be used wherever an adapter or interceptor can. Each request with asynchronous code has one task, created by the call that
/// creates the request, with the task-local values of that caller; it is cancelled when the request is cancelled. An adapter that does not
/// suspend starts the request before that call returns. One that changes header fields only is better an ``AsyncHeaderAdapter``.
@preconcurrency public protocol AsyncRequestAdapter: RequestInterceptor {
    /// Returns the request to send in place of `urlRequest`, for each attempt, always with the original; see ``RequestAdapter/adapt(_:)``
    /// for what becomes of its body. An error that it throws fails the request, unless a retrier retries it.
    ///
    /// - Parameters:
    ///   - urlRequest: the original, or the result of the adapter before.
    ///   - manager: the request's manager, which is retained until the adapter returns. A request that is created with it here and has the
    ///     same adapter waits for itself.
    func adapt(_ urlRequest: URLRequest, for manager: SessionManager) async throws -> URLRequest

    /// An equivalent adapter that changes header fields only; `nil`, the default, if there is none.
    var asyncHeaderAdapter: (any AsyncHeaderAdapter)? { get }
}

extension AsyncRequestAdapter {
    /// Throws ``AsyncAdapterError/calledSynchronously``: the adapter has to be awaited.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest { throw AsyncAdapterError.calledSynchronously }

    /// `self`.
    public var asyncAdapter: (any AsyncRequestAdapter)? { self }

    /// `nil`, as the adapter may need the whole request.
    public var asyncHeaderAdapter: (any AsyncHeaderAdapter)? { nil }

    /// `false`. An adapter with a ``RequestRetrier/should(_:retry:with:completion:)`` of its own returns `true`.
    public var mayRetry: Bool { false }
}

extension AsyncRequestAdapter where Self: AsyncRequestRetrier {
    /// `true`, as it is a retrier.
    public var mayRetry: Bool { true }
}

/// An ``AsyncRequestAdapter`` that changes header fields only, and so needs no `URLRequest`, which takes half the time of a small request.
@preconcurrency public protocol AsyncHeaderAdapter: AsyncRequestAdapter {
    /// Changes the header fields of a request, without those of the session, which are added afterwards if missing.
    ///
    /// - Parameters:
    ///   - headers: the request's header fields.
    ///   - method: the request's method.
    ///   - url: the request's absolute URL.
    ///   - manager: the request's manager.
    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String, for manager: SessionManager) async throws
}

extension AsyncHeaderAdapter {
    /// Applies ``adapt(_:of:to:for:)`` to the fields of a `URLRequest`.
    public func adapt(_ urlRequest: URLRequest, for manager: SessionManager) async throws -> URLRequest {
        // Foundation on Linux traps when a copied request without a URL is changed. Such a request fails later, when it is sent.
        guard let url = urlRequest.url else { return urlRequest }
        var headers = HTTPHeaders(urlRequest.allHTTPHeaderFields ?? [:])
        let method = HTTPMethod(rawValue: urlRequest.httpMethod ?? "") ?? .get
        try await adapt(&headers, of: method, to: url.absoluteString, for: manager)
        return try urlRequest.replacingFields(with: headers)
    }

    /// `self`.
    public var asyncHeaderAdapter: (any AsyncHeaderAdapter)? { self }
}

/// Has a signer obtain what it needs, as the last of the adapters.
struct SignerPreparation: AsyncHeaderAdapter {
    let signer: any ExchangeSigner

    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String, for manager: SessionManager) async throws {
        try await signer.prepare()
    }
}

/// A retrier that has to wait before it decides: a ``RequestRetrier`` in `async` form.
///
/// It can be used wherever a retrier or interceptor can. It runs in the request's task, as an ``AsyncRequestAdapter`` does.
@preconcurrency public protocol AsyncRequestRetrier: RequestInterceptor {
    /// Decides about a request that failed with a transport, validation or adapter error; see
    /// ``RequestRetrier/should(_:retry:with:completion:)`` for when it is called. An error that it throws becomes the request's.
    func retry(_ request: Request, for manager: SessionManager, dueTo error: any Error) async throws -> RetryDecision
}

extension AsyncRequestRetrier {
    /// Calls ``retry(_:for:dueTo:)`` in the request's task.
    public func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        // Weak, because a retrier that never returns would retain them beyond the request's end.
        request.driver.runAsync { [weak request, weak manager] in
            guard let request, let manager else { return completion(false, 0) }
            let decision: RetryDecision
            do {
                decision = try await retry(request, for: manager, dueTo: error)
            } catch {
                decision = .doNotRetry(error)
            }
            switch decision {
            case .retry(let delay): completion(true, delay.seconds)
            case .doNotRetry(let better):
                if let better { request.replaceError(with: better) }
                completion(false, 0)
            }
        }
    }

    /// `true`: ``retry(_:for:dueTo:)`` runs in the request's task.
    public var isAsynchronous: Bool { true }
}

/// An interceptor whose adapter and retrier are both in `async` form.
public typealias AsyncRequestInterceptor = AsyncRequestAdapter & AsyncRequestRetrier

/// What becomes of a failed request.
public enum RetryDecision: Sendable {
    /// Retry the request after a delay; 0 or less for none.
    case retry(after: Duration)
    /// The request fails: with the error, or with the one with which it failed if that is `nil`. The next retrier, if there is one, decides.
    case doNotRetry((any Error)?)

    /// Retry the request at once.
    public static var retry: RetryDecision { .retry(after: .zero) }
    /// The request fails with its error, unless another retrier retries it.
    public static var doNotRetry: RetryDecision { .doNotRetry(nil) }
}

/// Why an adapter could not be used. Later versions may add cases, so a `switch` needs a `default`.
public enum AsyncAdapterError: Error, Sendable, Hashable {
    /// An ``AsyncRequestAdapter`` was called by code that can't wait: by another adapter's ``RequestAdapter/adapt(_:)``. Combine adapters
    /// with an ``Interceptor``, which awaits those that have to be.
    case calledSynchronously
}

extension AsyncAdapterError: LocalizedError {
    /// A sentence that describes the error.
    public var errorDescription: String? { "The request was not sent: an asynchronous adapter was called without await." }
}

// MARK: - Adapters that are applied in order

/// Adapters that are applied in order, some of which have to be awaited.
struct AsyncAdapters: AsyncRequestAdapter, AdapterGroup {
    let adapters: [any RequestAdapter]
    let asyncHeaderAdapter: (any AsyncHeaderAdapter)?

    init(adapters: [any RequestAdapter]) {
        self.adapters = adapters
        asyncHeaderAdapter = AsyncHeaderAdapters(adapters)
    }

    var members: [any RequestAdapter] { adapters }

    func adapt(_ urlRequest: URLRequest, for manager: SessionManager) async throws -> URLRequest {
        var adapted = urlRequest
        for adapter in adapters { adapted = try await adapter.awaitAdapted(adapted, for: manager) }
        return adapted
    }
}

/// Adapters of header fields that are applied in order, some of which have to be awaited.
private struct AsyncHeaderAdapters: AsyncHeaderAdapter {
    private enum Member {
        case immediate(any HeaderAdapter)
        case awaited(any AsyncHeaderAdapter)
    }

    private let members: [Member]

    /// `nil` if one of the adapters needs the whole request.
    init?(_ adapters: [any RequestAdapter]) {
        members = adapters.compactMap { adapter in
            if let awaited = adapter.asyncAdapter { return awaited.asyncHeaderAdapter.map { .awaited($0) } }
            return adapter.headerAdapter.map { .immediate($0) }
        }
        guard members.count == adapters.count else { return nil }
    }

    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String, for manager: SessionManager) async throws {
        for member in members {
            switch member {
            case .awaited(let adapter): try await adapter.adapt(&headers, of: method, to: url, for: manager)
            case .immediate(let adapter):
                try await manager.awaitingPreparation { () throws in try adapter.adapt(&headers, of: method, to: url) }
            }
        }
    }
}

extension RequestAdapter {
    /// Returns the adapted request, awaited if it has to be.
    fileprivate func awaitAdapted(_ urlRequest: URLRequest, for manager: SessionManager) async throws -> URLRequest {
        if let asyncAdapter { return try await asyncAdapter.adapt(urlRequest, for: manager) }
        var adapted = urlRequest
        try await manager.awaitingPreparation { () throws in adapted = try adapt(urlRequest) }
        return adapted
    }
}

extension SessionManager {
    /// Calls `adapt`, again each time when what it needs has been prepared.
    func awaitingPreparation(_ adapt: () throws -> Void) async throws {
        while true {
            do {
                return try adapt()
            } catch let pending as PendingAdaptation {
                try await pending.prepared(for: self)
            }
        }
    }
}
