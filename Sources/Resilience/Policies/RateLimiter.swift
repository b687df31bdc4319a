// SPDX-License-Identifier: Apache-2.0

/// Limits the requests to a group per interval; others wait for their turn, or fail with the time to wait.
///
/// ```swift
/// configuration.use(Resilience(rateLimiter: RateLimiter(RateLimit(500, burst: 50))))
/// ```
///
/// The generic cell rate algorithm (GCRA), which keeps one time per group: requests are spaced evenly after a burst. A request that would
/// wait longer than ``maximumWait`` fails with ``TransferFailure/Kind/rateLimited``, and ``TransferFailure/retryAfter`` is its time to wait.
///
/// What servers ask for counts as well: `Retry-After` of the statuses 429 and 503 (RFC 9110, section 10.2.3), and `RateLimit` with
/// `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-11), whose quota slows the limiter down to its rate.
public struct RateLimiter: Sendable {
    /// What is done when the store that a fleet shares fails.
    public enum StoreFailure: String, Sendable, Hashable {
        /// Requests are sent.
        case open
        /// Requests fail with ``TransferFailure/Kind/rateLimited``.
        case closed
        /// This process counts by itself, at the same rate.
        case local
    }

    /// The limiter's name, which events have, and which is part of the key in a store; empty by default.
    public var name = ""
    /// What is counted together: the requests to an origin by default.
    public var group = PolicyGroup.origin
    /// The rate.
    public var limit: RateLimit
    /// The longest wait; 30 seconds by default. Zero lets no request wait.
    public var maximumWait = Duration.seconds(30)
    /// Whether `Retry-After`, `RateLimit` and `RateLimit-Policy` of responses count; `true` by default.
    public var heedsServers = true
    /// The longest time for which a server's field holds requests back; 5 minutes by default.
    public var maximumHold = Duration.seconds(300)
    /// The store that several processes share; `nil`, the default, counts in this process.
    public var store: (any RateLimitStore)?
    /// The permits that are taken from the store at once; 1, the default, asks for each request. Above 1,000 requests a second take more.
    public var leaseSize = 1
    /// What is done when the store fails; ``StoreFailure/local`` by default.
    public var storeFailure = StoreFailure.local

    /// Creates a limiter.
    ///
    /// - Parameters:
    ///   - limit: the rate.
    ///   - name: the limiter's name.
    ///   - group: what is counted together; the requests to an origin by default.
    ///   - maximumWait: the longest wait; 30 seconds by default.
    ///   - store: the store that several processes share; `nil`, the default, for none.
    ///   - leaseSize: the permits that are taken from the store at once; 1 by default.
    public init(
        _ limit: RateLimit, name: String = "", group: PolicyGroup = .origin, maximumWait: Duration = .seconds(30),
        store: (any RateLimitStore)? = nil, leaseSize: Int = 1
    ) {
        self.limit = limit
        self.name = name
        self.group = group
        self.maximumWait = maximumWait
        self.store = store
        self.leaseSize = leaseSize
    }
}

/// The state of a rate limit for one group: a pure value, whose time is that since an arbitrary start.
public struct RateLimiterState: Sendable {
    /// What becomes of a request.
    public enum Decision: Sendable, Hashable {
        /// It is sent now.
        case granted
        /// It is sent after that time: its turn is reserved.
        case wait(Duration)
        /// It is not sent: its turn would come after that time, if that is known.
        case refused(retryAfter: Duration?)
    }

    private let ownSpacing: Duration
    private let burst: Int
    private var spacing: Duration
    private var tolerance: Duration
    /// When the next request would be sent at the exact rate.
    private var theoreticalArrival = Duration.zero
    /// Until when a server has asked not to send.
    public private(set) var heldUntil = Duration.zero

    /// Creates a state in which the whole burst is available.
    public init(_ limit: RateLimit) {
        ownSpacing = limit.spacing
        burst = limit.burst
        spacing = ownSpacing
        tolerance = ownSpacing * (limit.burst - 1)
    }

    /// Asks for a permit.
    ///
    /// - Parameters:
    ///   - now: the time.
    ///   - maximumWait: the longest wait that is accepted.
    public mutating func acquire(at now: Duration, maximumWait: Duration) -> Decision {
        let arrival = max(theoreticalArrival, now)
        let turn = max(arrival - tolerance, heldUntil)
        guard turn > now else {
            theoreticalArrival = arrival + spacing
            return .granted
        }
        guard turn - now <= maximumWait else { return .refused(retryAfter: turn - now) }
        theoreticalArrival = max(arrival, turn) + spacing
        return .wait(turn - now)
    }

    /// Gives back a permit that was granted or reserved, and not used.
    public mutating func giveBack() {
        theoreticalArrival -= spacing
    }

    /// A server asks not to send for a time. Afterwards requests are spaced, so that those that wait do not leave together.
    public mutating func hold(for duration: Duration, at now: Duration) {
        guard now + duration > heldUntil else { return }
        heldUntil = now + duration
        theoreticalArrival = max(theoreticalArrival, heldUntil + tolerance)
    }

    /// The time after which a request that had waited for its turn may be sent: zero, unless a server has asked to hold since.
    public func remainingHold(at now: Duration) -> Duration { max(heldUntil - now, .zero) }

    /// Adopts the quota that a server has announced: a rate slower than the limit's own is used from then on.
    public mutating func adopt(quota: Int, per window: Duration) {
        guard quota > 0, window > .zero else { return }
        spacing = max(ownSpacing, window / quota)
        tolerance = spacing * min(burst - 1, quota - 1)
    }
}
