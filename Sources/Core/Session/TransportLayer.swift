// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport
import Dispatch

/// What a layer above Core puts in front of a session's transport, once for each session.
///
/// Below the cache are the exchanges that go to the network, above it all; the instruments are below both, so that a request which a layer
/// refuses is no exchange. A session without layers has no overhead.
package protocol TransportLayer: Sendable {
    /// The exchanges whose source the layer reads.
    var neededSources: NeededSources { get }

    /// Returns a transport that forwards to another one; that one itself for a place where the layer does nothing.
    func transport(over base: any Transport, at place: TransportLayerPlace, in context: LayerContext) -> any Transport
}

/// The exchanges whose source a layer reads: reason, number and name of the request. That costs an exchange two objects and a copy of its
/// request; sessions with instruments, or monitors of policies, have it for all anyway.
package enum NeededSources: Sendable {
    case none
    case retries
    case all
}

/// Where a layer's transport is.
package enum TransportLayerPlace: Sendable {
    case aboveCache
    case belowCache
}

/// Has to agree to each retry of a session, except for those after a refusal of a policy.
package protocol RetryGate: Sendable {
    /// Whether a request that a retrier wants to retry may be; if not, it fails with the error of its last attempt. On any thread.
    func permitsRetry(of request: Request) -> Bool
}

/// What a layer's transport has of its session: time, a queue, and the monitors.
package struct LayerContext: Sendable {
    let timers: Timers
    /// The session's queue, serial.
    package let queue: DispatchQueue
    let monitors: SessionMonitors

    /// The time of the session's clock.
    package var now: Nanoseconds { timers.now }

    /// Calls a closure on the session's queue after a delay.
    package func after(_ delay: Nanoseconds, _ body: @escaping @Sendable () -> Void) -> LayerTimer {
        LayerTimer(timers: timers, timer: timers.start(after: delay, body))
    }

    /// Whether a monitor is notified of what layers do.
    package var isMonitored: Bool { monitors.events.contains(.policies) }

    /// Notifies the monitors, on the session's queue.
    package func notify(_ report: PolicyReport) {
        let monitors = monitors.monitors(of: .policies)
        guard !monitors.isEmpty else { return }
        queue.async { for monitor in monitors { monitor.policyDidAct(report) } }
    }
}

/// A timer of a layer.
package struct LayerTimer: Sendable {
    let timers: Timers
    let timer: Timers.Timer

    /// Cancels the timer; does nothing if its closure has been called, or is being called.
    package func cancel() { timers.cancel(timer) }
}

/// What a policy that protects a session has done, as reported to its monitors: names with few values, so that they can be dimensions.
public struct PolicyReport: Sendable {
    /// The kind of policy, of those of `CurlewResilience`: `circuit_breaker`, `rate_limiter`, `concurrency_limiter`, `bulkhead`,
    /// `retry_budget`, `hedging` or `coalescing`. Later versions may add values.
    public let policy: String
    /// What it has done; later versions may add values.
    ///
    /// - `refused`: it refused a request, a retry or a second attempt. ``duration`` is the time until another try, `nil` if it is not known.
    /// - `waited`: a request waited for it for ``duration``, and was then sent.
    /// - `changed`: a circuit breaker entered ``phase``.
    /// - `limit_changed`: an adaptive limit changed.
    /// - `hedged`: a second attempt of a request was started, ``duration`` after the first.
    /// - `hedge_won`: the second attempt responded first.
    /// - `coalesced`: a request shares the transfer of an equal one.
    /// - `held_back`: the server asked to wait for ``duration``.
    /// - `store_failed`: the store that a fleet shares failed.
    /// - `received`: another process published that a breaker has opened or closed, or that a retry budget is spent.
    public let action: String
    /// The phase that a circuit breaker has entered: `closed`, `open` or `half_open`. `nil` for other reports.
    public let phase: String?
    /// The name that the policy was given; empty without one.
    public let name: String
    /// The group that the policy counts together: an origin such as `https://example.org:443`, a name, or empty for all requests of the
    /// session.
    public let group: String
    /// The time that ``action`` names; `nil` for other actions.
    public let duration: Duration?
    /// The exchange that was refused, or takes part in that of an equal request, and so is not sent itself; `nil` for other reports.
    public var exchange: OutgoingExchange? { unsent?.exchange }

    private let unsent: ReportedExchange?

    /// Creates a report.
    public init(
        policy: String, action: String, phase: String? = nil, name: String = "", group: String = "", duration: Duration? = nil,
        exchange: OutgoingExchange? = nil
    ) {
        self.policy = policy
        self.action = action
        self.phase = phase
        self.name = name
        self.group = group
        self.duration = duration
        unsent = exchange.map { ReportedExchange($0) }
    }
}

extension PolicyReport: ComparedByKey {
    /// All but the exchange, of which the number of its request counts.
    package var comparisonKey: [AnyHashable?] { [policy, action, phase, name, group, duration, exchange?.requestID] }
}

// MARK: - What an exchange is

extension TransferRequest {
    private var exchangeSource: ExchangeSource? { source as? ExchangeSource }

    /// Why the exchange is sent; `nil` if that is not known.
    package var exchangeReason: OutgoingExchange.Reason? { exchangeSource?.currentReason }

    /// Whether the exchange is the first of a retry.
    package var isExchangeOfRetry: Bool { exchangeSource?.isRetry ?? false }

    /// The number of the request that sends the exchange: ``Request/id``.
    package var exchangeRequestID: UInt64? { exchangeSource?.requestID }

    /// The name of the request that sends the exchange.
    package var exchangeName: String? { exchangeSource?.name }

    /// The exchange as reports have it that is not sent; `nil` if that is not known.
    package var unsentExchange: OutgoingExchange? { exchangeSource?.unsentExchange(self) }

    /// Makes this the second of two exchanges of a request that run at the same time.
    package mutating func becomeHedge() {
        source = exchangeSource?.hedge
    }
}

extension Request {
    /// The transfer of the last attempt; `nil` for a raw connection, and for a request that could not be made.
    package var lastTransfer: TransferRequest? {
        guard var transfer = task?.currentTransfer else { return nil }
        transfer.source = ExchangeSource(driver, .retry)
        return transfer
    }
}
