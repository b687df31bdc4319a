// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewCache
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import CurlewResilience
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewRedis

/// What a fail-over may cost: what SCALE.md promises of each store, with a master that is killed under load. Replication is asynchronous, so
/// that a fail-over may lose the last writes. With `CURLEW_TEST_LONG=1` only.
@Suite(.enabled(if: RedisServer.isInstalled && TestLength.isLong), .timeLimit(.minutes(3))) struct PromiseTests {
    /// Kills the master, and waits until the sentinels agree on another one.
    private func failOver(_ group: SentinelGroup) async throws {
        await group.servers[0].kill()
        #expect(await becomesTrue { (try? await group.master()).map { $0 !== group.servers[0] } ?? false })
    }

    @Test("a limiter of eight processes lets through one burst more than its limit at most, and what was reserved") func limiter()
        async throws
    {
        let group = try await SentinelGroup()
        let fleet = try await Fleet(8, "outlast", at: group.place, ["500", "8"])
        fleet.begin()
        try await Task.sleep(for: .seconds(1))
        try await failOver(group)
        try judge(await fleet.reports(), "a master killed")
    }

    @Test("the same with a master that comes back empty before it is replaced") func limiterOfEmptyMaster() async throws {
        let group = try await SentinelGroup(downAfter: 60_000)
        let fleet = try await Fleet(8, "outlast", at: group.place, ["500", "8"])
        fleet.begin()
        try await Task.sleep(for: .seconds(1))
        await group.servers[0].kill()
        try await group.servers[0].restart()
        try judge(await fleet.reports(), "a master restarted empty")
    }

    @Test("the same with a node of a cluster") func limiterInCluster() async throws {
        let group = try await ClusterGroup()
        let key = "curlew:limit1:{fleet}"
        let owner = HashSlot.slot(of: key.utf8) / (16_384 / 3 + 1)
        let fleet = try await Fleet(8, "outlast", at: group.place, ["500", "8"])
        fleet.begin()
        try await Task.sleep(for: .seconds(1))
        await group.nodes[owner].kill()
        try judge(await fleet.reports(), "a node of a cluster killed")
    }

    @Test("while its slot is moved to another node and back, a limiter of eight processes keeps its limit, and no call fails")
    func limiterOfMovedSlot() async throws {
        // No node that a busy machine holds up is to be replaced.
        let group = try await ClusterGroup(timeout: 5_000)
        let slot = HashSlot.slot(of: "fleet".utf8)
        let owner = group.nodes[slot / (16_384 / 3 + 1)]
        let other = try #require(group.nodes[..<3].first { $0 !== owner })
        let fleet = try await Fleet(8, "outlast", at: group.place, ["500", "8"])
        fleet.begin()
        let end = ContinuousClock.now + .seconds(7)
        var moves = 0
        while .now < end {
            let (from, to) = moves.isMultiple(of: 2) ? (owner, other) : (other, owner)
            try await group.migrate(slot, from: from, to: to)
            moves += 1
        }
        let result = try result(of: await fleet.reports())
        print("limiter, a slot moved \(moves) times: \(result)")
        #expect(moves >= 4)
        #expect(result.failed == 0)
        // It is not interrupted, so that it takes most of its permits, and the limit has no exception.
        #expect((result.most / 2...result.most).contains(Double(result.total)))
    }

    /// What a fleet has got of a limit of 500 a second and bursts of 10.
    private struct Outcome {
        var total, failed: Int
        /// The time from the first begin to the last end, the longest time in which a process had no permit, and the shortest of these times of
        /// all processes, in seconds.
        var seconds, longest, shortest: Double
        /// The most that the limit allows in that time: the burst, and the rate with the 100 milliseconds that are reserved ahead.
        var most: Double { 10 + 500 * (seconds + 0.1) }
    }

    private func result(of reports: [Probe.Report]) throws -> Outcome {
        func values(_ name: String) throws -> [Int] {
            let values = reports.compactMap { $0[name] }
            guard values.count == reports.count, !values.isEmpty else { throw TestError("a process has not reported \(name)") }
            return values
        }
        let gaps = try values("gap").sorted().map { Double($0) / 1e9 }
        let (began, ended) = (try values("began").min() ?? 0, try values("ended").max() ?? 0)
        return Outcome(
            total: try values("granted").reduce(0, +), failed: try values("failed").reduce(0, +), seconds: Double(ended - began) / 1e9,
            longest: gaps.last ?? 0, shortest: gaps.first ?? 0)
    }

    /// Checks the permits of a fleet during which a server was replaced.
    private func judge(_ reports: [Probe.Report], _ name: String) throws {
        let result = try result(of: reports)
        // Without the time in which no process got any, which the gap of each process is longer than by its share of the rate. Once more the
        // burst, and what was reserved.
        let most = result.most - 500 * max(result.shortest - 0.2, 0)
        print("limiter, \(name): \(result), limit \(Int(most))")
        #expect(Double(result.total) <= most + 10 + 50)
        // It was interrupted, and continued.
        #expect(result.failed > 0 && result.longest < result.seconds - 1.5)
    }

    /// A client of an authorization server whose refresh tokens may be used once.
    final class Authorization: AsyncAuthenticator {
        struct Token: AuthenticationCredential, Codable, Sendable {
            let number: Int
            var requiresRefresh: Bool { false }
        }

        struct State {
            var uses: [Int: Int] = [:]
            var last = 1
        }

        /// The server's.
        let state: Lock<State>
        /// How many refreshes of this client are in progress.
        let refreshing = Lock(0)
        /// Whether they do not end.
        let isHeld = Lock(false)

        /// Makes a client of the server that another one has, or of one of its own.
        init(of other: Authorization? = nil) { state = other?.state ?? Lock(State()) }

        func apply(_ credential: Token, to urlRequest: inout URLRequest) {}

        func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool {
            false
        }

        func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Token) -> Bool { true }

        func credential(replacing expired: Token?, for manager: SessionManager) async throws -> Token {
            state.withLock { $0.uses[expired?.number ?? 0, default: 0] += 1 }
            refreshing.withLock { $0 += 1 }
            defer { refreshing.withLock { $0 -= 1 } }
            repeat { try await Task.sleep(for: .milliseconds(100)) } while isHeld.withLock { $0 }
            return state.withLock { state in
                state.last += 1
                return Token(number: state.last)
            }
        }
    }

    @Test("a refresh token is used once, also if the master dies while it is used", arguments: [true, false])
    func token(duringRefresh: Bool) async throws {
        let group = try await SentinelGroup()
        let server = Authorization()
        let authenticators = try (0..<8).map { _ in
            FleetAuthenticator(
                server, client: try RedisClient(group.configuration()), name: "service", lease: .seconds(20), whenUnavailable: .fail)
        }
        #expect(await becomesTrue { (try? await authenticators[0].share(Authorization.Token(number: 1))) != nil })
        let load = TokenLoad(authenticators)
        #expect(await eventually { load.gotten > 16 })
        #expect(await eventually { (server.refreshing.withLock { $0 } > 0) == duringRefresh })
        try await failOver(group)
        let before = load.gotten
        #expect(await eventually { load.gotten > before + 16 })
        await load.end()
        let uses = server.state.withLock { $0.uses }
        print("token: \(uses.count) refreshes, \(uses.filter { $0.value > 1 }) more than once")
        #expect(uses.allSatisfy { $0.value == 1 })
    }

    @Test("a cache gives the body of the key, of a version that was stored") func cache() async throws {
        let group = try await SentinelGroup()
        let clients = try (0..<4).map { _ in try RedisClient(group.configuration()) }
        for client in clients { #expect(await client.becomesReady()) }
        let load = CacheLoad(clients)
        #expect(await eventually { load.reads > 100 })
        try await failOver(group)
        let before = load.reads
        #expect(await eventually { load.reads > before + 100 })
        #expect(await load.end() == [])
    }

    @Test("cookies converge: what was set while there was no master is stored with the next change") func cookies() async throws {
        let group = try await SentinelGroup()
        let stores = try (0..<2).map { _ in CookieStore.redis(try RedisClient(group.configuration())) }
        func set(_ name: String, in store: CookieStore) -> Bool {
            (try? store.set(Cookie(name: name, value: "1", domain: "example.org"))) != nil
        }
        func names(_ store: CookieStore) -> [String] { (try? store.cookies().map(\.name).sorted()) ?? [] }
        #expect(await becomesTrue { set("before", in: stores[0]) })
        #expect(await eventually { names(stores[1]) == ["before"] })
        await group.servers[0].kill()
        _ = (set("without1", in: stores[0]), set("without2", in: stores[1]))
        #expect(await becomesTrue { (try? await group.master()).map { $0 !== group.servers[0] } ?? false })
        #expect(await becomesTrue { set("after1", in: stores[0]) && set("after2", in: stores[1]) })
        let all = ["after1", "after2", "before", "without1", "without2"]
        #expect(await eventually { names(stores[0]) == all && names(stores[1]) == all })
    }
}
#endif
