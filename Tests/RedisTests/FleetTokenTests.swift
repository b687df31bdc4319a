// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP

import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@testable import CurlewRedis

/// A service whose resource needs its newest token.
private final class TokenService: Sendable {
    enum Mode { case issues, refuses, hangs }

    struct State {
        var issued = 0
        var asked = 0
        var mode = Mode.issues
        var minimum = 1
    }

    let state: Monitor<State>
    let server: LoopbackServer

    init() throws {
        let state = Monitor(State())
        self.state = state
        server = try LoopbackServer { request, connection in
            switch request.path {
            case "/token":
                let (mode, number) = state.update { state -> (Mode, Int) in
                    state.asked += 1
                    if state.mode == .issues { state.issued += 1 }
                    return (state.mode, state.issued)
                }
                switch mode {
                case .refuses: return .status(400)
                case .hangs:
                    connection.waitUntilClosed()
                    return nil
                case .issues:
                    var response = ServerResponse.ok("\(number)")
                    response.delay = .milliseconds(50)
                    return response
                }
            default:
                let number = request.header("Authorization").flatMap { Int($0.dropFirst("Bearer ".count)) } ?? 0
                return number >= state.read({ $0.minimum }) ? .ok("yes") : .status(401)
            }
        }
    }

    var url: String { server.url("") }
    var asked: Int { state.read { $0.asked } }
    func change(_ body: (inout State) -> Void) { state.update { body(&$0) } }
}

/// A master that a sentinel knows, with replicas, and a client of it; the replicas have what is written.
private struct Replicated {
    let master, sentinel: RedisNode
    let replicas: [RedisNode]
    let client: RedisClient

    /// - Parameter downAfter: how long a replica may be silent before the sentinel takes it for down, in milliseconds.
    init(_ count: Int, downAfter: Int) async throws {
        let ports = try RedisNode.freePorts(2 + count)
        master = try await RedisNode(port: ports[0], [])
        var replicas: [RedisNode] = []
        for port in ports[2...] { replicas.append(try await RedisNode(port: port, ["--replicaof", "127.0.0.1", "\(ports[0])"])) }
        self.replicas = replicas
        let name = SentinelGroup.name
        sentinel = try await RedisNode(
            sentinelAt: ports[1],
            "sentinel monitor \(name) 127.0.0.1 \(ports[0]) 1\nsentinel down-after-milliseconds \(name) \(downAfter)")
        var configuration = RedisConfiguration(.sentinels([sentinel.address], master: name))
        // Half of that is how long replicas are waited for, which a busy machine may hold up.
        configuration.commandTimeout = .seconds(2)
        configuration.connectTimeout = .seconds(10)
        client = try RedisClient(configuration)
        guard await client.becomesReady() else { throw TestError("the master is not found") }
        let watcher = try sentinel.client()
        _ = try await watcher.run(["SENTINEL", "DEBUG", "info-period", "500"])
        let isComplete = await becomesTrue { [client] in
            // A replica that was just connected counts, but gets what is written only after its first response.
            guard (try? await client.run(["SET", "ready", "1"])) != nil else { return false }
            guard (try? await client.run(["WAIT", .number(count), 100])) == .integer(count) else { return false }
            return (try? await watcher.run(["SENTINEL", "REPLICAS", .text(name)]).elements?.count) == count
        }
        guard isComplete else { throw TestError("the replicas are not known") }
    }
}

@Suite(.enabled(if: RedisServer.isInstalled), .timeLimit(.minutes(2))) struct FleetTokenTests {
    @Test("ten processes refresh a token once, and again once when it expires") func once() async throws {
        let (server, service) = (try await RedisServer(), try TokenService())
        let fleet = try await Fleet(10, "token", on: server, service.url, "10")
        fleet.begin()
        #expect(await fleet.numbers() == Array(repeating: 10, count: 10))
        #expect(service.asked == 1)
        service.change { $0.minimum = 2 }
        fleet.begin()
        #expect(await fleet.numbers() == Array(repeating: 10, count: 10))
        #expect(service.asked == 2)
    }

    @Test("a process that is killed while it refreshes is replaced when its lease ends") func killed() async throws {
        let (server, service) = (try await RedisServer(), try TokenService())
        service.change { $0.mode = .hangs }
        let fleet = try await Fleet(5, "token", on: server, service.url, "2")
        fleet.processes[0].writeLine()
        #expect(await eventually { service.asked == 1 })
        service.change { $0.mode = .issues }
        for process in fleet.processes.dropFirst() { process.writeLine() }
        fleet.processes[0].send(SIGKILL)
        var right: [Int] = []
        for process in fleet.processes.dropFirst() {
            right.append(await process.readLine()?.split(separator: "=").last.flatMap { Int($0) } ?? -1)
        }
        #expect(right == [2, 2, 2, 2])
        #expect(service.asked == 2)
    }

    @Test("a refused refresh is told to all") func refused() async throws {
        let (server, service) = (try await RedisServer(), try TokenService())
        service.change { $0.mode = .refuses }
        let fleet = try await Fleet(6, "token", on: server, service.url, "3")
        fleet.begin()
        #expect(await fleet.numbers() == Array(repeating: 0, count: 6))
        #expect(service.asked == 1)
    }

    @Test("what a holder stores after its lease has been taken is refused") func fenced() async throws {
        let server = try await RedisServer()
        let client = try server.client()
        let first = FleetToken(client, name: "fenced", lease: .milliseconds(50))
        let second = FleetToken(client, name: "fenced", lease: .seconds(60))
        guard case .refresh(let old, nil, 0) = try await first.claim(known: 0) else { return #expect(Bool(false)) }
        var taken: Int?
        while taken == nil {
            switch try await second.claim(known: 0) {
            case .refresh(let fence, _, _): taken = fence
            case .wait(let time): #expect(time <= 50)
            default: #expect(Bool(false))
            }
        }
        let new = try #require(taken)
        #expect(new > old)
        #expect(try await first.complete(old, Data("old".utf8)) == false)
        #expect(try await first.renew(old) == false)
        #expect(try await second.complete(new, Data("new".utf8)))
        guard case .use(let value, new) = try await first.claim(known: 0) else { return #expect(Bool(false)) }
        #expect(value == Data("new".utf8))
    }

    @Test("what was refreshed under a lease that the server has lost is stored under the next one, and not refreshed again") func lost()
        async throws
    {
        let server = try await RedisServer()
        let client = try server.client()
        let key = client.key("token1", "lost")
        let base = TestAuthenticator()
        let authenticator = FleetAuthenticator(base, client: client, name: "lost", whenUnavailable: .fail)
        let manager = makeManager()
        let first = try await authenticator.credential(replacing: nil, for: manager)
        let stored = try await client.run(["HMGET", .text(key), "value", "generation", "fence"]).elements ?? []
        let fields =
            try zip(["value", "generation", "fence"], stored).flatMap { [.text($0), .bytes(try #require($1.data))] }
            as [RedisArgument]
        // As on a replica that becomes the master, and lacks the lease: once.
        base.refreshed.withLock { refreshed in
            refreshed = {
                base.refreshed.withLock { $0 = nil }
                _ = try await client.run(["DEL", .text(key)])
                _ = try await client.run(["HSET", .text(key)] + fields)
            }
        }
        #expect(try await authenticator.credential(replacing: first, for: manager).number == 2)
        #expect(base.asked.elements == [0, 1])
        let other = FleetAuthenticator(TestAuthenticator(), client: client, name: "lost", whenUnavailable: .fail)
        #expect(try await other.credential(replacing: nil, for: manager).number == 2)
    }

    @Test(
        "what was refreshed under a lease that the server has lost is used if there is no next one, and not refreshed again",
        arguments: [FleetAuthenticator<TestAuthenticator>.Unavailability.refreshLocally, .fail])
    func lostAndUnavailable(whenUnavailable: FleetAuthenticator<TestAuthenticator>.Unavailability) async throws {
        let server = try await RedisServer()
        let client = try server.client()
        let key = client.key("token1", "full")
        let base = TestAuthenticator()
        let authenticator = FleetAuthenticator(base, client: client, name: "full", whenUnavailable: whenUnavailable)
        let manager = makeManager()
        let first = try await authenticator.credential(replacing: nil, for: manager)
        base.refreshed.withLock { refreshed in
            refreshed = {
                base.refreshed.withLock { $0 = nil }
                _ = try await client.run(["DEL", .text(key)])
                _ = try await client.run(["CONFIG", "SET", "maxmemory", "1"])
            }
        }
        let second = try await authenticator.credential(replacing: first, for: manager)
        #expect(second.number == 2)
        #expect(base.asked.elements == [0, 1])
        _ = try await client.run(["CONFIG", "SET", "maxmemory", "0"])
        #expect(try await authenticator.credential(replacing: second, for: manager).number == 3)
        #expect(base.asked.elements == [0, 1, 2])
    }

    @Test("a process whose credential is newer than the server's refreshes that one, and its number is greater than all that it knows")
    func newer() async throws {
        let server = try await RedisServer()
        let client = try server.client()
        let key = client.key("token1", "newer")
        let base = TestAuthenticator()
        let authenticator = FleetAuthenticator(base, client: client, name: "newer", whenUnavailable: .fail)
        let manager = makeManager()
        let first = try await authenticator.credential(replacing: nil, for: manager)
        let older = try await client.run(["HMGET", .text(key), "value", "generation"]).elements?.compactMap(\.data) ?? []
        let second = try await authenticator.credential(replacing: first, for: manager)
        // As on a replica that becomes the master, and lacks the second one.
        _ = try await client.run(["DEL", .text(key)])
        _ = try await client.run([
            "HSET", .text(key), "value", .bytes(try #require(older.first)), "generation", .bytes(try #require(older.last)),
        ])
        #expect(try await authenticator.credential(replacing: second, for: manager).number == 3)
        #expect(base.asked.elements == [0, 1, 2])
        // On a server whose clock is slow, too.
        let known = 4_000_000_000_000_000
        guard case .refresh(known + 1, _, _) = try await FleetToken(client, name: "slow", lease: .seconds(1)).claim(known: known) else {
            return #expect(Bool(false))
        }
    }

    @Test("a credential that could not be stored is tried again until the client is closed") func closed() async throws {
        let server = try await RedisServer()
        let client = try server.client(timeout: .milliseconds(20))
        #expect(await client.becomesReady())
        let token = FleetToken(client, name: "closed", lease: .seconds(3_600))
        let patient = FleetToken(try server.client(), name: "closed", lease: .seconds(3_600))
        guard case .refresh(let fence, _, _) = try await patient.claim(known: 0) else { return #expect(Bool(false)) }
        await server.kill()
        let isEnded = Lock(false)
        Task {
            await token.completeLater(fence, Data("new".utf8))
            isEnded.withLock { $0 = true }
        }
        try await server.restart()
        #expect(await client.becomesReady())
        // The lease is lost with the server, so that another one may have been granted.
        #expect(await eventually { isEnded.withLock { $0 } })
        isEnded.withLock { $0 = false }
        await server.kill()
        Task {
            await token.completeLater(fence, Data("new".utf8))
            isEnded.withLock { $0 = true }
        }
        client.close()
        #expect(await eventually { isEnded.withLock { $0 } })
    }

    @Test("a server whose replicas do not respond any more grants no lease, and what it has stored is stored again") func unreplicated()
        async throws
    {
        let service = try await Replicated(1, downAfter: 600_000)
        let (client, replica) = (service.client, service.replicas[0])
        let strict = FleetToken(client, name: "token", lease: .seconds(60), needsReplica: true)
        guard case .refresh(let first, nil, 0) = try await strict.claim(known: 0) else { return #expect(Bool(false)) }
        #expect(try await strict.complete(first, Data("old".utf8)))
        replica.send(SIGSTOP)
        let unknown = await #expect(throws: RedisError.self) { try await strict.claim(known: first) }
        #expect(unknown == .timedOut(command: "WAIT", after: .seconds(1)))
        // Also a process that has seen no replica respond: the sentinel knows of it.
        let late = FleetToken(client, name: "token", lease: .seconds(60), needsReplica: true)
        await #expect(throws: RedisError.self) { try await late.claim(known: first) }
        // The lease has ended, and a process that needs no replica gets one.
        let other = FleetToken(client, name: "token", lease: .seconds(60))
        guard case .refresh(let fence, _, _) = try await other.claim(known: first) else { return #expect(Bool(false)) }
        await #expect(throws: RedisError.self) { try await strict.complete(fence, Data("new".utf8)) }
        async let isEnded: Void = strict.completeLater(fence, Data("new".utf8))
        replica.send(SIGCONT)
        await isEnded
        #expect(try await replica.client().run(["HGET", .text(client.key("token1", "token")), "value"]).data == Data("new".utf8))
        withExtendedLifetime(service) {}
    }

    @Test("a lease needs each replica that may be promoted, until most sentinels take it for down") func everyReplica() async throws {
        let service = try await Replicated(2, downAfter: 2_000)
        let strict = FleetToken(service.client, name: "token", lease: .seconds(60), needsReplica: true)
        let any = FleetToken(service.client, name: "token", lease: .seconds(60))
        // While others write all the time.
        let load = CounterLoad(try RedisClient(service.client.configuration), keys: ["counter"])
        #expect(await eventually { load.successes > 100 })
        for _ in 0..<20 {
            guard case .refresh(let fence, nil, 0) = try await strict.claim(known: 0) else { return #expect(Bool(false)) }
            try await strict.release(fence)
        }
        _ = await load.end()
        guard case .refresh(let first, nil, 0) = try await strict.claim(known: 0) else { return #expect(Bool(false)) }
        #expect(try await strict.complete(first, Data("old".utf8)))
        service.replicas[1].send(SIGSTOP)
        // The other one responds.
        let error = await #expect(throws: RedisError.self) { try await strict.claim(known: first) }
        #expect(error == .timedOut(command: "WAIT", after: .seconds(1)))
        guard case .refresh(let fence, _, _) = try await any.claim(known: first) else { return #expect(Bool(false)) }
        try await any.release(fence)
        var lease: Int?
        #expect(
            await becomesTrue {
                if case .refresh(let fence, _, _)? = try? await strict.claim(known: first) { lease = fence }
                return lease != nil
            })
        #expect(try await strict.complete(try #require(lease), Data("new".utf8)))
        // Without any there is no lease, although none may be promoted.
        service.replicas[0].send(SIGSTOP)
        let sentinel = try service.sentinel.client()
        let flags = await becomesTrue {
            let replicas = (try? await sentinel.run(["SENTINEL", "REPLICAS", .text(SentinelGroup.name)]).elements) ?? []
            return replicas.count == 2 && replicas.allSatisfy { $0.elements?.contains { $0.text?.contains("s_down") == true } == true }
        }
        #expect(flags)
        await #expect(throws: RedisError.self) { try await strict.claim(known: first + 1_000_000) }
        withExtendedLifetime(service) {}
    }

    @Test("without the server each process refreshes by itself, or fails, as it was told") func unavailable() async throws {
        var configuration = RedisConfiguration(.unix(path: "/nowhere/redis.sock"))
        configuration.commandTimeout = .milliseconds(20)
        let client = try RedisClient(configuration)
        let base = TestAuthenticator()
        let manager = makeManager()
        let local = FleetAuthenticator(base, client: client, name: "away")
        #expect(try await local.credential(replacing: nil, for: manager).number == 1)
        let strict = FleetAuthenticator(base, client: client, name: "away", whenUnavailable: .fail)
        await #expect(throws: RedisError.self) { try await strict.credential(replacing: nil, for: manager) }
    }

    @Test("a token is stored sealed, and one that was changed is not used") func sealed() async throws {
        let server = try await RedisServer()
        let client = try server.client()
        let keys = try SealingKeys(SealingKeys.Key(id: "one", bytes: (0..<32).map { UInt8($0) }))
        let manager = makeManager()
        func authenticator() -> FleetAuthenticator<TestAuthenticator> {
            FleetAuthenticator(TestAuthenticator(), client: client, name: "sealed", sealedWith: keys, whenUnavailable: .fail)
        }
        #expect(try await authenticator().credential(replacing: nil, for: manager).number == 1)
        let key = client.key("token1", "sealed")
        let stored = try #require(try await client.run(["HGET", .text(key), "value"]).data)
        #expect(!String(decoding: stored, as: UTF8.self).contains("number"))
        #expect(try await authenticator().credential(replacing: nil, for: manager).number == 1)
        var changed = stored
        changed[changed.count - 1] ^= 1
        _ = try await client.run(["HSET", .text(key), "value", .bytes(changed)])
        let error = await #expect(throws: RedisError.self) { try await authenticator().credential(replacing: nil, for: manager) }
        #expect(error == .unreadableValue(key: key, .wrongSeal))
    }
}

struct TestCredential: AuthenticationCredential, Codable, Sendable, Equatable {
    let number: Int
    var requiresRefresh: Bool { false }
}

/// Counts its refreshes.
final class TestAuthenticator: AsyncAuthenticator {
    /// The numbers of the credentials that were refreshed.
    let asked = Log<Int>()
    /// What happens before a refresh ends.
    let refreshed = Lock<(@Sendable () async throws -> Void)?>(nil)

    func apply(_ credential: TestCredential, to urlRequest: inout URLRequest) {}
    func credential(replacing expired: TestCredential?, for manager: SessionManager) async throws -> TestCredential {
        let number = expired?.number ?? 0
        asked.append(number)
        try await refreshed.withLock { $0 }?()
        return TestCredential(number: number + 1)
    }
    func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool {
        false
    }
    func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: TestCredential) -> Bool { true }
}
#endif
