// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// The transfers that a transport in front of another one runs itself, from their start to their completion. Thread-safe.
struct RunningTransfers<Transfer: AnyObject & Sendable>: Sendable {
    private struct State {
        var transfers: [ObjectIdentifier: Transfer] = [:]
        var isShutDown = false
    }

    private let state = Lock(State())

    var all: [Transfer] { state.withLock { Array($0.transfers.values) } }

    /// Inserts a transfer that starts; returns `false` after ``shutDown()``: it fails then.
    func insert(_ transfer: Transfer) -> Bool {
        state.withLock { state in
            if !state.isShutDown { state.transfers[ObjectIdentifier(transfer)] = transfer }
            return !state.isShutDown
        }
    }

    func remove(_ transfer: Transfer) {
        state.withLock { $0.transfers[ObjectIdentifier(transfer)] = nil }
    }

    /// Takes no more transfers, shuts the other transport down, and then ends those that run.
    func shutDown(with base: any Transport, end: (Transfer) -> Void) {
        let transfers = state.withLock { state in
            state.isShutDown = true
            return Array(state.transfers.values)
        }
        base.shutDown()
        for transfer in transfers { end(transfer) }
    }
}
