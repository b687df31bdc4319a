// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// Lets each exchange pass the policies below the cache. Its story is a ``PolicyTransfer``.
///
/// A transfer that neither waits nor may be sent twice has its own number at the base transport, and is not known here: nearly all are a
/// ``PassedTransfer``, or have no need of one.
final class PolicyTransport: ForwardingTransport {
    let base: any Transport
    let runtime: PolicyRuntime
    let teller: PolicyTeller
    private let transfers = Lock(Transfers())

    private struct Transfers {
        var known: [Int: PolicyTransfer] = [:]
        var isShutDown = false
    }

    /// Numbers of transfers that no session has: those of sessions are positive, those of the cache negative and small.
    private static let lastNumber = Lock(Int.min)

    static func makeNumber() -> Int {
        lastNumber.withLock { last in
            last += 1
            return last
        }
    }

    init(_ base: any Transport, _ runtime: PolicyRuntime, _ context: LayerContext) {
        self.base = base
        self.runtime = runtime
        teller = PolicyTeller(runtime.policies, context)
    }

    var context: LayerContext { teller.context }
    /// The time, without a copy of the context.
    var time: Duration { teller.context.time }

    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        let runtime = runtime
        let request = runtime.addsKeys ? runtime.policies.idempotencyKeys?.adding(to: request) ?? request : request
        let now = time
        runtime.budget?.noteRequest(request, at: now)
        guard runtime.hasEnds else { return base.start(request, id: id, observer: observer) }
        let passed = PassedTransfer(self, runtime.countsResults ? request : nil, observer, sent: now)
        let step = passed.takeFree(request, runtime)
        guard step == .send, runtime.hedges == nil else {
            return PolicyTransfer(self, request, id: id, observer, passed.held).perform(step, at: now)
        }
        base.start(request, id: id, observer: passed)
    }

    // MARK: Transfers that wait or have two attempts

    /// Makes a transfer known by its number; returns `false` once the transport was shut down.
    func enter(_ transfer: PolicyTransfer) -> Bool {
        transfers.withLock { transfers in
            transfers.known[transfer.id] = transfer
            return !transfers.isShutDown
        }
    }

    func remove(_ transfer: PolicyTransfer) {
        transfers.withLock { transfers in
            // A follow-up may have its number already.
            if transfers.known[transfer.id] === transfer { transfers.known[transfer.id] = nil }
        }
    }

    private subscript(_ id: Int) -> PolicyTransfer? { transfers.withLock { $0.known.isEmpty ? nil : $0.known[id] } }

    // MARK: Transport

    func cancel(_ id: Int) {
        if let transfer = self[id] { transfer.fail(with: CurlewError.cancelled) } else { base.cancel(id) }
    }

    func setSuspended(_ suspended: Bool, of id: Int) {
        if let transfer = self[id] { transfer.setSuspended(suspended) } else { base.setSuspended(suspended, of: id) }
    }

    func resumeReceiving(_ id: Int) {
        if let transfer = self[id] { transfer.resumeReceiving() } else { base.resumeReceiving(id) }
    }

    func shutDown() {
        let known = transfers.withLock { transfers in
            transfers.isShutDown = true
            return Array(transfers.known.values)
        }
        base.shutDown()
        for transfer in known { transfer.fail(with: CurlewError.sessionInvalidated) }
    }

    func waitUntilShutDown() async {
        await base.waitUntilShutDown()
        await withCheckedContinuation { continuation in context.queue.async { continuation.resume() } }
    }
}

/// Asks the cache for stale responses in place of failures.
final class StaleTransport: ForwardingTransport {
    let base: any Transport
    private let directive: String

    init(_ base: any Transport, _ duration: Duration) {
        self.base = base
        directive = "stale-if-error=\(Int(max(duration, .zero).components.seconds))"
    }

    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        guard request.method == .get || request.method == .head else { return base.start(request, id: id, observer: observer) }
        var request = request
        let given = request.headers["Cache-Control"]
        request.headers.update(name: "Cache-Control", value: given.map { "\($0), \(directive)" } ?? directive)
        base.start(request, id: id, observer: observer)
    }
}
