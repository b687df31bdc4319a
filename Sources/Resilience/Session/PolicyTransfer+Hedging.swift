// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

// The second attempt of a transfer. The attempt whose head is received first is delivered to the observer; the other is cancelled.

extension PolicyTransfer {
    enum Attempt {
        case first
        case hedge
    }

    /// A second attempt that was sent, and what is known of both since. Changed with the transfer's state locked, until that ends.
    final class SecondAttempt: @unchecked Sendable {
        let handle: any TransferHandle
        /// The interim responses of both attempts until one of them has responded.
        @exclusivity(unchecked) var firstInterim: [ResponseHead] = []
        @exclusivity(unchecked) var hedgeInterim: [ResponseHead] = []
        @exclusivity(unchecked) var firstEnded: TransferCompletion?
        @exclusivity(unchecked) var hedgeEnded: TransferCompletion?

        init(_ handle: any TransferHandle) { self.handle = handle }

        /// The interim responses of the attempt that is delivered to the observer, once that is known.
        func interim(of attempt: Attempt) -> [ResponseHead] { attempt == .hedge ? hedgeInterim : firstInterim }

        /// The completion to deliver; `nil` while an attempt is in flight whose end has to be waited for.
        func result(_ winner: Attempt?) -> TransferCompletion? {
            switch winner {
            case .first: return firstEnded
            // Not before the first attempt has ended, too: until then that has the limiter's place.
            case .hedge: return firstEnded == nil ? nil : hedgeEnded
            case nil:
                guard let firstEnded else { return nil }
                // The other attempt may still respond. If both fail, the first one's error is reported.
                return hedgeEnded != nil || firstEnded.error == nil ? firstEnded : nil
            }
        }
    }

    /// Notes that the first attempt is sent, and when a second one is due; `false` if the transfer has failed.
    func becomeSent(as handle: any TransferHandle, at now: Duration) -> Bool {
        guard let hedges = runtime.hedges, request.mayBeHedged else { return becomeSent(as: handle) }
        // In one lock, as the transfer may end, or be due, after it.
        let isSent = hedges.withState(for: request) { slot, hedge in
            hedging = slot
            let isSent = becomeSent(as: handle)
            if isSent { hedge.begins(self, at: now, slot) }
            return isSent
        }
        return isSent?.result ?? becomeSent(as: handle)
    }

    /// The second attempt is due.
    func sendHedge() {
        let now = now
        guard state.withLock({ $0.isHedgeWanted }), let slot = hedging, let policy = runtime.policies.hedging else { return }
        let taken = takeRoom(at: now)
        guard let room = taken, slot.withLock({ $0.hedging.hedge(at: now) }) else {
            if let taken { leaveUnused(taken) }
            return transport.reporter.report(.hedging, policy.name, slot.name, .refused(retryAfter: nil))
        }
        var second = request
        second.body = (request.body as? DataBody).map { DataBody($0.data) }
        second.becomeHedge()
        let handle = transport.makeBaseTransfer(second, id: id, observer: HedgeObserver(self, room.place))
        let isWanted = state.withLock { state in
            guard state.isHedgeWanted else { return false }
            state.second = SecondAttempt(handle)
            return true
        }
        guard isWanted else { return leaveUnused(room) }
        transport.reporter.report(.hedging, policy.name, slot.name, .hedged(after: now - sent))
        handle.start()
    }

    /// A place and a permit that were taken for the second attempt, where there are policies that want them.
    private struct Room {
        var place: GroupSlot<PlaceState>?
        var permit: GroupSlot<RateState>?
    }

    /// Gives back what a second attempt that is not sent has taken.
    private func leaveUnused(_ room: Room) {
        if let slot = room.permit { slot.withLock { $0.giveBack($0.ownPermit) } }
        if let place = room.place { transport.leave(place, .concurrencyLimiter, PolicyOutcome(statusCode: nil), isSent: false) }
    }

    /// Takes a place and a permit for the second attempt; `nil` if there are none at once.
    private func takeRoom(at now: Duration) -> Room? {
        var room = Room()
        if let slot = runtime.places?.slot(for: request) {
            guard slot.withLock({ $0.limiter.enterNow() }) else { return nil }
            room.place = slot
        }
        guard let slot = runtime.rates?.slot(for: request) else { return room }
        guard slot.withLock({ $0.acquireNow(at: now) }) else {
            leaveUnused(room)
            return nil
        }
        room.permit = slot
        return room
    }

    // MARK: - Events of both attempts

    /// Returns whether an interim response is delivered to the observer now. Until one of two attempts has responded, those of both are
    /// kept.
    func hearsInterim(_ head: ResponseHead, isHedge: Bool) -> Bool {
        guard hedging != nil else { return true }
        return state.withLock { state in
            guard state.stage == .sent else { return false }
            guard let second = state.second else { return true }
            if state.winner == nil {
                if isHedge { second.hedgeInterim.append(head) } else { second.firstInterim.append(head) }
            }
            return false
        }
    }

    /// Returns whether the head is delivered to the observer, and delivers the interim responses that were kept.
    func headReceived(_ head: ResponseHead, isHedge: Bool) -> Bool {
        guard let hedging else {
            status = UInt16(truncatingIfNeeded: head.statusCode)
            noteLimits(head)
            return true
        }
        let attempt = isHedge ? Attempt.hedge : .first
        let heard = state.withLock { state -> HeardHead in
            // The attempt that was cancelled may still respond after the end.
            guard state.stage != .complete else { return HeardHead(isHeard: false) }
            guard state.winner == nil else { return HeardHead(isHeard: state.winner == attempt) }
            state.winner = attempt
            status = UInt16(truncatingIfNeeded: head.statusCode)
            (isHedge ? state.first : state.second?.handle)?.cancel()
            return HeardHead(isHeard: true, isFirst: true, second: state.second)
        }
        heard.second?.interim(of: attempt).forEach { observer.transfer(id, didReceiveInterim: $0) }
        noteLimits(head)
        guard heard.isFirst else { return heard.isHeard }
        let latency = runtime.measuresHedges ? now - sent : nil
        hedging.withLock { hedge in
            hedge.ends(self)
            if let latency { hedge.hedging.responded(after: latency) }
        }
        if isHedge { transport.reporter.report(.hedging, runtime.policies.hedging?.name ?? "", hedging.name, .hedgeWon) }
        return heard.isHeard
    }

    /// What follows from a head.
    private struct HeardHead {
        let isHeard: Bool
        /// Whether it is the first one of the transfer.
        var isFirst = false
        var second: SecondAttempt?
    }

    func attemptEnded(_ completion: TransferCompletion, isHedge: Bool) {
        guard let hedging else { return complete(completion) }
        let ended = state.withLock { state -> EndedAttempts? in
            let second = state.second
            if let second {
                if isHedge { second.hedgeEnded = completion } else { second.firstEnded = completion }
                guard second.result(state.winner) != nil else { return nil }
            }
            return state.end().map { EndedAttempts(end: $0, second: second, winner: state.winner) }
        }
        guard let ended else { return }
        if ended.winner == nil { hedging.withLock { $0.ends(self) } }
        guard let second = ended.second else { return complete(completion, ended.end) }
        // Without a head, the result is that of the first attempt, whose interim responses are still to be delivered.
        if ended.winner == nil { second.interim(of: .first).forEach { observer.transfer(id, didReceiveInterim: $0) } }
        complete(second.result(ended.winner) ?? completion, ended.end)
    }

    private struct EndedAttempts {
        let end: End
        let second: SecondAttempt?
        let winner: Attempt?
    }

    fileprivate func hedgeSent(_ count: Int64) {
        if state.withLock({ $0.winner == .hedge }) { observer.transfer(id, didSend: count) }
    }
}

extension PolicyTransfer.State {
    /// Whether a second attempt may be sent.
    fileprivate var isHedgeWanted: Bool {
        stage == .sent && failure == nil && !isSuspended && winner == nil
    }
}

/// Receives the events of the second attempt.
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
