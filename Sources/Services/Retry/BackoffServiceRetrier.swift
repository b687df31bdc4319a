// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Retries requests with growing delays (backoff), until a delay would exceed the limit.
public final class BackoffServiceRetrier: ServiceRetrier {
    /// How the delays grow.
    public struct Strategy: Sendable {
        let wait: @Sendable (_ retry: Int) -> Duration

        /// Makes a strategy of a closure that returns the delay before a retry, numbered from 0.
        public init(_ wait: @escaping @Sendable (_ retry: Int) -> Duration) {
            self.wait = wait
        }

        /// Delays of 1, 2, 4, 8… seconds.
        public static let exponentialBinary = Strategy { .seconds(Int64(1) << Int64(min($0, 62))) }

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
    ///   - maxBackoff: a request whose delay would be this long or longer is not retried; 600 seconds by default.
    ///   - clock: measures the delays.
    ///   - retryCondition: whether a request is retried; by default after ``ServiceError/noConnection``, ``ServiceError/timeout``,
    ///     ``ServiceError/unknown(_:)`` and status 429 (RFC 6585, section 4).
    public static func factory(
        strategy: Strategy = .exponentialBinary, maxBackoff: Duration = .seconds(600), clock: any Clock<Duration> = ContinuousClock(),
        retryCondition: @escaping RetryCondition = { isWorthARetry($1) }
    ) -> any ServiceRetrierFactory {
        AnyServiceRetrierFactory { _ in
            BackoffServiceRetrier(strategy: strategy, maxBackoff: maxBackoff, clock: clock, retryCondition: retryCondition)
        }
    }

    /// Returns whether the default condition retries after an error.
    public static func isWorthARetry(_ error: ServiceError) -> Bool {
        switch error {
        case .noConnection, .timeout, .unknown, .requestFailed(statusCode: 429, _): true
        default: false
        }
    }

    /// `true`.
    public var allowsMultipleRetries: Bool { true }

    /// Waits for the delay and returns `true`, unless the condition rejects the error or the delay is too long. Cancelling the request ends
    /// the delay.
    public func retry<Request: ServiceRequest>(_ request: Request, failingWith error: ServiceError) async -> Bool {
        guard retryCondition(request, error) else { return false }
        let wait = strategy.wait(
            retries.withLock { retries in
                defer { retries += 1 }
                return retries
            })
        guard wait < maxBackoff else { return false }
        do {
            try await clock.sleep(for: wait)
            return true
        } catch {
            return false
        }
    }
}
