// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// Makes one transfer of equal requests in flight, in front of the cache.
final class CoalescingTransport: ForwardingTransport {
    private struct State {
        /// The transfers that may still be joined, by the hash of the URL, which is computed once: few are equal in all but the URL.
        var open: [Int: [SharedTransfer]] = [:]
        var members: [Int: SharedMember] = [:]

        mutating func close(_ transfer: SharedTransfer) {
            guard let index = open.index(forKey: transfer.place) else { return }
            open.values[index].removeAll { $0 === transfer }
            if open.values[index].isEmpty { open.remove(at: index) }
        }
    }

    let base: any Transport
    let policy: Coalescing
    let teller: PolicyTeller
    private let state = Lock(State())

    init(_ base: any Transport, _ policy: Coalescing, _ teller: PolicyTeller) {
        self.base = base
        self.policy = policy
        self.teller = teller
    }

    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        guard request.method == .get || request.method == .head, request.body == nil, !request.mayPause, request.authentication == nil,
            policy.includes(PolicyRequest(request))
        else { return base.start(request, id: id, observer: observer) }
        let place = request.url.hashValue
        let (transfer, isFirst) = state.withLock { state -> (SharedTransfer, Bool) in
            let known = state.open[place]?.first { $0.request.isEquivalent(to: request) }
            let transfer = known ?? SharedTransfer(self, request, at: place)
            if known == nil { state.open[place, default: []].append(transfer) }
            let member = SharedMember(id: id, observer: observer, transfer: transfer)
            state.members[id] = member
            // Inside the lock, so that the transfer is not closed in between.
            transfer.add(member)
            return (transfer, known == nil)
        }
        guard isFirst else {
            let origin = HTTPOrigin(url: request.url)
            return teller.tell(
                .coalescing, policy.name, origin.map { "\($0.scheme)://\($0.host):\($0.port)" } ?? "", .coalesced, request)
        }
        base.start(request, id: transfer.id, observer: transfer)
        transfer.startReturned()
    }

    /// Lets no more requests join a transfer.
    func close(_ transfer: SharedTransfer) { state.withLock { $0.close(transfer) } }

    func remove(_ member: SharedMember) {
        state.withLock { state in
            // A follow-up may have its number already.
            if state.members[member.id] === member { state.members[member.id] = nil }
        }
    }

    /// Closes a transfer if it has no members, so that none can join it; returns whether it has none, and has to be cancelled.
    func closeIfEmpty(_ transfer: SharedTransfer) -> Bool {
        state.withLock { state in
            guard transfer.endIfEmpty() else { return false }
            state.close(transfer)
            return true
        }
    }

    private subscript(_ id: Int) -> SharedMember? { state.withLock { $0.members[id] } }

    // MARK: Transport

    func cancel(_ id: Int) {
        if let member = self[id] { member.fail(with: CurlewError.cancelled) } else { base.cancel(id) }
    }

    func setSuspended(_ suspended: Bool, of id: Int) {
        if let member = self[id] { member.setSuspended(suspended) } else { base.setSuspended(suspended, of: id) }
    }

    func resumeReceiving(_ id: Int) {
        if let member = self[id] { member.resumeReceiving() } else { base.resumeReceiving(id) }
    }

    func waitUntilShutDown() async {
        await base.waitUntilShutDown()
        await withCheckedContinuation { continuation in teller.context.queue.async { continuation.resume() } }
    }
}
