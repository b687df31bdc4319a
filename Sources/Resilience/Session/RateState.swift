// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewTransport

/// The rate of a group: counted here, and what is leased from a store.
struct RateState: Sendable {
    /// Where a permit was taken from.
    enum Permit: Sendable {
        case local
        case leased
    }

    /// Counts in this process; with a store only what servers ask for, and when the store has failed.
    var local: RateLimiterState
    var leased = 0
    var leaseEnd = Duration.zero
    /// Until when the store has no permit, as it has said, and until when it is believed.
    private var storeWait = Duration.zero
    private var storeWord = Duration.zero
    var waiting: [(transfer: PolicyTransfer, wait: Int)] = []
    var isAsking = false
    private let maximumWait: Duration
    private let isLeased: Bool

    init(_ limiter: RateLimiter) {
        local = RateLimiterState(limiter.limit)
        maximumWait = limiter.maximumWait
        isLeased = limiter.store != nil
    }

    /// Asks for a permit; `nil` if the store has to be asked.
    mutating func acquire(at now: Duration) -> RateLimiterState.Decision? {
        guard isLeased else { return local.acquire(at: now, maximumWait: maximumWait) }
        if takeLeased(at: now) { return .granted }
        let hold = max(local.remainingHold(at: now), now < storeWord ? storeWait - now : .zero)
        return hold <= maximumWait ? nil : .refused(retryAfter: hold)
    }

    /// The store has no permit before a delay has passed. Returns those that wait and for which that is too long, and whether others are left.
    mutating func storeWaits(_ delay: Duration, at now: Duration) -> (late: [(PolicyTransfer, Int)], isAsking: Bool) {
        storeWait = now + delay
        storeWord = now + min(delay, StoreAsker.longestPause)
        let latest = storeWait - maximumWait
        func isLate(_ waiter: (transfer: PolicyTransfer, wait: Int)) -> Bool {
            waiter.transfer.state.withLock { $0.wait.map { $0.number == waiter.wait && $0.began < latest } ?? false }
        }
        let late = waiting.filter(isLate)
        waiting.removeAll(where: isLate)
        isAsking = !waiting.isEmpty
        return (late, isAsking)
    }

    /// Takes a permit if there is one at once.
    mutating func acquireNow(at now: Duration) -> Bool {
        isLeased ? takeLeased(at: now) : local.acquire(at: now, maximumWait: .zero) == .granted
    }

    /// What a permit is that is taken at once.
    var ownPermit: Permit { isLeased ? .leased : .local }

    /// Gives back a permit that was not used.
    mutating func giveBack(_ permit: Permit) {
        guard permit == .leased else { return local.giveBack() }
        // A store may have granted as many as there are numbers since.
        if leased < .max { leased += 1 }
    }

    /// Forgets the transfers that do not wait any more.
    mutating func dropEnded() {
        waiting.removeAll { transfer, wait in transfer.state.withLock { $0.wait?.number != wait } }
    }

    /// Takes a permit of the lease; not while a server has asked to hold, nor before those that wait.
    private mutating func takeLeased(at now: Duration) -> Bool {
        guard leased > 0, waiting.isEmpty, now < leaseEnd, local.heldUntil <= now else { return false }
        leased -= 1
        return true
    }
}

/// Asks a store for the permits of a group, one call at a time, for all transfers that wait.
enum StoreAsker {
    /// The longest time between two calls for a group that has to wait, so that the end of a hold elsewhere is noticed.
    static let longestPause = Duration.seconds(5)

    static func ask(
        for transfer: PolicyTransfer, _ wait: Int, _ policy: RateLimiter, _ slot: GroupSlot<RateState>, _ transport: PolicyTransport
    ) {
        let isFirst = slot.withLock { state in
            state.waiting.append((transfer, wait))
            defer { state.isAsking = true }
            return !state.isAsking
        }
        if isFirst { askNow(policy, slot, transport) }
    }

    private static func askNow(_ policy: RateLimiter, _ slot: GroupSlot<RateState>, _ transport: PolicyTransport) {
        guard let store = policy.store else { return }
        let now = transport.context.time
        let (count, hold) = slot.withLock { state -> (Int, Duration) in
            state.dropEnded()
            state.isAsking = !state.waiting.isEmpty
            return (state.waiting.count, state.local.remainingHold(at: now))
        }
        guard count > 0 else { return }
        guard hold == .zero else { return askLater(hold, policy, slot, transport) }
        SharedWork.task {
            do {
                let key = policy.name.isEmpty ? slot.name : "\(policy.name):\(slot.name)"
                let wanted = min(max(count, policy.leaseSize), max(policy.limit.burst, 1))
                answered(try await store.acquire(wanted, of: key, limit: policy.limit), policy, slot, transport)
            } catch {
                failed(error, policy, slot, transport)
            }
        }
    }

    private static func askLater(_ delay: Duration, _ policy: RateLimiter, _ slot: GroupSlot<RateState>, _ transport: PolicyTransport) {
        _ = transport.after(min(delay, longestPause)) { askNow(policy, slot, transport) }
    }

    private static func answered(
        _ grant: RateLimitGrant, _ policy: RateLimiter, _ slot: GroupSlot<RateState>, _ transport: PolicyTransport
    ) {
        switch grant {
        case .granted(let count, let duration):
            let now = transport.context.time
            let served = slot.withLock { state in
                state.dropEnded()
                let served = Array(state.waiting.prefix(max(count, 0)))
                state.waiting.removeFirst(served.count)
                state.leased = max(count, 0) - served.count
                state.leaseEnd = now + max(duration, .zero)
                return served
            }
            for (transfer, wait) in served { transfer.permitCame(wait, .granted, .leased, slot) }
            // A grant of nothing would ask without a pause.
            if count > 0 { askNow(policy, slot, transport) } else { askLater(policy.limit.spacing, policy, slot, transport) }
        case .wait(let delay):
            let (late, isAsking) = slot.withLock { $0.storeWaits(delay, at: transport.context.time) }
            for (transfer, wait) in late { transfer.permitCame(wait, .refused(retryAfter: delay), nil, slot) }
            if isAsking { askLater(max(delay, .milliseconds(1)), policy, slot, transport) }
        }
    }

    private static func failed(
        _ error: any Error, _ policy: RateLimiter, _ slot: GroupSlot<RateState>, _ transport: PolicyTransport
    ) {
        transport.reporter.report(.rateLimiter, policy.name, slot.name, .storeFailed(error.kindName))
        let now = transport.context.time
        let answers = slot.withLock { state in
            defer {
                state.waiting = []
                state.isAsking = false
            }
            state.dropEnded()
            return state.waiting.map { waiter in
                let decision: RateLimiterState.Decision =
                    switch policy.storeFailure {
                    case .open: .granted
                    case .closed: .refused(retryAfter: nil)
                    case .local: state.local.acquire(at: now, maximumWait: policy.maximumWait)
                    }
                return (waiter.transfer, waiter.wait, decision)
            }
        }
        for (transfer, wait, decision) in answers {
            let isTaken = if case .refused = decision { false } else { policy.storeFailure == .local }
            transfer.permitCame(wait, decision, isTaken ? .local : nil, slot)
        }
    }
}
