// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// Stops sending requests to a group that fails, and tries again after a pause.
///
/// ```swift
/// configuration.use(Resilience(breaker: CircuitBreaker()))
/// ```
///
/// Closed, it sends everything and counts. When the rate of failures or of slow calls in the window reaches its limit, it opens: requests
/// fail at once with ``TransferFailure/Kind/circuitOpen``, and ``TransferFailure/retryAfter`` is the time until the next trial. After
/// ``openDuration`` a few trials are sent (half-open), which decide whether it closes or opens again.
///
/// The defaults are resilience4j's, but for ``jitter``, which it does not have.
public struct CircuitBreaker: Sendable {
    /// What a breaker does.
    public enum Phase: String, Sendable, Hashable, Codable {
        /// Requests are sent.
        case closed
        /// Requests fail at once.
        case open
        /// A few trials are sent, other requests fail at once.
        case halfOpen = "half_open"
    }

    /// The calls that are counted.
    public enum Window: Sendable, Hashable {
        /// This number of the last calls; 1 or more.
        case count(Int)
        /// The calls of this last period, in steps of a tenth of it.
        case time(Duration)
    }

    /// How a call counts.
    public enum Verdict: Sendable, Hashable {
        /// As a success.
        case success
        /// As a failure.
        case failure
        /// Not at all, as a call that was cancelled.
        case ignored
    }

    /// The breaker's name, which events have; empty by default.
    public var name = ""
    /// What is counted together: the requests to an origin by default.
    public var group = PolicyGroup.origin
    /// The rate of failures at which the breaker opens, above 0 to 1: 0.5 by default.
    public var failureRate = 0.5
    /// The rate of slow calls at which the breaker opens, above 0 to 1: 1 by default.
    public var slowCallRate = 1.0
    /// The duration from which on a call is slow: a minute by default.
    public var slowCallDuration = Duration.seconds(60)
    /// The calls before the rates count: 100 by default. At most the size of a window of counts, which is used then.
    public var minimumCalls = 100
    /// The calls that are counted: the last 100 by default.
    public var window = Window.count(100)
    /// How long the breaker stays open: a minute by default.
    public var openDuration = Duration.seconds(60)
    /// The part of ``openDuration`` by which it is lengthened at random, 0 to 1, so that clients which opened together do not try together:
    /// 0.2 by default.
    public var jitter = 0.2
    /// The trials that decide whether the breaker closes: 10 by default.
    public var trialCalls = 10
    /// How a call counts; by default ``defaultVerdict(_:)``. Called on the transport's thread: must not block.
    public var classify: @Sendable (PolicyOutcome) -> Verdict = { CircuitBreaker.defaultVerdict($0) }
    /// Publishes what this breaker has found to other processes, and delivers what theirs have; `nil`, the default, for neither. Needs a
    /// ``name``.
    public var shared: (any SharedPolicyState)?

    /// Creates a breaker with the defaults.
    public init() {}

    /// Creates a breaker; parameters are the properties of their names.
    public init(
        name: String = "", group: PolicyGroup = .origin, failureRate: Double = 0.5, minimumCalls: Int = 100, window: Window = .count(100),
        openDuration: Duration = .seconds(60), trialCalls: Int = 10
    ) {
        self.name = name
        self.group = group
        self.failureRate = failureRate
        self.minimumCalls = minimumCalls
        self.window = window
        self.openDuration = openDuration
        self.trialCalls = trialCalls
    }

    /// The default classification: transfers that failed for reasons of the host or the way to it, and the statuses 500 to 599 but 501, are
    /// failures. Cancelled transfers and refusals of other policies are ignored; 429 is a success, as a ``RateLimiter`` handles it.
    public static func defaultVerdict(_ outcome: PolicyOutcome) -> Verdict {
        if let error = outcome.error { return outcome.isFailureOfHost ? .failure : error is CurlewError ? .ignored : .failure }
        guard let status = outcome.statusCode else { return .ignored }
        return status < 500 || status == 501 ? .success : .failure
    }
}

/// The state of a ``CircuitBreaker`` for one group: a pure value, whose time is that since an arbitrary start.
public struct CircuitBreakerState: Sendable {
    /// Whether a call may be made.
    public enum Admission: Sendable, Hashable {
        /// It may; the ticket is passed with its result.
        case admitted(Ticket)
        /// It may not; the time until the next trial, `nil` while trials are in flight.
        case refused(retryAfter: Duration?)
    }

    /// A call that was admitted.
    public struct Ticket: Sendable, Hashable {
        let generation: UInt32
        let isTrial: Bool
    }

    /// A change of the phase.
    public struct Change: Sendable, Hashable {
        /// The phase before.
        public let from: CircuitBreaker.Phase
        /// The phase after.
        public let to: CircuitBreaker.Phase
    }

    /// The phase; a breaker that is open stays so until a call is made after its time.
    public private(set) var phase = CircuitBreaker.Phase.closed
    /// When an open breaker lets a trial through.
    public private(set) var opensUntil = Duration.zero
    private let settings: Settings
    private var window: CallWindow
    private var generation: UInt32 = 0
    private var trialsBegun = 0
    private var trials = CallCounts()

    private struct Settings: Sendable {
        let failureRate, slowCallRate, jitter: Double
        let slowCallDuration, openDuration: Duration
        let minimumCalls: UInt32
        let trialCalls: Int
    }

    /// Creates the state of a breaker, which is closed.
    public init(_ breaker: CircuitBreaker) {
        window = CallWindow(breaker.window)
        // NaN, which `min` and `max` pass on, counts as the least.
        func clamped(_ value: Double, from least: Double) -> Double { Double.minimum(Double.maximum(value, least), 1) }
        settings = Settings(
            failureRate: clamped(breaker.failureRate, from: 0.000_001), slowCallRate: clamped(breaker.slowCallRate, from: 0.000_001),
            jitter: clamped(breaker.jitter, from: 0), slowCallDuration: breaker.slowCallDuration,
            openDuration: max(breaker.openDuration, .zero),
            minimumCalls: UInt32(clamping: max(min(breaker.minimumCalls, window.capacity ?? .max), 1)),
            trialCalls: max(breaker.trialCalls, 1))
    }

    /// Asks whether a call may be made. An open breaker whose time has passed becomes half-open.
    public mutating func admit(at now: Duration) -> (admission: Admission, change: Change?) {
        switch phase {
        case .closed: return (.admitted(Ticket(generation: generation, isTrial: false)), nil)
        case .open:
            guard now >= opensUntil else { return (.refused(retryAfter: opensUntil - now), nil) }
            let change = enter(.halfOpen)
            trialsBegun = 1
            return (.admitted(Ticket(generation: generation, isTrial: true)), change)
        case .halfOpen:
            guard trialsBegun < settings.trialCalls else { return (.refused(retryAfter: nil), nil) }
            trialsBegun += 1
            return (.admitted(Ticket(generation: generation, isTrial: true)), nil)
        }
    }

    /// Whether a call that was admitted, and has waited since, is refused now; its ticket is given back then.
    public mutating func refuses(_ ticket: Ticket, at now: Duration) -> Duration? {
        guard ticket.generation != generation, phase == .open, now < opensUntil else { return nil }
        return opensUntil - now
    }

    /// Counts the result of a call. One that was admitted in an earlier phase does not count.
    ///
    /// - Parameters:
    ///   - verdict: how it counts; ``CircuitBreaker/Verdict/ignored`` also for an admitted call that was not made.
    ///   - ticket: from its admission.
    ///   - duration: how long it took.
    ///   - now: the time.
    ///   - random: 0 to 1, for the jitter.
    public mutating func record(
        _ verdict: CircuitBreaker.Verdict, _ ticket: Ticket, took duration: Duration, at now: Duration, random: Double
    ) -> Change? {
        guard ticket.generation == generation else { return nil }
        guard verdict != .ignored else {
            if ticket.isTrial { trialsBegun -= 1 }
            return nil
        }
        let call = Call(isFailure: verdict == .failure, isSlow: duration >= settings.slowCallDuration)
        if phase == .halfOpen {
            trials.add(call)
            guard trials.total >= settings.trialCalls else { return nil }
            return reachesLimit(trials) ? open(at: now, random: random) : enter(.closed)
        }
        window.add(call, at: now)
        guard window.counts.total >= settings.minimumCalls, call.isFailure || call.isSlow, reachesLimit(window.counts) else { return nil }
        return open(at: now, random: random)
    }

    /// Opens for a duration, because another process has found the group to fail; an open breaker stays as it is.
    public mutating func open(for duration: Duration, at now: Duration) -> Change? {
        guard phase != .open, duration > .zero else { return nil }
        let change = enter(.open)
        opensUntil = now + duration
        return change
    }

    /// Lets the next call through as a trial, because another process has found the group to have recovered.
    public mutating func endPause(at now: Duration) {
        if phase == .open { opensUntil = min(opensUntil, now) }
    }

    private func reachesLimit(_ counts: CallCounts) -> Bool {
        let total = Double(counts.total)
        return Double(counts.failures) >= settings.failureRate * total || Double(counts.slow) >= settings.slowCallRate * total
    }

    private mutating func open(at now: Duration, random: Double) -> Change {
        let change = enter(.open)
        opensUntil = now + settings.openDuration * (1 + settings.jitter * Double.minimum(Double.maximum(random, 0), 1))
        return change
    }

    private mutating func enter(_ next: CircuitBreaker.Phase) -> Change {
        defer { phase = next }
        generation &+= 1
        trialsBegun = 0
        trials = CallCounts()
        if next == .closed { window.removeAll() }
        return Change(from: phase, to: next)
    }
}
