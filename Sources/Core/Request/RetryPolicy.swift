// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Retries requests after transient failures: lost connections, timeouts, overloaded servers.
///
/// Set it as a session's ``SessionManager/retrier``, or pass it to single requests as their interceptor. A status is an error only for a
/// request that validates it, as by ``DataRequest/validate()``; retriers are called for errors only. A request whose body stream has been
/// read can't be repeated, and is not retried.
///
/// The delay is an exponential backoff with full jitter, so that clients that failed together do not retry together. A `Retry-After` in the
/// response (RFC 9110, section 10.2.3) replaces it.
///
/// A refusal by a policy of `CurlewResilience` is no attempt, as nothing was sent: it does not count towards ``retryLimit``, and its
/// ``TransferFailure/retryAfter`` replaces the backoff. A request with a deadline waits so for circuit breakers and rate limiters; if the
/// wait can't end before the deadline, or is longer than ``maximumDelay``, it fails at once with the refusal. So does a request without a
/// deadline, unless the kind of the refusal is in ``retryableFailureKinds``: then its waits for refusals take ``maximumDelay`` together at
/// most. After 100 refusals a request fails in any case.
open class RetryPolicy: RequestInterceptor, @unchecked Sendable {  // has constants only
    /// The default limit of retries: 2.
    public static let defaultRetryLimit: UInt = 2
    /// The default factor of the backoff: 2.
    public static let defaultExponentialBackoffBase: UInt = 2
    /// The default backoff before the first retry: half a second.
    public static let defaultExponentialBackoffScale: TimeInterval = 0.5
    /// The default maximum of a delay: a minute.
    public static let defaultMaximumDelay: TimeInterval = 60
    /// The default methods: the idempotent ones (RFC 9110, section 9.2.2), as the server may have processed the failed attempt.
    public static let defaultRetryableHTTPMethods: Set<HTTPMethod> = [.delete, .get, .head, .options, .put, .query, .trace]
    /// The default statuses: 408, 429, 500, 502, 503 and 504. A request answered with 429 (RFC 6585, section 4) was not processed.
    public static let defaultRetryableHTTPStatusCodes: Set<Int> = [408, 429, 500, 502, 503, 504]
    /// Statuses that are in no standard, and by which providers report failures that pass: 520 to 524, by which Cloudflare says that it got
    /// no response of the origin, and 529, by which a service says that it is overloaded. Not among the defaults:
    /// `RetryPolicy(retryableHTTPStatusCodes: RetryPolicy.defaultRetryableHTTPStatusCodes.union(RetryPolicy.providerHTTPStatusCodes))`.
    public static let providerHTTPStatusCodes: Set<Int> = [520, 521, 522, 523, 524, 529]
    /// The default kinds of failed transfers: name resolution, connecting, setting up TLS, the timeouts but not the deadline, and lost
    /// connections. No refusals.
    public static let defaultRetryableFailureKinds: Set<TransferFailure.Kind> = [
        .nameResolution, .connect, .secureConnection, .connectTimeout, .firstByteTimeout, .idleTimeout, .totalTimeout, .queueTimeout,
        .connectionLost,
    ]

    /// The most retries of a request.
    public let retryLimit: UInt
    /// The factor by which the backoff grows with each retry.
    public let exponentialBackoffBase: UInt
    /// The backoff before the first retry, in seconds.
    public let exponentialBackoffScale: TimeInterval
    /// The longest delay in seconds: the limit of the backoff. A request is not retried if its response or a refusal asks for a longer one.
    public let maximumDelay: TimeInterval
    /// The methods of requests that are retried.
    public let retryableHTTPMethods: Set<HTTPMethod>
    /// The statuses after which requests are retried.
    public let retryableHTTPStatusCodes: Set<Int>
    /// The kinds of failed transfers after which requests are retried.
    public let retryableFailureKinds: Set<TransferFailure.Kind>
    private let jitter: @Sendable () -> Double

    /// Creates a policy; each parameter has the default of the corresponding static property.
    ///
    /// - Parameters:
    ///   - retryLimit: the most retries of a request; 0 for none.
    ///   - exponentialBackoffBase: the factor by which the backoff grows with each retry; clamped to 1 or more.
    ///   - exponentialBackoffScale: the backoff before the first retry, in seconds; clamped to 0 or more.
    ///   - maximumDelay: the longest delay in seconds; clamped to 0 or more.
    ///   - retryableHTTPMethods: the methods of requests that are retried.
    ///   - retryableHTTPStatusCodes: the statuses after which requests are retried.
    ///   - retryableFailureKinds: the kinds of failed transfers after which requests are retried.
    ///   - jitter: returns the factor of the backoff, 0 to 1; random by default. Called on any thread.
    @preconcurrency
    public init(
        retryLimit: UInt = RetryPolicy.defaultRetryLimit,
        exponentialBackoffBase: UInt = RetryPolicy.defaultExponentialBackoffBase,
        exponentialBackoffScale: TimeInterval = RetryPolicy.defaultExponentialBackoffScale,
        maximumDelay: TimeInterval = RetryPolicy.defaultMaximumDelay,
        retryableHTTPMethods: Set<HTTPMethod> = RetryPolicy.defaultRetryableHTTPMethods,
        retryableHTTPStatusCodes: Set<Int> = RetryPolicy.defaultRetryableHTTPStatusCodes,
        retryableFailureKinds: Set<TransferFailure.Kind> = RetryPolicy.defaultRetryableFailureKinds,
        jitter: @escaping @Sendable () -> Double = { .random(in: 0...1) }
    ) {
        self.retryLimit = retryLimit
        self.exponentialBackoffBase = max(exponentialBackoffBase, 1)
        self.exponentialBackoffScale = max(exponentialBackoffScale, 0)
        self.maximumDelay = max(maximumDelay, 0)
        self.retryableHTTPMethods = retryableHTTPMethods
        self.retryableHTTPStatusCodes = retryableHTTPStatusCodes
        self.retryableFailureKinds = retryableFailureKinds
        self.jitter = jitter
    }

    /// Decides by ``retryLimit``, ``shouldRetry(_:dueTo:)`` and ``delay(beforeRetrying:)``.
    open func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        let isRefused = request.refusal != nil
        let isWithinLimit = isRefused ? retryLimit > 0 && request.refusals.count < Self.mostRefusals : request.countedRetries < retryLimit
        guard isWithinLimit, shouldRetry(request, dueTo: error), let delay = delay(beforeRetrying: request) else {
            return completion(false, 0)
        }
        completion(true, delay)
    }

    /// Returns whether a request may be retried after an error, by its method, its status and the kind of failure. A raw connection has no
    /// method, and nothing was sent on one that is retried.
    open func shouldRetry(_ request: Request, dueTo error: any Error) -> Bool {
        let method = request.request?.httpMethod.flatMap { HTTPMethod(rawValue: $0) }
        guard method.map({ retryableHTTPMethods.contains($0) }) ?? (request is StreamRequest) else { return false }
        if let status = request.responseHead?.statusCode, retryableHTTPStatusCodes.contains(status) { return true }
        // A session may translate errors, as for Alamofire's `AFError`; `ownError` is the original.
        let cause = error is CurlewError ? error : request.delegate.ownError
        guard case CurlewError.transferFailed(let failure)? = cause else { return false }
        if retryableFailureKinds.contains(failure.kind) { return true }
        // The wait has an end, and so has the refusal.
        return request.hasDeadline && (failure.kind == .circuitOpen || failure.kind == .rateLimited)
    }

    /// Returns the delay before the next attempt in seconds; `nil` if the response or the refusal asks for more than ``maximumDelay``.
    open func delay(beforeRetrying request: Request) -> TimeInterval? {
        if let head = request.responseHead, let delay = RetryAfter(head)?.delay.seconds { return delay <= maximumDelay ? delay : nil }
        let backoff = Backoff(first: exponentialBackoffScale, factor: Double(exponentialBackoffBase), limit: maximumDelay)
            .delay(after: request.countedRetries, jitter: jitter())
        guard let refusal = request.refusal else { return backoff }
        let delay = refusal.retryAfter?.seconds ?? backoff
        return delay + (request.hasDeadline ? 0 : request.refusals.delay) <= maximumDelay ? delay : nil
    }

    /// The most refusals after which a request is tried again, so that they have an end where a subclass does not wait for them.
    private static let mostRefusals = 100
}

extension Request {
    /// The refusal of a policy with which the last attempt has ended; `nil` for another end.
    fileprivate var refusal: TransferFailure? {
        guard case CurlewError.transferFailed(let failure)? = delegate.ownError, failure.isRefusal else { return nil }
        return failure
    }

    fileprivate var refusals: RequestState.Refusals { driver.state.withLock { $0.refusals } }

    /// The retries so far, without those after refusals.
    fileprivate var countedRetries: UInt { driver.state.withLock { $0.countedRetries } }

    fileprivate var hasDeadline: Bool { driver.state.withLock { $0.deadline != nil } }
}

extension TransferFailure {
    /// Whether a policy has refused the transfer, so that nothing was sent.
    var isRefusal: Bool { kind == .circuitOpen || kind == .rateLimited || kind == .overloaded }
}

/// Retries only requests whose connection was lost, such as those sent on a stale connection.
open class ConnectionLostRetryPolicy: RetryPolicy, @unchecked Sendable {  // as its superclass
    /// Creates a policy; parameters as in ``RetryPolicy``.
    public init(
        retryLimit: UInt = RetryPolicy.defaultRetryLimit,
        exponentialBackoffBase: UInt = RetryPolicy.defaultExponentialBackoffBase,
        exponentialBackoffScale: TimeInterval = RetryPolicy.defaultExponentialBackoffScale,
        retryableHTTPMethods: Set<HTTPMethod> = RetryPolicy.defaultRetryableHTTPMethods
    ) {
        super.init(
            retryLimit: retryLimit, exponentialBackoffBase: exponentialBackoffBase, exponentialBackoffScale: exponentialBackoffScale,
            retryableHTTPMethods: retryableHTTPMethods, retryableHTTPStatusCodes: [], retryableFailureKinds: [.connectionLost])
    }

    /// As ``RetryPolicy/shouldRetry(_:dueTo:)``, and not after refusals.
    open override func shouldRetry(_ request: Request, dueTo error: any Error) -> Bool {
        request.refusal == nil && super.shouldRetry(request, dueTo: error)
    }
}

extension RequestInterceptor where Self == RetryPolicy {
    /// A policy with the defaults: `request(url, interceptor: .retryPolicy)`.
    public static var retryPolicy: RetryPolicy { RetryPolicy() }

    /// A policy with another limit of retries.
    public static func retryPolicy(retryLimit: UInt) -> RetryPolicy { RetryPolicy(retryLimit: retryLimit) }
}

extension RetryPolicy {
    /// An adapter that changes nothing.
    public var headerAdapter: (any HeaderAdapter)? { NoAdapter() }
}
