// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// Applies the policies below the cache to each exchange, with a ``PolicyTransfer`` for each.
final class PolicyTransport: ForwardingTransport {
    private struct State {
        /// The transfers that wait, which the base transport does not know.
        var waiting: [ObjectIdentifier: PolicyTransfer] = [:]
        var isShutDown = false
    }

    let base: any Transport
    let runtime: PolicyRuntime
    let reporter: PolicyReporter
    private let state = Lock(State())

    init(_ base: any Transport, _ runtime: PolicyRuntime, _ context: LayerContext) {
        self.base = base
        self.runtime = runtime
        reporter = PolicyReporter(runtime.policies, context)
    }

    var context: LayerContext { reporter.context }
    /// The time, without a copy of the context.
    var time: Duration { reporter.context.time }

    /// Calls a closure on the session's queue after a delay, without a copy of the context.
    func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) -> LayerTimer { reporter.context.after(delay.nanoseconds, body) }

    var isShutDown: Bool { state.withLock { $0.isShutDown } }
    /// How many transfers wait.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        let keyed = runtime.addsKeys ? runtime.policies.idempotencyKeys?.adding(to: request) : nil
        return PolicyTransfer(self, keyed ?? request, id: id, observer)
    }

    /// Makes a transfer of the base transport: its owner would copy that.
    func makeBaseTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        base.makeTransfer(request, id: id, observer: observer)
    }

    /// Registers a transfer that waits, so that ``shutDown()`` fails it; `false` once the session has ended.
    func enter(_ transfer: PolicyTransfer) -> Bool {
        state.withLock { state in
            guard !state.isShutDown else { return false }
            state.waiting[ObjectIdentifier(transfer)] = transfer
            return true
        }
    }

    func leave(_ transfer: PolicyTransfer) { state.withLock { $0.waiting[ObjectIdentifier(transfer)] = nil } }

    func shutDown() {
        let waiting = state.withLock { state in
            state.isShutDown = true
            return state.waiting.values
        }
        base.shutDown()
        for transfer in waiting { transfer.fail(with: CurlewError.sessionInvalidated) }
    }

    func waitUntilShutDown() async {
        await base.waitUntilShutDown()
        await withCheckedContinuation { continuation in context.queue.async { continuation.resume() } }
    }
}
