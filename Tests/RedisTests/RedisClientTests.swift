// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewRedis

@Suite(.enabled(if: RedisServer.isInstalled), .timeLimit(.minutes(2))) struct RedisClientTests {
    @Test("commands are pipelined, and each gets its own response", arguments: [false, true])
    func pipelined(isSecure: Bool) async throws {
        let server = try await RedisServer(isSecure: isSecure)
        let client = try server.client()
        #expect(try await client.run(["SET", "number", 41]) == .status("OK"))
        #expect(try await client.run(["INCR", "number"]) == .integer(42))
        #expect(try client.block(["GET", "number"]).integer == 42)
        #expect(try await client.run(["GET", "nothing"]) == .null)
        let echoed = try await withThrowingTaskGroup(of: Bool.self) { group in
            for index in 0..<500 {
                group.addTask { try await client.run(["ECHO", .number(index)]).integer == index }
            }
            return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(echoed == 500)
    }

    @Test("a value of megabytes comes back as it was stored", arguments: [false, true]) func large(isSecure: Bool) async throws {
        let server = try await RedisServer(isSecure: isSecure)
        let client = try server.client()
        let value = Data((0..<(3 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        #expect(try await client.run(["SET", "large", .bytes(value)]) == .status("OK"))
        #expect(try await client.run(["GET", "large"]).data == value)
    }

    @Test("a script is sent once, and again to a server that has lost it", arguments: [false, true])
    func scripts(isSecure: Bool) async throws {
        let server = try await RedisServer(isSecure: isSecure)
        let client = try server.client()
        let script = RedisScript("return {KEYS[1], ARGV[1]}")
        for _ in 0..<3 {
            #expect(try await client.run(script, keys: ["key"], [7]) == .array([.bytes(Data("key".utf8)), .bytes(Data("7".utf8))]))
        }
        let statistics = try #require(try await client.run(["INFO", "commandstats"]).text)
        #expect(statistics.contains("cmdstat_eval:calls=1,"))
        #expect(statistics.contains("cmdstat_evalsha:calls=3,"))
        #expect(try await client.run(["SCRIPT", "FLUSH"]) == .status("OK"))
        #expect(try await client.run(script, keys: ["key"], [8]).elements?.count == 2)
        try await server.restart()
        #expect(await client.becomesReady())
        #expect(try await client.run(script, keys: ["key"], [9]).elements?.count == 2)
    }

    @Test("errors of the server are typed") func typed() async throws {
        let server = try await RedisServer()
        let client = try server.client()
        let unknown = await #expect(throws: RedisError.self) { try await client.run(["CURLEW"]) }
        guard case .refused("CURLEW", "ERR", _)? = unknown else { return #expect(Bool(false), "\(String(describing: unknown))") }
        _ = try await client.run(["CONFIG", "SET", "maxmemory", "1"])
        let full = await #expect(throws: RedisError.self) { try await client.run(["SET", "a", "b"]) }
        guard case .serverFull("SET", _)? = full else { return #expect(Bool(false), "\(String(describing: full))") }
        let script = await #expect(throws: RedisError.self) {
            try await client.run(RedisScript("return redis.call('SET', KEYS[1], 'b')"), keys: ["a"], [])
        }
        guard case .serverFull? = script else { return #expect(Bool(false), "\(String(describing: script))") }
        _ = try await client.run(["CONFIG", "SET", "maxmemory", "0"])
        #expect(try await client.run(["SET", "a", "b"]) == .status("OK"))
    }

    @Test("a password is sent, and a wrong one is an error with the server's message", arguments: [false, true])
    func passwords(isSecure: Bool) async throws {
        let server = try await RedisServer("--requirepass", "secret", isSecure: isSecure)
        var configuration = server.configuration()
        configuration.password = "secret"
        configuration.database = 3
        let client = try RedisClient(configuration)
        #expect(await client.becomesReady())
        #expect(try await client.run(["CLIENT", "LIST"]).text?.contains("db=3") == true)
        configuration.password = "wrong"
        let refused = try RedisClient(configuration)
        let error = await #expect(throws: RedisError.self) { try await refused.ping() }
        guard case .unavailable(_, .rejected(let message))? = error else { return #expect(Bool(false), "\(String(describing: error))") }
        #expect(message.hasPrefix("WRONGPASS"))
        #expect(!"\(configuration)".contains("wrong"))
    }

    @Test("a server that is paused costs one timeout, and is used again when it continues", arguments: [false, true])
    func paused(isSecure: Bool) async throws {
        let server = try await RedisServer(isSecure: isSecure)
        let client = try server.client(timeout: .milliseconds(20))
        #expect(await client.becomesReady())
        server.send(SIGSTOP)
        defer { server.send(SIGCONT) }
        let late = await #expect(throws: RedisError.self) { try await client.ping() }
        #expect(late == .timedOut(command: "PING", after: .milliseconds(20)))
        // Refused on the caller's thread: no second wait.
        let refusal = await #expect(throws: RedisError.self) { try await client.ping() }
        #expect(refusal == .unavailable(client.configuration.address, .silent))
        // A machine that is busy holds up some of them.
        var waits = 0
        for _ in 0..<200 {
            let start = ContinuousClock.now
            #expect(throws: RedisError.self) { try client.block(["PING"]) }
            if start.duration(to: .now) >= .milliseconds(20) { waits += 1 }
        }
        #expect(waits < 100)
        server.send(SIGCONT)
        #expect(await client.becomesReady())
    }

    @Test("a server that stays paused is connected to again", arguments: [false, true]) func silent(isSecure: Bool) async throws {
        let server = try await RedisServer(isSecure: isSecure)
        var configuration = server.configuration(timeout: .milliseconds(20))
        configuration.silenceLimit = .milliseconds(50)
        configuration.connectTimeout = .milliseconds(50)
        let client = try RedisClient(configuration)
        #expect(await client.becomesReady())
        var id: Int?
        // A server that is held up for longer than the client's patience is asked again.
        #expect(
            await becomesTrue {
                id = (try? await client.run(["CLIENT", "ID"]))?.integer
                return id != nil
            })
        let before = try #require(id)
        server.send(SIGSTOP)
        _ = try? await client.ping()
        // The pending connections of a Unix socket are accepted by the system, so that only the silence tells. The limit is 50 ms.
        let start = ContinuousClock.now
        let refusal = RedisError.unavailable(configuration.address, .silent)
        #expect(await eventually { start.duration(to: .now) > .milliseconds(200) && client.refusal == refusal })
        server.send(SIGCONT)
        #expect(await client.becomesReady())
        let after = try #require(try await server.client().run(["CLIENT", "LIST"]).text)
        #expect(!after.contains("id=\(before) "))
    }

    @Test("a server that was killed fails commands at once, and is used again when it is back", arguments: [false, true])
    func killed(isSecure: Bool) async throws {
        let server = try await RedisServer(isSecure: isSecure)
        let client = try server.client()
        #expect(await client.becomesReady())
        await server.kill()
        let error = await #expect(throws: RedisError.self) { try await client.ping() }
        switch error {
        case .connectionLost?, .unavailable?: break
        default: #expect(Bool(false), "\(String(describing: error))")
        }
        try await server.restart()
        #expect(await client.becomesReady())
    }

    @Test(
        "what is no Redis server is an error that says so",
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n\r\n", "$5\r\nhello\r\n", "*2147483647\r\n", "+OK\r\n", ":1\r\n", "$-7\r\nx",
            // hiredis accepts that many levels since 1.0.
            "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
            String(repeating: "*1\r\n", count: 100_000) + ":1\r\n",
            // Each is short enough, and all of them are not.
            String(repeating: "*300000\r\n", count: 6) + ":1\r\n",
        ])
    func garbage(_ response: String) async throws {
        let fake = try FakeServer(response: response)
        let client = try RedisClient(fake.configuration)
        let error = await #expect(throws: RedisError.self) { try await client.ping() }
        guard case .unavailable(_, .notRedis)? = error else { return #expect(Bool(false), "\(String(describing: error))") }
    }

    @Test("a server of an old version is refused") func oldVersion() async throws {
        let text = "# Server\r\nredis_version:3.2.1\r\n"
        let fake = try FakeServer(response: "$\(text.utf8.count)\r\n\(text)\r\n")
        let client = try RedisClient(fake.configuration)
        let error = await #expect(throws: RedisError.self) { try await client.ping() }
        #expect(error == .unavailable(fake.configuration.address, .unsupportedVersion("3.2.1")))
    }

    @Test("a server that comes in the place of one that sends garbage is used") func replaced() async throws {
        let server = try await RedisServer()
        let client = try server.client()
        #expect(await client.becomesReady())
        await server.kill()
        try? FileManager.default.removeItem(atPath: server.socket)
        do {
            let fake = try FakeServer(response: "garbage\r\n", path: server.socket)
            let refusal = RedisError.unavailable(fake.configuration.address, .notRedis("Protocol error, got \"g\" as reply type byte"))
            #expect(await eventually { client.refusal == refusal })
            fake.end()
        }
        try await server.restart()
        #expect(await client.becomesReady())
    }

    @Test("messages of channels arrive, and a subscription outlives the server", arguments: [false, true])
    func channels(isSecure: Bool) async throws {
        let server = try await RedisServer(isSecure: isSecure)
        let (client, other) = (try server.client(), try server.client())
        let events = Log<String>()
        let subscription = client.subscribe(to: "news") { event in
            switch event {
            case .began: events.append("began")
            case .ended: events.append("ended")
            case .message(let data): events.append(String(decoding: data, as: UTF8.self))
            }
        }
        await events.wait(for: 1)
        #expect(try await other.run(["PUBLISH", "news", "first"]) == .integer(1))
        await events.wait(for: 2)
        try await server.restart()
        await events.wait(for: 4)
        #expect(await other.becomesReady())
        #expect(try await other.run(["PUBLISH", "news", "second"]) == .integer(1))
        await events.wait(for: 5)
        #expect(events.elements == ["began", "first", "ended", "began", "second"])
        withExtendedLifetime(subscription) {}
    }

    @Test("the connection of a subscription that has ended is kept, and checked by PING") func endedSubscription() async throws {
        let server = try await RedisServer()
        let watcher = try server.client()
        func number(_ section: String, _ name: String) async throws -> Int {
            let lines = try await watcher.run(["INFO", .text(section)]).text?.split(whereSeparator: \.isNewline) ?? []
            let value = lines.first { $0.hasPrefix(name) }?.dropFirst(name.count)
            return value.flatMap { Int($0.prefix { $0 != "," }) } ?? 0
        }
        var configuration = server.configuration()
        configuration.silenceLimit = .milliseconds(20)
        let client = try RedisClient(configuration)
        #expect(await client.becomesReady())
        let began = Log<Bool>()
        var subscription: RedisSubscription? = client.subscribe(to: "news") { if case .began = $0 { began.append(true) } }
        await began.wait(for: 1)
        #expect(subscription != nil)
        subscription = nil
        #expect(await becomesTrue { (try? await number("commandstats", "cmdstat_unsubscribe:calls=")) == 1 })
        // A server that is held up for longer than the limit is connected to again; that is not so in every interval.
        #expect(
            await becomesTrue {
                guard let connections = try? await number("stats", "total_connections_received:"),
                    let pings = try? await number("commandstats", "cmdstat_ping:calls=")
                else { return false }
                let arePinged = await becomesTrue {
                    (try? await number("commandstats", "cmdstat_ping:calls=")).map { $0 >= pings + 4 } ?? false
                }
                let after = try? await number("stats", "total_connections_received:")
                return arePinged && after == connections
            })
        subscription = client.subscribe(to: "news") { if case .began = $0 { began.append(true) } }
        await began.wait(for: 2)
        withExtendedLifetime(subscription) {}
    }

    @Test("settings that can't work are refused") func settings() throws {
        func refuses(_ address: RedisConfiguration.Address, _ change: (inout RedisConfiguration) -> Void = { _ in }) -> Bool {
            var configuration = RedisConfiguration(address)
            change(&configuration)
            do { _ = try RedisClient(configuration) } catch { return error is RedisError }
            return false
        }
        #expect(refuses(.unix(path: String(repeating: "x", count: 200))))
        #expect(refuses(.unix(path: "")))
        #expect(refuses(.tcp(host: "", port: 1)))
        #expect(refuses(.tcp(host: "localhost", port: 0)))
        #expect(refuses(.tls(host: "localhost", port: 65_536)))
        #expect(refuses(.unix(path: "/a")) { $0.username = "user" })
        #expect(refuses(.unix(path: "/a")) { $0.commandTimeout = .zero })
        #expect(refuses(.unix(path: "/a")) { $0.prefix = "" })
    }

    @Test("a closed client fails its commands, and leaves no thread and no connection", arguments: [false, true])
    func closed(isSecure: Bool) async throws {
        let server = try await RedisServer(isSecure: isSecure)
        let client = try server.client()
        #expect(await client.becomesReady())
        let count = try #require(ProcessProbe.threadCount(named: "curlew.redis"))
        #expect(count >= 1)
        client.close()
        #expect(ProcessProbe.settles { (ProcessProbe.threadCount(named: "curlew.redis") ?? count) < count })
        let other = try RedisClient(RedisConfiguration(.unix(path: server.socket)))
        #expect(await other.becomesReady())
        #expect(await eventually { (try? other.block(["CLIENT", "LIST"]).text?.split(whereSeparator: \.isNewline).count) == 1 })
        #expect(await #expect(throws: RedisError.self) { try await client.ping() } == .closed)
    }

    @Test("a subscription that is refused is tried again with growing pauses") func refusedSubscription() async throws {
        let server = try await RedisServer("--user", "app", "on", "nopass", "~*", "resetchannels", "+@all")
        let watcher = try server.client()
        func connections() async throws -> Int {
            let lines = try await watcher.run(["INFO", "stats"]).text?.split(whereSeparator: \.isNewline) ?? []
            return lines.compactMap { $0.hasPrefix("total_connections_received:") ? Int($0.split(separator: ":")[1]) : nil }.first ?? 0
        }
        var configuration = server.configuration()
        configuration.credentials = RedisCredentials(username: "app", password: "any")
        configuration.maximumBackoff = .seconds(10)
        let client = try RedisClient(configuration)
        #expect(await client.becomesReady())
        let before = try await connections()
        let start = ContinuousClock.now
        let subscription = client.subscribe(to: "news") { _ in }
        #expect(await becomesTrue { (try? await connections()).map { $0 >= before + 8 } ?? false })
        // After 10 milliseconds, 20 and so on, with up to half of that taken away.
        #expect(start.duration(to: .now) > .milliseconds(600))
        withExtendedLifetime(subscription) {}
    }

    @Test("a host's name is resolved, and an unknown one is an error") func hosts() async throws {
        let fake = try FakeServer(response: "+no\r\n", isTCP: true)
        var configuration = RedisConfiguration(.tcp(host: "localhost", port: fake.port))
        configuration.commandTimeout = .seconds(5)
        configuration.connectTimeout = .seconds(10)
        let client = try RedisClient(configuration)
        let error = await #expect(throws: RedisError.self) { try await client.ping() }
        guard case .unavailable(_, .notRedis)? = error else { return #expect(Bool(false), "\(String(describing: error))") }
        let lost = try RedisClient(RedisConfiguration(.tcp(host: "no host", port: 1)))
        #expect(await eventually { if case .unavailable(_, .unresolvable)? = lost.refusal { true } else { false } })
    }
}
#endif
