// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// Lets each exchange pass the policies below the cache. Its story is a ``PolicyTransfer``.
///
/// A transfer that neither waits nor is sent twice has its own number at the base transport, and is not known here: nearly all are a
/// ``PassedTransfer``, or have no need of one. In front of one that may be sent twice is a ``HedgeableTransfer`` until that is due.
final class PolicyTransport: ForwardingTransport, @unchecked Sendable {  // the transfers are used inside of the mutex only
    let base: any Transport
    let runtime: PolicyRuntime
    let teller: PolicyTeller
    /// That of the groups of hedging too: a request is counted in its group, and gets its place in the line, at the cost of one lock.
    private let mutex: Lock<Void>
    /// Inside of the mutex.
    @exclusivity(unchecked) var transfers = PolicyTransfers()

    init(_ base: any Transport, _ runtime: PolicyRuntime, _ context: LayerContext) {
        self.base = base
        self.runtime = runtime
        mutex = runtime.hedges?.mutex ?? Lock(())
        teller = PolicyTeller(runtime.policies, context)
    }

    /// Runs `body` with exclusive access to the transfers, under the rules of `Lock`.
    @inline(__always)
    func withTransfers<R>(_ body: (inout PolicyTransfers) -> R) -> R {
        mutex.withLock { _ in body(&transfers) }
    }

    var context: LayerContext { teller.context }
    /// The time, without a copy of the context.
    var time: Duration { teller.context.time }
    /// The same, cheaper to compute with.
    var nanoseconds: Int64 { teller.context.nanoseconds }

    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        if runtime.addsKeys, let keyed = runtime.policies.idempotencyKeys?.adding(to: request) {
            pass(keyed, id: id, observer)
        } else {
            pass(request, id: id, observer)
        }
    }

    private func pass(_ request: TransferRequest, id: Int, _ observer: any TransferObserver) {
        let now = runtime.needsTime ? nanoseconds : 0
        if let budget = runtime.budget { budget.noteRequest(request, at: now) }
        guard runtime.hasEnds else { return send(request, id: id, observer, at: now) }
        let passed = PassedTransfer(self, runtime.countsResults ? request : nil, observer, sent: now)
        if !runtime.hasSteps || isFree(request, id: id, observer, passed) { send(request, id: id, passed, at: now) }
    }

    @inline(__always)
    private func send(_ request: TransferRequest, id: Int, _ observer: any TransferObserver, at now: Int64) {
        guard let hedges = runtime.hedgeTable, request.mayBeHedged else { return base.start(request, id: id, observer: observer) }
        let transfer = HedgeableTransfer(self, request, id: id, observer, sent: now)
        hedges._withUnsafeGuaranteedRef { begin(transfer, request, $0) }
        base.start(request, id: id, observer: transfer)
    }

    /// Takes what the policies have for a transfer at once; returns `false` if it has to wait, for which another one takes its place.
    private func isFree(_ request: TransferRequest, id: Int, _ observer: any TransferObserver, _ passed: PassedTransfer) -> Bool {
        let step = passed.takeFree(request, runtime)
        guard step != .send else { return true }
        let now = runtime.needsTime ? .nanoseconds(passed.sent) : time
        PolicyTransfer(self, request, id: id, observer, passed.held).perform(step, at: now)
        return false
    }

    // MARK: Transfers that wait or have two attempts

    func makeNumber() -> Int { withTransfers { $0.numbers.next() } }

    /// Makes a transfer known by its number; returns `false` once the transport was shut down.
    func enter(_ transfer: PolicyTransfer) -> Bool {
        withTransfers { transfers in
            transfers.known[transfer.id] = transfer
            return !transfers.isShutDown
        }
    }

    func remove(_ transfer: PolicyTransfer) {
        withTransfers { transfers in
            // A follow-up may have its number already.
            if transfers.known[transfer.id] === transfer { transfers.known[transfer.id] = nil }
        }
    }

    // MARK: Transport

    func cancel(_ id: Int) {
        let transfer = withTransfers { transfers in
            transfers.cancel(id)
            return transfers.known[id]
        }
        if let transfer { transfer.fail(with: CurlewError.cancelled) } else { base.cancel(id) }
    }

    func setSuspended(_ suspended: Bool, of id: Int) {
        let transfer = withTransfers { transfers in
            transfers.setSuspended(suspended, of: id)
            return transfers.known[id]
        }
        if let transfer { transfer.setSuspended(suspended) } else { base.setSuspended(suspended, of: id) }
    }

    func resumeReceiving(_ id: Int) {
        if let transfer = withTransfers({ $0.known[id] }) { transfer.resumeReceiving() } else { base.resumeReceiving(id) }
    }

    func shutDown() {
        let (known, alarms) = withTransfers { ($0.known.values, $0.shutDown()) }
        for alarm in alarms { alarm.cancel() }
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
