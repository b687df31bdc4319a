// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The transfers that wait for a slot of their host, and those that have got one.
///
/// A released slot is given to the next transfer at once, but the loop launches that transfer later: a thousand failures in a row would
/// otherwise recurse.
struct LaunchQueue {
    private var queue: HostQueue<Transfer>
    /// The transfers that have got a slot, the first one last.
    private var ready: [Transfer] = []

    /// - Parameter limit: the most transfers to one host at a time; `nil` for no limit.
    init(limit: Int?) {
        queue = HostQueue(limit: limit)
    }

    /// Whether transfers may have to wait.
    var hasLimit: Bool { queue.hasLimit }

    /// Whether ``popReady()`` returns a transfer.
    var hasReady: Bool { !ready.isEmpty }

    /// Returns whether a transfer has a slot and may be launched now; otherwise it is queued.
    mutating func enter(_ transfer: Transfer) -> Bool {
        queue.enter(transfer.hostKey, transfer, urgency: transfer.request.urgency)
    }

    /// Removes and returns the next transfer to launch.
    mutating func popReady() -> Transfer? { ready.popLast() }

    /// Releases a transfer's slot, or removes it from the queue.
    mutating func leave(_ transfer: Transfer) {
        if transfer.exchange.launchedAt == 0 {
            guard let index = ready.firstIndex(where: { $0 === transfer }) else {
                return queue.withdraw(transfer, from: transfer.hostKey)
            }
            ready.remove(at: index)
        }
        if let next = queue.leave(transfer.hostKey) { ready.insert(next, at: 0) }
    }
}
