// SPDX-License-Identifier: Apache-2.0
#if Observability
import CurlewTransport

/// A phase of an exchange.
struct ExchangePhase {
    static let names = ["dns", "connect", "tls", "first_byte"]

    /// `dns`, `connect`, `tls` or `first_byte`.
    let name: String
    let duration: Duration

    /// The phases that took place, in their order.
    static func phases(of metrics: TransferMetrics) -> [ExchangePhase] {
        var phases: [ExchangePhase] = []
        forEach(of: metrics) { phases.append(ExchangePhase(name: names[$0], duration: .nanoseconds($1))) }
        return phases
    }

    /// Calls `body` with the index of the name and the nanoseconds of each phase that took place: those of making a connection not on a
    /// reused one. Without `Duration`, whose arithmetic has 128 bits.
    static func forEach(of metrics: TransferMetrics, _ body: (Int, Int64) -> Void) {
        let times = metrics.nanoseconds
        var start = times.queue ?? 0
        func add(_ index: Int, until end: Int64?) {
            guard let end else { return }
            body(index, max(end - start, 0))
            start = end
        }
        if !metrics.reusedConnection {
            add(0, until: times.nameLookup)
            add(1, until: times.connect)
            add(2, until: times.secureConnection)
        }
        if let begin = times.requestStart { start = begin }
        add(3, until: times.responseStart)
    }
}
#endif
