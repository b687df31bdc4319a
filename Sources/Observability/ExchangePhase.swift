// SPDX-License-Identifier: Apache-2.0
#if Observability
import CurlewTransport

/// A phase of an exchange.
struct ExchangePhase {
    /// `dns`, `connect`, `tls` or `first_byte`.
    let name: String
    let duration: Duration

    /// The phases that took place, in their order: those of making a connection not on a reused one.
    static func phases(of metrics: TransferMetrics) -> [ExchangePhase] {
        var phases: [ExchangePhase] = []
        var start = metrics.queueDuration ?? .zero
        func add(_ name: String, until end: Duration?) {
            guard let end else { return }
            phases.append(ExchangePhase(name: name, duration: max(end - start, .zero)))
            start = end
        }
        if !metrics.reusedConnection {
            add("dns", until: metrics.nameLookupEnd)
            add("connect", until: metrics.connectEnd)
            add("tls", until: metrics.secureConnectionEnd)
        }
        if let begin = metrics.requestStart { start = begin }
        add("first_byte", until: metrics.responseStart)
        return phases
    }
}
#endif
