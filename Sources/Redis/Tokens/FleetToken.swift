// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A credential on the server, with the lease of the process that refreshes it. Thread-safe.
struct FleetToken: Sendable {
    /// What a process is to do.
    enum Claim: Sendable {
        /// Use this credential, of a generation.
        case use(Data, generation: Int)
        /// Fail: the refresh was refused, for a reason.
        case fail(String)
        /// Wait: another process refreshes, and its lease ends in this number of milliseconds.
        case wait(Int)
        /// Refresh, and complete with this fencing number; with the stored credential and its generation.
        case refresh(fence: Int, Data?, generation: Int)
    }

    private static let now = "local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"

    /// The newest generation and its value; the number of the last lease, its holder and end; the refusal of a generation and its end. A number
    /// is greater than all that the process knows, also on another server that has lost the last ones, or whose clock is slow.
    private static let claim = RedisScript(
        now + """
            local h = redis.call('HMGET', KEYS[1], 'value', 'generation', 'fence', 'holder', 'until', 'refusal', 'refused', 'told')
            local known, generation = tonumber(ARGV[3]), tonumber(h[2] or '0')
            if h[1] and generation > known then return {'use', generation, h[1]} end
            if h[6] and tonumber(h[7]) == generation and tonumber(h[8]) > now then return {'fail', h[6]} end
            if h[4] and tonumber(h[5]) > now then return {'wait', tonumber(h[5]) - now} end
            local fence = math.max(tonumber(h[3] or '0') + 1, now, known + 1)
            redis.call('HSET', KEYS[1], 'fence', fence, 'holder', ARGV[1], 'until', now + ARGV[2])
            return {'refresh', fence, generation, h[1]}
            """)

    // Claiming and sharing are not idempotent: a second run would find the lease of the first, or be another generation. The others depend on
    // the fencing number, and do the same again, or nothing.

    /// Changes the credential, if no later lease was granted.
    private static let complete = RedisScript(
        """
        if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 0 end
        redis.call('HSET', KEYS[1], 'value', ARGV[2], 'generation', ARGV[1])
        redis.call('HDEL', KEYS[1], 'holder', 'until', 'refusal', 'refused', 'told')
        return 1
        """, isIdempotent: true)

    private static let refuse = RedisScript(
        now + """
            if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 0 end
            redis.call('HSET', KEYS[1], 'refusal', ARGV[2], 'refused', redis.call('HGET', KEYS[1], 'generation') or '0', 'told', now + ARGV[3])
            redis.call('HDEL', KEYS[1], 'holder', 'until')
            return 1
            """, isIdempotent: true)

    private static let release = RedisScript(
        """
        if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 0 end
        redis.call('HDEL', KEYS[1], 'holder', 'until')
        return 1
        """, isIdempotent: true)

    private static let renew = RedisScript(
        now + """
            if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] or not redis.call('HGET', KEYS[1], 'holder') then return 0 end
            redis.call('HSET', KEYS[1], 'until', now + ARGV[2])
            return 1
            """, isIdempotent: true)

    private static let share = RedisScript(
        now + """
            local fence = math.max(tonumber(redis.call('HGET', KEYS[1], 'fence') or '0') + 1, now)
            redis.call('HSET', KEYS[1], 'value', ARGV[1], 'generation', fence, 'fence', fence)
            redis.call('HDEL', KEYS[1], 'holder', 'until', 'refusal', 'refused', 'told')
            return fence
            """)

    let client: RedisClient
    let key: String
    let lease: Duration
    /// Whether a refresh only begins when each replica that may be promoted has its lease, and one at least, if any has ever responded.
    private let needsReplica: Bool
    /// Whether a replica has ever responded.
    private let hasReplicas = Lock(false)
    /// For people who inspect the server; not compared, as two sessions of a process may share an authenticator.
    private let holder = UUID().uuidString

    init(_ client: RedisClient, name: String, lease: Duration, needsReplica: Bool = false) {
        self.client = client
        self.lease = lease
        self.needsReplica = needsReplica
        key = client.key("token1", name)
        if needsReplica { client.prepareAwaitingReplicas() }
    }

    private var leaseMilliseconds: Int { lease.atLeastOneMillisecond }

    /// Asks what to do about a credential of a generation; 0 for none.
    func claim(known: Int) async throws(RedisError) -> Claim {
        let value = try await client.run(Self.claim, keys: [key], [.text(holder), .number(leaseMilliseconds), .number(known)])
        let parts = value.elements ?? []
        switch (parts.first?.text, parts.count) {
        case ("use"?, 3):
            if let generation = parts[1].integer, let data = parts[2].data { return .use(data, generation: generation) }
        case ("fail"?, 2): return .fail(parts[1].text ?? "")
        case ("wait"?, 2): if let time = parts[1].integer { return .wait(time) }
        case ("refresh"?, 3...):
            guard let fence = parts[1].integer, let generation = parts[2].integer else { break }
            // Before the refresh begins: a fail-over that loses the lease would have another process begin a second one.
            if await !isReplicated({ last, _ in last == fence }), needsReplica {
                try? await release(fence)
                throw unreplicated
            }
            return .refresh(fence: fence, parts.count > 3 ? parts[3].data : nil, generation: generation)
        default: break
        }
        throw .unexpectedResponse(command: "EVALSHA")
    }

    /// Whether replicas have what was written, and the server has it still, by the numbers of the last lease and of the credential: another
    /// one may be connected by now. A server whose replicas respond no more may be cut off from them, and replaced by one of them, also by one
    /// that is cut off while others respond; one that never had any is the only one.
    private func isReplicated(_ isKept: (_ fence: Int, _ generation: Int) -> Bool) async -> Bool {
        guard client.mayFailOver else { return true }
        let replication = needsReplica ? await client.awaitReplicas(of: key) : await client.awaitReplica(of: key)
        let isEnough = hasReplicas.withLock { hasReplicas in
            hasReplicas = hasReplicas || replication.hasAny
            return replication.isComplete && (replication.hasAny || !hasReplicas)
        }
        guard isEnough, let numbers = try? await client.run(["HMGET", .text(key), "fence", "generation"]).elements, numbers.count == 2
        else { return false }
        return isKept(numbers[0].integer ?? 0, numbers[1].integer ?? 0)
    }

    private var unreplicated: RedisError { .timedOut(command: "WAIT", after: client.configuration.commandTimeout / 2) }

    /// Stores the credential of a refresh; `false` if another lease was granted meanwhile. An error if the replicas do not say so too.
    func complete(_ fence: Int, _ value: Data) async throws(RedisError) -> Bool {
        let isStored = try await client.run(Self.complete, keys: [key], [.number(fence), .bytes(value)]) == .integer(1)
        // A refusal counts only from a server that has another lease.
        guard await isReplicated({ isStored ? $1 >= fence : $0 != fence }) else { throw unreplicated }
        return isStored
    }

    /// Tries to store the credential of a refresh until another lease was granted, this one has ended, or the client was closed.
    func completeLater(_ fence: Int, _ value: Data) async {
        let deadline = MonotonicTime.now() + lease.nanoseconds
        while MonotonicTime.now() < deadline {
            // Not all the time that other commands have: they wait for a replica too.
            try? await Task.sleep(
                nanoseconds: max(min(lease.nanoseconds / 20, 100_000_000), client.configuration.commandTimeout.nanoseconds))
            do {
                _ = try await complete(fence, value)
                return
            } catch {
                if error == .closed { return }
            }
            // A server that has come back, or was replaced, may have the lease still.
            _ = try? await renew(fence)
        }
    }

    /// Records for a time that the refresh was refused, and ends the lease.
    func refuse(_ fence: Int, _ reason: String, for time: Duration) async throws(RedisError) {
        _ = try await client.run(Self.refuse, keys: [key], [.number(fence), .text(reason), .number(time.atLeastOneMillisecond)])
    }

    /// Ends the lease without a credential, so that another process tries.
    func release(_ fence: Int) async throws(RedisError) {
        _ = try await client.run(Self.release, keys: [key], [.number(fence)])
    }

    /// Extends the lease; `false` if it has ended.
    func renew(_ fence: Int) async throws(RedisError) -> Bool {
        try await client.run(Self.renew, keys: [key], [.number(fence), .number(leaseMilliseconds)]) == .integer(1)
    }

    /// Stores a credential that was obtained otherwise; returns its generation.
    func share(_ value: Data) async throws(RedisError) -> Int {
        guard let generation = try await client.run(Self.share, keys: [key], [.bytes(value)]).integer else {
            throw .unexpectedResponse(command: "EVALSHA")
        }
        _ = await isReplicated { _, last in last >= generation }
        return generation
    }

    /// Removes the credential, and ends the lease.
    func forget() async throws(RedisError) {
        _ = try await client.run(["DEL", .text(key)])
    }
}
#endif
