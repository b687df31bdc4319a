// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A transport in front of another one that serves some transfers itself.
protocol InterceptingTransport: Transport {
    /// The transport to which all other transfers are forwarded.
    var base: any Transport { get }
    /// The transfers in flight that are not forwarded.
    var intercepted: InterceptedTransfers { get }
    /// The serial queue of those transfers.
    var queue: DispatchQueue { get }
}

/// A transfer that an intercepting transport serves. Thread-safe.
protocol InterceptedTransfer: AnyObject, Sendable {
    func fail(with error: any Error)
    func setSuspended(_ suspended: Bool)
    func resumeReceiving()
}

/// The transfers that an intercepting transport serves, by their numbers. Thread-safe.
final class InterceptedTransfers: Sendable {
    private struct State {
        var transfers: [Int: (generation: Int, transfer: any InterceptedTransfer)] = [:]
        /// Counts insertions: a follow-up has the same number, and may be inserted before its predecessor is removed.
        var lastGeneration = 0
        var isShutDown = false
    }

    private let state = Lock(State())

    subscript(_ id: Int) -> (any InterceptedTransfer)? { state.withLock { $0.transfers[id]?.transfer } }

    /// Inserts the transfer that a closure makes; after ``shutDown()`` the transfer fails at once.
    ///
    /// - Parameter make: gets a closure that removes the transfer, to be called when calls no longer need to reach it.
    func insert<Transfer: InterceptedTransfer>(_ id: Int, _ make: (_ remove: @escaping @Sendable () -> Void) -> Transfer) -> Transfer {
        let generation = state.withLock { state in
            state.lastGeneration += 1
            return state.lastGeneration
        }
        let transfer = make { [weak self] in self?.remove(id, generation) }
        let isShutDown = state.withLock { state in
            state.transfers[id] = (generation, transfer)
            return state.isShutDown
        }
        if isShutDown { transfer.fail(with: CurlewError.sessionInvalidated) }
        return transfer
    }

    private func remove(_ id: Int, _ generation: Int) {
        state.withLock { state in
            if state.transfers[id]?.generation == generation { state.transfers[id] = nil }
        }
    }

    /// Fails all transfers that are inserted later.
    ///
    /// - Returns: the transfers in flight.
    fileprivate func shutDown() -> [any InterceptedTransfer] {
        state.withLock { state in
            state.isShutDown = true
            return state.transfers.values.map(\.transfer)
        }
    }
}

extension InterceptingTransport {
    func cancel(_ id: Int) {
        guard let transfer = intercepted[id] else { return base.cancel(id) }
        transfer.fail(with: CurlewError.cancelled)
    }

    func setSuspended(_ suspended: Bool, of id: Int) {
        guard let transfer = intercepted[id] else { return base.setSuspended(suspended, of: id) }
        transfer.setSuspended(suspended)
    }

    func resumeReceiving(_ id: Int) {
        guard let transfer = intercepted[id] else { return base.resumeReceiving(id) }
        transfer.resumeReceiving()
    }

    func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) {
        base.openStream(request, id: id, observer: observer)
    }

    func send(_ bytes: Data, endOfStream: Bool, on id: Int) {
        base.send(bytes, endOfStream: endOfStream, on: id)
    }

    func shutDown() {
        let transfers = intercepted.shutDown()
        base.shutDown()
        for transfer in transfers { transfer.fail(with: CurlewError.sessionInvalidated) }
    }
    /// Waits for the other transport, then for what this one's transfers have left on the queue: the cache's writes, the classes' calls.
    func waitUntilShutDown() async {
        await base.waitUntilShutDown()
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }
}
