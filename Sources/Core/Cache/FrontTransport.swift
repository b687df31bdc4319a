// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A transport before another one, which answers some transfers itself.
protocol FrontTransport: Transport {
    var base: any Transport { get }
    /// The transfers that it does not leave to the other one.
    var taken: TakenTransfers { get }
}

/// A transfer that a transport before another one has taken. What is said to it comes on any thread.
protocol TakenTransfer: AnyObject, Sendable {
    func end(with error: any Error)
    func setSuspended(_ suspended: Bool)
    func resumeReceiving()
}

/// The transfers that a transport before another one has taken, by their numbers.
final class TakenTransfers: Sendable {
    private struct State {
        var transfers: [Int: (entry: Int, transfer: any TakenTransfer)] = [:]
        /// Counts entries: a transfer's next hop has its number, and may begin before the one before is forgotten.
        var lastEntry = 0
        var isShutDown = false
    }

    private let state = Lock(State())

    subscript(_ id: Int) -> (any TakenTransfer)? { state.withLock { $0.transfers[id]?.transfer } }

    /// Enters the transfer that a closure makes, which is ended at once if there are to be none.
    ///
    /// - Parameter make: gets what has the transfer forgotten: to be called once nobody needs to speak to it any more.
    func enter<Transfer: TakenTransfer>(_ id: Int, _ make: (_ forget: @escaping @Sendable () -> Void) -> Transfer) -> Transfer {
        let entry = state.withLock { state in
            state.lastEntry += 1
            return state.lastEntry
        }
        let transfer = make { [weak self] in self?.forget(id, entry) }
        let isRefused = state.withLock { state in
            state.transfers[id] = (entry, transfer)
            return state.isShutDown
        }
        if isRefused { transfer.end(with: CurlewError.sessionInvalidated) }
        return transfer
    }

    private func forget(_ id: Int, _ entry: Int) {
        state.withLock { state in
            if state.transfers[id]?.entry == entry { state.transfers[id] = nil }
        }
    }

    /// From now on all transfers are refused.
    ///
    /// - Returns: those that are there.
    fileprivate func close() -> [any TakenTransfer] {
        state.withLock { state in
            state.isShutDown = true
            return state.transfers.values.map(\.transfer)
        }
    }
}

extension FrontTransport {
    func cancel(_ id: Int) {
        guard let transfer = taken[id] else { return base.cancel(id) }
        transfer.end(with: CurlewError.cancelled)
    }

    func setSuspended(_ suspended: Bool, of id: Int) {
        guard let transfer = taken[id] else { return base.setSuspended(suspended, of: id) }
        transfer.setSuspended(suspended)
    }

    func resumeReceiving(_ id: Int) {
        guard let transfer = taken[id] else { return base.resumeReceiving(id) }
        transfer.resumeReceiving()
    }

    func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) {
        base.openStream(request, id: id, observer: observer)
    }

    func send(_ bytes: Data, endOfStream: Bool, on id: Int) {
        base.send(bytes, endOfStream: endOfStream, on: id)
    }

    func shutDown() {
        let transfers = taken.close()
        base.shutDown()
        for transfer in transfers { transfer.end(with: CurlewError.sessionInvalidated) }
    }
}
