// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// Retries requests with growing delays (backoff), until a delay would exceed the limit.
///
/// By default those that the server may have processed without harm, idempotent ones (RFC 9110, section 9.2.2) and those with a field
/// `Idempotency-Key`, after errors that may pass: ``isWorthARetry(_:)``. A `Retry-After` in the response (RFC 9110, section 10.2.3)
/// replaces the delay; the ``TransferFailure/retryAfter`` of a refusal does if it is longer, where the condition retries after refusals.
///
/// Its attempts are requests of the session, each of which that session's own retrier, or the interceptor of
/// ``HTTPService/requestOptions``, has retried before: use this one or a ``/CurlewCore/RetryPolicy``, not both.
public final class BackoffServiceRetrier: ServiceRetrier {
    /// How the delays grow.
    public struct Strategy: Sendable {
        let wait: @Sendable (_ retry: Int) -> Duration

        /// Makes a strategy of a closure that returns the delay before a retry, numbered from 0.
        public init(_ wait: @escaping @Sendable (_ retry: Int) -> Duration) {
            self.wait = wait
        }

        /// Delays of 1, 2, 4, 8… seconds.
        public static let exponentialBinary = Strategy { .seconds(Backoff(first: 1, limit: 1e18).delay(after: $0)) }

        /// Returns the delays of another strategy, each multiplied by a random factor from 0 to 1 (full jitter), so that clients that
        /// failed together don't retry together.
        public static func jittered(_ strategy: Strategy = .exponentialBinary) -> Strategy {
            Strategy { strategy.wait($0) * Double.random(in: 0...1) }
        }
    }

    /// Decides whether a failed request is retried.
    public typealias RetryCondition = @Sendable (_ request: any ServiceRequest, _ error: ServiceError) -> Bool

    private let strategy: Strategy
    private let maxBackoff: Duration
    private let retryCondition: RetryCondition
    private let clock: any Clock<Duration>
    private let retries = Lock(0)

    /// The delay that the response of the failed attempt has asked for; `nil` for none.
    @TaskLocal static var retryAfter: Duration?

    init(strategy: Strategy, maxBackoff: Duration, clock: any Clock<Duration>, retryCondition: @escaping RetryCondition) {
        self.strategy = strategy
        self.maxBackoff = maxBackoff
        self.clock = clock
        self.retryCondition = retryCondition
    }

    /// Returns a factory of such retriers.
    ///
    /// - Parameters:
    ///   - strategy: how the delays grow; 1, 2, 4… seconds by default.
    ///   - maxBackoff: a request whose delay, the backoff's or that of `Retry-After`, would be this long or longer is not retried; 600
    ///     seconds by default.
    ///   - clock: measures the delays.
    ///   - retryCondition: whether a request is retried; by default if ``mayRepeat(_:)`` and ``isWorthARetry(_:)``.
    public static func factory(
        strategy: Strategy = .exponentialBinary, maxBackoff: Duration = .seconds(600), clock: any Clock<Duration> = ContinuousClock(),
        retryCondition: @escaping RetryCondition = { mayRepeat($0) && isWorthARetry($1) }
    ) -> any ServiceRetrierFactory {
        AnyServiceRetrierFactory { _ in
            BackoffServiceRetrier(strategy: strategy, maxBackoff: maxBackoff, clock: clock, retryCondition: retryCondition)
        }
    }

    /// Returns whether a failure may pass, so that the default condition retries after it.
    ///
    /// `true` for ``ServiceError/noConnection``, ``ServiceError/timeout``, the statuses 408, 429, 500, 502, 503 and 504
    /// (``/CurlewCore/RetryPolicy/defaultRetryableHTTPStatusCodes``), and a cause of ``ServiceError/unknown(_:)`` that is a failed TLS
    /// handshake, or an error of the program's own, such as one of ``HTTPService/asyncHeader``. `false` for a response that could not be
    /// decoded (``ServiceError/decodingFailed``, a `DecodingError`), as it would be the same again: a ``ServiceRequest/decode(_:)`` that
    /// throws its own errors should throw the former in their place. Also `false` for a host without an address, a file that can't be
    /// read, and an ``/CurlewCore/AuthenticationError``.
    public static func isWorthARetry(_ error: ServiceError) -> Bool {
        switch error {
        case .noConnection, .timeout: true
        case .requestFailed(let status, _, _): RetryPolicy.defaultRetryableHTTPStatusCodes.contains(status)
        case .unknown(CurlewError.transferFailed(let failure)): RetryPolicy.defaultRetryableFailureKinds.contains(failure.kind)
        case .unknown(let cause):
            !(cause is CurlewError || cause is AuthenticationError || cause is DecodingError || cause is EncodingError
                || cause is CocoaError)
        default: false
        }
    }

    /// Returns whether the default condition sends a request again: whether its method is idempotent, or it has a field `Idempotency-Key`.
    public static func mayRepeat(_ request: any ServiceRequest) -> Bool {
        request.method.isIdempotent || request.header["Idempotency-Key"] != nil
    }

    /// `true`: the retrier is asked about failures of retries too.
    public var allowsMultipleRetries: Bool { true }

    /// Waits for the delay and returns `true`, unless the condition rejects the error or the delay is too long. Cancelling the request ends
    /// the delay.
    public func retry<Request: ServiceRequest>(_ request: Request, failingWith error: ServiceError) async -> Bool {
        guard retryCondition(request, error) else { return false }
        let backoff = strategy.wait(
            retries.withLock { retries in
                defer { retries += 1 }
                return retries
            })
        let wait = Self.retryAfter ?? max(backoff, error.refusalDelay)
        guard wait < maxBackoff else { return false }
        do {
            try await clock.sleep(for: wait)
            return true
        } catch {
            return false
        }
    }
}

extension ServiceError {
    /// The time after which a policy that has refused the request would send it; zero if it does not say.
    fileprivate var refusalDelay: Duration {
        if case .unknown(CurlewError.transferFailed(let failure)) = self { failure.retryAfter ?? .zero } else { .zero }
    }
}
