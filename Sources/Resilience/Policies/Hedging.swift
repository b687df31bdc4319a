// SPDX-License-Identifier: Apache-2.0

/// Sends an idempotent request a second time when its response is late, and uses the response that is received first.
///
/// ```swift
/// configuration.use(Resilience(hedging: Hedging()))
/// ```
///
/// Only requests with an idempotent method (RFC 9110, section 9.2.2), and without a body or with one in memory, of which the response's head
/// was not received when the delay has passed. The other attempt is cancelled then. At most ``extra`` of the requests are sent twice, counted
/// over 10 seconds, so that a service that has become slow does not get double its load. A second attempt is sent only if the rate limiter
/// and the concurrency limiter have room for it at once.
public struct Hedging: Sendable {
    /// When the second attempt is sent.
    public enum Delay: Sendable, Hashable {
        /// After that time.
        case fixed(Duration)
        /// After this part of the group's requests, above 0 and below 1, has its response's head; not before 20 of them have. What counts
        /// for all requests in flight is what the last one of the group has found when it was sent.
        case percentile(Double)
    }

    /// The policy's name, which events have; empty by default.
    public var name = ""
    /// What is measured together: the requests to an origin by default.
    public var group = PolicyGroup.origin
    /// When the second attempt is sent; after the 95th percentile by default.
    public var delay = Delay.percentile(0.95)
    /// The part of the requests that may be sent twice, 0 to 1; 0.05 by default.
    public var extra = 0.05

    /// Creates a policy.
    ///
    /// - Parameters:
    ///   - delay: when the second attempt is sent; after the 95th percentile by default.
    ///   - extra: the part of the requests that may be sent twice, 0 to 1; 0.05 by default.
    ///   - group: what is measured together; the requests to an origin by default.
    public init(after delay: Delay = .percentile(0.95), extra: Double = 0.05, group: PolicyGroup = .origin) {
        self.delay = delay
        self.extra = extra
        self.group = group
    }
}

/// The state of ``Hedging`` for one group: a pure value, whose time is that since an arbitrary start.
public struct HedgingState: Sendable {
    /// The responses before a percentile counts.
    private static let fewest = 20

    private let policy: Hedging.Delay
    private var latencies = LatencyHistogram()
    private var budget: RetryBudgetState

    /// Creates a state without responses.
    public init(_ hedging: Hedging) {
        policy = hedging.delay
        budget = RetryBudgetState(.share(ratio: min(max(hedging.extra, 0), 1), minimum: 0, window: .seconds(10)))
    }

    /// A request is sent; returns the delay of its second attempt, `nil` if too few responses are known.
    public mutating func requestBegins(at now: Duration) -> Duration? {
        budget.noteRequest(at: now)
        switch policy {
        case .fixed(let delay): return delay
        case .percentile(let part): return latencies.total < Self.fewest ? nil : latencies.percentile(part)
        }
    }

    /// Notes that a response's head was received, a time after the first attempt was sent.
    public mutating func responded(after latency: Duration) {
        if case .percentile = policy { latencies.add(latency) }
    }

    /// Whether a second attempt may be sent now; takes it from the budget.
    public mutating func hedge(at now: Duration) -> Bool { budget.withdraw(at: now) }
}

/// Latencies in buckets of an eighth of an octave; the older they are the less they count.
struct LatencyHistogram: Sendable {
    private static let largestTotal = 1_000

    private var buckets: [UInt16] = []
    private(set) var total = 0
    /// The bucket that the last percentile was in, and the latencies up to it: the next one is not far.
    private var cursor = 0
    private var below = 0

    mutating func add(_ latency: Duration) {
        if buckets.isEmpty { buckets = Array(repeating: 0, count: 320) }
        let index = Self.index(latency)
        buckets[index] += 1
        total += 1
        if index <= cursor { below += 1 }
        if total >= Self.largestTotal { halve() }
    }

    private mutating func halve() {
        total = 0
        for index in buckets.indices {
            buckets[index] /= 2
            total += Int(buckets[index])
        }
        cursor = 0
        below = Int(buckets[0])
    }

    /// The upper end of the bucket below which that part of the latencies is.
    mutating func percentile(_ part: Double) -> Duration {
        guard total > 0 else { return .zero }
        // NaN, which `min` and `max` pass on, counts as 1: all of them.
        let part = Double.maximum(Double.minimum(part, 1), 0)
        let wanted = max(Int((Double(total) * part).rounded(.up)), 1)
        while below < wanted, cursor + 1 < buckets.count {
            cursor += 1
            below += Int(buckets[cursor])
        }
        while cursor > 0, below - Int(buckets[cursor]) >= wanted {
            below -= Int(buckets[cursor])
            cursor -= 1
        }
        return Self.upperEnd(cursor)
    }

    /// From a microsecond to about 18 minutes.
    private static func index(_ latency: Duration) -> Int {
        let microseconds = max(latency.seconds * 1_000_000, 1)
        let part = Int((microseconds.significand - 1) * 8)
        return min(Int(microseconds.exponent) * 8 + part, 319)
    }

    private static func upperEnd(_ index: Int) -> Duration {
        let microseconds = Double(sign: .plus, exponent: index / 8, significand: 1 + Double(index % 8 + 1) / 8)
        return .nanoseconds(Int64(microseconds * 1_000))
    }
}
