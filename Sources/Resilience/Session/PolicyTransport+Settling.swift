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
    let transport: PolicyTransport
    let observer: any TransferObserver
    /// Only if the end counts for the budget.
    private let request: TransferRequest?
    /// When it was sent, in nanoseconds of the session's clock.
    let sent: Int64
    @exclusivity(unchecked) private(set) var held = HeldPlaces()
    @exclusivity(unchecked) private var status: Int?
    /// Whether the end counts, or gives a place back.
    @exclusivity(unchecked) private var hasEnd: Bool

    init(_ transport: PolicyTransport, _ request: TransferRequest?, _ observer: any TransferObserver, sent: Int64) {
        self.transport = transport
        self.request = request
        self.observer = observer
        self.sent = sent
        hasEnd = request != nil
    }

    /// Takes what is free, and waits for nothing; returns the first step that is not passed so, which has changed nothing.
    func takeFree(_ request: TransferRequest, _ runtime: PolicyRuntime) -> PolicyTransfer.Step {
        // A request without a group passes: what is taken is `nil` then.
        if let breakers = runtime.breakerTable {
            let isTaken = breakers._withUnsafeGuaranteedRef { breakers in
                breakers.withSlot(for: request) { slot, breaker in
                    guard let ticket = breaker.closedTicket else { return false }
                    held.breaker = slot
                    held.ticket = ticket
                    hasEnd = true
                    return true
                }
            }
            if isTaken == false { return .breaker }
        }
        if let rates = runtime.rates {
            let isTaken = rates.withSlot(for: request) { slot, rate in
                let now = Duration.nanoseconds(sent)
                guard runtime.leasesPermits ? rate.takeLeased(at: now) : rate.local.takeNow(at: now) else { return false }
                if runtime.heedsServers { held.rate = slot }
                return true
            }
            if isTaken == false { return .rate }
        }
        return takePlaces(request, runtime)
    }

    @inline(__always)
    private func takePlaces(_ request: TransferRequest, _ runtime: PolicyRuntime) -> PolicyTransfer.Step {
        if let compartments = runtime.compartments {
            let isTaken = compartments.withSlot(for: request) { slot, places in
                guard places.limiter.enterNow() else { return false }
                held.compartment = slot
                hasEnd = true
                return true
            }
            if isTaken == false { return .compartment }
        }
        if let places = runtime.places {
            let isTaken = places.withSlot(for: request) { slot, places in
                guard places.limiter.enterNow() else { return false }
                held.place = slot
                hasEnd = true
                return true
            }
            if isTaken == false { return .place }
        }
        return .send
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        status = head.statusCode
        if held.rate != nil, ServerLimits.mayBe(in: head) { noteLimits(head) }
        return observer.transfer(id, didReceive: head)
    }

    private func noteLimits(_ head: ResponseHead) {
        if let slot = held.rate { transport.noteLimits(head, in: slot) }
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { observer.transfer(id, didReceive: bytes) }

    func transfer(_ id: Int, didSend count: Int64) { observer.transfer(id, didSend: count) }

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        if hasEnd { transport.settle(self, completion.error) }
        observer.transfer(id, didComplete: completion)
    }

    /// Gives back what is held, and counts the end. What nearly all requests need is done here, and at the transport all.
    @inline(__always)
    fileprivate func settle(_ error: (any Error)?, _ runtime: PolicyRuntime) {
        let now = runtime.timesEnds ? transport.nanoseconds : 0
        let duration = now - sent
        if let slot = held.breaker.take(), let ticket = held.ticket, !countSuccess(error, duration, slot, ticket, runtime) {
            transport.count(outcome(error, duration), slot, ticket, isSent: true, at: .nanoseconds(now))
        }
        if let slot = held.place.take(), !slot.withLock({ $0.limiter.leaveNow() }) {
            transport.leave(slot, .concurrencyLimiter, outcome(error, duration), isSent: true)
        }
        if let slot = held.compartment.take(), !slot.withLock({ $0.limiter.leaveNow() }) {
            transport.leave(slot, .bulkhead, outcome(error, duration), isSent: true)
        }
        if let request { transport.countResult(outcome(error, duration), of: request) }
    }

    private func outcome(_ error: (any Error)?, _ nanoseconds: Int64) -> PolicyOutcome {
        PolicyOutcome(statusCode: status, error: error, duration: .nanoseconds(nanoseconds))
    }

    /// Counts a success for a breaker, if that is plain to see and changes nothing else; returns whether it has.
    @inline(__always)
    private func countSuccess(
        _ error: (any Error)?, _ duration: Int64, _ slot: GroupSlot<CircuitBreakerState>, _ ticket: CircuitBreakerState.Ticket,
        _ runtime: PolicyRuntime
    ) -> Bool {
        guard error == nil, !runtime.hasOwnVerdicts, let status, CircuitBreaker.isSuccess(status) else { return false }
        return slot.withLock { $0.countSuccess(ticket, took: duration) }
    }
}

// MARK: - The end of exchanges

extension PolicyTransport {
    /// Gives back what an exchange that passed at once holds. A call of its own, in which neither this nor the runtime need be retained.
    @inline(never)
    fileprivate func settle(_ passed: PassedTransfer, _ error: (any Error)?) { passed.settle(error, runtime) }

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
        let change = slot.withLock { $0.record(verdict, ticket, took: outcome.duration, at: now, random: random) }
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
            let pause = slot.withLock { $0.opensUntil } - time
            shared.tell(SharedChange(.breakerOpened, policy: breaker.name, group: slot.name, lasting: max(pause, .zero)))
        case .closed: shared.tell(SharedChange(.breakerClosed, policy: breaker.name, group: slot.name))
        case .halfOpen: break
        }
    }

    /// Leaves a place, and sends those that wait for one.
    func leave(_ slot: GroupSlot<PlaceState>, _ policy: Policy, _ outcome: PolicyOutcome, isSent: Bool) {
        let result = isSent ? outcome.limiterResult : .ignored
        let (admitted, before, after) = slot.withLock { places in
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
        slot.withLock { state in
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
        return statusCode == 429 || statusCode == 503 || statusCode == 504 ? .dropped : .success
    }
}
