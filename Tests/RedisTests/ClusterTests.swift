// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewCache
import CurlewCookies
import CurlewHTTP
import CurlewResilience
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewRedis

/// A cluster of real servers.
@Suite(.enabled(if: RedisServer.isInstalled), .timeLimit(.minutes(3))) struct ClusterTests {
    @Test("each store works in a cluster, with keys on all of its nodes") func stores() async throws {
        let group = try await ClusterGroup(timeout: 5_000)
        let (client, other) = (try RedisClient(group.configuration()), try RedisClient(group.configuration()))
        #expect(await client.becomesReady())
        let storage = RedisCacheStorage(client)
        for index in 0..<60 {
            try storage.store(CacheEntry(body: Data("\(index)".utf8), tags: ["all"]), for: CacheKey("key\(index)"))
        }
        #expect(try storage.entry(for: CacheKey("key59"))?.body == Data("59".utf8))
        var tagged = 0
        try storage.forEachEntry(tagged: "all") { _, _, _ in
            tagged += 1
            return true
        }
        #expect(tagged == 60)
        for index in 0..<3 {
            #expect(try await group.nodes[index].client().run(["DBSIZE"]).integer ?? 0 > 0)
        }
        var visited = 0
        try storage.forEachEntry { _, _, _ in
            visited += 1
            return true
        }
        #expect(visited == 60)
        visited = 0
        try storage.forEachEntry { _, _, _ in
            visited += 1
            return false
        }
        #expect(visited == 1)
        let (changes, observed) = (Log<CacheKey?>(), RedisCacheStorage(other))
        let observation = observed.observeChanges { changes.append($0) }
        await changes.wait(for: 1)
        try storage.removeEntry(for: CacheKey("key1"))
        await changes.wait(for: 2)
        #expect(changes.elements.last == .some(CacheKey("key1")))
        try storage.removeAll()
        #expect(try storage.size == 0)
        let lease = try #require(try storage.acquireLease(for: CacheKey("lease"), duration: .seconds(5)))
        #expect(try storage.acquireLease(for: CacheKey("lease"), duration: .seconds(5)) == nil)
        try storage.releaseLease(lease)
        for index in 0..<20 {
            let grant = try await RedisRateLimitStore(client).acquire(1, of: "limit\(index)", limit: RateLimit(100))
            guard case .granted = grant else { return #expect(Bool(false), "\(grant)") }
        }
        withExtendedLifetime((observed, observation)) {}
    }

    @Test("messages by slot arrive at other processes: cookies and breakers are shared") func channels() async throws {
        let group = try await ClusterGroup(timeout: 5_000)
        let (client, other) = (try RedisClient(group.configuration()), try RedisClient(group.configuration()))
        #expect(await client.becomesReady())
        var retained: [any Sendable] = []
        for name in ["first", "second", "third"] {
            let place = RedisPlace(other, store: "cookies1", name: name, sealedWith: nil)
            #expect(await eventually { place.isSubscribed })
            let (mine, theirs) = (
                CookieStore.redis(client, name: name), CookieStore(place: place, keepsSessionCookies: true, limits: .init())
            )
            try mine.set(Cookie(name: "a", value: "1", domain: "example.org"))
            #expect(await eventually { (try? theirs.cookies())?.map(\.value) == ["1"] })
            try mine.set(Cookie(name: "a", value: "2", domain: "example.org"))
            #expect(await eventually { (try? theirs.cookies())?.map(\.value) == ["2"] })
            let seen = Log<SharedChange>()
            let subscription = RedisPolicyState(other, name: name).subscribe { seen.append($0) }
            #expect(
                await becomesTrue {
                    RedisPolicyState(client, name: name).publish(
                        SharedChange(.breakerOpened, policy: "p", group: "g", lasting: .seconds(5)))
                    return seen.count > 0
                })
            retained += [mine, theirs, subscription] as [any Sendable]
        }
        // Not by all nodes: one shard has each of the channels.
        var shards = 0
        for index in 0..<3 {
            shards += try await group.nodes[index].client().run(["PUBSUB", "SHARDCHANNELS"]).elements?.count ?? 0
        }
        // Each client has one for its cookies, and the other one has those of breakers.
        #expect(shards == 6)
        withExtendedLifetime(retained) {}
        try await subscribeAgain(group)
    }

    /// Ends a subscription, and begins it again before the server has confirmed the end: that is no slot that was moved.
    private func subscribeAgain(_ group: ClusterGroup) async throws {
        let client = try RedisClient(group.configuration())
        let node = try group.nodes[HashSlot.slot(of: "news".utf8) / (16_384 / 3 + 1)].client()
        func connections() async throws -> Substring? {
            let lines = try await node.run(["INFO", "stats"]).text?.split(whereSeparator: \.isNewline)
            return lines?.first { $0.hasPrefix("total_connections_received") }
        }
        let events = Log<SubscriptionEvent>()
        let other = client.subscribe(to: "{news}", bySlot: true) { events.append($0) }
        await events.wait(for: 1)
        let before = try await connections()
        for index in 0..<300 {
            let subscription = client.subscribe(to: "news", bySlot: true) { _ in }
            try await Task.sleep(for: .microseconds(index * 2))
            withExtendedLifetime(subscription) {}
            try await Task.sleep(for: .microseconds(index % 7 * 30))
        }
        let last = client.subscribe(to: "news", bySlot: true) { events.append($0) }
        await events.wait(for: 2)
        #expect(try await connections() == before)
        #expect(events.count == 2)
        withExtendedLifetime((other, last)) {}
    }

    @Test(
        "a master that is killed or paused is replaced, and what its slots count is not counted twice",
        arguments: SentinelTests.Fault.tried)
    func failover(_ fault: SentinelTests.Fault) async throws {
        // No other node that a busy machine holds up is to be replaced.
        let group = try await ClusterGroup(timeout: 2_000)
        var configuration = group.configuration(timeout: .milliseconds(500))
        configuration.silenceLimit = .milliseconds(300)
        configuration.connectTimeout = .milliseconds(300)
        let client = try RedisClient(configuration)
        #expect(await client.becomesReady())
        let slots = 16_384 / 3
        let key = try #require((0..<1_000).map { "key\($0)" }.first { HashSlot.slot(of: $0.utf8) < slots })
        let elsewhere = try #require((0..<1_000).map { "key\($0)" }.first { HashSlot.slot(of: $0.utf8) > 2 * slots })
        let patient = try RedisClient(group.configuration(timeout: .seconds(20)))
        #expect(await patient.becomesReady())
        let (load, others) = (CounterLoad(client, keys: [key]), CounterLoad(patient, keys: [elsewhere], tasks: 2))
        #expect(await eventually { load.successes > 100 && others.successes > 100 })
        let start = ContinuousClock.now
        if fault == .killed { await group.nodes[0].kill() } else { group.nodes[0].send(SIGSTOP) }
        let replica = try group.nodes[3].client()
        #expect(await becomesTrue { (try? await replica.run(["ROLE"]))?.elements?.first?.text == "master" })
        load.mark()
        let promoted = ContinuousClock.now
        let first = try #require(await becomesTrue { load.firstSuccess != nil } ? load.firstSuccess : nil)
        print("cluster, \(fault): the cluster took \(start.duration(to: promoted)), the client \(promoted.duration(to: first)) more")
        #expect(promoted.duration(to: first) < .seconds(5))
        if fault == .paused { group.nodes[0].send(SIGCONT) }
        let successes = load.successes
        #expect(await eventually { load.successes > successes + 100 })
        let report = await load.end()
        let other = await others.end()
        let count = try #require(try await replica.run(["GET", .text(key)]).integer)
        print("cluster, \(fault): \(report.uncertain) uncertain, \(report.refused) refused; elsewhere \(other.uncertain), \(other.errors)")
        #expect(count <= (report.counts[key] ?? 0) + (report.uncertain[key] ?? 0))
        // The other masters are not concerned.
        #expect(other.errors == [])
    }

    @Test(
        "a slot that is moved is found by clients that are quiet otherwise, with and without TLS", .enabled(if: TestLength.isLong),
        arguments: [false, true] as [Bool])
    func moved(isSecure: Bool) async throws {
        // No node that a busy machine holds up is to be replaced.
        let group = try await ClusterGroup(timeout: 5_000, isSecure: isSecure)
        let client = try RedisClient(group.configuration())
        let slot = HashSlot.slot(of: "tag".utf8)
        let source = group.nodes[slot / (16_384 / 3 + 1)]
        let destination = try #require(group.nodes[..<3].first { $0 !== source })
        var times: [Duration] = []
        for round in 0..<8 {
            let (from, to) = round.isMultiple(of: 2) ? (source, destination) : (destination, source)
            #expect(try await client.run(["GET", "{tag}"]) == .null)
            try await group.migrate(slot, from: from, to: to)
            let start = ContinuousClock.now
            #expect(try await client.run(["GET", "{tag}"]) == .null)
            times.append(start.duration(to: .now))
        }
        // Not only when the nodes are asked next, which is half a second later by now.
        #expect(try #require(times.suffix(3).min()) < .milliseconds(200))
    }

    @Test("a process that only subscribes follows the slot of its channel", .enabled(if: TestLength.isLong)) func subscriber()
        async throws
    {
        let group = try await ClusterGroup()
        var configuration = group.configuration()
        configuration.silenceLimit = .milliseconds(300)
        configuration.connectTimeout = .milliseconds(300)
        let client = try RedisClient(configuration)
        let channel = try #require((0..<1_000).map { "news\($0)" }.first { 6_000..<10_000 ~= HashSlot.slot(of: $0.utf8) })
        let messages = Log<Bool>()
        let subscription = client.subscribe(to: channel) { if case .message = $0 { messages.append(true) } }
        let others = try group.nodes[0].client()
        func publish() async -> Bool {
            let count = messages.count
            _ = try? await others.run(["PUBLISH", .text(channel), "text"])
            return messages.count > count
        }
        #expect(await becomesTrue(publish))
        group.nodes[1].send(SIGSTOP)
        #expect(await becomesTrue { !(await publish()) })
        #expect(await becomesTrue(publish))
        withExtendedLifetime(subscription) {}
    }

    @Test("a slot that is moved to another node and back under load costs no command", .enabled(if: TestLength.isLong))
    func migration() async throws {
        let group = try await ClusterGroup()
        let client = try RedisClient(group.configuration(timeout: .seconds(20)))
        #expect(await client.becomesReady())
        let keys = (0..<20).map { "{tag}\($0)" }
        let slot = HashSlot.slot(of: "tag".utf8)
        let source = group.nodes[slot / (16_384 / 3 + 1)]
        let destination = try #require(group.nodes[..<3].first { $0 !== source })
        let load = CounterLoad(client, keys: keys)
        #expect(await eventually { load.successes > 200 })
        for _ in 0..<3 {
            try await group.migrate(slot, from: source, to: destination)
            var successes = load.successes
            #expect(await eventually { load.successes > successes + 200 })
            try await group.migrate(slot, from: destination, to: source)
            successes = load.successes
            #expect(await eventually { load.successes > successes + 200 })
        }
        let report = await load.end()
        #expect(report.errors == [])
        for key in keys {
            #expect(try await source.client().run(["GET", .text(key)]).integer == report.counts[key])
        }
    }

    @Test("keys of one command that are on two nodes meanwhile are waited for", .enabled(if: TestLength.isLong))
    func tryAgain() async throws {
        let group = try await ClusterGroup()
        let client = try RedisClient(group.configuration(timeout: .seconds(20)))
        let slot = HashSlot.slot(of: "tag".utf8)
        let source = group.nodes[slot / (16_384 / 3 + 1)]
        let destination = try #require(group.nodes[..<3].first { $0 !== source })
        #expect(try await client.run(["SET", "{tag}1", 1]) == .status("OK"))
        let (from, to) = (try source.client(), try destination.client())
        let (sourceID, destinationID) = (try await ClusterGroup.id(from), try await ClusterGroup.id(to))
        _ = try await to.run(["CLUSTER", "SETSLOT", .number(slot), "IMPORTING", .text(sourceID)])
        _ = try await from.run(["CLUSTER", "SETSLOT", .number(slot), "MIGRATING", .text(destinationID)])
        // The second key exists on neither: it would be made at the destination, the first one is at the source.
        let script = RedisScript("return {redis.call('INCR', KEYS[1]), redis.call('INCR', KEYS[2])}")
        async let result = client.run(script, keys: ["{tag}1", "{tag}2"], [])
        #expect(
            await becomesTrue {
                let refused = try? await from.run(["INFO", "errorstats"]).text
                return refused?.contains("errorstat_TRYAGAIN") == true
            })
        _ = try await from.run(["MIGRATE", "127.0.0.1", .number(destination.port), "{tag}1", 0, 5_000])
        // With one key there, and a new one, the destination has to own the slot.
        _ = try await to.run(["CLUSTER", "SETSLOT", .number(slot), "NODE", .text(destinationID)])
        _ = try await from.run(["CLUSTER", "SETSLOT", .number(slot), "NODE", .text(destinationID)])
        #expect(try await result == .array([.integer(2), .integer(1)]))
    }

    @Test("what a response has changed is due at once, and so is a command that it has sent elsewhere") func dueAtOnce() throws {
        let (poller, seed) = (try SystemPoller(), RedisConfiguration.Address.tcp(host: "127.0.0.1", port: try RedisNode.freePorts(1)[0]))
        let mailbox = RedisMailbox(poller.wakeUp, limit: 10)
        let nodes = RedisNodes(
            ConnectionContext(configuration: RedisConfiguration(.cluster([seed])), poller: poller, mailbox: mailbox, secureStreams: nil))
        let now = MonotonicTime.now()
        nodes.start(now)
        let channel = try #require(nodes.channels.first as? CommandChannel)
        #expect(nodes.nextTime(after: now).map { $0 > now } == true)
        let command = RedisCommand(
            name: "GET", bytes: [], target: .slot(5), timeout: .seconds(60), deadline: now + Duration.seconds(60).nanoseconds,
            isRepeatable: true
        ) { _ in }
        #expect(nodes.takes(command, refusedWith: .closed, "MOVED 5 127.0.0.1:1", by: channel))
        #expect(nodes.nextTime(after: now) == now)
        nodes.advance(now)
        #expect(nodes.nextTime(after: now).map { $0 <= MonotonicTime.now() } == true)
        nodes.stop()
    }

    @Test("a server that is in no cluster, and settings that a cluster has not, are errors that say so") func none() async throws {
        let node = try await RedisNode(port: try RedisNode.freePorts(1)[0], [])
        var configuration = RedisConfiguration(.cluster([node.address]))
        let client = try RedisClient(configuration)
        #expect(await eventually { if case .unavailable(_, .rejected)? = client.refusal { true } else { false } })
        func refuses(_ change: (inout RedisConfiguration) -> Void) -> Bool {
            var changed = configuration
            change(&changed)
            do { _ = try RedisClient(changed) } catch { return error is RedisError }
            return false
        }
        #expect(refuses { $0.database = 1 })
        #expect(refuses { $0.prefix = "{}" })
        #expect(refuses { $0.prefix = "a{b" })
        #expect(!refuses { $0.prefix = "a{b}" })
        #expect(refuses { $0.address = .cluster([]) })
        #expect(refuses { $0.address = .cluster([.unix(path: "/a")]) })
        #expect(refuses { $0.address = .cluster([.cluster([node.address])]) })
        #expect(refuses { $0.address = .cluster([node.address, .tls(host: "localhost", port: 1)]) })
        #expect(refuses { $0.address = .sentinels([node.address], master: "") })
        #expect(refuses { $0.address = .sentinels([.tcp(host: "", port: 1)], master: "name") })
        #expect(
            refuses {
                $0.password = "a"
                $0.credentials = RedisCredentials(password: "b")
            })
        configuration.credentials = RedisCredentials(username: "u", password: "secret")
        #expect(!"\(configuration) \(String(reflecting: configuration.credentials))".contains("secret"))
        var text = ""
        dump(configuration, to: &text)
        dump(configuration.credentials, to: &text)
        #expect(!text.contains("secret"))
    }
}
#endif
