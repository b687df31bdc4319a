// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// An exchange on its way through the policies: breaker, rate limiter, bulkhead, concurrency limiter, and then the base transport, perhaps
/// twice.
///
/// The steps are performed one after the other until one has to wait; `PolicyTransfer+Waiting` has the waits, `PolicyTransfer+Hedging` the
/// second attempt.
final class PolicyTransfer: TransferObserver {
    enum Step: Int {
        case breaker
        case rate
        case compartment
        case place
        case send
    }

    struct State {
        var held: HeldPlaces
        /// What the transfer waits for; `nil` while it does not.
        var wait: Wait?
        var lastWait = 0
        var waitBegan = Duration.zero
        var isKnown = false
        var isSent = false
        var isComplete = false
        var isSuspended = false
        var failure: (any Error)?
        var sent = Duration.zero
        var status: Int?
        var hedge: Hedge?
    }

    let transport: PolicyTransport
    let request: TransferRequest
    let id: Int
    let observer: any TransferObserver
    let state: Lock<State>

    init(
        _ transport: PolicyTransport, _ request: TransferRequest, id: Int, _ observer: any TransferObserver, _ held: HeldPlaces
    ) {
        state = Lock(State(held: held))
        self.transport = transport
        self.request = request
        self.id = id
        self.observer = observer
    }

    var runtime: PolicyRuntime { transport.runtime }
    var now: Duration { transport.context.time }

    // MARK: - The steps

    /// Performs the steps from one on, until one waits or refuses.
    func perform(_ first: Step, at now: Duration) {
        var step = first
        while step != .send {
            guard pass(step, at: now) else { return }
            step = Step(rawValue: step.rawValue + 1) ?? .send
        }
        send(at: now)
    }

    /// Returns whether the next step is to be performed; if not, the transfer waits or was refused.
    private func pass(_ step: Step, at now: Duration) -> Bool {
        switch step {
        case .breaker: passBreaker(at: now)
        case .rate: passRate(at: now)
        case .compartment: passPlaces(runtime.compartments, .bulkhead, step, at: now)
        case .place: passPlaces(runtime.places, .concurrencyLimiter, step, at: now)
        case .send: true
        }
    }

    private func passBreaker(at now: Duration) -> Bool {
        guard let slot = runtime.breakers?.slot(for: request) else { return true }
        let (admission, change) = slot.withLock { $0.admit(at: now) }
        if let change { report(change, of: slot) }
        switch admission {
        case .admitted(let ticket):
            state.withLock { state in
                state.held.breaker = slot
                state.held.ticket = ticket
            }
            return true
        case .refused(let retryAfter):
            refuse(.circuitBreaker, runtime.policies.breaker?.name, slot.name, retryAfter: retryAfter)
            return false
        }
    }

    private func passPlaces(_ table: GroupTable<PlaceState>?, _ policy: Policy, _ step: Step, at now: Duration) -> Bool {
        guard let slot = table?.slot(for: request) else { return true }
        // The wait begins before another thread can end it.
        let (decision, wait) = slot.withLock { places -> (ConcurrencyLimiterState.Decision, Int) in
            let number = places.makeNumber()
            let decision = places.limiter.arrive(number, urgency: request.urgency)
            guard decision == .queued else { return (decision, 0) }
            let wait = beginWait(.place(slot, number, step), at: now)
            places.waiting[number] = (self, wait)
            return (decision, wait)
        }
        switch decision {
        case .admitted:
            hold(slot, step)
            return true
        case .queued:
            waitForPlace(wait, slot, policy)
            return false
        case .refused:
            refuse(policy, limiter(policy)?.name, slot.name, retryAfter: nil)
            return false
        }
    }

    func hold(_ slot: GroupSlot<PlaceState>, _ step: Step) {
        state.withLock { state in
            if step == .compartment { state.held.compartment = slot } else { state.held.place = slot }
        }
    }

    func limiter(_ policy: Policy) -> ConcurrencyLimiter? {
        policy == .bulkhead ? runtime.policies.bulkhead?.limiter : runtime.policies.concurrency
    }

    private func send(at now: Duration) {
        if let refusal = staleAdmission(at: now) { return refuse(.circuitBreaker, nil, refusal.group, retryAfter: refusal.time) }
        let hedging = prepareHedge(at: now)
        let isKnown = state.withLock { state in
            state.sent = now
            state.isKnown = state.isKnown || hedging != nil
            state.isSent = !state.isKnown
            return state.isKnown
        }
        guard isKnown else { return transport.base.start(request, id: id, observer: self) }
        guard hedging == nil || transport.enter(self) else { return complete(Self.failed(CurlewError.sessionInvalidated)) }
        if let hedging { startHedgeTimer(after: hedging) }
        let isWanted = state.withLock { state in
            // From here on calls are forwarded to the base transport.
            if state.failure == nil { state.isSent = true }
            return state.failure == nil
        }
        guard isWanted else { return completeIfFailed() }
        transport.base.start(request, id: id, observer: self)
        // Calls of other threads before `start` did not reach the base transport.
        let (failure, isSuspended) = state.withLock { ($0.failure, $0.isSuspended) }
        if failure != nil { transport.base.cancel(id) }
        if isSuspended { repeatSuspension(of: id) }
    }

    /// Why a transfer that has waited since the breaker admitted it is refused after all.
    private func staleAdmission(at now: Duration) -> (group: String, time: Duration)? {
        let held = state.withLock { $0.lastWait > 0 ? $0.held : HeldPlaces() }
        guard let slot = held.breaker, let ticket = held.ticket else { return nil }
        return slot.withLock { $0.refuses(ticket, at: now) }.map { (slot.name, $0) }
    }

    // MARK: - Events of the base transport

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        guard headReceived(head, isHedge: false) else { return .cancel }
        return observer.transfer(self.id, didReceive: head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { observer.transfer(self.id, didReceive: bytes) }

    func transfer(_ id: Int, didSend count: Int64) { observer.transfer(self.id, didSend: count) }

    func transfer(_ id: Int, didComplete completion: TransferCompletion) { attemptEnded(completion, isHedge: false) }

    // MARK: - The end

    static func failed(_ error: any Error) -> TransferCompletion { TransferCompletion(error: error, metrics: TransferMetrics()) }

    func refuse(_ policy: Policy, _ name: String?, _ group: String, retryAfter: Duration?) {
        transport.teller.tell(policy, name ?? "", group, .refused(retryAfter: retryAfter), request)
        complete(Self.failed(Refusal.error(policy, group, request, retryAfter: retryAfter)))
    }

    /// Gives everything back, and delivers the completion, once.
    func complete(_ completion: TransferCompletion) {
        let ended = state.withLock { state -> State? in
            guard !state.isComplete else { return nil }
            state.isComplete = true
            state.wait = nil
            defer {
                state.held = HeldPlaces()
                state.hedge = nil
            }
            return state
        }
        guard let ended else { return }
        // Only here from now on.
        ended.hedge?.timer?.cancel()
        settle(ended, completion)
        if ended.isKnown { transport.remove(self) }
        observer.transfer(id, didComplete: completion)
    }

    private func settle(_ ended: State, _ completion: TransferCompletion) {
        transport.settle(
            ended.held, request, isSent: ended.isSent, sent: ended.sent, status: ended.status, error: completion.error)
    }

    private func report(_ change: CircuitBreakerState.Change, of slot: GroupSlot<CircuitBreakerState>) {
        transport.report(change, of: slot)
    }

    /// Leaves a place, and sends those that wait for one.
    func leave(_ slot: GroupSlot<PlaceState>, _ policy: Policy, _ outcome: PolicyOutcome, isSent: Bool) {
        transport.leave(slot, policy, outcome, isSent: isSent)
    }
}
