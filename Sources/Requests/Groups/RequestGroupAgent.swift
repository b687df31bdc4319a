// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Retains batches and chains while they run.
public final class RequestGroupAgent: Sendable {
    private struct Entry {
        let group: RequestGroup
        let run: Int
    }

    /// The only instance.
    public static let shared = RequestGroupAgent()

    private let entries = Lock<[Entry]>([])

    private init() {}

    /// The running batches, in the order in which they were started.
    public var batchRequests: [BatchRequest] { groups.compactMap { $0 as? BatchRequest } }
    /// The running chains, in the order in which they were started.
    public var chainRequests: [ChainRequest] { groups.compactMap { $0 as? ChainRequest } }

    private var groups: [RequestGroup] { entries.withLock { $0.map(\.group) } }

    /// Stops all batches and chains.
    public func cancelAll() {
        for group in groups { group.stop() }
    }

    /// Stops the batches and chains with this tag.
    public func cancel(tag: Int) {
        for group in groups where group.tag == tag { group.stop() }
    }

    func add(_ group: RequestGroup, _ run: Int) {
        entries.withLock { $0.append(Entry(group: group, run: run)) }
    }

    func remove(_ group: RequestGroup, _ run: Int) {
        let removed = entries.withLock { entries in
            entries.firstIndex { $0.group === group && $0.run == run }.map { entries.remove(at: $0) }
        }
        // Possibly the last reference: released outside the lock.
        withExtendedLifetime(removed) {}
    }
}
