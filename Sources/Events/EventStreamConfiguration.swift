// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

/// The configuration of a stream of server-sent events.
public struct EventStreamConfiguration: Sendable {
    /// When the stream reconnects after a response has ended or failed.
    public enum Reconnection: Sendable, Hashable {
        /// For GET only, since repeating another method may have side effects.
        case automatic
        /// For every method.
        case always
        /// Never: the stream ends with the response.
        case never
    }

    /// A change of the stream's state.
    ///
    /// Later versions may add cases, so a `switch` needs a `default`.
    public enum Change: Sendable {
        /// A connection is being made; the attempt is 1 for the first one, and for the first after a connection that was open.
        case connecting(attempt: Int)
        /// The server has responded with a stream of events. Reported with the first bytes of the stream, or its end.
        case open(ResponseHead)
        /// The connection has ended, and the stream will reconnect after the delay. The error is `nil` after a complete response, and
        /// ``EventStreamError/rejected(_:)`` after a response that is not a stream of events.
        case waiting(delay: Duration, error: (any Error)?)
    }

    /// When the stream reconnects; automatically by default.
    public var reconnection = Reconnection.automatic

    /// The delay before reconnecting, unless the server sets one (`retry`); 3 seconds by default.
    ///
    /// After a failure it is at least 100 ms and doubles with each further one in a row (exponential backoff), up to ``maximumDelay``;
    /// random jitter then shortens it by up to half. If a rejecting response has a `Retry-After` (RFC 9110, section 10.2.3), that applies
    /// instead; one above ``maximumDelay`` ends the stream.
    public var reconnectionTime = Duration.seconds(3)

    /// The maximum delay, both of the backoff and of what a server may request; 60 seconds by default.
    public var maximumDelay = Duration.seconds(60)

    /// The maximum number of failed attempts in a row; `nil`, the default, for no limit.
    public var reconnectionLimit: Int?

    /// The statuses after which the stream reconnects; 408, 429, 500, 502, 503 and 504 by default.
    ///
    /// Others end the stream with an error, except for 204, which ends it without one (WHATWG HTML, section 9.2.3). Browsers do not
    /// reconnect after any of them.
    public var retryableStatusCodes: Set<Int> = RetryPolicy.defaultRetryableHTTPStatusCodes

    /// The ID of the last event received, after which the server resumes; empty, the default, for none.
    public var lastEventID = ""

    /// The maximum size of an event's data, and of a line, in bytes; 16 MiB by default.
    public var maximumEventSize = 16 << 20

    /// Called with the changes of the stream's state, by the task that iterates; `nil` by default.
    public var onChange: (@Sendable (Change) -> Void)?

    /// The clock for delays.
    package var clock: any Clock<Duration> = ContinuousClock()
    /// The fraction of a delay that is waited, 0.5 to 1.
    package var jitter: @Sendable () -> Double = { .random(in: 0.5...1) }

    /// The minimum first delay after a failure.
    private static let minimumDelay = Duration.milliseconds(100)

    /// Makes a configuration with the defaults.
    public init() {}

    /// Returns the delay before the next connection; `nil` if the server requests one above the maximum.
    func delay(serverTime: Duration?, failures: Int, rejection: ResponseHead?) -> Duration? {
        if let rejection, let asked = RetryAfter(rejection) { return asked.delay(upTo: maximumDelay) }
        let time = serverTime ?? reconnectionTime
        guard failures > 0 else { return min(time, maximumDelay) }
        // The minimum avoids a busy loop when a server has set a delay of zero and becomes unreachable.
        let backoff = Backoff(first: max(time, Self.minimumDelay).seconds, limit: maximumDelay.seconds)
        return .seconds(backoff.delay(after: failures - 1, jitter: jitter()))
    }
}
