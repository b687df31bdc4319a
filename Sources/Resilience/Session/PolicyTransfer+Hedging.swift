// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

// The second attempt of a transfer. The attempt whose head is received first is the one that the observer hears; the other is cancelled.

extension PolicyTransfer {
    enum Attempt {
        case first
        case hedge
    }

    /// What is known of the two attempts. An object, as it is large, and seldom written to.
    final class Hedge: @unchecked Sendable {  // changed with the transfer's state locked
        let slot: GroupSlot<HedgingState>
        @exclusivity(unchecked) var timer: LayerTimer?
        /// The second attempt; `nil` before it is sent.
        @exclusivity(unchecked) var handle: (any TransferHandle)?
        @exclusivity(unchecked) var winner: Attempt?
        /// The interim responses of both attempts while it is open which of them responds.
        @exclusivity(unchecked) var firstInterim: [ResponseHead] = []
        @exclusivity(unchecked) var hedgeInterim: [ResponseHead] = []
        @exclusivity(unchecked) var firstEnded: TransferCompletion?
        @exclusivity(unchecked) var hedgeEnded: TransferCompletion?

        init(_ slot: GroupSlot<HedgingState>) { self.slot = slot }
    }

    /// A request is about to be sent: returns its group, and when a second attempt is due; `nil` if there is to be none.
    func countForHedging(at now: Duration) -> (slot: GroupSlot<HedgingState>, delay: Duration?)? {
        guard let slot = runtime.hedges?.slot(for: request), request.mayBeHedged else { return nil }
        return (slot, slot.withLock { $0.requestBegins(at: now) })
    }

    /// Before the first attempt is started, whose events end the timer.
    func startHedgeTimer(after delay: Duration) {
        // Retains the transfer until its end, which cancels the timer: a weak reference costs more than the rest.
        let timer = transport.context.after(delay.nanoseconds) { self.sendHedge(after: delay) }
        state.withLock { $0.hedge?.timer = timer }
    }

    /// The second attempt is due.
    private func sendHedge(after delay: Duration) {
        let now = now
        guard let slot = state.withLock({ $0.isHedgeWanted ? $0.hedge?.slot : nil }), let policy = runtime.policies.hedging else { return }
        let (hasRoom, place) = takeRoom(at: now)
        guard hasRoom, slot.withLock({ $0.hedge(at: now) }) else {
            leaveUnused(place)
            return transport.teller.tell(.hedging, policy.name, slot.name, .refused(retryAfter: nil))
        }
        var second = request
        second.body = (request.body as? DataBody).map { DataBody($0.data) }
        second.becomeHedge()
        let handle = transport.base.makeTransfer(second, id: id, observer: HedgeObserver(self, place))
        let isWanted = state.withLock { state in
            guard state.isHedgeWanted else { return false }
            state.hedge?.handle = handle
            return true
        }
        guard isWanted else { return leaveUnused(place) }
        transport.teller.tell(.hedging, policy.name, slot.name, .hedged(after: delay))
        handle.start()
    }

    private func leaveUnused(_ place: GroupSlot<PlaceState>?) {
        if let place { transport.leave(place, .concurrencyLimiter, PolicyOutcome(statusCode: nil), isSent: false) }
    }

    /// Takes a permit and a place for the second attempt, if there is one at once.
    private func takeRoom(at now: Duration) -> (hasRoom: Bool, place: GroupSlot<PlaceState>?) {
        var place: GroupSlot<PlaceState>?
        if let slot = runtime.places?.slot(for: request) {
            guard slot.withLock({ $0.limiter.enterNow() }) else { return (false, nil) }
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

    /// Returns whether the observer hears of an interim response now. While it is open which of two attempts responds, those of both are kept
    /// for that.
    func hearsInterim(_ head: ResponseHead, isHedge: Bool) -> Bool {
        state.withLock { state in
            guard state.stage == .sent else { return false }
            guard let hedge = state.hedge, hedge.handle != nil else { return true }
            if hedge.winner == nil {
                if isHedge { hedge.hedgeInterim.append(head) } else { hedge.firstInterim.append(head) }
            }
            return false
        }
    }

    /// Returns whether the observer hears of the head, and delivers the interim responses that were kept.
    func headReceived(_ head: ResponseHead, isHedge: Bool) -> Bool {
        let heard = state.withLock { state -> HeardHead in
            // The attempt that was cancelled may still respond after the end.
            guard state.stage != .complete else { return HeardHead(isHeard: false) }
            guard let hedge = state.hedge else {
                state.status = head.statusCode
                return HeardHead(isHeard: true)
            }
            guard hedge.winner == nil else { return HeardHead(isHeard: hedge.winner == (isHedge ? .hedge : .first)) }
            hedge.winner = isHedge ? .hedge : .first
            state.status = head.statusCode
            (isHedge ? state.first : hedge.handle)?.cancel()
            return HeardHead(
                isHeard: true, first: hedge.slot, timer: hedge.timer.take(), sent: state.sent, interim: hedge.takeInterim(isHedge: isHedge))
        }
        for head in heard.interim { observer.transfer(id, didReceiveInterim: head) }
        if runtime.heedsServers { noteLimits(head) }
        guard let slot = heard.first else { return heard.isHeard }
        heard.timer?.cancel()
        if runtime.measuresHedges {
            let latency = now - heard.sent
            slot.withLock { $0.responded(after: latency) }
        }
        if isHedge { transport.teller.tell(.hedging, runtime.policies.hedging?.name ?? "", slot.name, .hedgeWon) }
        return heard.isHeard
    }

    /// What follows from a head.
    private struct HeardHead {
        let isHeard: Bool
        /// Where the latency counts, of the first head of a transfer that may have two attempts.
        var first: GroupSlot<HedgingState>?
        var timer: LayerTimer?
        var sent = Duration.zero
        var interim: [ResponseHead] = []
    }

    func attemptEnded(_ completion: TransferCompletion, isHedge: Bool) {
        let end = state.withLock { state -> (own: End, result: TransferCompletion?, interim: [ResponseHead])? in
            guard let hedge = state.hedge, hedge.handle != nil else { return state.end().map { ($0, nil, []) } }
            if isHedge { hedge.hedgeEnded = completion } else { hedge.firstEnded = completion }
            guard let result = hedge.result else { return nil }
            // Without a head, the result is that of the first attempt.
            let interim = hedge.takeInterim(isHedge: false)
            return state.end().map { ($0, result, interim) }
        }
        guard let end else { return }
        for head in end.interim { observer.transfer(id, didReceiveInterim: head) }
        complete(end.result ?? completion, end.own)
    }

    fileprivate func hedgeSent(_ count: Int64) {
        if state.withLock({ $0.hedge?.winner == .hedge }) { observer.transfer(id, didSend: count) }
    }
}

extension PolicyTransfer.State {
    /// Whether a second attempt may be sent.
    fileprivate var isHedgeWanted: Bool {
        guard stage == .sent, failure == nil, !isSuspended, let hedge else { return false }
        return hedge.winner == nil && hedge.firstEnded == nil
    }
}

extension PolicyTransfer.Hedge {
    /// The kept interim responses of the attempt that the observer hears; none once they were taken.
    fileprivate func takeInterim(isHedge: Bool) -> [ResponseHead] {
        guard !firstInterim.isEmpty || !hedgeInterim.isEmpty else { return [] }
        defer {
            firstInterim = []
            hedgeInterim = []
        }
        return isHedge ? hedgeInterim : firstInterim
    }

    /// The completion to deliver; `nil` while an attempt is in flight whose end has to be waited for.
    fileprivate var result: TransferCompletion? {
        switch winner {
        case .first: return firstEnded
        // Until then the first one has the place that the transfer holds.
        case .hedge: return firstEnded == nil ? nil : hedgeEnded
        case nil:
            guard let firstEnded else { return nil }
            // The other attempt may still respond. If both fail, the first one's error is told.
            return handle == nil || hedgeEnded != nil || firstEnded.error == nil ? firstEnded : nil
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

    func transfer(_ id: Int, didReceiveInterim head: ResponseHead) { _ = owner.hearsInterim(head, isHedge: true) }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        owner.headReceived(head, isHedge: true) ? owner.observer.transfer(id, didReceive: head) : .cancel
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        owner.observer.transfer(id, didReceive: bytes)
    }

    func transfer(_ id: Int, didSend count: Int64) { owner.hedgeSent(count) }

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        if let place { owner.transport.leave(place, .concurrencyLimiter, PolicyOutcome(statusCode: nil), isSent: false) }
        owner.attemptEnded(completion, isHedge: true)
    }
}

extension TransferRequest {
    /// Whether the request may be sent twice at the same time (RFC 9110, section 9.2.2).
    var mayBeHedged: Bool { (isWithoutBody || body is DataBody) && isIdempotent }
}
