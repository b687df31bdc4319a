// SPDX-License-Identifier: Apache-2.0

/// A rate: a number of permits per interval, some of which may be used at once.
public struct RateLimit: Sendable, Hashable {
    /// The permits per ``interval``; 1 or more.
    public let permits: Int
    /// The interval; longer than 0.
    public let interval: Duration
    /// The permits that may be used at once after a pause; 1 or more.
    public let burst: Int

    /// Creates a rate.
    ///
    /// - Parameters:
    ///   - permits: the permits per interval; clamped to 1 or more.
    ///   - interval: the interval, a second by default; clamped to a microsecond or more.
    ///   - burst: the permits that may be used at once; `nil`, the default, for `permits`. Clamped to 1 or more.
    public init(_ permits: Int, per interval: Duration = .seconds(1), burst: Int? = nil) {
        self.permits = max(permits, 1)
        self.interval = max(interval, .microseconds(1))
        self.burst = max(burst ?? permits, 1)
    }

    /// The time between two permits at that rate: the emission interval of the generic cell rate algorithm.
    public var spacing: Duration { interval / permits }
}

/// What a store answers to a request for permits.
public enum RateLimitGrant: Sendable, Hashable {
    /// The number of permits that are granted, at least one and at most those asked for, to be used within a duration; unused ones are lost
    /// after it.
    case granted(Int, validFor: Duration)
    /// No permit is available before that time has passed.
    case wait(Duration)
}

/// The count of a rate limit that several processes share.
///
/// A ``RateLimiter`` with a store asks it for permits, one at a time or leased, and counts by itself only when the store fails
/// (``RateLimiter/StoreFailure``). A store has a deadline of its own and throws when that has passed: the limiter does not limit the wait.
public protocol RateLimitStore: Sendable {
    /// Takes up to `count` permits of a key, atomically with all other processes.
    ///
    /// Called in a task of the limiter's own, of which there is one at a time for each key.
    ///
    /// - Parameters:
    ///   - count: the most permits that are wanted; 1 or more.
    ///   - key: what is limited: the limiter's name and the group, such as an origin.
    ///   - limit: the rate, the same in each process that shares the key.
    /// - Throws: why the store can't decide: it is unavailable, late, or its response is not understood.
    func acquire(_ count: Int, of key: String, limit: RateLimit) async throws -> RateLimitGrant
}
