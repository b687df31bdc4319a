// SPDX-License-Identifier: Apache-2.0

/// Limits the requests in flight; others wait in a bounded queue, the most urgent first.
///
/// ```swift
/// configuration.use(Resilience(concurrency: ConcurrencyLimiter(.fixed(64), group: .session)))
/// ```
///
/// The queue is one line for each urgency (RFC 9218): the most urgent leave first, and every eighth place goes to the request that has
/// waited longest, so that none starves. A request for which there is no room fails with ``TransferFailure/Kind/overloaded``, as does one
/// that has waited for ``maximumWait``.
public struct ConcurrencyLimiter: Sendable {
    /// How many requests may be in flight.
    public enum Limit: Sendable, Hashable {
        /// A fixed number; 1 or more.
        case fixed(Int)
        /// Grows by one while responses are good, and shrinks to `backoff` of itself after one that was dropped (``PolicyOutcome`` with an
        /// error of the host, or a status 429, 503 or 504), or took longer than `timeout`. The backoff is clamped to 0.1...1; NaN
        /// counts as 0.1.
        case additive(initial: Int, minimum: Int, maximum: Int, backoff: Double, timeout: Duration)
        /// Follows the ratio of the long-term to the present latency, with `tolerance`: shrinks when responses become slow. A tolerance
        /// below 0, and NaN, counts as 0.
        case gradient(initial: Int, minimum: Int, maximum: Int, tolerance: Double)

        /// The defaults of Netflix's AIMDLimit: 20 at first, 20 to 200, a backoff of 0.9, a timeout of 5 seconds.
        public static let aimd = Limit.additive(initial: 20, minimum: 20, maximum: 200, backoff: 0.9, timeout: .seconds(5))
        /// The defaults of Netflix's Gradient2Limit: 20 at first, 20 to 200, a tolerance of 1.5.
        public static let gradient2 = Limit.gradient(initial: 20, minimum: 20, maximum: 200, tolerance: 1.5)
    }

    /// The limiter's name, which events have; empty by default.
    public var name = ""
    /// What is counted together: the requests to an origin by default.
    public var group = PolicyGroup.origin
    /// How many requests may be in flight.
    public var limit: Limit
    /// The longest queue; 1,000 by default. 0 lets no request wait.
    public var queueLimit = 1_000
    /// The longest wait; 30 seconds by default.
    public var maximumWait = Duration.seconds(30)

    /// Creates a limiter.
    ///
    /// - Parameters:
    ///   - limit: how many requests may be in flight.
    ///   - name: the limiter's name.
    ///   - group: what is counted together; the requests to an origin by default.
    ///   - queueLimit: the longest queue; 1,000 by default.
    ///   - maximumWait: the longest wait; 30 seconds by default.
    public init(
        _ limit: Limit, name: String = "", group: PolicyGroup = .origin, queueLimit: Int = 1_000, maximumWait: Duration = .seconds(30)
    ) {
        self.limit = limit
        self.name = name
        self.group = group
        self.queueLimit = queueLimit
        self.maximumWait = maximumWait
    }
}

/// Compartments that can't starve one another: each group has places and a queue of its own.
///
/// ```swift
/// configuration.use(Resilience(bulkhead: Bulkhead(concurrent: 16) { $0.name }))
/// ```
///
/// A ``ConcurrencyLimiter`` with a fixed limit for each name, which is asked before that of ``Resilience/concurrency``.
public struct Bulkhead: Sendable {
    /// The places and the queue of each group.
    public var limiter: ConcurrencyLimiter

    /// Creates compartments.
    ///
    /// - Parameters:
    ///   - concurrent: the requests of a group that may be in flight; 25 by default, as resilience4j's.
    ///   - queueLimit: the longest queue of a group; 0 by default.
    ///   - maximumWait: the longest wait; 30 seconds by default.
    ///   - group: returns the group of a request; `nil` leaves it alone.
    public init(
        concurrent: Int = 25, queueLimit: Int = 0, maximumWait: Duration = .seconds(30),
        by group: @escaping @Sendable (PolicyRequest) -> String?
    ) {
        limiter = ConcurrencyLimiter(.fixed(concurrent), group: .named(group), queueLimit: queueLimit, maximumWait: maximumWait)
    }
}

/// The state of a ``ConcurrencyLimiter`` for one group: a pure value. Requests are numbers.
public struct ConcurrencyLimiterState: Sendable {
    /// What becomes of a request.
    public enum Decision: Sendable, Hashable {
        /// It is sent now.
        case admitted
        /// It waits.
        case queued
        /// There is no room for it.
        case refused
    }

    /// How a request ended.
    public enum Result: Sendable, Hashable {
        /// With a response.
        case success
        /// The server, or the way to it, had no capacity.
        case dropped
        /// In a way that says nothing about capacity, such as a cancellation.
        case ignored
    }

    private struct Waiting: Sendable {
        let id: UInt64
        let order: UInt64
    }

    /// The present limit.
    public var limit: Int { Int(adaptive.limit) }
    /// The requests in flight.
    public private(set) var inFlight = 0
    /// The requests that wait.
    public private(set) var queued = 0
    private var adaptive: AdaptiveLimit
    private let queueLimit: Int
    private var lines: [[Waiting]] = []
    private var lastOrder: UInt64 = 0
    private var turns = 0

    /// Creates a state without requests.
    public init(_ limiter: ConcurrencyLimiter) {
        adaptive = AdaptiveLimit(limiter.limit)
        queueLimit = max(limiter.queueLimit, 0)
    }

    /// A request arrives, and is admitted if there is a place for it now; otherwise nothing changes.
    mutating func enterNow() -> Bool {
        guard inFlight < limit, queued == 0 else { return false }
        inFlight += 1
        return true
    }

    /// A request arrives.
    ///
    /// - Parameters:
    ///   - id: a number that no other request in the state has.
    ///   - urgency: from 0, the most urgent, to 7.
    public mutating func arrive(_ id: UInt64, urgency: Int = 3) -> Decision {
        if inFlight < limit, queued == 0 {
            inFlight += 1
            return .admitted
        }
        guard queued < queueLimit else { return .refused }
        if lines.isEmpty { lines = Array(repeating: [], count: 8) }
        lastOrder += 1
        lines[min(max(urgency, 0), 7)].append(Waiting(id: id, order: lastOrder))
        queued += 1
        return .queued
    }

    /// A request has ended.
    ///
    /// - Parameters:
    ///   - result: how.
    ///   - latency: how long it took.
    /// - Returns: the requests that are sent now.
    public mutating func leave(_ result: Result, after latency: Duration) -> [UInt64] {
        adaptive.update(result, latency: latency, inFlight: inFlight)
        inFlight -= 1
        guard queued > 0 else { return [] }
        var admitted: [UInt64] = []
        while inFlight < limit, let next = takeNext() {
            inFlight += 1
            admitted.append(next)
        }
        return admitted
    }

    /// A request no longer waits; returns whether it did.
    public mutating func withdraw(_ id: UInt64) -> Bool {
        for line in lines.indices {
            guard let index = lines[line].firstIndex(where: { $0.id == id }) else { continue }
            lines[line].remove(at: index)
            queued -= 1
            return true
        }
        return false
    }

    private mutating func takeNext() -> UInt64? {
        let occupied = lines.indices.filter { !lines[$0].isEmpty }
        turns += 1
        let oldest = occupied.min { (lines[$0].first?.order ?? 0) < (lines[$1].first?.order ?? 0) }
        guard let line = turns.isMultiple(of: 8) ? oldest : occupied.first else { return nil }
        queued -= 1
        return lines[line].removeFirst().id
    }
}
