// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP

/// Which replicas may become the master, by what sentinels say of them. A value without connections of its own.
///
/// The sentinels promote one of the replicas that they know, whichever master these follow at the time. What all of them have can't be lost
/// by a fail-over, and what one of them lacks can.
struct Promotion: Sendable, Hashable {
    typealias Address = RedisConfiguration.Address

    /// What a sentinel says.
    struct Answer: Sendable, Hashable {
        let current: SentinelTopology.Answer
        /// How many sentinels there are, with this one.
        let sentinels: Int
        /// The replicas that it knows, and whether it may promote them.
        let replicas: [Address: Bool]
    }

    /// The replicas that may be promoted.
    let candidates: Set<Address>

    /// `nil` if no sentinel has answered, or the master that the client uses is none any more.
    ///
    /// A replica is no candidate if most sentinels have answered, and none of these may promote it. Fewer may be cut off together with the
    /// master, and then say so of the one that the others promote.
    init?(of master: Address, _ answers: [Answer]) {
        guard let epoch = answers.map(\.current.epoch).max(), answers.contains(where: { $0.current == .init(master: master, epoch: epoch) })
        else { return nil }
        let isMajority = 2 * answers.count > answers.map(\.sentinels).max() ?? 0
        var replicas: [Address: Bool] = [:]
        for answer in answers { replicas.merge(answer.replicas) { $0 || $1 } }
        // A sentinel that was cut off may have the master as a replica still.
        replicas[master] = nil
        candidates = Set(replicas.filter { $0.value || !isMajority }.keys)
    }
}

extension Promotion.Answer {
    /// Flags with which a sentinel promotes no replica. `disconnected` is none of them: it may end at any moment, and is set at first.
    private static let unfit: Set = ["s_down", "o_down"]

    /// Reads the responses to `SENTINEL REPLICAS` and, asked for after that, `SENTINEL MASTER`: a replica that was promoted in between is in
    /// the first one, and not missing in both.
    init?(replicas: RedisValue, master: RedisValue, isSecure: Bool) {
        let fields = master.fields
        guard let entries = replicas.elements, let host = fields["ip"], let port = fields["port"],
            let current = SentinelTopology.Answer(
                address: .array([.bytes(Data(host.utf8)), .bytes(Data(port.utf8))]), details: master, isSecure: isSecure),
            let others = fields["num-other-sentinels"].flatMap({ Int($0) }), others >= 0
        else { return nil }
        var found: [RedisConfiguration.Address: Bool] = [:]
        for entry in entries {
            let fields = entry.fields
            guard let host = fields["ip"], let port = fields["port"].flatMap({ Int($0) }), let flags = fields["flags"],
                let address = RedisConfiguration.Address(host: host, port: port, isSecure: isSecure)
            else { return nil }
            let isFit = !flags.splitScalars(separator: ",").contains { Self.unfit.contains(String($0)) }
            found[address] = isFit && fields["slave-priority"] != "0"
        }
        self.init(current: current, sentinels: others + 1, replicas: found)
    }
}

/// What a master says of its replicas (`ROLE`).
struct MasterRole: Sendable, Hashable {
    /// How much it has written.
    let offset: Int
    /// The replicas that are connected, and how much each has confirmed.
    let replicas: [RedisConfiguration.Address: Int]

    /// Reads the response; `nil` if it is not that of a master.
    init?(_ value: RedisValue, isSecure: Bool) {
        guard let parts = value.elements, parts.count == 3, parts[0].text == "master", let offset = parts[1].integer,
            let entries = parts[2].elements
        else { return nil }
        self.offset = offset
        var replicas: [RedisConfiguration.Address: Int] = [:]
        for entry in entries {
            guard let fields = entry.elements, fields.count == 3, let host = fields[0].text, let port = fields[1].integer,
                let confirmed = fields[2].integer,
                let address = RedisConfiguration.Address(host: host, port: port, isSecure: isSecure)
            else { continue }
            replicas[address] = confirmed
        }
        self.replicas = replicas
    }

    /// The replicas that have what the master had written at the time of an earlier role, after `WAIT` has counted some in between.
    func confirmed(since before: Self, count: Int) -> Set<RedisConfiguration.Address> {
        // It waits only for what this client has written, and others have perhaps written more before the earlier role. If it has counted
        // all that there were, and there are no others, these are the ones. Otherwise it has asked all for the offset that they have.
        if count >= before.replicas.count, replicas.keys.allSatisfy({ before.replicas[$0] != nil }) { return Set(replicas.keys) }
        return Set(replicas.filter { $0.value >= before.offset }.keys)
    }
}

extension ClusterTopology {
    /// How many replicas of a slot's owner may be promoted, by its response to `CLUSTER SLOTS`: those that the masters do not agree to have
    /// failed. An owner that is cut off with a minority can't take any for failed, and counts those on the other side too.
    static func replicaCount(of slot: Int, _ value: RedisValue) -> Int? {
        let entry = value.elements?.lazy.compactMap(\.elements).first { parts in
            guard parts.count >= 3, let first = parts[0].integer, let last = parts[1].integer else { return false }
            return first <= slot && slot <= last
        }
        return entry.map { $0.count - 3 }
    }
}

extension RedisValue {
    /// Names and values in turn.
    fileprivate var fields: [String: String] {
        let texts = elements?.map { $0.text ?? "" } ?? []
        return Dictionary(zip(texts, texts.dropFirst()).enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element)) { $1 }
    }
}
#endif
