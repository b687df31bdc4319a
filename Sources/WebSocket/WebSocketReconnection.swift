// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// Whether and how a connection that was lost, or could not be established, is re-established.
///
/// The delay before an attempt is random, between 0 and a limit that grows exponentially with each consecutive failure (exponential backoff
/// with full jitter), so that clients that lost their server together don't reconnect together. A rejection's `Retry-After` (RFC 9110,
/// section 10.2.3) replaces the delay; one longer than the maximum delay ends the WebSocket. Queued messages are sent on the new
/// connection; messages that were in flight may be lost.
public struct WebSocketReconnection: Sendable {
    /// Never reconnects.
    public static let never = WebSocketReconnection(limit: 0)

    /// The maximum number of consecutive failed attempts; `nil` for no limit.
    public var limit: Int?
    /// The upper limit of the first delay.
    public var firstDelay: Duration
    /// The factor by which that limit grows with each attempt; values below 1 count as 1.
    public var factor: Double
    /// The maximum delay.
    public var maximumDelay: Duration
    /// Decides whether to reconnect after an error; a closure by the server is passed as ``WebSocketError/closed(_:)``. May be called on
    /// any thread.
    public var shouldReconnect: @Sendable (any Error) -> Bool
    /// Whether a rejection's `Retry-After` replaces the delay; not where what follows it is no repetition.
    package var heedsRetryAfter = true
    /// The fraction of its limit that a delay takes, 0 to 1; random by default.
    package var jitter: @Sendable () -> Double = { .random(in: 0...1) }

    /// Makes a reconnection policy.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of consecutive failed attempts; 10 by default, `nil` for no limit.
    ///   - firstDelay: the upper limit of the first delay; 0.5 seconds by default.
    ///   - factor: the factor by which that limit grows with each attempt; 2 by default.
    ///   - maximumDelay: the maximum delay; 60 seconds by default.
    ///   - shouldReconnect: decides whether to reconnect after an error; ``isTransient(_:)`` by default.
    public init(
        limit: Int? = 10, firstDelay: Duration = .milliseconds(500), factor: Double = 2, maximumDelay: Duration = .seconds(60),
        shouldReconnect: @escaping @Sendable (any Error) -> Bool = { WebSocketReconnection.isTransient($0) }
    ) {
        self.limit = limit
        self.firstDelay = firstDelay
        self.factor = factor
        self.maximumDelay = maximumDelay
        self.shouldReconnect = shouldReconnect
    }

    /// Returns whether an error may be transient: a host that could not be resolved or reached, a lost connection, a timeout, a server that
    /// shuts down, restarts or is overloaded (close codes 1001, 1006, 1011 to 1014; status codes 408, 429, 500, 502, 503, 504).
    public static func isTransient(_ error: any Error) -> Bool {
        switch error {
        case WebSocketError.timedOut: return true
        case WebSocketError.closed(let closure):
            let codes: [WebSocketCloseCode] = [
                .goingAway, .abnormalClosure, .internalError, .serviceRestart, .tryAgainLater, .badGateway,
            ]
            return codes.contains(closure.code)
        case WebSocketError.handshakeRejected(let rejection):
            return RetryPolicy.defaultRetryableHTTPStatusCodes.contains(rejection.response.statusCode)
        case CurlewError.transferFailed(let failure):
            return failure.isTimeout || [.nameResolution, .connect, .secureConnection, .connectionLost].contains(failure.kind)
        default: return false
        }
    }

    /// Returns the delay before the next attempt after `attempts` consecutive failures; `nil` for no further attempt.
    func delay(after error: any Error, attempts: Int) -> Duration? {
        if let limit, attempts >= limit { return nil }
        guard shouldReconnect(error) else { return nil }
        if heedsRetryAfter, case WebSocketError.handshakeRejected(let rejection) = error, let asked = RetryAfter(rejection.response) {
            return asked.delay(upTo: maximumDelay)
        }
        let backoff = Backoff(first: firstDelay.seconds, factor: Double.maximum(factor, 1), limit: maximumDelay.seconds)
        return .seconds(backoff.delay(after: attempts, jitter: jitter()))
    }
}
