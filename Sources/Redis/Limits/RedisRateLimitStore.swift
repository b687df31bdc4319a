// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
public import CurlewResilience
import CurlewTransport

/// The count of a rate limit that all processes of a fleet share, for a `RateLimiter`: all of them together keep the rate.
///
/// One script call for each acquisition, of one permit or of a lease of several; the algorithm is the generic cell rate algorithm (ITU-T
/// I.371), which needs one timestamp for each key, on the server's clock. Permits of the near future are reserved, and waited for here, so
/// that processes get them in the order in which they asked.
///
/// If the server is unavailable, full or late, ``acquire(_:of:limit:)`` throws ``RedisError`` within ``RedisConfiguration/commandTimeout``, and
/// the limiter does what its `StoreFailure` says. A server that has lost the count begins it again: at most one burst too many.
///
/// Thread-safe.
public struct RedisRateLimitStore: RateLimitStore {
    /// How far in the future a permit is reserved; a later one is asked for again.
    private static let horizon: Duration = .milliseconds(100)

    private static let script = RedisScript(
        """
        local t = redis.call('TIME')
        local now = t[1] * 1000000 + t[2]
        local spacing, burst, wanted, horizon = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
        local arrival = math.max(tonumber(redis.call('GET', KEYS[1]) or '0') or 0, now)
        local first = arrival - (burst - 1) * spacing - now
        local count = math.min(math.floor((horizon - first) / spacing) + 1, wanted)
        if count < 1 then return {0, math.ceil(first - horizon) + 1} end
        arrival = arrival + count * spacing
        redis.call('SET', KEYS[1], string.format('%.3f', arrival), 'PX', math.ceil((arrival - now) / 1000) + 1)
        return {count, math.ceil(math.max(first + (count - 1) * spacing, 0))}
        """)

    private let client: RedisClient

    /// Creates a store on a client's server.
    public init(_ client: RedisClient) { self.client = client }

    /// Takes up to `count` permits of a key, atomically with all other processes; waits for reserved ones, at most 100 milliseconds.
    ///
    /// - Throws: ``RedisError``, or `CancellationError`, with which reserved permits are lost.
    public func acquire(_ count: Int, of key: String, limit: RateLimit) async throws -> RateLimitGrant {
        let spacing = Double(limit.interval.nanoseconds) / 1_000 / Double(limit.permits)
        let arguments: [RedisArgument] = [
            .text("\(spacing)"), .number(limit.burst), .number(max(count, 1)), .number(Int(Self.horizon.nanoseconds / 1_000)),
        ]
        let sent = MonotonicTime.now()
        let value = try await client.run(Self.script, keys: [client.key("limit1", key)], arguments)
        guard let parts = value.elements, parts.count == 2, let granted = parts[0].integer, let microseconds = parts[1].integer,
            (0...max(count, 1)).contains(granted), microseconds >= 0
        else { throw RedisError.unexpectedResponse(command: "EVALSHA") }
        guard granted > 0 else { return .wait(.microseconds(microseconds)) }
        // From the request on: counted from the response, permits would come later than the rate has them by the time of its way.
        let due = sent + Duration.microseconds(microseconds).nanoseconds
        let now = MonotonicTime.now()
        if due > now { try await Task.sleep(nanoseconds: due - now) }
        return .granted(granted, validFor: max(limit.spacing * granted, .seconds(1)))
    }
}
#endif
