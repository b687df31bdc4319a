// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewRedis

private func node(_ port: Int) -> RedisConfiguration.Address { .tcp(host: "10.0.0.1", port: port) }

private func text(_ text: String) -> RedisValue { .bytes(Data(text.utf8)) }

/// Which replicas may be promoted, by what servers say.
@Suite struct PromotionTests {
    /// What one of three sentinels says, where the ports of the replicas are those of the ones that it may promote, and others.
    private func answer(master: Int = 1, epoch: Int = 0, up: [Int], down: [Int] = [], of sentinels: Int = 3) -> Promotion.Answer {
        let replicas = up.map { (node($0), true) } + down.map { (node($0), false) }
        return Promotion.Answer(
            current: SentinelTopology.Answer(master: node(master), epoch: epoch), sentinels: sentinels,
            replicas: Dictionary(uniqueKeysWithValues: replicas))
    }

    private func candidates(_ answers: [Promotion.Answer], of master: Int = 1) -> Set<Int>? {
        Promotion(of: node(master), answers).map { promotion in
            Set(promotion.candidates.map { if case .tcp(_, let port) = $0 { port } else { 0 } })
        }
    }

    @Test("all replicas that any sentinel knows are candidates, but those that most have answered to be down") func down() {
        let all = answer(up: [2, 3])
        #expect(candidates([all]) == [2, 3])
        #expect(candidates([all, answer(up: [2]), answer(up: [4])]) == [2, 3, 4])
        let without3 = answer(up: [2], down: [3])
        #expect(candidates([without3, without3, without3]) == [2])
        #expect(candidates([without3, without3]) == [2])
        // One of three may be cut off with the master, and the others may promote what it takes for down.
        #expect(candidates([without3]) == [2, 3])
        #expect(candidates([without3, all]) == [2, 3])
        #expect(candidates([without3, answer(up: [2])]) == [2])
        #expect(candidates([without3, without3, without3, all]) == [2, 3])
        // Two of four are no majority, one of one is.
        let ofFour = answer(up: [2], down: [3], of: 4)
        #expect(candidates([ofFour, ofFour]) == [2, 3])
        #expect(candidates([answer(up: [], down: [3], of: 1)]) == [])
        // The greatest number of sentinels counts: one that knows few was reset.
        #expect(candidates([answer(up: [], down: [3], of: 1), answer(up: [], down: [3], of: 5)]) == [3])
    }

    @Test("without an answer, or with another master of the same or a later epoch, there is nothing to decide on") func masters() {
        #expect(candidates([]) == nil)
        let old = answer(epoch: 1, up: [2, 3])
        let new = answer(master: 2, epoch: 2, up: [3], down: [1])
        #expect(candidates([old]) == [2, 3])
        #expect(candidates([old, new]) == nil)
        // The new master is what an older answer has as a replica, and the replicas of both count.
        #expect(candidates([old, new], of: 2) == [3])
        #expect(candidates([old, answer(master: 2, epoch: 2, up: [3, 1])], of: 2) == [1, 3])
        #expect(candidates([new, new, old], of: 3) == nil)
        // One that is announced by two names.
        #expect(candidates([answer(master: 9, epoch: 1, up: [2]), old]) == [2, 3])
    }

    private func map(_ fields: KeyValuePairs<String, String>) -> RedisValue { .array(fields.flatMap { [text($0.key), text($0.value)] }) }

    private func replica(_ port: String, _ flags: String = "slave", priority: String = "100") -> RedisValue {
        map(["name": "any", "ip": "10.0.0.1", "port": port, "flags": flags, "slave-priority": priority])
    }

    @Test("an answer is a master with its epoch, the number of sentinels and the replicas with their flags") func answers() {
        let master = map(["name": "service", "ip": "10.0.0.1", "port": "1", "num-other-sentinels": "2", "config-epoch": "7"])
        let replicas = RedisValue.array([
            replica("2"), replica("3", "s_down,slave"), replica("4", "slave,disconnected"), replica("5", priority: "0"),
            replica("6", "o_down,slave"), replica("7", "slave,promoted"),
        ])
        let expected = [2: true, 3: false, 4: true, 5: false, 6: false, 7: true]
        let read = Promotion.Answer(replicas: replicas, master: master, isSecure: false)
        #expect(
            read
                == Promotion.Answer(
                    current: SentinelTopology.Answer(master: node(1), epoch: 7), sentinels: 3,
                    replicas: Dictionary(uniqueKeysWithValues: expected.map { (node($0.key), $0.value) })))
        #expect(Promotion.Answer(replicas: .array([]), master: master, isSecure: true)?.current.master == .tls(host: "10.0.0.1", port: 1))
        // What is not understood is no answer, not one without replicas.
        for wrong in [.null, .error("NOPERM"), .array([.null]), .array([replica("x")]), .array([map(["ip": "10.0.0.1", "port": "1"])])]
            as [RedisValue]
        {
            #expect(Promotion.Answer(replicas: wrong, master: master, isSecure: false) == nil)
        }
        for wrong in [
            .null, .array([]), map(["ip": "10.0.0.1", "port": "1"]), map(["ip": "10.0.0.1", "port": "1", "num-other-sentinels": "-1"]),
        ] as [RedisValue] {
            #expect(Promotion.Answer(replicas: .array([]), master: wrong, isSecure: false) == nil)
        }
    }

    @Test("a master's role has its offset, and what each connected replica has confirmed") func roles() {
        func replica(_ port: String, _ offset: String) -> RedisValue { .array(["10.0.0.1", port, offset].map(text)) }
        let value = RedisValue.array([
            text("master"), .integer(100), .array([replica("2", "100"), replica("3", "99"), replica("4", "120")]),
        ])
        let role = MasterRole(value, isSecure: false)
        #expect(role?.offset == 100)
        #expect(role?.replicas.count == 3)
        #expect(MasterRole(.array([text("slave"), text("10.0.0.1"), .integer(1), text("connected"), .integer(1)]), isSecure: false) == nil)
        #expect(MasterRole(.null, isSecure: false) == nil)
        #expect(MasterRole(.array([text("master"), .integer(1), .array([.null])]), isSecure: false)?.replicas == [:])
    }

    @Test("replicas have confirmed what WAIT has counted, if it has counted all, or what their offsets say") func confirmed() throws {
        func role(_ offset: Int, _ replicas: [Int: Int]) throws -> MasterRole {
            let entries = replicas.map { RedisValue.array([text("10.0.0.1"), text("\($0.key)"), text("\($0.value)")]) }
            return try #require(MasterRole(.array([text("master"), .integer(offset), .array(entries)]), isSecure: false))
        }
        let before = try role(100, [2: 80, 3: 90])
        #expect(try role(120, [2: 95, 3: 99]).confirmed(since: before, count: 2) == [node(2), node(3)])
        #expect(try role(120, [2: 95]).confirmed(since: before, count: 2) == [node(2)])
        #expect(try role(120, [2: 100, 3: 99]).confirmed(since: before, count: 1) == [node(2)])
        #expect(try role(120, [2: 120, 3: 90]).confirmed(since: before, count: 1) == [node(2)])
        // Another one that was connected in between may be one of those that were counted.
        #expect(try role(120, [2: 99, 3: 101, 4: 101]).confirmed(since: before, count: 2) == [node(3), node(4)])
        #expect(try role(120, [4: 99]).confirmed(since: role(100, [:]), count: 1) == [])
    }

    @Test("the replicas of a slot are those that follow its owner in the response to CLUSTER SLOTS") func cluster() {
        func entry(_ first: Int, _ last: Int, replicas: Int) -> RedisValue {
            let nodes = (0...replicas).map { RedisValue.array([text("10.0.0.1"), .integer(7_000 + $0), text("id")]) }
            return .array([.integer(first), .integer(last)] + nodes)
        }
        let slots = RedisValue.array([entry(0, 99, replicas: 0), entry(100, 200, replicas: 2), entry(300, 300, replicas: 1)])
        let counts = [0: 0, 99: 0, 100: 2, 200: 2, 300: 1]
        for (slot, count) in counts { #expect(ClusterTopology.replicaCount(of: slot, slots) == count) }
        #expect(ClusterTopology.replicaCount(of: 250, slots) == nil)
        #expect(ClusterTopology.replicaCount(of: 0, .null) == nil)
        #expect(ClusterTopology.replicaCount(of: 0, .array([.array([.integer(0), .integer(9)])])) == nil)
    }
}
#endif
