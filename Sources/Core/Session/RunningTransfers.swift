// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport
import Dispatch

/// The transfers that a transport in front of another one runs itself, or has wait, until their completion. Thread-safe.
package struct RunningTransfers<Transfer: AnyObject & Sendable>: Sendable {
    private struct State {
        var transfers: [ObjectIdentifier: Transfer] = [:]
        var isShutDown = false
        /// Those that wait until there are no transfers.
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Lock(State())

    package init() {}

    package var all: [Transfer] { state.withLock { Array($0.transfers.values) } }
    package var isShutDown: Bool { state.withLock { $0.isShutDown } }

    /// Inserts a transfer that starts; returns `false` after ``shutDown()``: it fails then.
    package func insert(_ transfer: Transfer) -> Bool {
        state.withLock { state in
            if !state.isShutDown { state.transfers[ObjectIdentifier(transfer)] = transfer }
            return !state.isShutDown
        }
    }

    /// Removes a transfer whose completion was delivered, or is being delivered on the queue of ``waitUntilShutDown(with:queue:)``.
    package func remove(_ transfer: Transfer) {
        let waiters = state.withLock { state in
            state.transfers[ObjectIdentifier(transfer)] = nil
            defer { if state.transfers.isEmpty { state.waiters = [] } }
            return state.transfers.isEmpty ? state.waiters : []
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Takes no more transfers, shuts the other transport down, and then ends those that run.
    package func shutDown(with base: any Transport, end: (Transfer) -> Void) {
        let transfers = state.withLock { state in
            state.isShutDown = true
            return Array(state.transfers.values)
        }
        base.shutDown()
        for transfer in transfers { end(transfer) }
    }

    /// Returns when the other transport has ended, the transfers have completed, and what was added to a serial queue until then is done. The
    /// other's end is not enough: a transfer may be between two of its steps then, or not be ended yet by ``shutDown(with:end:)``.
    package func waitUntilShutDown(with base: any Transport, queue: DispatchQueue) async {
        await base.waitUntilShutDown()
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.transfers.isEmpty { state.waiters.append(continuation) }
                return state.transfers.isEmpty
            }
            if isOver { continuation.resume() }
        }
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }
}
