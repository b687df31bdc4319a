// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// The policies of a session, in an order that can't be wrong.
///
/// ```swift
/// var configuration = SessionConfiguration()
/// configuration.use(Resilience(breaker: CircuitBreaker(), retryBudget: RetryBudget(), hedging: Hedging()))
/// let manager = SessionManager(configuration: configuration, interceptor: RetryPolicy())
/// ```
///
/// A request meets coalescing, the session's cache, the breaker, the rate limiter, the bulkhead, the concurrency limiter, hedging, and then
/// the network; the order in which they are given does not matter. So a response from the cache takes no permit, a refusal of the breaker
/// waits for none, and a stale response can take the place of a refusal. The retry budget is asked when a retrier has decided to retry.
///
/// Every exchange of a request passes: redirects, authenticated repetitions and retries as well. Raw streams and WebSockets do not. A refusal
/// is a ``CurlewError`` with one of the kinds ``TransferFailure/Kind/circuitOpen``, ``TransferFailure/Kind/rateLimited`` and
/// ``TransferFailure/Kind/overloaded``, and its ``TransferFailure/retryAfter``, for which a ``RetryPolicy`` waits before a deadline.
public struct Resilience: Sendable {
    /// Makes one transfer of equal requests; `nil`, the default, for none.
    public var coalescing: Coalescing?
    /// For how long a stale response of the session's cache may be used in place of a failure, a refusal, or the statuses 500, 502, 503 and
    /// 504: sent as the request directive `stale-if-error` (RFC 5861, section 4). `nil`, the default, leaves that to the responses.
    public var staleIfError: Duration?
    /// Stops sending to a group that fails; `nil`, the default, for none.
    public var breaker: CircuitBreaker?
    /// Limits the rate of requests; `nil`, the default, for none.
    public var rateLimiter: RateLimiter?
    /// Groups that can't starve one another; `nil`, the default, for none.
    public var bulkhead: Bulkhead?
    /// Limits the requests in flight; `nil`, the default, for none.
    public var concurrency: ConcurrencyLimiter?
    /// Limits the retries of all retriers; `nil`, the default, for none.
    public var retryBudget: RetryBudget?
    /// Sends late requests twice; `nil`, the default, for none.
    public var hedging: Hedging?
    /// Gives requests with unsafe methods a key; `nil`, the default, for none.
    public var idempotencyKeys: IdempotencyKeys?
    /// The observers of what the policies do; none by default. The session's monitors are notified as well:
    /// ``EventMonitor/policyDidAct(_:)``.
    public var observers: [any PolicyObserver] = []

    /// Creates a set of policies; each parameter is the property of its name.
    public init(
        coalescing: Coalescing? = nil, staleIfError: Duration? = nil, breaker: CircuitBreaker? = nil, rateLimiter: RateLimiter? = nil,
        bulkhead: Bulkhead? = nil, concurrency: ConcurrencyLimiter? = nil, retryBudget: RetryBudget? = nil, hedging: Hedging? = nil,
        idempotencyKeys: IdempotencyKeys? = nil, observers: [any PolicyObserver] = []
    ) {
        self.coalescing = coalescing
        self.staleIfError = staleIfError
        self.breaker = breaker
        self.rateLimiter = rateLimiter
        self.bulkhead = bulkhead
        self.concurrency = concurrency
        self.retryBudget = retryBudget
        self.hedging = hedging
        self.idempotencyKeys = idempotencyKeys
        self.observers = observers
    }
}

extension Resilience {
    /// Whether a policy, or a closure of the user's, reads the reason, the number or the name of requests.
    fileprivate var readsRequests: Bool {
        let groups = [
            breaker?.group, rateLimiter?.group, bulkhead?.limiter.group, concurrency?.group, retryBudget?.group, hedging?.group,
        ]
        return idempotencyKeys != nil || coalescing?.isSelective == true
            || groups.contains { if case .named? = $0 { true } else { false } }
    }
}

extension SessionConfiguration {
    /// Protects the sessions of this configuration by policies.
    ///
    /// Needs `import CurlewResilience`.
    ///
    /// What they count belongs to this call: sessions that are created with copies of the configuration share it.
    public mutating func use(_ resilience: Resilience) {
        let runtime = PolicyRuntime(resilience)
        layers.append(PolicyLayer(runtime: runtime))
        guard let budget = runtime.budget else { return }
        retryGate = retryGate.map { RetryGates(first: $0, second: budget) } ?? budget
    }
}

/// Two budgets, which both have to agree.
private struct RetryGates: RetryGate {
    let first: any RetryGate
    let second: any RetryGate

    func permitsRetry(of request: Request) -> Bool { first.permitsRetry(of: request) && second.permitsRetry(of: request) }
}

private struct PolicyLayer: TransportLayer {
    let runtime: PolicyRuntime

    var neededSources: NeededSources {
        if runtime.policies.readsRequests { return .all }
        return runtime.policies.retryBudget == nil ? .none : .retries
    }

    func transport(over base: any Transport, at place: TransportLayerPlace, in context: LayerContext) -> any Transport {
        switch place {
        case .belowCache:
            runtime.start(in: context)
            return runtime.hasExchangePolicies ? PolicyTransport(base, runtime, context) : base
        case .aboveCache:
            let inner: any Transport =
                runtime.policies.coalescing.map { CoalescingTransport(base, $0, PolicyReporter(runtime.policies, context)) } ?? base
            return runtime.policies.staleIfError.map { StaleTransport(inner, $0) } ?? inner
        }
    }
}

/// Notifies the observers and the session's monitors of what policies do.
struct PolicyReporter: Sendable {
    private let observers: [any PolicyObserver]
    let context: LayerContext
    private let isHeard: Bool

    init(_ policies: Resilience, _ context: LayerContext) {
        observers = policies.observers
        self.context = context
        isHeard = !policies.observers.isEmpty || context.isMonitored
    }

    /// Never called with a lock held.
    ///
    /// - Parameter request: the exchange that was refused, or shares another one; `nil` for what is not about one.
    func report(
        _ policy: Policy, _ name: String, _ group: String, _ action: @autoclosure () -> PolicyEvent.Action,
        _ request: TransferRequest? = nil
    ) {
        guard isHeard else { return }
        let event = PolicyEvent(policy, name: name, group: group, action())
        for observer in observers { observer.policyDidAct(event) }
        if context.isMonitored { context.notify(event.report(of: request?.unsentExchange)) }
    }
}

extension PolicyEvent {
    /// Returns the event as it is reported to the session's monitors.
    func report(of exchange: OutgoingExchange?) -> PolicyReport {
        let (label, duration): (String, Duration?) =
            switch action {
            case .refused(let after): ("refused", after)
            case .waited(let time): ("waited", time)
            case .changed: ("changed", nil)
            case .limitChanged: ("limit_changed", nil)
            case .hedged(let delay): ("hedged", delay)
            case .hedgeWon: ("hedge_won", nil)
            case .coalesced: ("coalesced", nil)
            case .heldBack(let time): ("held_back", time)
            case .storeFailed: ("store_failed", nil)
            case .received: ("received", nil)
            case .fellBack: ("fell_back", nil)
            }
        var phase: String?
        if case .changed(_, let next) = action { phase = next.rawValue }
        return PolicyReport(
            policy: policy.rawValue, action: label, phase: phase, name: name, group: group, duration: duration, exchange: exchange)
    }
}
