// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// When a connection that was lost, or did not come about, is made again.
///
/// The pause before an attempt is random, between nothing and a limit that grows exponentially with each failed attempt in a row: clients
/// that lost their server together do not come back together. Where a refusal says how long to wait (`Retry-After`; RFC 9110, section
/// 10.2.3), that counts instead; one that asks for longer than the longest pause ends the WebSocket. Messages that wait to be sent are sent
/// on the new connection; those that were handed to the network before may be lost.
public struct WebSocketReconnection: Sendable {
    /// Never.
    public static let never = WebSocketReconnection(limit: 0)

    /// How many attempts in a row may fail; `nil` for any number.
    public var limit: Int?
    /// The limit of the first pause.
    public var firstDelay: Duration
    /// By which factor that limit grows with each attempt; below 1 counts as 1.
    public var factor: Double
    /// The longest pause.
    public var maximumDelay: Duration
    /// Whether to try again after a failure; a closing by the server comes as ``WebSocketError/closed(_:)``. On no certain thread.
    public var shouldReconnect: @Sendable (any Error) -> Bool
    /// Which part of its limit a pause takes, 0 to 1; random by default.
    public var jitter: @Sendable () -> Double = { .random(in: 0...1) }

    /// Makes a policy.
    ///
    /// - Parameters:
    ///   - limit: how many attempts in a row may fail; 10 by default, `nil` for any number.
    ///   - firstDelay: the limit of the first pause; half a second by default.
    ///   - factor: by which that grows with each attempt; 2 by default.
    ///   - maximumDelay: the longest pause; a minute by default.
    ///   - shouldReconnect: whether to try again after a failure; ``isTransient(_:)`` by default.
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

    /// Whether a failure may pass: a host that was not found or reached, a lost connection, a timeout, a server that goes down, restarts, is
    /// busy (1001, 1006, 1011 to 1014; statuses 408, 429, 500, 502, 503, 504).
    public static func isTransient(_ error: any Error) -> Bool {
        switch error {
        case WebSocketError.timedOut: return true
        case WebSocketError.closed(let closure):
            let codes: [WebSocketCloseCode] = [
                .goingAway, .abnormalClosure, .internalError, .serviceRestart, .tryAgainLater, .badGateway,
            ]
            return codes.contains(closure.code)
        case WebSocketError.handshakeRefused(let refusal):
            return [408, 429, 500, 502, 503, 504].contains(refusal.response.statusCode)
        case CurlewError.transferFailed(let failure):
            return failure.isTimeout || [.nameResolution, .connect, .secureConnection, .connectionLost].contains(failure.kind)
        default: return false
        }
    }

    /// The pause before the next attempt, when `attempts` in a row have failed; `nil` for no further one.
    func delay(after error: any Error, attempts: Int) -> Duration? {
        if let limit, attempts >= limit { return nil }
        guard shouldReconnect(error) else { return nil }
        if case WebSocketError.handshakeRefused(let refusal) = error, let delay = RetryAfter(refusal.response)?.delay {
            return delay <= maximumDelay / .seconds(1) ? .seconds(delay) : nil
        }
        // Infinity is no duration, and nothing times infinity no number: of those, these functions take the other one.
        let growth = Double.minimum(pow(Double.maximum(factor, 1), Double(attempts)), 1e18)
        let limit = Double.minimum(firstDelay / .seconds(1) * growth, maximumDelay / .seconds(1))
        return .seconds(Double.maximum(limit, 0) * Double.minimum(Double.maximum(jitter(), 0), 1))
    }
}
