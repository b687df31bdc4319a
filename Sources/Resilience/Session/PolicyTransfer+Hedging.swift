// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

// The second attempt of a transfer. The attempt whose head is received first is the one that the observer hears; the other is cancelled.
// The transfer completes when both have ended, since a follow-up has the number of the first at the base transport.

extension PolicyTransfer {
    enum Attempt {
        case first
        case hedge
    }

    /// What is known of the two attempts. An object, as it is large, and few transfers have one.
    final class Hedge: @unchecked Sendable {  // changed with the transfer's state locked
        let slot: GroupSlot<HedgingState>
        var timer: LayerTimer?
        /// The number of the second attempt; `nil` before it is sent.
        var id: Int?
        var winner: Attempt?
        var firstEnded: TransferCompletion?
        var hedgeEnded: TransferCompletion?

        init(_ slot: GroupSlot<HedgingState>) { self.slot = slot }
    }

    /// The first attempt was sent at that time, and the second one is due.
    func becomeSent(_ sent: Duration, _ slot: GroupSlot<HedgingState>) {
        state.withLock { state in
            state.isKnown = true
            state.isSent = true
            state.sent = sent
            state.hedge = Hedge(slot)
        }
    }

    /// Returns the delay of the second attempt; `nil` if there is none.
    func prepareHedge(at now: Duration) -> Duration? {
        guard let slot = runtime.hedges?.slot(for: request), request.mayBeHedged else { return nil }
        let delay = slot.withLock { $0.requestBegins(at: now) }
        state.withLock { $0.hedge = Hedge(slot) }
        return delay
    }

    func startHedgeTimer(after delay: Duration) {
        // Retains the transfer until its end, which cancels the timer: a weak reference costs more than the rest.
        let timer = transport.context.after(delay.nanoseconds) { self.sendHedge(after: delay) }
        state.withLock { $0.hedge?.timer = timer }
    }

    /// The second attempt is due.
    func sendHedge(after delay: Duration) {
        let now = now
        let slot = state.withLock { state -> GroupSlot<HedgingState>? in
            guard state.isSent, !state.isComplete, state.failure == nil, !state.isSuspended, let hedge = state.hedge, hedge.winner == nil,
                hedge.firstEnded == nil
            else { return nil }
            return hedge.slot
        }
        guard let slot, let policy = runtime.policies.hedging else { return }
        let (hasRoom, place) = takeRoom(at: now)
        guard hasRoom, slot.withLock({ $0.hedge(at: now) }) else {
            if let place { leave(place, .concurrencyLimiter, PolicyOutcome(statusCode: nil), isSent: false) }
            return transport.teller.tell(.hedging, policy.name, slot.name, .refused(retryAfter: nil))
        }
        let number = transport.makeNumber()
        let isWanted = state.withLock { state -> Bool in
            guard !state.isComplete, state.failure == nil, state.hedge?.winner == nil, state.hedge?.firstEnded == nil else { return false }
            state.hedge?.id = number
            return true
        }
        guard isWanted else {
            if let place { leave(place, .concurrencyLimiter, PolicyOutcome(statusCode: nil), isSent: false) }
            return
        }
        transport.teller.tell(.hedging, policy.name, slot.name, .hedged(after: delay))
        startHedge(number, place)
    }

    private func startHedge(_ number: Int, _ place: GroupSlot<PlaceState>?) {
        var second = request
        second.body = (request.body as? DataBody).map { DataBody($0.data) }
        second.becomeHedge()
        transport.base.start(second, id: number, observer: HedgeObserver(self, place))
        // What happened before the base transport knew the second attempt is repeated.
        let (isUnwanted, isSuspended) = state.withLock {
            ($0.failure != nil || $0.hedge?.winner == .first || $0.isComplete, $0.isSuspended)
        }
        if isUnwanted { transport.base.cancel(number) }
        if isSuspended { repeatSuspension(of: number) }
    }

    /// Takes a permit and a place for the second attempt, if there is one at once.
    private func takeRoom(at now: Duration) -> (hasRoom: Bool, place: GroupSlot<PlaceState>?) {
        var place: GroupSlot<PlaceState>?
        if let slot = runtime.places?.slot(for: request) {
            let isFree = slot.withLock { places in
                let number = places.makeNumber()
                switch places.limiter.arrive(number) {
                case .admitted: return true
                case .queued:
                    _ = places.limiter.withdraw(number)
                    return false
                case .refused: return false
                }
            }
            guard isFree else { return (false, nil) }
            place = slot
        }
        guard let slot = runtime.rates?.slot(for: request) else { return (true, place) }
        let isGranted = slot.withLock { state in
            if runtime.policies.rateLimiter?.store != nil { return state.takeLeased(at: now) }
            return state.local.acquire(at: now, maximumWait: .zero) == .granted
        }
        return (isGranted, place)
    }

    // MARK: - Events of both attempts

    /// Returns whether the observer hears of the head.
    func headReceived(_ head: ResponseHead, isHedge: Bool) -> Bool {
        let heard = state.withLock { state -> HeardHead in
            guard let hedge = state.hedge else {
                state.status = head.statusCode
                return HeardHead(isHeard: true)
            }
            guard hedge.winner == nil else { return HeardHead(isHeard: hedge.winner == (isHedge ? .hedge : .first)) }
            hedge.winner = isHedge ? .hedge : .first
            state.status = head.statusCode
            let loser = isHedge ? (hedge.firstEnded == nil ? id : nil) : hedge.id
            return HeardHead(isHeard: true, loser: loser, first: hedge.slot, timer: hedge.timer, sent: state.sent)
        }
        noteLimits(head)
        guard let slot = heard.first else { return heard.isHeard }
        heard.timer?.cancel()
        let latency = now - heard.sent
        slot.withLock { $0.responded(after: latency) }
        if let loser = heard.loser { transport.base.cancel(loser) }
        if isHedge { transport.teller.tell(.hedging, runtime.policies.hedging?.name ?? "", slot.name, .hedgeWon) }
        return heard.isHeard
    }

    /// What follows from a head.
    private struct HeardHead {
        let isHeard: Bool
        /// The attempt to cancel.
        var loser: Int?
        /// Where the latency counts, of the first head of hedged transfers.
        var first: GroupSlot<HedgingState>?
        var timer: LayerTimer?
        var sent = Duration.zero
    }

    func attemptEnded(_ completion: TransferCompletion, isHedge: Bool) {
        let result = state.withLock { state -> TransferCompletion? in
            guard state.hedge != nil else { return completion }
            if isHedge { state.hedge?.hedgeEnded = completion } else { state.hedge?.firstEnded = completion }
            return state.hedge?.result
        }
        if let result { complete(result) }
    }

    func hedgeSent(_ count: Int64) {
        if state.withLock({ $0.hedge?.winner == .hedge }) { observer.transfer(id, didSend: count) }
    }
}

extension PolicyTransfer.Hedge {
    /// The completion to deliver; `nil` while an attempt is in flight whose end has to be waited for.
    fileprivate var result: TransferCompletion? {
        switch winner {
        case .first: return firstEnded
        case .hedge: return firstEnded == nil ? nil : hedgeEnded
        case nil:
            guard let firstEnded else { return nil }
            // The other attempt may still respond. If both fail, the first one's error is told.
            return id == nil || hedgeEnded != nil || firstEnded.error == nil ? firstEnded : nil
        }
    }
}

/// Hears the second attempt.
private final class HedgeObserver: TransferObserver {
    private let owner: PolicyTransfer
    /// The place of the concurrency limiter that the attempt has: left at its own end, which may be after that of the transfer.
    private let place: GroupSlot<PlaceState>?

    init(_ owner: PolicyTransfer, _ place: GroupSlot<PlaceState>?) {
        self.owner = owner
        self.place = place
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        owner.headReceived(head, isHedge: true) ? owner.observer.transfer(owner.id, didReceive: head) : .cancel
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        owner.observer.transfer(owner.id, didReceive: bytes)
    }

    func transfer(_ id: Int, didSend count: Int64) { owner.hedgeSent(count) }

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        if let place { owner.leave(place, .concurrencyLimiter, PolicyOutcome(statusCode: nil), isSent: false) }
        owner.attemptEnded(completion, isHedge: true)
    }
}
