// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// What a transfer holds, and gives back at its end.
struct HeldPlaces: Sendable {
    var breaker: GroupSlot<CircuitBreakerState>?
    var ticket: CircuitBreakerState.Ticket?
    /// Where what the server says about its limits is noted.
    var rate: GroupSlot<RateState>?
    var compartment: GroupSlot<PlaceState>?
    var place: GroupSlot<PlaceState>?
}

/// An exchange that passes all policies at once: has only what its end needs.
final class PassedTransfer: TransferObserver, @unchecked Sendable {  // built by one thread, and its events come one after the other
    private let transport: PolicyTransport
    private let observer: any TransferObserver
    /// Only if the end counts for the budget.
    private let request: TransferRequest?
    private let sent: Duration
    @exclusivity(unchecked) private(set) var held = HeldPlaces()
    @exclusivity(unchecked) private var status: Int?

    init(_ transport: PolicyTransport, _ request: TransferRequest?, _ observer: any TransferObserver, sent: Duration) {
        self.transport = transport
        self.request = request
        self.observer = observer
        self.sent = sent
    }

    /// Takes what is free, and waits for nothing; returns the first step that is not passed so, which has changed nothing.
    func takeFree(_ request: TransferRequest, _ runtime: PolicyRuntime) -> PolicyTransfer.Step {
        if let slot = runtime.breakers?.slot(for: request) {
            guard let ticket = slot.state.withLock({ $0.closedTicket }) else { return .breaker }
            held.breaker = slot
            held.ticket = ticket
        }
        if let slot = runtime.rates?.slot(for: request) {
            let (isLeased, now) = (runtime.leasesPermits, sent)
            guard slot.state.withLock({ isLeased ? $0.takeLeased(at: now) : $0.local.takeNow(at: now) }) else { return .rate }
            if runtime.heedsServers { held.rate = slot }
        }
        if let slot = runtime.compartments?.slot(for: request) {
            guard slot.state.withLock({ $0.limiter.enterNow() }) else { return .compartment }
            held.compartment = slot
        }
        if let slot = runtime.places?.slot(for: request) {
            guard slot.state.withLock({ $0.limiter.enterNow() }) else { return .place }
            held.place = slot
        }
        return .send
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        status = head.statusCode
        if let slot = held.rate, ServerLimits.mayBe(in: head) { transport.noteLimits(head, in: slot) }
        return observer.transfer(id, didReceive: head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { observer.transfer(id, didReceive: bytes) }

    func transfer(_ id: Int, didSend count: Int64) { observer.transfer(id, didSend: count) }

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        if held.breaker != nil || held.place != nil || held.compartment != nil || request != nil { settle(completion.error) }
        observer.transfer(id, didComplete: completion)
    }

    private func settle(_ error: (any Error)?) {
        let now = transport.time
        let outcome = PolicyOutcome(statusCode: status, error: error, duration: now - sent)
        if let slot = held.breaker, let ticket = held.ticket { transport.count(outcome, slot, ticket, isSent: true, at: now) }
        if let slot = held.place { transport.leave(slot, .concurrencyLimiter, outcome, isSent: true) }
        if let slot = held.compartment { transport.leave(slot, .bulkhead, outcome, isSent: true) }
        if let request { transport.countResult(outcome, of: request) }
    }
}

// MARK: - The end of exchanges

extension PolicyTransport {
    /// Gives back what an exchange holds, and counts how it has ended.
    func settle(
        _ held: HeldPlaces, _ request: TransferRequest, isSent: Bool, sent: Duration, status: Int?, error: (any Error)?
    ) {
        let now = time
        let outcome = PolicyOutcome(statusCode: status, error: error, duration: isSent ? now - sent : .zero)
        if let slot = held.breaker, let ticket = held.ticket { count(outcome, slot, ticket, isSent: isSent, at: now) }
        if let slot = held.place { leave(slot, .concurrencyLimiter, outcome, isSent: isSent) }
        if let slot = held.compartment { leave(slot, .bulkhead, outcome, isSent: isSent) }
        if isSent, runtime.countsResults { countResult(outcome, of: request) }
    }

    /// Counts how an exchange has ended for a breaker.
    fileprivate func count(
        _ outcome: PolicyOutcome, _ slot: GroupSlot<CircuitBreakerState>, _ ticket: CircuitBreakerState.Ticket, isSent: Bool,
        at now: Duration
    ) {
        guard let classify = runtime.classify else { return }
        let verdict = isSent ? classify(outcome) : .ignored
        let random = verdict == .failure ? Double.random(in: 0...1) : 0
        let change = slot.state.withLock { $0.record(verdict, ticket, took: outcome.duration, at: now, random: random) }
        if let change { report(change, of: slot) }
    }

    /// Counts how an exchange has ended for the budget.
    fileprivate func countResult(_ outcome: PolicyOutcome, of request: TransferRequest) {
        runtime.budget?.noteResult(request, isFailure: CircuitBreaker.defaultVerdict(outcome) == .failure)
    }

    func report(_ change: CircuitBreakerState.Change, of slot: GroupSlot<CircuitBreakerState>) {
        guard let breaker = runtime.policies.breaker else { return }
        teller.tell(.circuitBreaker, breaker.name, slot.name, .changed(from: change.from, to: change.to))
        guard let shared = breaker.shared else { return }
        switch change.to {
        case .open:
            let pause = slot.state.withLock { $0.opensUntil } - time
            shared.tell(SharedChange(.breakerOpened, policy: breaker.name, group: slot.name, lasting: max(pause, .zero)))
        case .closed: shared.tell(SharedChange(.breakerClosed, policy: breaker.name, group: slot.name))
        case .halfOpen: break
        }
    }

    /// Leaves a place, and sends those that wait for one.
    func leave(_ slot: GroupSlot<PlaceState>, _ policy: Policy, _ outcome: PolicyOutcome, isSent: Bool) {
        let result = isSent ? outcome.limiterResult : .ignored
        let (admitted, before, after) = slot.state.withLock { places in
            let before = places.limiter.limit
            let numbers = places.limiter.leave(result, after: outcome.duration)
            let admitted = numbers.isEmpty ? [] : numbers.compactMap { places.waiting.removeValue(forKey: $0) }
            return (admitted, before, places.limiter.limit)
        }
        if before != after {
            let limiter = policy == .bulkhead ? runtime.policies.bulkhead?.limiter : runtime.policies.concurrency
            teller.tell(policy, limiter?.name ?? "", slot.name, .limitChanged(from: before, to: after))
        }
        for (transfer, wait) in admitted { transfer.placeBecameFree(wait, slot) }
    }

    /// Notes what a server says about its limits.
    func noteLimits(_ head: ResponseHead, in slot: GroupSlot<RateState>) {
        let limits = ServerLimits(head)
        guard limits.hold != nil || limits.quota != nil, let policy = runtime.policies.rateLimiter else { return }
        let now = time
        let hold = limits.hold.map { min($0, policy.longestHold) }
        slot.state.withLock { state in
            if let quota = limits.quota { state.local.adopt(quota: quota.count, per: quota.window) }
            if let hold { state.local.hold(for: hold, at: now) }
        }
        if let hold { teller.tell(.rateLimiter, policy.name, slot.name, .heldBack(hold)) }
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
        return [429, 503, 504].contains(statusCode) ? .dropped : .success
    }
}
