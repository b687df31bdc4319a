// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewCookies
import CurlewEncoding
import CurlewHTTP

/// A key of the server whose bytes several processes read, and replace as a whole.
///
/// Each version has a number, greater than all before it, and is replaced only by a process that has read it. New numbers are published on
/// a channel, so that reading what has not changed sends no command. Thread-safe.
final class RedisPlace: SharedPlace {
    /// What is known of the current version.
    private struct Known {
        var isSubscribed = false
        /// Whether `revision` is the current one, by the messages received.
        var isCurrent = false
        /// `nil` for no version.
        var revision: Int?
        /// Counts messages and conflicts, so that what was read meanwhile is not taken for newer.
        var generation = 0
    }

    /// Numbers are the server's time in microseconds, or the last one and one more: greater also after the last one was lost. As text, since
    /// Lua prints large numbers with an exponent.
    private static let replacing = RedisScript(
        """
        local last = redis.call('HGET', KEYS[1], 'r')
        if (last or '') ~= ARGV[1] then return '' end
        local t = redis.call('TIME')
        local next = string.format('%.0f', math.max(t[1] * 1000000 + t[2], tonumber(last or '0') + 1))
        redis.call('HSET', KEYS[1], 'r', next, 'v', ARGV[2])
        redis.call(redis.REDIS_VERSION_NUM and ARGV[4] or 'PUBLISH', ARGV[3], next)
        return next
        """)

    let path: String
    private let client: RedisClient
    private let channel: String
    private let format: ValueFormat
    private let known = Lock(Known())
    private let subscription = Lock<RedisSubscription?>(nil)

    init(_ client: RedisClient, store: String, name: String, sealedWith keys: SealingKeys?) {
        self.client = client
        path = client.key(store, name)
        channel = client.key("\(store)-changes", name)
        format = ValueFormat(keys: keys)
        let begun = client.subscribe(to: channel, bySlot: true) { [weak self] event in self?.receive(event) }
        subscription.withLock { $0 = begun }
    }

    /// Whether changes of other processes are received.
    var isSubscribed: Bool { known.withLock { $0.isSubscribed } }

    private func receive(_ event: SubscriptionEvent) {
        known.withLock { known in
            known.generation += 1
            switch event {
            case .began, .ended:
                // Changes may have been missed, or will be.
                known.isCurrent = false
                if case .began = event { known.isSubscribed = true } else { known.isSubscribed = false }
            case .message(let data):
                guard let revision = String(validating: data, as: UTF8.self).flatMap({ Int($0) }) else { return }
                // This process' own may be known already.
                if known.isCurrent, let last = known.revision, last >= revision { return }
                known.revision = revision
                known.isCurrent = true
            }
        }
    }

    /// Notes a version that was read or written, unless a message was received meanwhile.
    private func note(_ revision: Int?, since generation: Int) {
        known.withLock { known in
            guard known.generation == generation, known.isSubscribed else { return }
            known.revision = revision
            known.isCurrent = true
        }
    }

    // MARK: SharedPlace

    /// A server without the key has lost it: to remove all, an empty version is stored.
    var forgets: Bool { true }

    func version() throws -> SharedVersion? {
        let (isCurrent, last, generation) = known.withLock { ($0.isCurrent, $0.revision, $0.generation) }
        if isCurrent { return last.map { .revision($0) } }
        let value = try client.block(["HGET", .text(path), "r"])
        let revision = value == .null ? nil : try number(value, "HGET")
        note(revision, since: generation)
        return revision.map { .revision($0) }
    }

    func read() throws -> (bytes: [UInt8], version: SharedVersion)? {
        let generation = known.withLock { $0.generation }
        let value = try client.block(["HMGET", .text(path), "r", "v"])
        guard let fields = value.elements, fields.count == 2 else { throw RedisError.unexpectedResponse(command: "HMGET") }
        guard fields[0] != .null else {
            note(nil, since: generation)
            return nil
        }
        let revision = try number(fields[0], "HMGET")
        guard let data = fields[1].data else { throw RedisError.unreadableValue(key: path, .damaged) }
        let bytes = Array(try format.decode(data, of: path))
        note(revision, since: generation)
        return (bytes, .revision(revision))
    }

    func changing<Value>(_ body: () throws -> Value) throws -> Value { try body() }

    func replace(_ version: SharedVersion?, with bytes: [UInt8]) throws -> SharedVersion? {
        var last = ""
        if case .revision(let revision)? = version { last = "\(revision)" }
        let generation = known.withLock { $0.generation }
        let value = try client.block(
            Self.replacing, keys: [path],
            [.text(last), .bytes(try format.encode(Data(bytes), for: path)), .text(channel), client.publishCommand])
        guard value.text != "" else {
            // The server has another version, whose message may not have been received yet.
            known.withLock { known in
                known.isCurrent = false
                known.generation += 1
            }
            return nil
        }
        let revision = try number(value, "EVALSHA")
        note(revision, since: generation)
        return .revision(revision)
    }

    private func number(_ value: RedisValue, _ command: String) throws(RedisError) -> Int {
        guard let number = value.text.flatMap({ Int($0) }) else { throw .unexpectedResponse(command: command) }
        return number
    }
}
#endif
