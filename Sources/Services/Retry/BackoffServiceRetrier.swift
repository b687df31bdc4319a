// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Tries a request again after pauses that grow, until they would be too long.
public final class BackoffServiceRetrier: ServiceRetrier {
    /// How the pauses grow.
    public struct Strategy: Sendable {
        let wait: @Sendable (_ retry: Int) -> Duration

        /// Makes a strategy of a closure, which gives the pause before a retry; the first is 0.
        public init(_ wait: @escaping @Sendable (_ retry: Int) -> Duration) {
            self.wait = wait
        }

        /// 1, 2, 4, 8… seconds.
        public static let exponentialBinary = Strategy { .seconds(Int64(1) << Int64(min($0, 62))) }

        /// The pauses of another strategy, each cut to a random part of it: clients that failed together don't come back together.
        public static func jittered(_ strategy: Strategy = .exponentialBinary) -> Strategy {
            Strategy { strategy.wait($0) * Double.random(in: 0...1) }
        }
    }

    /// Decides whether a request is worth another attempt.
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

    /// A factory of such retriers.
    ///
    /// - Parameters:
    ///   - strategy: how the pauses grow; 1, 2, 4… seconds by default.
    ///   - maxBackoff: a request whose pause would be this long or longer is not tried again; 600 seconds by default.
    ///   - clock: measures the pauses.
    ///   - retryCondition: whether a request is worth another attempt; by default after ``ServiceError/noConnection``,
    ///     ``ServiceError/timeout``, ``ServiceError/unknown(_:)`` and the status 429 (RFC 6585, section 4).
    public static func factory(
        strategy: Strategy = .exponentialBinary, maxBackoff: Duration = .seconds(600), clock: any Clock<Duration> = ContinuousClock(),
        retryCondition: @escaping RetryCondition = { isWorthARetry($1) }
    ) -> any ServiceRetrierFactory {
        AnyServiceRetrierFactory { _ in
            BackoffServiceRetrier(strategy: strategy, maxBackoff: maxBackoff, clock: clock, retryCondition: retryCondition)
        }
    }

    /// What the default condition says.
    public static func isWorthARetry(_ error: ServiceError) -> Bool {
        switch error {
        case .noConnection, .timeout, .unknown, .requestFailed(statusCode: 429, _): true
        default: false
        }
    }

    /// `true`.
    public var allowsMultipleRetries: Bool { true }

    /// Waits, unless the condition says no or the pause would be too long. Cancelling the request ends the pause.
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
