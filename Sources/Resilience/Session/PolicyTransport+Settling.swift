// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// What a transfer holds, and gives back at its end.
struct HeldPlaces: Sendable {
    var compartment: GroupSlot<PlaceState>?
    var place: GroupSlot<PlaceState>?
    var breaker: (slot: GroupSlot<CircuitBreakerState>, ticket: CircuitBreakerState.Ticket)?
    /// The rate limiter's, which is given back only by a transfer that was not sent.
    var permit: RateState.Permit?
}

// MARK: - The end of exchanges

extension PolicyTransport {
    /// Gives back what an exchange holds, and counts how it has ended.
    func settle(_ transfer: PolicyTransfer, isSent: Bool, error: (any Error)?) {
        let now = time
        let outcome = PolicyOutcome(
            statusCode: transfer.status == 0 ? nil : Int(transfer.status), error: error, duration: isSent ? now - transfer.sent : .zero)
        if let (slot, ticket) = transfer.held.breaker { count(outcome, slot, ticket, isSent: isSent, at: now) }
        if let slot = transfer.held.place { leave(slot, .concurrencyLimiter, outcome, isSent: isSent) }
        if let slot = transfer.held.compartment { leave(slot, .bulkhead, outcome, isSent: isSent) }
        if isSent, runtime.countsResults { countResult(outcome, of: transfer.request) }
    }

    /// Counts how an exchange has ended for a breaker.
    private func count(
        _ outcome: PolicyOutcome, _ slot: GroupSlot<CircuitBreakerState>, _ ticket: CircuitBreakerState.Ticket, isSent: Bool,
        at now: Duration
    ) {
        guard let classify = runtime.classify else { return }
        let verdict = isSent ? classify(outcome) : .ignored
        let random = verdict == .failure ? Double.random(in: 0...1) : 0
        let isChanged = slot.withLock { breaker -> Bool in
            let change = breaker.record(verdict, ticket, took: outcome.duration, at: now, random: random)
            guard let change else { return false }
            addReport(of: change, breaker.opensUntil - now, to: slot)
            return true
        }
        if isChanged { slot.makeReports() }
    }

    /// Counts how an exchange has ended for the budget.
    private func countResult(_ outcome: PolicyOutcome, of request: TransferRequest) {
        runtime.budget?.noteResult(request, isFailure: CircuitBreaker.defaultVerdict(outcome) == .failure)
    }

    /// Has observers and other processes learn of a breaker's change, by ``GroupSlot/makeReports()``. Inside of the slot's lock.
    ///
    /// - Parameter pause: for how long it is open, if it is.
    func addReport(of change: CircuitBreakerState.Change, _ pause: Duration, to slot: GroupSlot<CircuitBreakerState>) {
        slot.addReport { [self] in report(change, pause, of: slot) }
    }

    private func report(_ change: CircuitBreakerState.Change, _ pause: Duration, of slot: GroupSlot<CircuitBreakerState>) {
        guard let breaker = runtime.policies.breaker else { return }
        reporter.report(.circuitBreaker, breaker.name, slot.name, .changed(from: change.from, to: change.to))
        guard let shared = breaker.shared else { return }
        switch change.to {
        case .open:
            shared.publish(SharedChange(.breakerOpened, policy: breaker.name, group: slot.name, lasting: max(pause, .zero)))
        case .closed: shared.publish(SharedChange(.breakerClosed, policy: breaker.name, group: slot.name))
        case .halfOpen: break
        }
    }

    /// Leaves a place, and sends those that wait for one.
    func leave(_ slot: GroupSlot<PlaceState>, _ policy: Policy, _ outcome: PolicyOutcome, isSent: Bool) {
        let result = isSent ? outcome.limiterResult : .ignored
        let (admitted, isChanged) = slot.withLock { places in
            let before = places.limiter.limit
            let numbers = places.limiter.leave(result, after: outcome.duration)
            let admitted = numbers.isEmpty ? [] : numbers.compactMap { places.waiting.removeValue(forKey: $0) }
            let after = places.limiter.limit
            if before != after { addReport(of: policy, from: before, to: after, to: slot) }
            return (admitted, before != after)
        }
        if isChanged { slot.makeReports() }
        for (transfer, wait) in admitted { transfer.placeBecameFree(wait, slot) }
    }

    private func addReport(of policy: Policy, from before: Int, to after: Int, to slot: GroupSlot<PlaceState>) {
        slot.addReport { [self] in
            let limiter = policy == .bulkhead ? runtime.policies.bulkhead?.limiter : runtime.policies.concurrency
            reporter.report(policy, limiter?.name ?? "", slot.name, .limitChanged(from: before, to: after))
        }
    }

    /// Notes what a server says about its limits.
    func noteLimits(_ head: ResponseHead, in slot: GroupSlot<RateState>) {
        let limits = ServerLimits(head)
        guard limits.hold != nil || limits.quota != nil, let policy = runtime.policies.rateLimiter else { return }
        let now = time
        let hold = limits.hold.map { min($0, policy.maximumHold) }
        slot.withLock { state in
            if let quota = limits.quota { state.local.adopt(quota: quota.count, per: quota.window) }
            if let hold { state.local.hold(for: hold, at: now) }
        }
        if let hold { reporter.report(.rateLimiter, policy.name, slot.name, .heldBack(hold)) }
    }
}

/// The requests in flight of a group, and the transfers that wait.
struct PlaceState: Sendable {
    var limiter: ConcurrencyLimiterState
    var waiting: [UInt64: (transfer: PolicyTransfer, wait: Int)] = [:]
    private var lastNumber: UInt64 = 0

    init(_ policy: ConcurrencyLimiter) { limiter = ConcurrencyLimiterState(policy) }

    mutating func makeNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }
}

extension PolicyOutcome {
    /// How the outcome counts for an adaptive limit.
    var limiterResult: ConcurrencyLimiterState.Result {
        if error != nil { return isFailureOfHost ? .dropped : .ignored }
        return statusCode == 429 || statusCode == 503 || statusCode == 504 ? .dropped : .success
    }
}
