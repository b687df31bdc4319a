// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

/// How a stream of server-sent events works.
public struct EventStreamConfiguration: Sendable {
    /// When the stream goes on over a new connection after its end or a failure.
    public enum Reconnection: Sendable, Hashable {
        /// For GET only: another POST may not be what anybody wants.
        case automatic
        /// Whatever the method.
        case always
        /// Never: the end of the response is the end of the stream.
        case never
    }

    /// What happens to the stream.
    public enum Change: Sendable {
        /// A connection is made; the attempt is 1 for the first, and for the first after one that stood.
        case connecting(attempt: Int)
        /// The server has answered with a stream of events.
        case open(ResponseHead)
        /// The connection is over, and another will be made; `nil` after a proper end, ``EventStreamError/refused(_:)`` after a response
        /// that is no stream of events.
        case waiting(delay: Duration, error: (any Error)?)
    }

    /// When the stream goes on over a new connection; automatically by default.
    public var reconnection = Reconnection.automatic

    /// How long to wait before that, as long as the server does not say (`retry`); 3 seconds by default.
    ///
    /// After a failure at least 100 ms, after each in a row twice as long, up to ``maximumDelay``, and a random part of up to a half less. Where a refusal says how
    /// long to wait (`Retry-After`; RFC 9110, section 10.2.3), that counts instead; one that asks for longer ends the stream.
    public var reconnectionTime = Duration.seconds(3)

    /// The longest pause after failures, and the longest that a server may ask for; a minute by default.
    public var maximumDelay = Duration.seconds(60)

    /// How many attempts in a row may fail; `nil`, the default, for any number.
    public var reconnectionLimit: Int?

    /// The statuses after which another attempt is made; 408, 429, 500, 502, 503 and 504 by default.
    ///
    /// Others end the stream with an error, but for 204, which ends it (WHATWG HTML, section 9.2.3). Browsers go on after none of them.
    public var retryableStatusCodes: Set<Int> = [408, 429, 500, 502, 503, 504]

    /// The ID of the last event that was seen, which the server goes on behind; empty, the default, for none.
    public var lastEventID = ""

    /// The most bytes of an event's data, and of a line; 16 MiB by default.
    public var maximumEventSize = 16 << 20

    /// Is told what happens to the stream, by the task that reads it; `nil` by default.
    public var onChange: (@Sendable (Change) -> Void)?

    /// What the pauses are measured by.
    package var clock: any Clock<Duration> = ContinuousClock()
    /// Which part of its pause is waited, 0.5 to 1.
    package var jitter: @Sendable () -> Double = { .random(in: 0.5...1) }

    /// The shortest first pause after a failure.
    private static let leastDelay = Duration.milliseconds(100)

    /// Makes a configuration with the defaults.
    public init() {}

    /// The pause before the next connection; `nil` when the server asks for a longer one than is waited.
    func delay(serverTime: Duration?, failures: Int, refusal: ResponseHead?) -> Duration? {
        if let refusal, let delay = RetryAfter(refusal)?.delay {
            return delay <= maximumDelay / .seconds(1) ? .seconds(delay) : nil
        }
        let time = serverTime ?? reconnectionTime
        guard failures > 0 else { return min(time, maximumDelay) }
        // A server that has asked for no pause, and is gone, is not tried in a circle.
        let first = max(time, Self.leastDelay) / .seconds(1)
        // The exponent is limited as infinity is no duration, and nothing times infinity no number.
        let seconds = Double.minimum(first * pow(2, Double(min(failures - 1, 60))), maximumDelay / .seconds(1))
        return .seconds(Double.maximum(seconds, 0) * Double.minimum(Double.maximum(jitter(), 0), 1))
    }
}
