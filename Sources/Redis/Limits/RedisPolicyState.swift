// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
public import CurlewResilience
import Dispatch

/// Publishes what the circuit breakers and retry budgets of each process of a fleet have found, on a channel of the server.
///
/// The server keeps which breakers are open, each until its pause ends or it is reported to have closed: a process that starts later, or
/// was away, reads that when it subscribes. A spent budget is published, and not kept.
///
/// While the server is unavailable nothing is published, and every policy works by itself, as without this. A full server (`maxmemory`)
/// still publishes changes, and keeps none.
///
/// Thread-safe.
public struct RedisPolicyState: SharedPolicyState {
    /// Publishes a change. Those with an end are kept in a hash with a field for each policy and group: the end in milliseconds of the
    /// server's time, a space, and the change. The hash expires with its last entry. A full server refuses to keep them, which must not
    /// prevent publishing.
    private static let publishing = RedisScript(
        """
        local t = redis.call('TIME')
        local now, lasting = t[1] * 1000 + math.floor(t[2] / 1000), tonumber(ARGV[4])
        if lasting > 0 then
            if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[5]) then
                local all = redis.call('HGETALL', KEYS[1])
                for i = 1, #all, 2 do
                    if (tonumber(string.match(all[i + 1], '^%d+')) or 0) <= now then redis.call('HDEL', KEYS[1], all[i]) end
                end
            end
            local left = redis.call('PTTL', KEYS[1])
            redis.pcall('HSET', KEYS[1], ARGV[1], string.format('%.0f ', now + lasting) .. ARGV[2])
            redis.pcall('PEXPIRE', KEYS[1], math.max(left, lasting))
        elseif lasting == 0 then
            redis.call('HDEL', KEYS[1], ARGV[1])
        end
        redis.call(redis.REDIS_VERSION_NUM and ARGV[6] or 'PUBLISH', ARGV[3], ARGV[2])
        return 1
        """)

    /// The changes that still count, each with the milliseconds that it has left.
    private static let reading = RedisScript(
        """
        local t = redis.call('TIME')
        local now, found = t[1] * 1000 + math.floor(t[2] / 1000), {}
        local all = redis.call('HVALS', KEYS[1])
        for i = 1, #all do
            local left = (tonumber(string.match(all[i], '^%d+')) or 0) - now
            if left > 0 then
                found[#found + 1] = left
                found[#found + 1] = string.match(all[i], '^%d+ (.*)$')
            end
        end
        return found
        """, isIdempotent: true)

    /// The entries beyond which those that have ended are removed before others are added.
    private static let crowded = 1_024

    let client: RedisClient
    private let channel: String
    /// Where the server keeps what lasts.
    let place: String

    /// Creates the state of a fleet. Processes with the same prefix and name share it.
    public init(_ client: RedisClient, name: String = "default") {
        self.client = client
        channel = client.key("policies1", name)
        place = client.key("policies1-open", name)
    }

    /// Publishes a change to the others; returns at once. A change that can't be published is dropped.
    public func publish(_ change: SharedChange) {
        // Encoding a text and a number fails for numbers that JSON has not, which are no durations.
        guard let data = try? JSONEncoder().encode(change) else { return }
        let lasting: Int =
            switch change.kind {
            // At least a millisecond, as none removes.
            case .breakerOpened: change.duration.atLeastOneMillisecond
            case .breakerClosed: 0
            default: -1
            }
        client.submit(
            Self.publishing, keys: [place],
            [
                .text("\(change.policy)\n\(change.group)"), .bytes(data), .text(channel), .number(lasting), .number(Self.crowded),
                client.publishCommand,
            ]
        ) { _ in }
    }

    /// Calls `receive` on the client's thread for each breaker that is open when the subscription begins, also after a lost connection, and
    /// for each change published by any process from then on, until the returned object is released. Messages that are no changes are
    /// ignored.
    public func subscribe(_ receive: @escaping @Sendable (SharedChange) -> Void) -> any AnyObject & Sendable {
        let follower = PolicyFollower(receive) { [client, place] completion in
            client.submit(Self.reading, keys: [place], [], completion: completion)
        }
        follower.follow(client, channel)
        return follower
    }
}

/// A subscription to changes, which reads those that still count when it begins.
private final class PolicyFollower: Sendable {
    typealias Read = @Sendable (@escaping @Sendable (Result<RedisValue, RedisError>) -> Void) -> Void

    private struct State {
        var subscription: RedisSubscription?
        /// Distinguishes the current subscription from earlier ones.
        var beginning = 0
        var isReading = false
        /// Policies and groups of the changes received while the kept ones are read: those may be older.
        var received: Set<[String]> = []
    }

    /// The time after which a failed read is tried again, doubled up to the longest: the server's other connection may come later.
    private static let firstPause = 0.05
    private static let longestPause = 2.0

    private let receive: @Sendable (SharedChange) -> Void
    private let read: Read
    private let state = Lock(State())

    init(_ receive: @escaping @Sendable (SharedChange) -> Void, reading read: @escaping Read) {
        self.receive = receive
        self.read = read
    }

    func follow(_ client: RedisClient, _ channel: String) {
        let subscription = client.subscribe(to: channel, bySlot: true) { [weak self] event in self?.handle(event) }
        state.withLock { $0.subscription = subscription }
    }

    private func handle(_ event: SubscriptionEvent) {
        switch event {
        case .began:
            let beginning = state.withLock { state in
                state.beginning += 1
                state.isReading = true
                state.received = []
                return state.beginning
            }
            readKept(beginning, pause: Self.firstPause)
        case .message(let data):
            guard let change = try? JSONDecoder().decode(SharedChange.self, from: data) else { return }
            state.withLock { if $0.isReading { $0.received.insert([change.policy, change.group]) } }
            receive(change)
        case .ended:
            state.withLock { state in
                state.beginning += 1
                state.isReading = false
            }
        }
    }

    private func readKept(_ beginning: Int, pause: Double) {
        guard state.withLock({ $0.beginning == beginning }) else { return }
        read { [weak self] result in
            guard let self else { return }
            guard case .success(let value) = result, let parts = value.elements else {
                return DispatchQueue.global().asyncAfter(deadline: .now() + pause) { [weak self] in
                    self?.readKept(beginning, pause: min(pause * 2, Self.longestPause))
                }
            }
            deliver(parts, beginning)
        }
    }

    private func deliver(_ parts: [RedisValue], _ beginning: Int) {
        let received = state.withLock { state -> Set<[String]>? in
            guard state.beginning == beginning else { return nil }
            state.isReading = false
            return state.received
        }
        guard let received else { return }
        for index in stride(from: 0, to: parts.count - 1, by: 2) {
            guard let left = parts[index].integer, left > 0, let data = parts[index + 1].data,
                let change = try? JSONDecoder().decode(SharedChange.self, from: data), !received.contains([change.policy, change.group])
            else { continue }
            receive(SharedChange(change.kind, policy: change.policy, group: change.group, lasting: .milliseconds(left)))
        }
    }
}
#endif
