// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What replicas have of what was written to a server.
struct Replication: Sendable, Hashable {
    /// Whether any replica has it.
    var hasAny = false
    /// Whether all have it that were asked for.
    var isComplete = false
}

extension RedisClient {
    /// Whether another server may become the master.
    var mayFailOver: Bool {
        switch configuration.address {
        case .unix, .tcp, .tls: false
        case .sentinels, .cluster: true
        }
    }

    /// Waits until a replica has what was written to the server of a key, at most for half of the timeout, so that a fail-over does not lose it.
    /// Commands after it wait too: for what is written seldom. Of a server that was connected since then, the result says nothing.
    func awaitReplica(of key: String) async -> Replication {
        let count = await wait(for: 1, slot: HashSlot.slot(of: key.utf8))
        return Replication(hasAny: count > 0, isComplete: true)
    }

    /// Waits as ``awaitReplica(of:)`` does, for each replica that may be promoted: the new master has it, whichever that will be.
    func awaitReplicas(of key: String) async -> Replication {
        switch configuration.address {
        case .unix, .tcp, .tls: return Replication(isComplete: true)
        case .sentinels(let sentinels, let name): return await awaitReplicas(sentinels, .text(name))
        case .cluster:
            let slot = HashSlot.slot(of: key.utf8)
            guard let slots = await responses(to: [["CLUSTER", "SLOTS"]], slot: slot)?.first,
                let needed = ClusterTopology.replicaCount(of: slot, slots)
            else { return Replication() }
            // Another one may be connected that the node has not heard of yet.
            let count = await wait(for: max(needed, 1), slot: slot)
            return Replication(hasAny: count > 0, isComplete: count >= needed)
        }
    }

    /// Connects to the sentinels, so that the first ``awaitReplicas(of:)`` need not.
    func prepareAwaitingReplicas() {
        guard case .sentinels(let sentinels, _) = configuration.address else { return }
        for sentinel in sentinels { submit(["PING"], to: sentinel, timeout: configuration.connectTimeout) { _ in } }
    }

    private func awaitReplicas(_ sentinels: [RedisConfiguration.Address], _ name: RedisArgument) async -> Replication {
        let isSecure = configuration.masterUsesTLS ?? configuration.address.isSecure
        guard let master = masters?.first, let promotion = await promotion(of: master, sentinels, name, isSecure: isSecure),
            let before = await role(of: master, isSecure: isSecure)
        else { return Replication() }
        if promotion.candidates.isEmpty, before.replicas.isEmpty { return Replication(isComplete: true) }
        // For all that are connected: the first to confirm may be no candidates.
        let count = await wait(for: max(before.replicas.count, 1), at: master)
        guard let after = await role(of: master, isSecure: isSecure) else { return Replication() }
        let confirmed = after.confirmed(since: before, count: count)
        return Replication(hasAny: !confirmed.isEmpty, isComplete: promotion.candidates.isSubset(of: confirmed))
    }

    private func promotion(
        of master: RedisConfiguration.Address, _ sentinels: [RedisConfiguration.Address], _ name: RedisArgument, isSecure: Bool
    ) async -> Promotion? {
        let answers = await withTaskGroup(of: Promotion.Answer?.self) { group in
            for sentinel in sentinels {
                group.addTask {
                    let parts = await self.responses(
                        to: [["SENTINEL", "REPLICAS", name], ["SENTINEL", "MASTER", name]], at: sentinel,
                        within: self.configuration.commandTimeout / 2)
                    return parts.flatMap { Promotion.Answer(replicas: $0[0], master: $0[1], isSecure: isSecure) }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        return Promotion(of: master, answers.compactMap { $0 })
    }

    private func role(of master: RedisConfiguration.Address, isSecure: Bool) async -> MasterRole? {
        await responses(to: [["ROLE"]], at: master)?.first.flatMap { MasterRole($0, isSecure: isSecure) }
    }

    /// Returns how many replicas have what this client has written, after half of the timeout at most.
    private func wait(for count: Int, at node: RedisConfiguration.Address? = nil, slot: Int? = nil) async -> Int {
        let time = (configuration.commandTimeout / 2).atLeastOneMillisecond
        return await responses(to: [["WAIT", .number(count), .number(time)]], at: node, slot: slot)?.first?.integer ?? 0
    }

    /// Sends commands in their order; returns the responses if none has failed.
    private func responses(
        to commands: [[RedisArgument]], at node: RedisConfiguration.Address? = nil, slot: Int? = nil, within limit: Duration? = nil
    ) async -> [RedisValue]? {
        let timeout = limit ?? configuration.commandTimeout
        let deadline = MonotonicTime.now() + timeout.nanoseconds
        let results = Lock([Int: Result<RedisValue, RedisError>]())
        await withCheckedContinuation { continuation in
            for (index, command) in commands.enumerated() {
                submit(command, timeout, deadline, to: node, slot: slot, isRepeatable: false) { result in
                    let isLast = results.withLock { results in
                        results[index] = result
                        return results.count == commands.count
                    }
                    if isLast { continuation.resume() }
                }
            }
        }
        let found = results.withLock { $0 }
        let values = commands.indices.compactMap { try? found[$0]?.get() }
        return values.count == commands.count ? values : nil
    }
}
#endif
