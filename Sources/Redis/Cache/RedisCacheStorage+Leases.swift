// SPDX-License-Identifier: Apache-2.0
#if Redis
public import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

extension RedisCacheStorage {
    /// For how long the number of a key's last lease is known, in microseconds; leases that are older may not store.
    static let leaseMemory = 600_000_000

    /// Numbers are the server's time in microseconds, or the last one and one more: greater also after the last one was forgotten.
    private static let acquiring = RedisScript(
        """
        local t = redis.call('TIME')
        local now = t[1] * 1000000 + t[2]
        local h = redis.call('HMGET', KEYS[1], 'number', 'until')
        if h[2] and tonumber(h[2]) > now then return 0 end
        local number = math.max(now, tonumber(h[1] or '0') + 1)
        redis.call('HSET', KEYS[1], 'number', number, 'until', now + ARGV[1])
        redis.call('PEXPIRE', KEYS[1], math.ceil((ARGV[1] + ARGV[2]) / 1000))
        return number
        """)

    private static let releasing = RedisScript(
        """
        if tonumber(redis.call('HGET', KEYS[1], 'number') or '0') ~= tonumber(ARGV[1]) then return 0 end
        redis.call('HDEL', KEYS[1], 'until')
        redis.call('PUBLISH', ARGV[2], ARGV[3])
        return 1
        """, isIdempotent: true)

    /// The microseconds that are left.
    private static let remaining = RedisScript(
        """
        local t = redis.call('TIME')
        return math.max(0, tonumber(redis.call('HGET', KEYS[1], 'until') or '0') - t[1] * 1000000 - t[2])
        """, isIdempotent: true)

    private func leasePlace(of key: CacheKey) -> String { place(of: key) + ":lease" }

    /// Claims a key; `nil` if another lease of it has not ended.
    public func acquireLease(for key: CacheKey, duration: Duration) throws -> CacheLease? {
        let time = Int(min(duration, .seconds(Self.leaseMemory / 2_000_000)).nanoseconds / 1_000)
        let value = try client.block(Self.acquiring, keys: [leasePlace(of: key)], [.number(max(time, 1_000)), .number(Self.leaseMemory)])
        guard let number = value.integer, number >= 0 else { throw RedisError.unexpectedResponse(command: "EVALSHA") }
        return number == 0 ? nil : CacheLease(key: key, number: UInt64(number))
    }

    /// Ends a lease, and notifies the processes that wait for that.
    public func releaseLease(_ lease: CacheLease) throws {
        let message = try channel.message(.leaseEnded(lease.key))
        _ = try client.block(
            Self.releasing, keys: [leasePlace(of: lease.key)],
            [.text("\(lease.number)"), .text(channel.name), .bytes(message)])
    }

    /// Waits until the key has no lease: for the message that it has ended, and for the time when it ends by itself.
    public func waitForLeaseEnd(of key: CacheKey, timeout: Duration) throws -> Bool {
        let deadline = MonotonicTime.now() + timeout.nanoseconds
        let waiter = channel.waitForLeaseEnd(of: key)
        while true {
            let value = try client.block(Self.remaining, keys: [leasePlace(of: key)], [])
            guard let left = value.integer else { throw RedisError.unexpectedResponse(command: "EVALSHA") }
            let now = MonotonicTime.now()
            guard left > 0 else { return true }
            guard now < deadline else { return false }
            // Looked at again now and then, as a message is lost with a connection.
            let pause = min(deadline - now, Duration.microseconds(left).nanoseconds, 200_000_000)
            waiter.wait(pause)
        }
    }
}
#endif
