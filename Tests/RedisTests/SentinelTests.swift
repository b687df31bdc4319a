// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewResilience
import CurlewTestSupport
import Testing

@testable import CurlewRedis

/// A master that sentinels know, with real servers.
@Suite(.enabled(if: RedisServer.isInstalled), .timeLimit(.minutes(3))) struct SentinelTests {
    @Test("the master is found by any sentinel that responds, with users of servers and sentinels, whose passwords may change")
    func users() async throws {
        // A master that a busy machine holds up stays the master, and its connections last.
        let group = try await SentinelGroup(downAfter: 60_000, users: true)
        let gone = try RedisNode.freePorts(1)[0]
        var configuration = group.configuration(timeout: .seconds(5))
        configuration.address = .sentinels([.tcp(host: "127.0.0.1", port: gone), group.sentinels[1].address], master: SentinelGroup.name)
        (configuration.connectTimeout, configuration.silenceLimit) = (.seconds(10), .seconds(10))
        let asked = Log<String>()
        configuration.credentials = RedisCredentials(username: "app") {
            asked.append("data")
            await Task.yield()
            return "data"
        }
        let client = try RedisClient(configuration)
        #expect(try await client.run(["SET", "key", "value"]) == .status("OK"))
        #expect(try await client.run(["CLIENT", "LIST"]).text?.contains("user=app") == true)
        let before = asked.count
        #expect(before == 1)
        let watcher = try group.sentinels[1].client()
        #expect(try await watcher.run(["CLIENT", "LIST"]).text?.contains("user=watcher") == true)
        // Each connection asks for the password.
        let subscription = client.subscribe(to: "news") { _ in }
        await asked.wait(for: 2)
        withExtendedLifetime(subscription) {}
    }

    @Test("a password that can't be obtained, or does not come, is an error that says so") func noPassword() async throws {
        struct NoVault: Error {}
        let server = try await RedisServer("--requirepass", "secret")
        var configuration = server.configuration()
        configuration.credentials = RedisCredentials { throw NoVault() }
        let refused = try RedisClient(configuration)
        #expect(await eventually { refused.refusal == .unavailable(configuration.address, .credentialsFailed("NoVault()")) })
        configuration.connectTimeout = .milliseconds(50)
        let calls = Log<Bool>()
        configuration.credentials = RedisCredentials {
            calls.append(true)
            // The first call ends only by its cancellation.
            if calls.count == 1 { try await Task.sleep(for: .seconds(3_600)) }
            return "secret"
        }
        let client = try RedisClient(configuration)
        #expect(await client.becomesReady())
        #expect(calls.count >= 2)
    }

    @Test("a closure of passwords that ignores its cancellation is not called again before it has returned") func slowPassword()
        async throws
    {
        let server = try await RedisServer("--requirepass", "secret")
        var configuration = server.configuration()
        configuration.connectTimeout = .milliseconds(50)
        let calls = Log<String>()
        configuration.credentials = RedisCredentials {
            calls.append("begin")
            if calls.count == 1 { await Task.detached { try? await Task.sleep(for: .milliseconds(500)) }.value }
            calls.append("end")
            return "secret"
        }
        let client = try RedisClient(configuration)
        #expect(await client.becomesReady())
        #expect(calls.elements.prefix(4) == ["begin", "end", "begin", "end"])
    }

    @Test("what a sentinel that knows no AUTH repeats of it is in no error") func secret() async throws {
        let fake = try FakeServer(
            response: "-ERR unknown command `AUTH`, with args beginning with: `watcher`, `secret`, \r\n", isTCP: true)
        var configuration = RedisConfiguration(.sentinels([.tcp(host: "127.0.0.1", port: fake.port)], master: "service"))
        configuration.sentinelCredentials = RedisCredentials(username: "watcher", password: "secret")
        let client = try RedisClient(configuration)
        #expect(
            await eventually {
                client.refusal == .unavailable(configuration.address, .rejected("ERR unknown command `AUTH`"))
            })
    }

    @Test("a server that the sentinels name, and that is no master, is not used") func role() async throws {
        // The replica stays one.
        let group = try await SentinelGroup(downAfter: 60_000)
        let port = group.servers[1].port
        let answer = "*2\r\n$9\r\n127.0.0.1\r\n$\("\(port)".utf8.count)\r\n\(port)\r\n*0\r\n"
        let fake = try FakeServer(response: answer + "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n", isTCP: true)
        var configuration = group.configuration()
        configuration.address = .sentinels([.tcp(host: "127.0.0.1", port: fake.port)], master: "service")
        let client = try RedisClient(configuration)
        #expect(await eventually { client.refusal == .unavailable(group.servers[1].address, .notMaster) })
    }

    @Test("a name that no sentinel knows, and sentinels that are none, are errors that say so") func noMaster() async throws {
        let group = try await SentinelGroup()
        var configuration = group.configuration()
        configuration.address = .sentinels(group.sentinels.map(\.address), master: "other")
        let client = try RedisClient(configuration)
        #expect(await eventually { client.refusal == .unavailable(configuration.address, .noMaster) })
        configuration.address = .sentinels([group.servers[0].address], master: "other")
        let none = try RedisClient(configuration)
        #expect(await eventually { if case .unavailable(_, .rejected)? = none.refusal { true } else { false } })
        configuration.address = .sentinels([.tcp(host: "127.0.0.1", port: try RedisNode.freePorts(1)[0])], master: "other")
        let gone = try RedisClient(configuration)
        #expect(await eventually { gone.refusal == .unavailable(configuration.address, .system(ECONNREFUSED)) })
    }

    @Test("sentinels and the master they name are reached with TLS, and after a fail-over too", .enabled(if: TestLength.isLong))
    func secure() async throws {
        let group = try await SentinelGroup(isSecure: true)
        let client = try RedisClient(group.configuration(timeout: .seconds(20)))
        #expect(await client.becomesReady())
        #expect(try await client.run(["SET", "key", "value"]) == .status("OK"))
        await group.servers[0].kill()
        #expect(await becomesTrue { (try? await client.run(["SET", "key", "value"])) == .status("OK") })
        var configuration = group.configuration()
        configuration.tls.certificateAuthorities = nil
        let untrusting = try RedisClient(configuration)
        #expect(await eventually { if case .unavailable(_, .connectionFailed)? = untrusting.refusal { true } else { false } })
    }

    @Test("what a sentinel has responded over TLS is acted on without another event") func secureAtOnce() async throws {
        let (security, ports) = (try RedisNode.Security(), try RedisNode.freePorts(2))
        let master = try await RedisNode(port: ports[0], [], security)
        let sentinel = try await RedisNode(
            sentinelAt: ports[1], "sentinel monitor \(SentinelGroup.name) 127.0.0.1 \(ports[0]) 1", security)
        var configuration = RedisConfiguration(.sentinels([sentinel.address], master: SentinelGroup.name))
        configuration.tls.certificateAuthorities = security.authority.certificate
        configuration.commandTimeout = .seconds(20)
        configuration.connectTimeout = .seconds(10)
        // No check of a silent connection wakes the thread before the command's time has passed.
        configuration.silenceLimit = .seconds(60)
        let client = try RedisClient(configuration)
        #expect(try await client.run(["SET", "key", "value"]) == .status("OK"))
        withExtendedLifetime(master) {}
    }

    /// What ends the master's service; the one that is tried in each run, or both.
    enum Fault: CaseIterable {
        case killed, paused

        static var tried: [Self] { TestLength.isLong ? allCases : [.killed] }
    }

    @Test("after a fail-over commands reach the new master within a second of its announcement", arguments: Fault.tried)
    func failover(_ fault: Fault) async throws {
        // A master that a busy machine holds up before is not to be replaced.
        let group = try await SentinelGroup(downAfter: 1_500)
        var configuration = group.configuration()
        // A paused master is noticed by the sentinels only.
        if fault == .paused { configuration.silenceLimit = .seconds(60) }
        let client = try RedisClient(configuration)
        #expect(await client.becomesReady())
        let events = Log<String>()
        let subscription = client.subscribe(to: "news") { event in
            if case .message(let data) = event { events.append(String(decoding: data, as: UTF8.self)) } else { events.append("\(event)") }
        }
        await events.wait(for: 1)
        let announced = Lock<ContinuousClock.Instant?>(nil)
        // A sentinel announces the switch when it has heard of it: the first one counts.
        let watchers = try group.sentinels.map { try $0.client() }
        let watching = watchers.map { watcher in
            watcher.subscribe(to: "+switch-master") { event in
                if case .message = event { announced.withLock { $0 = $0 ?? .now } }
            }
        }
        let load = CounterLoad(client, keys: ["counter"])
        #expect(await eventually { load.successes > 100 })
        let start = ContinuousClock.now
        if fault == .killed { await group.servers[0].kill() } else { group.servers[0].send(SIGSTOP) }
        #expect(await becomesTrue { announced.withLock { $0 } != nil })
        // What the old one may still have counted is none of the new one's.
        load.mark()
        let first = try #require(await becomesTrue { load.firstSuccess != nil } ? load.firstSuccess : nil)
        let switched = try #require(announced.withLock { $0 })
        let (own, more) = (start.duration(to: switched), switched.duration(to: first))
        print("fail-over, \(fault): the sentinels took \(own), the client \(more) more")
        #expect(more < .seconds(5))
        let beforeReturn = load.successes
        #expect(await eventually { load.successes > beforeReturn + 100 })
        let master = try await group.master()
        #expect(master !== group.servers[0])
        let new = try master.client()
        if fault == .paused {
            let before = try await new.run(["GET", "counter"]).integer ?? 0
            group.servers[0].send(SIGCONT)
            // The old one counts nothing: it has no connection.
            let successes = load.successes
            #expect(await eventually { load.successes > successes + 100 })
            #expect(try await new.run(["GET", "counter"]).integer ?? 0 >= before + 100)
        }
        let report = await load.end()
        print("fail-over, \(fault): \(report.uncertain.values.reduce(0, +)) uncertain, \(report.refused) refused")
        // Messages arrive again.
        #expect(
            await becomesTrue {
                _ = try? await new.run(["PUBLISH", "news", "text"])
                return events.elements.last == "text"
            })
        #expect(events.elements.contains("\(SubscriptionEvent.ended)"))
        withExtendedLifetime((subscription, watching)) {}
    }

    @Test("a planned fail-over costs no read, only what may not run twice and was in flight", .enabled(if: TestLength.isLong))
    func planned() async throws {
        let group = try await SentinelGroup()
        let client = try RedisClient(group.configuration(timeout: .seconds(20)))
        #expect(await client.becomesReady())
        let load = CounterLoad(client, keys: ["counter"])
        let (reads, isEnded) = (Log<Bool>(), Lock(false))
        let reader = Task {
            while !isEnded.withLock({ $0 }) {
                do {
                    _ = try await client.run(["GET", "counter"])
                    reads.append(true)
                } catch {
                    // Refused on the caller's thread: it was not sent.
                    if case .unavailable? = error as? RedisError { await Task.yield() } else { reads.append(false) }
                }
            }
        }
        #expect(await eventually { load.successes > 100 })
        #expect(try await group.sentinels[0].client().run(["SENTINEL", "FAILOVER", .text(SentinelGroup.name)]) == .status("OK"))
        #expect(await becomesTrue { ((try? await group.masterPort(group.sentinels[0])) ?? nil) != group.servers[0].port })
        load.mark()
        #expect(await becomesTrue { load.firstSuccess != nil })
        isEnded.withLock { $0 = true }
        await reader.value
        let report = await load.end()
        print("planned fail-over: \(report.refused) refused, \(report.uncertain) uncertain, \(report.errors)")
        // A command that finds no server while the master is in doubt is refused at once; reads that were sent are not lost.
        #expect(report.errors.allSatisfy { !$0.contains("READONLY") })
        #expect(reads.elements.allSatisfy { $0 })
        let master = try await group.master()
        let count = try #require(try await master.client().run(["GET", "counter"]).integer)
        // The writes of the last moments may be lost, none counts twice.
        #expect(count <= (report.counts["counter"] ?? 0) + (report.uncertain["counter"] ?? 0))
    }

    @Test(
        "a master that comes back empty before it is replaced is used again, with its scripts", .enabled(if: TestLength.isLong))
    func restartedEmpty() async throws {
        let group = try await SentinelGroup(downAfter: 60_000)
        let client = try RedisClient(group.configuration())
        #expect(await client.becomesReady())
        let load = CounterLoad(client, keys: ["counter"])
        #expect(await eventually { load.successes > 100 })
        await group.servers[0].kill()
        try await group.servers[0].restart()
        load.mark()
        #expect(await becomesTrue { load.firstSuccess != nil })
        let report = await load.end()
        let count = try #require(try await group.servers[0].client().run(["GET", "counter"]).integer)
        #expect(count < report.counts["counter"] ?? 0)
    }

    @Test(
        "what was refused is sent again within its time: a replica that becomes the master gets it", .enabled(if: TestLength.isLong))
    func readOnly() async throws {
        let group = try await SentinelGroup()
        let client = try RedisClient(group.configuration(timeout: .seconds(20)))
        #expect(try await client.run(["SET", "key", "first"]) == .status("OK"))
        // Demoted behind the sentinels' back, which make it a master again, or another one.
        let old = try group.servers[0].client()
        _ = try await old.run(["REPLICAOF", "127.0.0.1", .number(group.servers[1].port)])
        #expect(try await client.run(["SET", "key", "second"]) == .status("OK"))
        #expect(try await client.run(RedisScript("return redis.call('SET', KEYS[1], 'third')"), keys: ["key"], []) == .status("OK"))
    }
}
#endif
