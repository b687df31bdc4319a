// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// Asks the cache for stale responses in place of failures.
final class StaleTransport: ForwardingTransport {
    let base: any Transport
    private let directive: String

    init(_ base: any Transport, _ duration: Duration) {
        self.base = base
        directive = "stale-if-error=\(Int(max(duration, .zero).components.seconds))"
    }

    func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        guard request.method == .get || request.method == .head else { return base.makeTransfer(request, id: id, observer: observer) }
        var request = request
        let given = request.headers["Cache-Control"]
        request.headers.update(name: "Cache-Control", value: given.map { "\($0), \(directive)" } ?? directive)
        return base.makeTransfer(request, id: id, observer: observer)
    }
}
