// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewTestSupport

@testable import CurlewRedis

/// A cluster of three masters with a replica each.
struct ClusterGroup {
    /// The first three are the masters at the beginning.
    let nodes: [RedisNode]
    private let timeout: Int
    private let security: RedisNode.Security?

    /// - Parameters:
    ///   - timeout: after which a node counts as failed (`cluster-node-timeout`), in milliseconds.
    ///   - isSecure: whether the nodes have TLS only.
    init(timeout: Int = 500, isSecure: Bool = false) async throws {
        let security = isSecure ? try RedisNode.Security() : nil
        (self.timeout, self.security) = (timeout, security)
        let ports = try RedisNode.freePorts(12)
        var nodes: [RedisNode] = []
        for index in 0..<6 {
            nodes.append(try await Self.node(ports[index], ports[6 + index], timeout, security))
        }
        self.nodes = nodes
        let clients = try nodes.map { try $0.client() }
        for (index, client) in clients.enumerated() {
            _ = try await client.run(["CLUSTER", "SET-CONFIG-EPOCH", .number(index + 1)])
            if index < 3 {
                _ = try await client.run(["CLUSTER", "ADDSLOTSRANGE", .number(index * 16_384 / 3), .number((index + 1) * 16_384 / 3 - 1)])
            }
            // Each meets each, which is faster than that they hear of each other.
            for other in clients[..<index] {
                _ = try await other.run(["CLUSTER", "MEET", "127.0.0.1", .number(ports[index]), .number(ports[6 + index])])
            }
        }
        for (index, client) in clients.enumerated() where index >= 3 {
            let id = try await Self.id(clients[index - 3])
            guard await becomesTrue({ (try? await client.run(["CLUSTER", "REPLICATE", .text(id)])) == .status("OK") }) else {
                throw TestError("a node does not become a replica")
            }
        }
        for client in clients {
            let isComplete = await becomesTrue {
                guard let info = try? await client.run(["CLUSTER", "INFO"]).text, let slots = try? await client.run(["CLUSTER", "SLOTS"])
                else { return false }
                return info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:6")
                    && slots.elements?.filter { $0.elements?.count == 4 }.count == 3
            }
            guard isComplete else { throw TestError("the cluster is not complete") }
        }
    }

    private static func node(_ port: Int, _ busPort: Int, _ timeout: Int, _ security: RedisNode.Security?) async throws -> RedisNode {
        let options = [
            "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "\(timeout)", "--cluster-port",
            "\(busPort)", "--cluster-replica-validity-factor", "0", "--cluster-require-full-coverage", "no",
            // A replica is none of its slots' nodes before it was pinged once.
            "--repl-ping-replica-period", "1",
            // A master whose last slot is moved stays one.
            "--cluster-allow-replica-migration", "no",
        ]
        return try await RedisNode(port: port, options + (security == nil ? [] : ["--tls-cluster", "yes"]), security)
    }

    /// Starts a further node, without slots, and waits until all know it.
    func add() async throws -> RedisNode {
        let ports = try RedisNode.freePorts(2)
        let node = try await Self.node(ports[0], ports[1], timeout, security)
        let clients = try (nodes + [node]).map { try $0.client() }
        for other in clients[..<nodes.count] {
            _ = try await other.run(["CLUSTER", "MEET", "127.0.0.1", .number(ports[0]), .number(ports[1])])
        }
        for client in clients {
            // Without `cluster-require-full-coverage` the state is well also of one that has not heard yet whose all slots are.
            let lines = ["cluster_known_nodes:\(clients.count)", "cluster_slots_assigned:16384", "cluster_state:ok"]
            let isComplete = await becomesTrue {
                let info = try? await client.run(["CLUSTER", "INFO"]).text
                return info.map { info in lines.allSatisfy { info.contains($0) } } ?? false
            }
            guard isComplete else { throw TestError("the further node is not known") }
        }
        return node
    }

    /// Has all nodes forget a further one, which owns no slots any more, and that one all of them. Its process continues.
    func remove(_ node: RedisNode) async throws {
        let client = try node.client()
        let id = try await Self.id(client)
        for other in nodes { _ = try await other.client().run(["CLUSTER", "FORGET", .text(id)]) }
        guard try await client.run(["CLUSTER", "RESET", "HARD"]) == .status("OK") else { throw TestError("the node is not reset") }
    }

    static func id(_ client: RedisClient) async throws -> String { try await client.run(["CLUSTER", "MYID"]).text ?? "" }

    /// The greatest epoch that a node knows.
    private static func epoch(_ client: RedisClient) async throws -> Int {
        let lines = try await client.run(["CLUSTER", "INFO"]).text?.split(whereSeparator: \.isNewline) ?? []
        let line = lines.first { $0.hasPrefix("cluster_current_epoch:") }
        guard let epoch = line?.split(separator: ":").last.flatMap({ Int($0) }) else { throw TestError("a node has no epoch") }
        return epoch
    }

    /// The nodes, as the probe names them.
    var place: String { "cluster:" + nodes.map { "\($0.port)" }.joined(separator: ",") }

    /// A configuration with two of the nodes, a replica first.
    func configuration(timeout: Duration = .seconds(5)) -> RedisConfiguration {
        var configuration = RedisConfiguration(.cluster([nodes[5].address, nodes[0].address]))
        configuration.commandTimeout = timeout
        // A node that a busy machine holds up keeps its connections.
        configuration.silenceLimit = .seconds(10)
        configuration.maximumBackoff = .milliseconds(100)
        configuration.tls.certificateAuthorities = security?.authority.certificate
        return configuration
    }

    /// Moves a slot with all its keys from one master to another one.
    func migrate(_ slot: Int, from source: RedisNode, to destination: RedisNode) async throws {
        let (from, to) = (try source.client(), try destination.client())
        let (sourceID, destinationID) = (try await Self.id(from), try await Self.id(to))
        _ = try await to.run(["CLUSTER", "SETSLOT", .number(slot), "IMPORTING", .text(sourceID)])
        _ = try await from.run(["CLUSTER", "SETSLOT", .number(slot), "MIGRATING", .text(destinationID)])
        while true {
            let keys = try await from.run(["CLUSTER", "GETKEYSINSLOT", .number(slot), 10]).elements?.compactMap(\.text) ?? []
            if keys.isEmpty { break }
            _ = try await from.run(
                ["MIGRATE", "127.0.0.1", .number(destination.port), "", 0, 5_000, "KEYS"] + keys.map { .text($0) })
        }
        // The new owner takes the epoch after the greatest that it knows: with that of the present one, both would claim the slot.
        let known = await becomesTrue {
            guard let last = try? await Self.epoch(from), let known = try? await Self.epoch(to) else { return false }
            return known >= last
        }
        guard known else { throw TestError("a node does not hear of the others") }
        _ = try await to.run(["CLUSTER", "SETSLOT", .number(slot), "NODE", .text(destinationID)])
        _ = try await from.run(["CLUSTER", "SETSLOT", .number(slot), "NODE", .text(destinationID)])
    }
}
#endif
