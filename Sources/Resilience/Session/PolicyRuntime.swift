// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// What the policies of a configuration count, for all of its sessions.
final class PolicyRuntime: Sendable {
    private struct Subscriptions {
        var hasStarted = false
        var objects: [any AnyObject & Sendable] = []
    }

    let policies: Resilience
    let breakers: GroupTable<CircuitBreakerState>?
    let rates: GroupTable<RateState>?
    let compartments: GroupTable<PlaceState>?
    let places: GroupTable<PlaceState>?
    let hedges: GroupTable<HedgeQueue>?
    let budget: BudgetRuntime?
    // What each exchange needs of the policies, which are large to copy.
    let classify: (@Sendable (PolicyOutcome) -> CircuitBreaker.Verdict)?
    let heedsServers: Bool
    let addsKeys: Bool
    /// Whether the end of each exchange counts for the budget.
    let countsResults: Bool
    /// Whether it counts for any policy.
    let countsEnds: Bool
    /// Whether the latency determines when a second attempt is due.
    let measuresHedges: Bool
    private let subscriptions = Lock(Subscriptions())

    init(_ policies: Resilience) {
        self.policies = policies
        breakers = policies.breaker.map { breaker in GroupTable(breaker.group) { CircuitBreakerState(breaker) } }
        rates = policies.rateLimiter.map { limiter in GroupTable(limiter.group) { RateState(limiter) } }
        compartments = policies.bulkhead.map { bulkhead in GroupTable(bulkhead.limiter.group) { PlaceState(bulkhead.limiter) } }
        places = policies.concurrency.map { limiter in GroupTable(limiter.group) { PlaceState(limiter) } }
        hedges = policies.hedging.map { hedging in GroupTable(hedging.group) { HedgeQueue(hedging) } }
        budget = policies.retryBudget.map { BudgetRuntime($0) }
        classify = policies.breaker?.classify
        heedsServers = policies.rateLimiter?.heedsServers == true
        addsKeys = policies.idempotencyKeys != nil
        countsResults = budget?.countsResults == true
        countsEnds = countsResults || breakers != nil || compartments != nil || places != nil
        if case .percentile? = policies.hedging?.delay { measuresHedges = true } else { measuresHedges = false }
    }

    /// Whether an exchange has to pass a policy.
    var hasExchangePolicies: Bool {
        breakers != nil || rates != nil || compartments != nil || places != nil || hedges != nil || budget != nil || addsKeys
    }

    /// A session is created: from the first one's on there is a clock, so that changes of other processes can be followed.
    func start(in context: LayerContext) {
        let isFirst = subscriptions.withLock { subscriptions in
            defer { subscriptions.hasStarted = true }
            return !subscriptions.hasStarted
        }
        guard isFirst else { return }
        let reporter = PolicyReporter(policies, context)
        budget?.start(reporter)
        var objects: [any AnyObject & Sendable] = []
        if let breaker = policies.breaker, let shared = breaker.shared, let breakers {
            objects.append(shared.subscribe { Self.receive($0, breaker, breakers, reporter) })
        }
        if let shared = policies.retryBudget?.shared, let budget {
            objects.append(shared.subscribe { [weak budget] in budget?.receive($0) })
        }
        subscriptions.withLock { [objects] in $0.objects = objects }
    }

    /// Another process has found a group to fail, or to have recovered.
    private static func receive(
        _ change: SharedChange, _ breaker: CircuitBreaker, _ breakers: GroupTable<CircuitBreakerState>, _ reporter: PolicyReporter
    ) {
        guard change.policy == breaker.name else { return }
        let slot = breakers.slot(reported: change.group)
        let now = reporter.context.time
        switch change.kind {
        case .breakerOpened:
            slot.withLock { state in
                guard let opened = state.open(for: change.duration, at: now) else { return }
                slot.addReport {
                    reporter.report(.circuitBreaker, breaker.name, slot.name, .received(change.kind))
                    reporter.report(.circuitBreaker, breaker.name, slot.name, .changed(from: opened.from, to: opened.to))
                }
            }
        case .breakerClosed:
            slot.withLock { state in
                state.endPause(at: now)
                slot.addReport { reporter.report(.circuitBreaker, breaker.name, slot.name, .received(change.kind)) }
            }
        default: return
        }
        slot.makeReports()
    }
}

extension LayerContext {
    /// The time as policies have it.
    var time: Duration { .nanoseconds(Int64(truncatingIfNeeded: now)) }
}

/// The retry budget of a configuration's sessions.
final class BudgetRuntime: RetryGate {
    private let policy: RetryBudget
    private let groups: GroupTable<RetryBudgetState>
    private let reporter = Lock<PolicyReporter?>(nil)
    /// Whether the ends of exchanges count.
    let countsResults: Bool

    init(_ policy: RetryBudget) {
        self.policy = policy
        let rule = policy.rule
        if case .tokens = rule { countsResults = true } else { countsResults = false }
        groups = GroupTable(policy.group) { RetryBudgetState(rule) }
    }

    func start(_ reporter: PolicyReporter) { self.reporter.withLock { $0 = reporter } }

    func noteRequest(_ request: TransferRequest, at now: Duration) {
        // Retries are counted when they are permitted, and tokens are no count of requests.
        guard !countsResults, !request.isExchangeOfRetry else { return }
        _ = groups.withState(for: request) { _, budget in budget.noteRequest(at: now) }
    }

    func noteResult(_ request: TransferRequest, isFailure: Bool) {
        guard countsResults else { return }
        _ = groups.withState(for: request) { _, budget in budget.noteResult(isFailure: isFailure) }
    }

    func permitsRetry(of request: Request) -> Bool {
        // A raw connection, and a request that could not be made, have no exchange.
        guard let transfer = request.lastTransfer, let reporter = reporter.withLock({ $0 }), let slot = groups.slot(for: transfer) else {
            return true
        }
        let now = reporter.context.time
        let (isPermitted, isFirst) = slot.withLock { state in
            let before = state.refusedCount
            return (state.withdraw(at: now), before == 0)
        }
        guard !isPermitted else { return true }
        reporter.report(.retryBudget, policy.name, slot.name, .refused(retryAfter: nil))
        if isFirst, let shared = policy.shared {
            shared.publish(SharedChange(.budgetSpent, policy: policy.name, group: slot.name))
        }
        return false
    }

    func receive(_ change: SharedChange) {
        guard change.kind == .budgetSpent, change.policy == policy.name, let reporter = reporter.withLock({ $0 }) else { return }
        let slot = groups.slot(reported: change.group)
        let now = reporter.context.time
        slot.withLock { $0.becomeLean(at: now) }
        reporter.report(.retryBudget, policy.name, slot.name, .received(change.kind))
    }
}

/// The refusals of policies, as errors.
enum Refusal {
    static func error(_ policy: Policy, _ group: String, _ request: TransferRequest, retryAfter: Duration?) -> CurlewError {
        let place = group.isEmpty ? "" : " of \(group)"
        let time = retryAfter.map { "; try again in \(milliseconds($0)) ms" } ?? ""
        let (kind, message): (TransferFailure.Kind, String) =
            switch policy {
            case .circuitBreaker: (.circuitOpen, "The circuit breaker\(place) is open\(time)")
            case .rateLimiter: (.rateLimited, "The rate limit\(place) is used up\(time)")
            default: (.overloaded, "Too many requests\(place) are in flight or wait\(time)")
            }
        var failure = TransferFailure(kind: kind, url: request.url, phase: .queued, message: message)
        failure.retryAfter = retryAfter
        return .transferFailed(failure)
    }

    private static func milliseconds(_ duration: Duration) -> Int { Int((duration.seconds * 1_000).rounded(.up)) }
}
