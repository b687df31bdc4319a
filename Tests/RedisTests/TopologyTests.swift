// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewRedis

private typealias Address = RedisConfiguration.Address

private func node(_ port: Int) -> Address { .tcp(host: "10.0.0.1", port: port) }

private func text(_ text: String) -> RedisValue { .bytes(Data(text.utf8)) }

private let millisecond: Nanoseconds = 1_000_000

/// What is known of servers, without any.
@Suite struct TopologyTests {
    @Test(
        "a key's slot is that of its hash tag, as the cluster specification has it",
        arguments: [
            ("123456789", 12_739), ("foo", 12_182), ("", 0), ("{foo}", 12_182), ("{foo}:bar", 12_182), ("a{foo}{bar}", 12_182),
            ("foo{", HashSlot.slot(of: "foo{".utf8)), ("user1000", 3_443), ("{user1000}.following", 3_443),
        ] as [(String, Int)])
    func slots(_ key: String, _ slot: Int) { #expect(HashSlot.slot(of: key.utf8) == slot) }

    @Test("empty braces are no hash tag, and the first brace that closes ends it") func tags() {
        #expect(HashSlot.slot(of: "foo{{bar}}zap".utf8) == HashSlot.slot(of: "{bar".utf8))
        #expect(HashSlot.slot(of: "foo{}{bar}".utf8) != HashSlot.slot(of: "bar".utf8))
        #expect(HashSlot.slot(of: "foo{}{bar}".utf8) != HashSlot.slot(of: "foo{}".utf8))
    }

    @Test("commands belong to the slot of their first key, or to none") func commands() {
        let foo = HashSlot.slot(of: "foo".utf8)
        let withKey: [[RedisArgument]] = [
            ["GET", "foo"], ["HMGET", .bytes(Data("foo".utf8)), "a"], ["EVALSHA", "digest", 2, "foo", "bar"],
            ["EVAL", "return 1", 1, "foo"],
            ["SPUBLISH", "foo", "text"],
        ]
        for command in withKey { #expect(command.slot == foo) }
        let without: [[RedisArgument]] = [["PING"], ["PUBLISH", "foo", "text"], ["EVAL", "return 1", 0, "foo"], ["SCAN", "0"], []]
        for command in without { #expect(command.slot == nil) }
    }

    @Test(
        "refusals are those of commands that were not executed",
        arguments: [
            ("MOVED 3999 127.0.0.1:6381", .moved(slot: 3_999, .init(host: "127.0.0.1", port: 6_381))),
            ("MOVED 1 ::1:6381", .moved(slot: 1, .init(host: "::1", port: 6_381))),
            ("MOVED 1 :6381", .moved(slot: 1, .init(host: nil, port: 6_381))),
            ("MOVED 16384 127.0.0.1:6381", nil), ("MOVED 1 127.0.0.1:0", nil), ("MOVED 1 127.0.0.1", nil), ("MOVED", nil),
            ("ASK 3999 localhost:6381", .ask(.init(host: "localhost", port: 6_381))), ("ASK 3999", nil),
            ("TRYAGAIN Multiple keys request during rehashing of slot", .tryAgain), ("CLUSTERDOWN Hash slot not served", .clusterDown),
            ("LOADING Redis is loading the dataset in memory", .loading), ("MASTERDOWN Link with MASTER is down", .loading),
            ("NOREPLICAS Not enough good replicas to write.", .noReplicas),
            ("READONLY You can't write against a read only replica.", .readOnly),
            ("ERR Error running script: @user_script:2: -READONLY You can't write against a read only replica.", .readOnly),
            ("ERR unknown command", nil), ("NOSCRIPT No matching script", nil), ("", nil),
        ] as [(String, ServerRefusal?)])
    func refusals(_ message: String, _ refusal: ServerRefusal?) { #expect(ServerRefusal(message) == refusal) }
}

@Suite struct SentinelTopologyTests {
    private typealias Answer = SentinelTopology.Answer

    @Test("any sentinel that responds is believed, and of several the one with the greatest epoch") func epochs() {
        var topology = SentinelTopology(count: 3)
        #expect(topology.master == nil)
        topology.failed(0, .silent)
        topology.answered(1, Answer(master: node(1), epoch: 4))
        #expect(topology.master == node(1))
        // Cut off from the others: its last fail-over is an old one.
        topology.answered(0, Answer(master: node(2), epoch: 3))
        #expect(topology.master == node(1))
        topology.answered(2, Answer(master: node(3), epoch: 5))
        #expect(topology.master == node(3))
        // The others have not heard of it yet.
        topology.answered(1, Answer(master: node(1), epoch: 4))
        #expect(topology.master == node(3))
    }

    @Test("a master stays while no sentinel responds, and no answer is a failure only of all") func failures() {
        var topology = SentinelTopology(count: 2)
        topology.failed(1, .closedByServer)
        #expect(topology.failure == nil)
        topology.failed(0, .noMaster)
        #expect(topology.failure == .noMaster)
        topology.answered(0, Answer(master: node(1), epoch: 1))
        topology.failed(0, .silent)
        #expect(topology.master == node(1))
        #expect(topology.failure == nil)
        // The only one that responds is believed, with any epoch: it may have been set up again.
        topology.answered(1, Answer(master: node(2), epoch: 0))
        #expect(topology.master == node(2))
    }

    @Test("sentinels are asked at once after a doubt, then with pauses, until a role was seen") func doubts() {
        var topology = SentinelTopology(count: 1)
        topology.answered(0, Answer(master: node(1), epoch: 1))
        topology.confirmed()
        #expect(topology.nextTime == nil)
        #expect(topology.asks(0) == false)
        topology.doubt(1_000)
        #expect(topology.asks(1_000) == true)
        #expect(topology.asks(1_000) == false)
        topology.doubt(2_000)
        var (times, now): ([Nanoseconds], Nanoseconds) = ([], 1_000)
        for _ in 0..<8 {
            let next = topology.nextTime ?? 0
            times.append(next - now)
            now = next
            #expect(topology.asks(now) == true)
        }
        #expect(times.map { $0 / millisecond } == [20, 40, 80, 160, 200, 200, 200, 200])
        topology.confirmed()
        #expect(topology.nextTime == nil)
    }

    @Test("a master that refuses because it loads its data has the sentinels asked five times a second at most") func once() {
        var topology = SentinelTopology(count: 1)
        topology.confirmed()
        topology.suspect(1_000 * millisecond)
        #expect(topology.asks(1_000 * millisecond) == true)
        #expect(topology.nextTime == nil)
        topology.suspect(1_001 * millisecond)
        topology.suspect(1_002 * millisecond)
        #expect(topology.nextTime == 1_200 * millisecond)
        // A lost connection does not wait longer for that, and an announcement not at all.
        topology.announced(1_003 * millisecond)
        #expect(topology.asks(1_003 * millisecond) == true)
    }

    @Test("another master that was announced is asked for, although the one before was just confirmed") func announced() {
        var topology = SentinelTopology(count: 1)
        topology.announced(5)
        topology.confirmed()
        #expect(topology.nextTime == 5)
        #expect(topology.asks(5) == true)
        #expect(topology.nextTime == nil)
        topology.doubt(10)
        topology.confirmed()
        #expect(topology.nextTime == nil)
    }

    @Test("an answer is an address, with names and values that have the epoch") func answers() {
        let address = RedisValue.array([text("10.0.0.1"), text("7000")])
        let details = RedisValue.array(["name", "one", "ip", "10.0.0.9", "flags", "master", "config-epoch", "12"].map(text))
        func answer(_ address: RedisValue, _ details: RedisValue, isSecure: Bool = false) -> Answer? {
            Answer(address: address, details: details, isSecure: isSecure)
        }
        #expect(answer(address, details) == Answer(master: node(7_000), epoch: 12))
        #expect(answer(address, details, isSecure: true)?.master == .tls(host: "10.0.0.1", port: 7_000))
        for none in [.null, .error("ERR"), .array([]), .array([text("config-epoch")]), .array(["config-epoch", "x"].map(text))]
            as [RedisValue]
        {
            #expect(answer(address, none)?.epoch == 0)
        }
        for wrong in [
            .null, .array([]), .array([text("10.0.0.1")]), .array(["", "1"].map(text)), .array(["10.0.0.1", "70000"].map(text)),
            .array(["?", "1"].map(text)), .array([.integer(1), .null]), text("text"),
        ] as [RedisValue] {
            #expect(answer(wrong, details) == nil)
        }
    }
}

@Suite struct ClusterTopologyTests {
    private typealias Range = ClusterTopology.Range

    private let halves = [Range(slots: 0...8_191, owner: node(1)), Range(slots: 8_192...16_383, owner: node(2))]

    /// A cluster of two, learned from the only seed.
    private func learned() -> ClusterTopology {
        var topology = ClusterTopology(seeds: [node(1)], turn: 0)
        #expect(topology.question(0) == node(1))
        topology.learn(halves, from: node(1), 0)
        return topology
    }

    @Test("owners are learned from one node at a time, and then none is asked") func learning() {
        let topology = learned()
        #expect(topology.masters == [node(1), node(2)])
        #expect([0, 8_191, 8_192, 16_383].map { topology.owner(of: $0) } == [node(1), node(1), node(2), node(2)])
        #expect(topology.nextTime == nil)
    }

    @Test("seeds are asked in turn until one answers, and all have failed before that is a failure") func seeds() {
        var topology = ClusterTopology(seeds: [node(1), node(2)], turn: 0)
        #expect(topology.question(0) == node(1))
        #expect(topology.question(0) == nil)
        topology.failed(node(1), .silent, 0)
        #expect(topology.failure == nil)
        #expect(topology.question(19 * millisecond) == nil)
        #expect(topology.question(20 * millisecond) == node(2))
        topology.failed(node(2), .closedByServer, 0)
        #expect(topology.failure == .closedByServer)
        #expect(topology.question(60 * millisecond) == node(1))
        topology.learn(halves, from: node(1), 0)
        #expect(topology.failure == nil)
    }

    @Test("a redirect counts at once, and has the rest asked for") func redirects() {
        var topology = learned()
        let generation = topology.generation
        topology.moved(5, to: node(3), 0)
        #expect(topology.owner(of: 5) == node(3))
        #expect(topology.owner(of: 6) == node(1))
        #expect(topology.generation == generation + 1)
        #expect(topology.nextTime == 20 * millisecond)
        // A second one does not put the question off.
        topology.moved(6, to: node(3), 10 * millisecond)
        #expect(topology.nextTime == 20 * millisecond)
        #expect(topology.question(20 * millisecond) != nil)
    }

    @Test("after an owner has failed the others are asked, until it is replaced or back") func lost() {
        var topology = learned()
        topology.lost(node(2), 0)
        #expect(topology.question(20 * millisecond) == node(1))
        // The cluster has not replaced it yet.
        topology.learn(halves, from: node(1), 20 * millisecond)
        #expect(topology.nextTime == 60 * millisecond)
        #expect(topology.question(60 * millisecond) == node(1))
        topology.learn([halves[0], Range(slots: 8_192...16_383, owner: node(3))], from: node(1), 60 * millisecond)
        #expect(topology.owner(of: 9_000) == node(3))
        #expect(topology.nextTime == nil)
        topology.lost(node(3), 0)
        topology.works(node(3))
        #expect(topology.question(1_000 * millisecond) != nil)
        topology.learn([halves[0], Range(slots: 8_192...16_383, owner: node(3))], from: node(1), 0)
        #expect(topology.nextTime == nil)
        // A node that owns nothing is none to wait for.
        topology.lost(node(9), 0)
        #expect(topology.nextTime == nil)
    }

    @Test("nodes in doubt are asked too, each, however long the others have failed", arguments: Array(0..<8) as [Int])
    func neverGivenUp(_ turn: Int) {
        let seeds = (1...4).map { node($0) }
        var topology = ClusterTopology(seeds: seeds, turn: turn)
        for seed in seeds.dropFirst(2) { topology.lost(seed, 0) }
        var asked: [Address] = []
        for _ in 0..<80 {
            guard let next = topology.nextTime, let node = topology.question(next) else { return #expect(Bool(false)) }
            asked.append(node)
            topology.failed(node, .silent, next)
        }
        for seed in seeds { #expect(asked.suffix(20).contains(seed)) }
    }

    @Test("redirects without end have nodes asked with growing pauses, until there was none for a second") func paced() {
        var (topology, now, pauses) = (learned(), 10_000 * millisecond, [Nanoseconds]())
        for slot in 0..<10 {
            topology.moved(slot, to: node(3), now)
            guard let next = topology.nextTime, let node = topology.question(next) else { return #expect(Bool(false)) }
            pauses.append((next - now) / millisecond)
            now = next
            topology.learn(halves, from: node, now)
        }
        #expect(pauses == [20, 40, 80, 160, 320, 500, 500, 500, 500, 500])
        now += 1_001 * millisecond
        topology.moved(5, to: node(3), now)
        #expect(topology.nextTime == now + 20 * millisecond)
    }

    @Test("a node that knows of no slots has failed") func empty() {
        var topology = ClusterTopology(seeds: [node(1)], turn: 0)
        _ = topology.question(0)
        topology.learn([], from: node(1), 0)
        #expect(topology.failure == .rejected("the node owns no slots, and knows of none"))
        #expect(topology.nextTime == 20 * millisecond)
    }

    @Test("the number of nodes is bounded") func bounded() {
        var topology = learned()
        for port in 1...2_000 { topology.moved(port, to: node(port), 0) }
        #expect(topology.masters.count == ClusterTopology.mostNodes)
    }

    @Test("ranges are read from the response, with the asked node's host where there is none") func ranges() {
        let replica: RedisValue = .array([text("10.0.0.9"), .integer(9), text("id")])
        func entry(_ first: Int, _ last: Int, _ host: RedisValue, _ port: Int) -> RedisValue {
            .array([.integer(first), .integer(last), .array([host, .integer(port), text("id"), .array([])]), replica])
        }
        let asked = Address.tls(host: "here", port: 1)
        #expect(
            ClusterTopology.ranges(
                .array([entry(0, 9, text("there"), 2), entry(10, 10, .null, 3), entry(11, 12, text("?"), 4)]), from: asked)
                == [
                    Range(slots: 0...9, owner: .tls(host: "there", port: 2)), Range(slots: 10...10, owner: .tls(host: "here", port: 3)),
                ])
        for wrong in [
            .null, text("text"), .array([.integer(1)]), .array([entry(5, 4, text("a"), 1)]), .array([entry(-1, 4, text("a"), 1)]),
            .array([entry(0, 16_384, text("a"), 1)]), .array([entry(0, 16_383, text("a"), 1), entry(5, 5, text("b"), 1)]),
            .array([.array([.integer(0), .integer(1), .array([])])]),
        ] as [RedisValue] {
            #expect(ClusterTopology.ranges(wrong, from: asked) == nil)
        }
    }
}
#endif
