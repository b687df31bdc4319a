// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// Makes one transfer of equal requests in flight, in front of the cache: a request's handle is a ``JoiningRequest``, and what several may
/// have in common a ``SharedTransfer``.
///
/// One lock for all of them, which is taken four times for a request that none joins.
final class CoalescingTransport: ForwardingTransport {
    struct State {
        /// The transfers that may be joined, by the end of their URL's hash; the others with the same one follow the first. A dictionary
        /// would hash the hash.
        fileprivate var open = [SharedTransfer?](repeating: nil, count: 1_024)
    }

    let base: any Transport
    let policy: Coalescing
    let reporter: PolicyReporter
    private let isSelective: Bool
    private let hash: TextHash
    private let state = Lock(State())
    /// The transfers that several requests share, until the last of these has ended.
    let shared = RunningTransfers<SharedTransfer>()

    init(_ base: any Transport, _ policy: Coalescing, _ reporter: PolicyReporter, hash: TextHash = TextHash()) {
        self.base = base
        self.policy = policy
        self.reporter = reporter
        self.hash = hash
        isSelective = policy.isSelective
    }

    /// Runs `body` with exclusive access to the transfers.
    func withState<R>(_ body: (inout State) -> R) -> R { state.withLock(body) }

    func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        guard request.isForDocument, !isSelective || policy.includes(PolicyRequest(request)) else {
            return base.makeTransfer(request, id: id, observer: observer)
        }
        return JoiningRequest(self, request, id: id, observer)
    }

    /// Makes a transfer of the base transport: its owner would copy that.
    func makeBaseTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        base.makeTransfer(request, id: id, observer: observer)
    }

    /// The hash of a request's URL.
    func hash(of request: TransferRequest) -> Int { request.withURLBytes { hash.number(of: $0) } }

    func reportJoin(_ request: TransferRequest) {
        let origin = HTTPOrigin(url: request.url)
        reporter.report(.coalescing, policy.name, origin.map { "\($0.scheme)://\($0.host):\($0.port)" } ?? "", .coalesced, request)
    }

    // Suspended requests that share a transfer would complete only when they are resumed.
    func shutDown() { shared.shutDown(with: base) { $0.fail(with: CurlewError.sessionInvalidated) } }

    func waitUntilShutDown() async { await shared.waitUntilShutDown(with: base, queue: reporter.context.queue) }
}

extension CoalescingTransport.State {
    /// Finds the transfer of an equal request for one that is started, or makes its own.
    mutating func transfer(for request: JoiningRequest, hash: Int) -> (transfer: SharedTransfer, isNew: Bool) {
        let place = hash & (open.count - 1)
        var other = open[place]
        while let present = other {
            // A response that is on its way is none to a request that comes after the session's end.
            if present.hash == hash, present.request.isEquivalent(to: request.request), request.transport.shared.insert(present) {
                present.add(request)
                return (present, false)
            }
            other = present.next
        }
        let made = SharedTransfer(request, hash: hash)
        made.next = open[place]
        open[place] = made
        return (made, true)
    }

    /// Removes a transfer from those that may be joined.
    mutating func close(_ transfer: SharedTransfer) {
        guard transfer.isOpen else { return }
        transfer.isOpen = false
        defer { transfer.next = nil }
        let place = transfer.hash & (open.count - 1)
        guard var other = open[place], other !== transfer else { return open[place] = transfer.next }
        while let next = other.next, next !== transfer { other = next }
        other.next = transfer.next
    }
}
