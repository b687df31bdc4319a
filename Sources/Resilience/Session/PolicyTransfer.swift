// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// An exchange on its way through the policies: breaker, rate limiter, bulkhead, concurrency limiter, and then the base transport, perhaps
/// twice.
///
/// The steps are performed one after the other until one has to wait; `PolicyTransfer+Waiting` has the waits, `PolicyTransfer+Hedging` the
/// second attempt. The transfer of the base transport is made when all steps are done.
final class PolicyTransfer: TransferHandle, TransferObserver, @unchecked Sendable {  // each variable says what guards it
    enum Step: Comparable {
        case breaker
        case rate
        case compartment
        case place
        case send
    }

    enum Stage {
        case made
        /// The steps are performed, or one of them waits.
        case passing
        /// The base transport has the transfer.
        case sent
        case complete
    }

    // Small, as is the transfer itself: up to 120 bytes an object is reused on another thread without a search for a place.
    struct State {
        var stage = Stage.made
        var isSuspended = false
        /// The attempt that has responded, of a transfer that may have two.
        var winner: Attempt?
        var lastWait: Int32 = 0
        /// Why the transfer is to end, from a call before it was sent; the first one counts.
        var failure: (any Error)?
        /// What the transfer waits for; `nil` while it does not.
        var wait: Wait?
        /// The first attempt, while it is sent.
        var first: (any TransferHandle)?
        var second: SecondAttempt?
    }

    let transport: PolicyTransport
    let request: TransferRequest
    let id: Int
    let observer: any TransferObserver
    let state = Lock(State())
    // Written by the thread that performs the steps, before the transfer is sent or has failed; only read from then on.
    /// The group of a request that may have a second attempt.
    @exclusivity(unchecked) var hedging: GroupSlot<HedgeQueue>?
    @exclusivity(unchecked) private(set) var sent = Duration.zero
    /// Its number among those of the group that may still have one; 0 for none. With the group locked.
    @exclusivity(unchecked) var hedgeNumber = 0
    @exclusivity(unchecked) var held = HeldPlaces()
    /// That of the response, 0 before its head. On the thread of the events; of a transfer that may have two attempts, with the state locked.
    @exclusivity(unchecked) var status: UInt16 = 0

    init(_ transport: PolicyTransport, _ request: TransferRequest, id: Int, _ observer: any TransferObserver) {
        self.transport = transport
        self.request = request
        self.id = id
        self.observer = observer
    }

    var runtime: PolicyRuntime { transport.runtime }
    var now: Duration { transport.time }

    // MARK: - The steps

    func start() {
        let isFirst = state.withLock { state in
            guard state.stage == .made else { return false }
            state.stage = .passing
            return true
        }
        guard isFirst else { return }
        let now = now
        runtime.budget?.noteRequest(request, at: now)
        perform(.breaker, at: now, hasWaited: false)
    }

    /// Performs the steps from one on, until one waits or refuses.
    func perform(_ first: Step, at now: Duration, hasWaited: Bool = true) {
        if first <= .breaker, let breakers = runtime.breakers, !pass(breakers, at: now) { return }
        if first <= .rate, let rates = runtime.rates, !pass(rates, at: now) { return }
        if first <= .compartment, let places = runtime.compartments, !pass(places, .bulkhead, .compartment, at: now) { return }
        if first <= .place, let places = runtime.places, !pass(places, .concurrencyLimiter, .place, at: now) { return }
        if hasWaited, let refusal = staleAdmission(at: now) {
            return refuse(.circuitBreaker, nil, refusal.group, retryAfter: refusal.time)
        }
        send(at: now)
    }

    // Each of these returns whether the next step is to be performed; if not, the transfer waits or was refused.

    private func pass(_ breakers: GroupTable<CircuitBreakerState>, at now: Duration) -> Bool {
        let answer = breakers.withState(for: request) { slot, breaker -> (CircuitBreakerState.Admission, isChanged: Bool) in
            let (admission, change) = breaker.admit(at: now)
            if let change { transport.addReport(of: change, breaker.opensUntil - now, to: slot) }
            return (admission, change != nil)
        }
        guard let (slot, (admission, isChanged)) = answer else { return true }
        if isChanged { slot.makeReports() }
        switch admission {
        case .admitted(let ticket):
            held.breaker = (slot, ticket)
            return true
        case .refused(let retryAfter):
            refuse(.circuitBreaker, runtime.policies.breaker?.name, slot.name, retryAfter: retryAfter)
            return false
        }
    }

    private func pass(_ table: GroupTable<PlaceState>, _ policy: Policy, _ step: Step, at now: Duration) -> Bool {
        // The wait begins before another thread can end it.
        let arrival = table.withState(for: request) { slot, places -> (ConcurrencyLimiterState.Decision, Int) in
            // Without what only a request that waits needs.
            if places.limiter.enterNow() { return (.admitted, 0) }
            let number = places.makeNumber()
            let decision = places.limiter.arrive(number, urgency: request.urgency)
            guard decision == .queued else { return (decision, 0) }
            let wait = beginWait(.place(slot, number, step), at: now)
            places.waiting[number] = (self, wait)
            return (decision, wait)
        }
        guard let (slot, (decision, wait)) = arrival else { return true }
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
        if step == .compartment { held.compartment = slot } else { held.place = slot }
    }

    func limiter(_ policy: Policy) -> ConcurrencyLimiter? {
        policy == .bulkhead ? runtime.policies.bulkhead?.limiter : runtime.policies.concurrency
    }

    private func send(at now: Duration) {
        sent = now
        let handle = transport.makeBaseTransfer(request, id: id, observer: self)
        guard becomeSent(as: handle, at: now) else { return completeIfFailed() }
        handle.start()
    }

    /// Notes that the first attempt is sent; `false` if the transfer has failed.
    func becomeSent(as handle: any TransferHandle) -> Bool {
        state.withLock { state in
            guard state.failure == nil else { return false }
            state.stage = .sent
            state.first = handle
            if state.isSuspended { handle.setSuspended(true) }
            return true
        }
    }

    /// Why a transfer that has waited since the breaker admitted it is refused after all.
    private func staleAdmission(at now: Duration) -> (group: String, time: Duration)? {
        guard let (slot, ticket) = held.breaker else { return nil }
        return slot.withLock { $0.refuses(ticket, at: now) }.map { (slot.name, $0) }
    }

    // MARK: - Calls of the user

    func cancel() {
        let stage = state.withLock { state in
            defer { if state.stage == .made { state.stage = .complete } }
            // What was started ends with the session then, though its start may be on its way.
            guard state.stage == .made || !transport.waiting.isShutDown else { return Stage.complete }
            if state.stage == .sent {
                state.failure = CurlewError.cancelled
                state.first?.cancel()
                state.second?.handle.cancel()
            }
            return state.stage
        }
        switch stage {
        case .made: observer.completeUnstarted(id)
        case .passing: fail(with: CurlewError.cancelled)
        case .sent, .complete: break
        }
    }

    func setSuspended(_ suspended: Bool) {
        state.withLock { state in
            state.isSuspended = suspended
            state.first?.setSuspended(suspended)
            state.second?.handle.setSuspended(suspended)
        }
    }

    func resumeReceiving() {
        state.withLock { state in (state.winner == .hedge ? state.second?.handle : state.first)?.resumeReceiving() }
    }

    /// Ends the transfer, unless the base transport has it.
    func fail(with error: any Error) {
        // Not in the call: its caller may hold a lock.
        if abandonWait(with: error) { transport.context.queue.async { self.completeIfFailed() } }
    }

    /// Notes why the transfer ends, unless the base transport has it, and ends its wait; returns whether it has waited. Otherwise the thread
    /// that performs the steps finds the reason.
    func abandonWait(with error: any Error) -> Bool {
        let wait = state.withLock { state -> Wait? in
            guard state.stage == .passing else { return nil }
            if state.failure == nil { state.failure = error }
            return state.wait.take()
        }
        wait.map(abandon)
        return wait != nil
    }

    func completeIfFailed() {
        guard let failure = state.withLock({ $0.stage == .passing ? $0.failure : nil }) else { return }
        complete(Self.failed(failure))
    }

    // MARK: - Events of the base transport

    func transfer(_ id: Int, didReceiveInterim head: ResponseHead) {
        if hearsInterim(head, isHedge: false) { observer.transfer(id, didReceiveInterim: head) }
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        guard headReceived(head, isHedge: false) else { return .cancel }
        return observer.transfer(id, didReceive: head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { observer.transfer(id, didReceive: bytes) }

    // The events of a second attempt come on another thread: until one of the two has responded, neither reports what it has sent.
    func transfer(_ id: Int, didSend count: Int64) {
        let isHeard = hedging == nil || state.withLock { $0.stage == .sent && ($0.second == nil || $0.winner == .first) }
        if isHeard { observer.transfer(id, didSend: count) }
    }

    func transfer(_ id: Int, didComplete completion: TransferCompletion) { attemptEnded(completion, isHedge: false) }

    // MARK: - The end

    static func failed(_ error: any Error) -> TransferCompletion { TransferCompletion(error: error, metrics: TransferMetrics()) }

    func refuse(_ policy: Policy, _ name: String?, _ group: String, retryAfter: Duration?) {
        transport.reporter.report(policy, name ?? "", group, .refused(retryAfter: retryAfter), request)
        complete(Self.failed(Refusal.error(policy, group, request, retryAfter: retryAfter)))
    }

    /// Gives everything back, and delivers the completion, once.
    func complete(_ completion: TransferCompletion) {
        if let end = state.withLock({ $0.end() }) { complete(completion, end) }
    }

    func complete(_ completion: TransferCompletion, _ end: End) {
        // With its completion delivered: the session's end waits for that.
        defer { if end.hasWaited { transport.waiting.remove(self) } }
        if !end.isSent, let permit = held.permit, let slot = runtime.rates?.slot(for: request) {
            slot.withLock { $0.giveBack(permit) }
        }
        if runtime.countsEnds { transport.settle(self, isSent: end.isSent, error: completion.error) }
        observer.transfer(id, didComplete: completion)
    }

    /// What a transfer has had until its end.
    struct End {
        let hasWaited: Bool
        let isSent: Bool
    }
}

extension PolicyTransfer.State {
    /// Ends the transfer, once.
    mutating func end() -> PolicyTransfer.End? {
        guard stage != .complete else { return nil }
        defer {
            stage = .complete
            wait = nil
            // They retain the transfer.
            first = nil
            second = nil
        }
        return PolicyTransfer.End(hasWaited: lastWait > 0, isSent: stage == .sent)
    }
}
