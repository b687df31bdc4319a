// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Which node of a cluster owns which slots, by what its nodes say. A value without connections and clock of its own.
///
/// One node at a time is asked (`CLUSTER SLOTS`, which all versions have): at the beginning, after a redirect, and after an owner has
/// failed, until no owner is in doubt.
struct ClusterTopology: Sendable {
    typealias Address = RedisConfiguration.Address

    /// Slots, and the node that owns them.
    struct Range: Sendable, Hashable {
        let slots: ClosedRange<Int>
        let owner: Address
    }

    /// The most nodes; a cluster has at most 1,000 by its specification.
    static let mostNodes = 1_000
    /// The time between two questions, at first and at most, in seconds.
    private static let pauses = Backoff(first: 0.02, limit: 0.5)
    /// After this time without a question, the pauses begin with the first again.
    private static let calm = Duration.seconds(1).nanoseconds

    private let seeds: [Address]
    /// The owners, each once, in the order in which they were learned.
    private(set) var masters: [Address] = []
    /// For each slot the place of its owner in the masters and one; 0 for none.
    private var slots = [UInt16](repeating: 0, count: HashSlot.count)
    /// Nodes whose connections have failed since they were last used.
    private var suspects: Set<Address> = []
    /// The node that is asked, and has not answered yet.
    private var asked: Address?
    private var time: Nanoseconds? = 0
    /// How many questions followed each other, and when the last one was asked.
    private var questions = 0
    private var lastQuestion: Nanoseconds = 0
    /// Where in the nodes the next question begins, so that not all clients ask the same one first.
    private var turn: Int
    /// Counts the changes of owners.
    private(set) var generation = 0
    /// How many questions have failed since the last answer, and why the last did.
    private var failures = 0
    private var lastFailure: RedisError.Reason?

    init(seeds: [Address], turn: Int) {
        self.seeds = seeds
        self.turn = turn
    }

    /// The node that owns a slot; `nil` if none is known.
    func owner(of slot: Int) -> Address? { slots[slot] == 0 ? nil : masters[Int(slots[slot]) - 1] }

    /// The time at which ``question(_:)`` has one.
    var nextTime: Nanoseconds? { asked == nil ? time : nil }

    /// Why no owner is known, after as many questions have failed as there are nodes to ask.
    var failure: RedisError.Reason? { masters.isEmpty && failures >= seeds.count ? lastFailure : nil }

    // MARK: Questions

    /// The node to ask now, if one is due; each is answered by ``learn(_:from:_:)`` or ``failed(_:_:_:)``.
    mutating func question(_ now: Nanoseconds) -> Address? {
        guard asked == nil, let time, time <= now else { return nil }
        // The seeds too, as all known nodes may have been replaced; those in doubt last, but not never.
        let known = masters + seeds.filter { !masters.contains($0) }
        let (others, inDoubt) = (known.filter { !suspects.contains($0) }, known.filter { suspects.contains($0) })
        let isForDoubt = others.isEmpty || questions % 4 == 3 && !inDoubt.isEmpty
        asked = isForDoubt ? inDoubt[turn / 4 % inDoubt.count] : others[turn % others.count]
        lastQuestion = now
        turn = (turn + 1) % Self.mostNodes
        return asked
    }

    private mutating func askAgain(_ now: Nanoseconds) {
        time = now + Duration.seconds(Self.pauses.delay(after: questions)).nanoseconds
        // Never the same for long, as each fourth question may be one for a node in doubt.
        questions = questions < 16 ? questions + 1 : 13
    }

    /// Accepts an answer.
    mutating func learn(_ ranges: [Range], from node: Address, _ now: Nanoseconds) {
        if asked == node { asked = nil }
        var (found, places, new) = ([Address](), [Address: UInt16](), [UInt16](repeating: 0, count: HashSlot.count))
        for range in ranges {
            let place = places[range.owner] ?? UInt16(found.count + 1)
            if place > found.count {
                guard found.count < Self.mostNodes else { continue }
                found.append(range.owner)
                places[range.owner] = place
            }
            for slot in range.slots { new[slot] = place }
        }
        guard !found.isEmpty else { return failed(node, .rejected("the node owns no slots, and knows of none"), now) }
        if found != masters || new != slots { generation += 1 }
        (masters, slots, failures) = (found, new, 0)
        suspects.formIntersection(masters + seeds)
        suspects.remove(node)
        // An owner that has failed is replaced by the cluster, or comes back.
        if suspects.isDisjoint(with: masters) { time = nil } else { askAgain(now) }
    }

    /// A question has failed.
    mutating func failed(_ node: Address, _ reason: RedisError.Reason, _ now: Nanoseconds) {
        asked = nil
        lastFailure = reason
        failures += 1
        askAgain(now)
    }

    // MARK: Doubts

    /// A redirect says that a node owns a slot: it counts at once, and the rest is asked for.
    mutating func moved(_ slot: Int, to owner: Address, _ now: Nanoseconds) {
        if self.owner(of: slot) != owner {
            let place = masters.firstIndex(of: owner) ?? masters.count
            guard place < Self.mostNodes else { return }
            if place == masters.count { masters.append(owner) }
            slots[slot] = UInt16(place + 1)
            generation += 1
        }
        suspects.remove(owner)
        doubt(now)
    }

    /// Something may have changed: a node is asked, at the next pause if that has been so for a while.
    mutating func doubt(_ now: Nanoseconds) {
        guard time == nil else { return }
        if now > lastQuestion + Self.calm { questions = 0 }
        askAgain(now)
    }

    /// The connection to a node has failed.
    mutating func lost(_ node: Address, _ now: Nanoseconds) {
        guard masters.contains(node) || seeds.contains(node) else { return }
        suspects.insert(node)
        if masters.contains(node) { doubt(now) }
    }

    /// A connection to a node is established.
    mutating func works(_ node: Address) { suspects.remove(node) }
}

extension ClusterTopology {
    /// Reads the response to `CLUSTER SLOTS`: for each range its ends, its owner and the owner's replicas, each with host and port. A node
    /// without a host is at the address of the one that was asked.
    static func ranges(_ value: RedisValue, from node: Address) -> [Range]? {
        guard let entries = value.elements else { return nil }
        var (ranges, count): ([Range], Int) = ([], 0)
        for entry in entries {
            guard let parts = entry.elements, parts.count >= 3, let first = parts[0].integer, let last = parts[1].integer,
                first >= 0, first <= last, last < HashSlot.count, let owner = parts[2].elements, owner.count >= 2,
                let port = owner[1].integer
            else { return nil }
            // Each slot has one owner.
            count += last - first + 1
            guard count <= HashSlot.count else { return nil }
            let host = owner[0].text.flatMap { $0.isEmpty ? nil : $0 }
            // Of a node whose name is not known yet ("?"), others may know it.
            if let address = node.neighbour(ServerRefusal.Target(host: host, port: port)) {
                ranges.append(Range(slots: first...last, owner: address))
            }
        }
        return ranges
    }
}

extension RedisConfiguration.Address {
    /// The address of another node, as this one has named it; with TLS if this one has it.
    func neighbour(_ target: ServerRefusal.Target) -> Self? {
        switch self {
        case .tcp(let host, _): Self(host: target.host ?? host, port: target.port, isSecure: false)
        case .tls(let host, _): Self(host: target.host ?? host, port: target.port, isSecure: true)
        case .unix, .sentinels, .cluster: nil
        }
    }
}
#endif
