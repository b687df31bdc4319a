// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

// What a transfer waits for before it is sent. A wait has a number and ends once: by what it waits for, its time, or the transfer's end.

extension PolicyTransfer {
    /// An object, as most transfers have none.
    final class Wait: @unchecked Sendable {  // changed with the transfer's state locked
        enum Kind {
            /// Its turn, which is reserved.
            case turn(GroupSlot<RateState>)
            /// A permit of a store.
            case permit(GroupSlot<RateState>)
            /// A place among the requests in flight.
            case place(GroupSlot<PlaceState>, UInt64, Step)
        }

        let number: Int
        let kind: Kind
        let began: Duration
        @exclusivity(unchecked) var timer: LayerTimer?

        init(_ number: Int, _ kind: Kind, began: Duration) {
            self.number = number
            self.kind = kind
            self.began = began
        }
    }

    /// Begins a wait, during which the transfer is known to the transport.
    func beginWait(_ kind: Wait.Kind, at now: Duration) -> Int {
        state.withLock { state in
            state.lastWait += 1
            let wait = Wait(Int(state.lastWait), kind, began: now)
            state.wait = wait
            return wait.number
        }
    }

    /// Registers the transfer until its own end, so that the session's end fails it while it waits.
    private func enterWait() {
        let isOpen = transport.waiting.insert(self)
        let (isComplete, failure) = state.withLock { ($0.stage == .complete, $0.failure) }
        // The wait, and the transfer, may have ended on another thread before the transport knew it.
        if isComplete { return transport.waiting.remove(self) }
        // It may have been cancelled between two waits.
        guard let failure = isOpen ? failure : failure ?? CurlewError.sessionInvalidated else { return }
        if abandonWait(with: failure) { completeIfFailed() }
    }

    private func setTimer(_ number: Int, _ delay: Duration, _ body: @escaping @Sendable () -> Void) {
        let timer = transport.after(delay, body)
        let isLate = state.withLock { state in
            guard state.wait?.number == number else { return true }
            state.wait?.timer = timer
            return false
        }
        if isLate { timer.cancel() }
    }

    /// Ends a wait; `nil` if it has ended.
    private func endWait(_ number: Int) -> Wait? {
        let wait = state.withLock { state -> Wait? in
            guard state.wait?.number == number else { return nil }
            defer { state.wait = nil }
            return state.wait
        }
        wait?.timer?.cancel()
        return wait
    }

    // MARK: - The rate limiter

    func pass(_ rates: GroupTable<RateState>, at now: Duration) -> Bool {
        guard let (slot, (decision, permit)) = rates.withState(for: request, { _, rate in (rate.acquire(at: now), rate.ownPermit) })
        else { return true }
        // Nearly always: the policy is large to copy.
        if case .granted? = decision {
            held.permit = permit
            return true
        }
        guard let policy = runtime.policies.rateLimiter else { return true }
        if let decision { return follow(decision, policy, slot, at: now) }
        let number = beginWait(.permit(slot), at: now)
        setTimer(number, policy.maximumWait) { [weak self] in self?.permitCame(number, .refused(retryAfter: nil), nil, slot) }
        enterWait()
        StoreAsker.ask(for: self, number, policy, slot, transport)
        return false
    }

    /// Returns whether the permit was granted.
    private func follow(
        _ decision: RateLimiterState.Decision, _ policy: RateLimiter, _ slot: GroupSlot<RateState>, at now: Duration
    ) -> Bool {
        switch decision {
        case .granted: return true
        case .wait(let delay):
            waitForTurn(beginWait(.turn(slot), at: now), delay, policy, slot)
            return false
        case .refused(let retryAfter):
            refuse(.rateLimiter, policy.name, slot.name, retryAfter: retryAfter)
            return false
        }
    }

    private func waitForTurn(_ number: Int, _ delay: Duration, _ policy: RateLimiter, _ slot: GroupSlot<RateState>) {
        setTimer(number, delay) { [weak self] in self?.turnCame(number, policy, slot) }
        enterWait()
    }

    private func turnCame(_ number: Int, _ policy: RateLimiter, _ slot: GroupSlot<RateState>) {
        let now = now
        // A server may have asked to hold in the meantime: those that wait keep their order after it.
        let hold = slot.withLock { $0.local.remainingHold(at: now) }
        guard let wait = endWait(number) else { return }
        if hold > .zero {
            let waited = now - wait.began
            guard waited + hold <= policy.maximumWait else {
                return refuse(.rateLimiter, policy.name, slot.name, retryAfter: hold)
            }
            let decision = slot.withLock { $0.local.acquire(at: now, maximumWait: policy.maximumWait - waited) }
            guard follow(decision, policy, slot, at: now) else { return }
            return permitted(.local, at: now)
        }
        transport.reporter.report(.rateLimiter, policy.name, slot.name, .waited(now - wait.began))
        permitted(.local, at: now)
    }

    /// The store has answered, or failed.
    ///
    /// - Parameter permit: what was granted or reserved; `nil` if the request is refused, or sent without a permit.
    func permitCame(_ number: Int, _ decision: RateLimiterState.Decision, _ permit: RateState.Permit?, _ slot: GroupSlot<RateState>) {
        guard let policy = runtime.policies.rateLimiter else { return }
        guard let wait = endWait(number) else {
            // It has ended in the meantime.
            if let permit { slot.withLock { $0.giveBack(permit) } }
            return
        }
        let now = now
        guard follow(decision, policy, slot, at: now) else { return }
        transport.reporter.report(.rateLimiter, policy.name, slot.name, .waited(now - wait.began))
        permitted(permit, at: now)
    }

    /// The rate limiter lets the transfer pass after a wait.
    private func permitted(_ permit: RateState.Permit?, at now: Duration) {
        held.permit = permit
        perform(.compartment, at: now)
    }

    /// Notes what the server says about its limits.
    func noteLimits(_ head: ResponseHead) {
        guard runtime.heedsServers, ServerLimits.mayBe(in: head), let slot = runtime.rates?.slot(for: request) else { return }
        transport.noteLimits(head, in: slot)
    }

    // MARK: - Places

    func waitForPlace(_ number: Int, _ slot: GroupSlot<PlaceState>, _ policy: Policy) {
        let limit = limiter(policy)
        setTimer(number, limit?.maximumWait ?? .zero) { [weak self] in
            guard let self, case .place(let slot, let place, _)? = endWait(number)?.kind else { return }
            giveUp(place, in: slot)
            refuse(policy, limit?.name, slot.name, retryAfter: nil)
        }
        enterWait()
    }

    /// A place became free for a waiting transfer, and is taken already.
    func placeBecameFree(_ number: Int, _ slot: GroupSlot<PlaceState>) {
        guard let wait = endWait(number), case .place(_, _, let step) = wait.kind else {
            // It has ended in the meantime.
            return transport.leave(slot, .concurrencyLimiter, PolicyOutcome(statusCode: nil), isSent: false)
        }
        hold(slot, step)
        let policy = step == .compartment ? Policy.bulkhead : .concurrencyLimiter
        transport.reporter.report(policy, limiter(policy)?.name ?? "", slot.name, .waited(now - wait.began))
        // Not on the thread of the transfer that left, whose completion this would delay.
        transport.context.queue.async { self.perform(step == .compartment ? .place : .send, at: self.now) }
    }

    private func giveUp(_ place: UInt64, in slot: GroupSlot<PlaceState>) {
        slot.withLock { places in
            // A place that became free at the same time is left by `placeBecameFree`.
            if places.limiter.withdraw(place) { places.waiting[place] = nil }
        }
    }

    /// The transfer ends while it waits: gives back what is reserved for it.
    func abandon(_ wait: Wait) {
        wait.timer?.cancel()
        switch wait.kind {
        case .turn(let slot): slot.withLock { $0.local.giveBack() }
        case .place(let slot, let place, _): giveUp(place, in: slot)
        case .permit: break
        }
    }
}
