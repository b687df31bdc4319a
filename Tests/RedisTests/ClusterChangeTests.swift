// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewRedis

/// A cluster whose nodes change, with real servers.
@Suite(.enabled(if: RedisServer.isInstalled), .timeLimit(.minutes(3))) struct ClusterChangeTests {
    /// The connections that a node has, without the one that asks, and that of a node that has moved keys to it.
    private func connections(to client: RedisClient) async -> Int? {
        guard let text = try? await client.run(["CLIENT", "LIST"]).text else { return nil }
        return text.split(whereSeparator: \.isNewline).count { !$0.contains("cmd=client") && !$0.contains("cmd=restore") }
    }

    @Test("a node that is added and removed under load costs no command, and its connections end", .enabled(if: TestLength.isLong))
    func addedNode() async throws {
        // No node that a busy machine holds up is to be replaced.
        let group = try await ClusterGroup(timeout: 5_000)
        let client = try RedisClient(group.configuration(timeout: .seconds(20)))
        #expect(await client.becomesReady())
        let slots = 16_384 / 3
        let keys = (0..<1_000).map { "key\($0)" }.filter { HashSlot.slot(of: $0.utf8) < slots }.prefix(5)
        let elsewhere = (0..<1_000).map { "key\($0)" }.filter { HashSlot.slot(of: $0.utf8) > 2 * slots }.prefix(5)
        let messages = Log<Bool>()
        let subscription = client.subscribe(to: keys[0]) { if case .message = $0 { messages.append(true) } }
        let load = CounterLoad(client, keys: Array(keys + elsewhere))
        func continues() async -> Bool {
            let successes = load.successes
            return await eventually { load.successes > successes + 500 }
        }
        func publishes() async -> Bool {
            let count = messages.count
            _ = try? await client.run(["PUBLISH", .text(keys[0]), "text"])
            return messages.count > count
        }
        #expect(await continues())
        for isLast in [false, true] {
            let added = try await group.add()
            let watcher = try added.client()
            for key in keys { try await group.migrate(HashSlot.slot(of: key.utf8), from: group.nodes[0], to: added) }
            #expect(await continues())
            // For the commands, and for the messages of the channel.
            #expect(await becomesTrue { await connections(to: watcher) == 2 })
            #expect(await becomesTrue(publishes))
            for key in keys { try await group.migrate(HashSlot.slot(of: key.utf8), from: added, to: group.nodes[0]) }
            #expect(await continues())
            #expect(await becomesTrue { await connections(to: watcher) == 0 })
            try await group.remove(added)
            if isLast { await added.kill() }
            #expect(await continues())
            #expect(await becomesTrue(publishes))
        }
        let report = await load.end()
        #expect(report.errors == [])
        for (node, keys) in [(group.nodes[0], keys), (group.nodes[2], elsewhere)] {
            for key in keys { #expect(try await node.client().run(["GET", .text(key)]).integer == report.counts[key]) }
        }
        withExtendedLifetime(subscription) {}
    }

    @Test("a node that comes back empty before it is replaced is used again, with its scripts", .enabled(if: TestLength.isLong))
    func restartedEmpty() async throws {
        let group = try await ClusterGroup(timeout: 60_000)
        let client = try RedisClient(group.configuration())
        #expect(await client.becomesReady())
        let key = try #require((0..<1_000).map { "key\($0)" }.first { HashSlot.slot(of: $0.utf8) < 16_384 / 3 })
        let load = CounterLoad(client, keys: [key])
        #expect(await eventually { load.successes > 100 })
        await group.nodes[0].kill()
        try await group.nodes[0].restart()
        load.mark()
        #expect(await becomesTrue { load.firstSuccess != nil })
        let successes = load.successes
        #expect(await eventually { load.successes > successes + 100 })
        let report = await load.end()
        let count = try #require(try await group.nodes[0].client().run(["GET", .text(key)]).integer)
        #expect(count >= 100 && count < report.counts[key] ?? 0)
    }

    @Test("a lease needs each replica of its node, until the masters agree that one has failed", .enabled(if: TestLength.isLong))
    func everyReplica() async throws {
        let group = try await ClusterGroup(timeout: 3_000)
        let added = try await group.add()
        let client = try RedisClient(group.configuration(timeout: .seconds(1)))
        #expect(await client.becomesReady())
        let strict = FleetToken(client, name: "token", lease: .seconds(60), needsReplica: true)
        let slot = HashSlot.slot(of: strict.key.utf8)
        let owner = group.nodes[slot / (16_384 / 3 + 1)]
        let (master, id) = (try owner.client(), try await ClusterGroup.id(owner.client()))
        #expect(try await added.client().run(["CLUSTER", "REPLICATE", .text(id)]) == .status("OK"))
        #expect(
            await becomesTrue {
                let count = (try? await master.run(["CLUSTER", "SLOTS"])).flatMap { ClusterTopology.replicaCount(of: slot, $0) }
                return count == 2
            })
        var first = 0
        #expect(
            await becomesTrue {
                if case .refresh(let fence, _, _)? = try? await strict.claim(known: 0) { first = fence }
                return first > 0
            })
        #expect(try await strict.complete(first, Data("old".utf8)))
        added.send(SIGSTOP)
        let error = await #expect(throws: RedisError.self) { try await strict.claim(known: first) }
        #expect(error == .timedOut(command: "WAIT", after: .milliseconds(500)))
        var lease: Int?
        #expect(
            await becomesTrue {
                if case .refresh(let fence, _, _)? = try? await strict.claim(known: first) { lease = fence }
                return lease != nil
            })
        #expect(try await strict.complete(try #require(lease), Data("new".utf8)))
    }

    @Test("commands without a key go to a node that responds", .enabled(if: TestLength.isLong)) func silentNode() async throws {
        let group = try await ClusterGroup(timeout: 60_000)
        var configuration = group.configuration(timeout: .milliseconds(200))
        configuration.silenceLimit = .seconds(60)
        let client = try RedisClient(configuration)
        #expect(await client.becomesReady())
        let keys = (0..<3).map { index in (0..<1_000).map { "key\($0)" }.first { HashSlot.slot(of: $0.utf8) / (16_384 / 3 + 1) == index } }
        for key in keys { #expect(try await client.run(["GET", .text(try #require(key))]) == .null) }
        for (index, key) in keys.enumerated() {
            group.nodes[index].send(SIGSTOP)
            // The node owes a response from then on; there is a connection to it, which does not end.
            await #expect(throws: RedisError.self) { try await client.run(["GET", .text(key ?? "")]) }
            for _ in 0..<10 { #expect(await (try? client.ping()) != nil) }
            group.nodes[index].send(SIGCONT)
            #expect(await becomesTrue { (try? await client.run(["GET", .text(key ?? "")])) == .null })
        }
    }
}
#endif
