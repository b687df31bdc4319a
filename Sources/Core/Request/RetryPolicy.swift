// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Tries requests again after failures that may pass: lost connections, timeouts, servers that are busy.
///
/// Give it to a session as its ``SessionManager/retrier``, or to single requests as their interceptor. A status is a failure only to a
/// request that validates it, as by ``DataRequest/validate()``: retriers are asked about errors only. A request that can't be sent again,
/// for its body is a stream that was read, is never tried again.
///
/// The pause before a retry is random, between nothing and a limit that grows exponentially: clients that failed together do not come
/// back together. Where the response says how long to wait (`Retry-After`; RFC 9110, section 10.2.3), that counts instead.
open class RetryPolicy: RequestInterceptor, @unchecked Sendable {  // has constants only
    /// How often a request is tried again by default: twice.
    public static let defaultRetryLimit: UInt = 2
    /// By which factor the limit of the pause grows by default: 2.
    public static let defaultExponentialBackoffBase: UInt = 2
    /// The limit of the first pause by default: half a second.
    public static let defaultExponentialBackoffScale: TimeInterval = 0.5
    /// The longest pause by default: a minute.
    public static let defaultMaximumDelay: TimeInterval = 60
    /// The methods by default: those that are idempotent (RFC 9110, section 9.2.2), as nobody knows whether the failed attempt counted.
    public static let defaultRetryableHTTPMethods: Set<HTTPMethod> = [.delete, .get, .head, .options, .put, .query, .trace]
    /// The statuses by default: 408, 429, 500, 502, 503 and 504. 429 (RFC 6585, section 4) says itself that the request was not served,
    /// and often when to come back.
    public static let defaultRetryableHTTPStatusCodes: Set<Int> = [408, 429, 500, 502, 503, 504]
    /// The kinds of failed transfers by default: host not found, not reached, or not in time; connection lost.
    public static let defaultRetryableFailureKinds: Set<TransferFailure.Kind> = [
        .nameResolution, .connect, .secureConnection, .connectTimeout, .firstByteTimeout, .idleTimeout, .totalTimeout, .queueTimeout,
        .connectionLost,
    ]

    /// How often a request is tried again at the most.
    public let retryLimit: UInt
    /// By which factor the limit of the pause grows with each retry.
    public let exponentialBackoffBase: UInt
    /// The limit of the first pause, in seconds.
    public let exponentialBackoffScale: TimeInterval
    /// The longest pause in seconds. A response that asks for a longer one ends the request.
    public let maximumDelay: TimeInterval
    /// The methods of requests that are tried again.
    public let retryableHTTPMethods: Set<HTTPMethod>
    /// The statuses after which they are.
    public let retryableHTTPStatusCodes: Set<Int>
    /// The kinds of failed transfers after which they are.
    public let retryableFailureKinds: Set<TransferFailure.Kind>
    private let jitter: @Sendable () -> Double

    /// Makes a policy; every parameter has the default of that name.
    ///
    /// - Parameters:
    ///   - retryLimit: how often a request is tried again; 0 for never.
    ///   - exponentialBackoffBase: the factor by which the limit of the pause grows; below 1 counts as 1.
    ///   - exponentialBackoffScale: the limit of the first pause in seconds; below 0 counts as 0.
    ///   - maximumDelay: the longest pause in seconds; below 0 counts as 0.
    ///   - retryableHTTPMethods: the methods of requests that are tried again.
    ///   - retryableHTTPStatusCodes: the statuses after which they are.
    ///   - retryableFailureKinds: the kinds of failed transfers after which they are.
    ///   - jitter: which part of its limit a pause takes, 0 to 1; random by default. Any thread.
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

    /// Answers by ``shouldRetry(_:dueTo:)`` and ``delay(beforeRetrying:)``.
    open func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        guard request.retryCount < retryLimit, shouldRetry(request, dueTo: error), let delay = delay(beforeRetrying: request) else {
            return completion(false, 0)
        }
        completion(true, delay)
    }

    /// Whether a request may be tried again after such an error, as far as its method, its status and the kind of the failure say.
    open func shouldRetry(_ request: Request, dueTo error: any Error) -> Bool {
        let method = request.request?.httpMethod.flatMap { HTTPMethod(rawValue: $0) }
        guard let method, retryableHTTPMethods.contains(method) else { return false }
        if let status = request.responseHead?.statusCode, retryableHTTPStatusCodes.contains(status) { return true }
        // Sessions may hand out errors in another vocabulary.
        let cause = error is CurlewError ? error : request.delegate.ownError
        guard case CurlewError.transferFailed(let failure)? = cause else { return false }
        return retryableFailureKinds.contains(failure.kind)
    }

    /// How many seconds to wait before the next attempt; `nil` when the server asks for more than ``maximumDelay``.
    open func delay(beforeRetrying request: Request) -> TimeInterval? {
        if let head = request.responseHead, let delay = RetryAfter(head)?.delay { return delay <= maximumDelay ? delay : nil }
        let limit = min(pow(Double(exponentialBackoffBase), Double(request.retryCount)) * exponentialBackoffScale, maximumDelay)
        return limit * min(max(jitter(), 0), 1)
    }
}

/// Tries requests again whose connection was lost, and nothing else.
///
/// For connections that were kept open and that the server had closed when they were used again.
open class ConnectionLostRetryPolicy: RetryPolicy, @unchecked Sendable {  // as its superclass
    /// Makes a policy; parameters as in ``RetryPolicy``.
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
}
