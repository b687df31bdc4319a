// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// Applies the policies below the cache to each exchange, with a ``PolicyTransfer`` for each.
final class PolicyTransport: ForwardingTransport {
    let base: any Transport
    let runtime: PolicyRuntime
    let reporter: PolicyReporter
    /// Those that wait, or have waited, until their own end.
    let waiting = RunningTransfers<PolicyTransfer>()

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

    func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        let keyed = runtime.addsKeys ? runtime.policies.idempotencyKeys?.adding(to: request) : nil
        return PolicyTransfer(self, keyed ?? request, id: id, observer)
    }

    /// Makes a transfer of the base transport: its owner would copy that.
    func makeBaseTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        base.makeTransfer(request, id: id, observer: observer)
    }

    func shutDown() { waiting.shutDown(with: base) { $0.fail(with: CurlewError.sessionInvalidated) } }

    func waitUntilShutDown() async { await waiting.waitUntilShutDown(with: base, queue: context.queue) }
}
