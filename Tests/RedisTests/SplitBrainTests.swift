// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewCache
import CurlewHTTP
import CurlewResilience
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewRedis

/// A master that is cut off with one client and one of three sentinels, while the others fail over. With `CURLEW_TEST_LONG=1` only.
@Suite(
    .enabled(if: RedisServer.isInstalled && TestLength.isLong),
    .enabled(Comment(rawValue: CutOffNetwork.need)) { await CutOffNetwork.isAllowed() }, .timeLimit(.minutes(3)))
struct SplitBrainTests {
    /// Two sides of one service, of which one can be cut off.
    private struct Sides {
        let network: CutOffNetwork
        let group: SentinelGroup
        private let outerServers: Range<Int>
        /// The client that is cut off, and the others.
        let inner: RedisClient
        let outer: [RedisClient]

        /// - Parameters:
        ///   - replicas: how many a server needs to write (`min-replicas-to-write`); they have to have responded a second ago.
        ///   - keepsReplica: whether a third replica is cut off with the master.
        init(replicas: Int, keepsReplica: Bool = false) async throws {
            network = try await CutOffNetwork()
            outerServers = 1..<3
            group = try await SentinelGroup(
                in: network, replicas: keepsReplica ? (3, 1) : (2, 0),
                options: ["--min-replicas-to-write", "\(replicas)", "--min-replicas-max-lag", "1"])
            let configuration = group.configuration()
            inner = try await network.inside { try RedisClient(configuration) }
            outer = try (0..<3).map { _ in try RedisClient(configuration) }
            for client in outer + [inner] {
                guard await client.becomesReady() else { throw TestError("a client finds no master") }
            }
        }

        var clients: [RedisClient] { [inner] + outer }

        /// Cuts off the master; returns when the others have another one, which the other replica outside follows too.
        ///
        /// - Parameter next: what is done as soon as it is cut off.
        func cutOff(then next: () -> Void = {}) async throws {
            try await network.cutOff()
            next()
            guard await becomesTrue({ await !isUsed(group.servers[0], by: outer[0]) }) else {
                throw TestError("the master is not replaced")
            }
            for server in group.servers[outerServers] {
                let follows = await becomesTrue {
                    guard let role = try? await server.client().run(["ROLE"]).elements, role.count >= 3 else { return false }
                    return role[2].integer != group.servers[0].port
                }
                guard follows else { throw TestError("a replica follows the old master") }
            }
        }

        /// Connects both sides; returns when the client that was cut off uses the new master.
        func heal() async throws {
            try await network.connect()
            guard await becomesTrue({ await !isUsed(group.servers[0], by: inner) }) else { throw TestError("the old master is used") }
        }

        /// Whether commands of a client reach a server; they do as long as they reach no other one.
        private func isUsed(_ server: RedisNode, by client: RedisClient) async -> Bool {
            guard let text = try? await client.run(["INFO", "server"]).text else { return true }
            return text.split(whereSeparator: \.isNewline).contains("tcp_port:\(server.port)")
        }
    }

    /// Takes permits of a limit of 500 a second with bursts of 10, on all sides.
    private final class LimitLoad: Sendable {
        struct Grant: Sendable {
            let time: Nanoseconds
            let isInner: Bool
        }

        private let grants = Lock<[Grant]>([])
        private let refusal = Lock<Nanoseconds>(0)
        private let tasks: [Task<Void, Never>]

        init(_ sides: Sides) {
            let limit = RateLimit(500, burst: 10)
            tasks = sides.clients.flatMap { client in (0..<3).map { _ in client } }.map { [grants, refusal, inner = sides.inner] client in
                Task {
                    let store = RedisRateLimitStore(client)
                    while !Task.isCancelled {
                        do {
                            switch try await store.acquire(1, of: "split", limit: limit) {
                            case .granted(let count, _):
                                let grant = Grant(time: MonotonicTime.now(), isInner: client === inner)
                                grants.withLock { $0 += Array(repeating: grant, count: count) }
                            case .wait(let time): try await Task.sleep(for: time)
                            }
                        } catch {
                            if client === inner, "\(error)".contains("NOREPLICAS") { refusal.withLock { $0 = MonotonicTime.now() } }
                            try? await Task.sleep(for: .milliseconds(1))
                        }
                    }
                }
            }
        }

        /// The permits so far.
        var permits: [Grant] { grants.withLock { $0 } }
        /// When the inner client was refused last, as the master has no replicas.
        var lastRefusal: Nanoseconds { refusal.withLock { $0 } }

        func end() async -> [Grant] {
            for task in tasks { task.cancel() }
            for task in tasks { await task.value }
            return permits
        }
    }

    @Test(
        "each master keeps the limit, a master without replicas grants nothing if it has to have one, and afterwards there is one limit again",
        arguments: [0, 1])
    func limiter(replicas: Int) async throws {
        let sides = try await Sides(replicas: replicas)
        let load = LimitLoad(sides)
        #expect(await eventually { load.permits.count > 200 })
        let start = MonotonicTime.now()
        try await sides.cutOff()
        let promoted = MonotonicTime.now()
        if replicas > 0 { #expect(await eventually { load.lastRefusal > promoted }) }
        // The split lasts until both sides have had a second of it.
        #expect(await eventually { load.permits.count { !$0.isInner && $0.time > promoted } > 400 })
        let healing = MonotonicTime.now()
        try await sides.heal()
        let healed = MonotonicTime.now()
        #expect(await eventually { load.permits.count { $0.time > healed } > 800 })
        #expect(await eventually { load.permits.contains { $0.isInner && $0.time > healed } })
        let permits = await load.end()
        let end = MonotonicTime.now()
        func seconds(_ from: Nanoseconds, _ to: Nanoseconds) -> Double { to > from ? Double(to - from) / 1e9 : 0 }
        func most(_ from: Nanoseconds, _ to: Nanoseconds) -> Double { 10 + 500 * (seconds(from, to) + 0.1) }
        // The last permit of the old master, and the first one of the new master.
        let last = try #require(permits.last { $0.isInner && $0.time < (replicas > 0 ? healing : healed) }).time
        let first = try #require(permits.first { !$0.isInner && $0.time > promoted }).time
        let within = permits.filter { $0.time >= start && $0.time <= healed }
        let after = permits.count { $0.time > healed }
        print(
            "split brain, \(replicas) replicas: promoted after \(seconds(start, promoted)) s, old master granted for \(seconds(start, last)) s,",
            "healed after \(seconds(start, healing)) and followed \(seconds(healing, healed)) s later;",
            "permits inside \(within.count { $0.isInner }), outside \(within.count { !$0.isInner }) of \(Int(most(start, healed)));",
            "afterwards \(after) of \(Int(most(healed, end)))")
        #expect(Double(within.count { $0.isInner }) <= most(start, last))
        #expect(Double(permits.count { !$0.isInner && $0.time >= first && $0.time <= healed }) <= most(first, healed))
        // What the old master grants while there is a new one is too much, and once more the burst and what was reserved.
        #expect(Double(within.count) <= most(start, healed) + 500 * seconds(first, last) + 10 + 50)
        // A lag of one second is noticed within two, once a second.
        if replicas > 0 { #expect(seconds(start, last) < 6) }
        #expect(Double(after) <= most(healed, end) + 10 + 50)
    }

    @Test(
        "no refresh token is used twice, on whichever side the process is that refreshes when the master is cut off",
        arguments: [true, false] as [Bool], [0, 1] as [Int])
    func token(isInner: Bool, replicas: Int) async throws {
        let sides = try await Sides(replicas: replicas)
        // The authorization server is not cut off.
        let outside = PromiseTests.Authorization()
        let inside = PromiseTests.Authorization(of: outside)
        let authenticators = sides.clients.enumerated().map { index, client in
            // Inside, it ends after healing, and a lease of the others before.
            FleetAuthenticator(
                index == 0 ? inside : outside, client: client, name: "split", lease: .seconds(isInner ? 60 : 8), whenUnavailable: .fail)
        }
        #expect(await becomesTrue { (try? await authenticators[0].share(PromiseTests.Authorization.Token(number: 1))) != nil })
        let load = TokenLoad(authenticators)
        #expect(await eventually { (0..<4).allSatisfy { load.gotten(by: $0) > 4 } })
        let holder = isInner ? inside : outside
        holder.isHeld.withLock { $0 = true }
        #expect(await eventually { holder.refreshing.withLock { $0 } > 0 })
        let failed = load.failed(by: 0)
        try await sides.cutOff { holder.isHeld.withLock { $0 = false } }
        let promoted = outside.state.withLock { $0.last }
        // It has tried, and then waits for the lease that it can't end.
        #expect(await eventually { load.failed(by: 0) > failed })
        // The others wait for the one that is cut off if it has the lease.
        if !isInner { #expect(await eventually { outside.state.withLock { $0.last } > promoted + 4 }) }
        let healing = outside.state.withLock { $0.last }
        try await sides.heal()
        let before = (0..<4).map { load.gotten(by: $0) }
        #expect(await eventually { (0..<4).allSatisfy { load.gotten(by: $0) > before[$0] + 4 } })
        await load.end()
        let uses = outside.state.withLock { $0.uses }
        print(
            "split brain, a token, \(replicas) replicas, the holder \(isInner ? "inside" : "outside"): \(healing - promoted) refreshes between",
            "the fail-over and healing, \(uses.count) in all, \(uses.filter { $0.value > 1 }) more than once")
        #expect(uses.allSatisfy { $0.value == 1 })
    }

    @Test("a replica that is cut off with the master has no process refresh there, and no refresh token is used twice")
    func tokenWithReplica() async throws {
        let sides = try await Sides(replicas: 0, keepsReplica: true)
        let outside = PromiseTests.Authorization()
        let inside = PromiseTests.Authorization(of: outside)
        let authenticators = sides.clients.enumerated().map { index, client in
            FleetAuthenticator(
                index == 0 ? inside : outside, client: client, name: "split", lease: .seconds(8), whenUnavailable: .fail)
        }
        #expect(await becomesTrue { (try? await authenticators[0].share(PromiseTests.Authorization.Token(number: 1))) != nil })
        let load = TokenLoad(authenticators)
        #expect(await eventually { (0..<4).allSatisfy { load.gotten(by: $0) > 4 } })
        // No lease is held inside when the network is cut.
        outside.isHeld.withLock { $0 = true }
        #expect(await eventually { outside.refreshing.withLock { $0 } > 0 })
        try await sides.cutOff { outside.isHeld.withLock { $0 = false } }
        let (promoted, failed) = (outside.state.withLock { $0.last }, load.failed(by: 0))
        // Outside the fleet continues. Inside, the lease of the outside ends, and the replica there responds all the time.
        #expect(await eventually { outside.state.withLock { $0.last } > promoted + 4 })
        #expect(await becomesTrue { load.failed(by: 0) > failed + 3 })
        let replica = sides.group.servers[3]
        let role = try await sides.network.inside { try replica.client() }.run(["ROLE"]).elements ?? []
        #expect(role.count > 3 && role[2].integer == sides.group.servers[0].port && role[3].text == "connected")
        let healing = outside.state.withLock { $0.last }
        try await sides.heal()
        let before = (0..<4).map { load.gotten(by: $0) }
        #expect(await eventually { (0..<4).allSatisfy { load.gotten(by: $0) > before[$0] + 4 } })
        await load.end()
        let uses = outside.state.withLock { $0.uses }
        print(
            "split brain, a replica with the old master: \(healing - promoted) refreshes between the fail-over and healing, \(uses.count)",
            "in all, \(uses.filter { $0.value > 1 }) more than once")
        #expect(uses.allSatisfy { $0.value == 1 })
    }

    @Test("no side reads a wrong body, and afterwards both read the same ones") func cache() async throws {
        let sides = try await Sides(replicas: 0)
        let changes = Log<Bool>()
        let observed = RedisCacheStorage(sides.inner)
        let observation = observed.observeChanges { if $0 == nil { changes.append(true) } }
        await changes.wait(for: 1)
        let load = CacheLoad(sides.clients)
        func haveRead(_ count: Int) async -> Bool {
            let before = (0..<4).map { load.reads(by: $0) }
            return await eventually { (0..<4).allSatisfy { load.reads(by: $0) > before[$0] + count } }
        }
        #expect(await haveRead(50))
        try await sides.cutOff()
        #expect(await haveRead(200))
        let count = changes.count
        try await sides.heal()
        #expect(await haveRead(200))
        // Its copies in memory are dropped.
        await changes.wait(for: count + 1)
        #expect(await load.end() == [])
        var stored = 0
        for key in 0..<20 {
            let bodies = try sides.clients.map { try RedisCacheStorage($0).entry(for: CacheKey("\(key)"))?.body }
            #expect(bodies.allSatisfy { $0 == bodies[0] })
            stored += bodies[0] == nil ? 0 : 1
        }
        #expect(stored > 0)
        withExtendedLifetime((observed, observation)) {}
    }
}
#endif
