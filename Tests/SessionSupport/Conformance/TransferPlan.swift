// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport

/// A call that the suite makes about a transfer.
package enum Deed: Sendable {
    case cancel
    case suspend
    case resume
    case resumeReceiving
    /// Releases the handle: later deeds have no effect, and the transfer runs on.
    case release
    case shutDown
}

/// What is done with one transfer, and when.
package struct TransferPlan: Sendable {
    /// What the observer returns for an event.
    package enum Action: Sendable {
        case cancel
        /// Pauses; deeds follow, and then the pause is withdrawn.
        case pause([Deed])
        /// Pauses; another thread withdraws that before the observer has returned it.
        case pauseWithdrawn
        /// Pauses, and no call follows.
        case pauseForGood
    }

    /// A step of the task that starts the transfer.
    package enum Step: Sendable {
        case perform(Deed)
        /// Lets other tasks run so many times.
        case yield(Int)
    }

    package let kind: ExchangeKind
    package let seed: UInt64
    /// Whether it starts after the end of all transfers before it.
    package var waitsForOthers = false
    package var before: [Deed] = []
    package var isStarted = true
    package var after: [Step] = []
    /// Inside of the first head, or first piece.
    package var inside: [Deed] = []
    /// Whether those are performed by the thread of the event; else by another one, for which the event waits.
    package var isInsideOnSameThread = false
    /// After the events of those numbers, while others may be delivered.
    package var between: [Int: [Deed]] = [:]
    package var actions: [Int: Action] = [:]
    package var afterEnd: [Deed] = []
    /// After how many turns of other tasks an exchange without an end is cancelled.
    package var cancellation = 0

    package init(_ kind: ExchangeKind, seed: UInt64) {
        self.kind = kind
        self.seed = seed
    }

    /// Whether an event is expected if the session does not end.
    package var completes: Bool { isStarted || isCancelledBeforeStart }

    private var isCancelledBeforeStart: Bool { before.contains { if case .cancel = $0 { true } else { false } } }
}

extension TransferPlan: CustomStringConvertible {
    package var description: String {
        var parts = ["\(kind)/\(seed)"]
        if waitsForOthers { parts.append("waits for others") }
        if !before.isEmpty { parts.append("before \(before)") }
        parts.append(isStarted ? "start" : "no start")
        if !after.isEmpty { parts.append("after \(after)") }
        if !inside.isEmpty { parts.append("inside\(isInsideOnSameThread ? ", same thread," : "") \(inside)") }
        for (index, deeds) in between.sorted(by: { $0.key < $1.key }) { parts.append("after event \(index) \(deeds)") }
        for (index, action) in actions.sorted(by: { $0.key < $1.key }) { parts.append("event \(index) returns \(action)") }
        if !afterEnd.isEmpty { parts.append("after the end \(afterEnd)") }
        return parts.joined(separator: ", ")
    }
}

// MARK: - Random plans

/// Makes plans that follow from a seed.
package struct PlanMaker {
    private let kinds: [ExchangeKind]
    /// How many seeds of bodies there are; `nil` for another one each time.
    private let seeds: Int?
    private var random: SplitMix
    private var lastSeed: UInt64 = 100
    private var lastKind: ExchangeKind

    package init(seed: UInt64, kinds: [ExchangeKind], seeds: Int?) {
        random = SplitMix(state: seed)
        self.kinds = kinds
        self.seeds = seeds
        lastKind = kinds[0]
    }

    package mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    package mutating func chance(_ percent: Int) -> Bool { number(1...100) <= percent }

    /// - Parameter endsSession: whether the session ends while the transfer may be in flight.
    package mutating func makePlan(endsSession: Bool) -> TransferPlan {
        let repeats = seeds != nil && lastSeed != 100 && chance(50)
        if !repeats { (lastKind, lastSeed) = (pick(kinds), makeSeed()) }
        var plan = TransferPlan(lastKind, seed: lastSeed)
        // Those before it may end with the session only.
        plan.waitsForOthers = !endsSession && chance(15)
        plan.cancellation = number(0...3_000)
        switch number(0...9) {
        case 0: break
        case 1: leaveUnstarted(&plan)
        case 2: release(&plan, endsSession: endsSession)
        case 3:
            plan.before = [.suspend] + (chance(50) ? [.resumeReceiving] : [])
            plan.after = [.yield(number(0...1_500)), .perform(.resume)]
        default:
            for _ in 0...number(0...1) { addDeeds(to: &plan, endsSession: endsSession) }
        }
        plan.afterEnd = chance(30) ? [.resumeReceiving, .suspend, .resume, .cancel, .cancel] : []
        return plan
    }

    private mutating func pick<Element>(_ elements: [Element]) -> Element { elements[number(0...(elements.count - 1))] }

    private mutating func makeSeed() -> UInt64 {
        if let seeds { return UInt64(number(1...seeds)) }
        return lastSeed + 1
    }

    private mutating func leaveUnstarted(_ plan: inout TransferPlan) {
        plan.before = pick([[], [.suspend], [.cancel], [.cancel, .cancel], [.suspend, .cancel], [.resumeReceiving, .release]])
        // A transfer that is cancelled twice is started in vain.
        plan.isStarted = plan.before.count == 2 && !plan.before.contains { if case .release = $0 { true } else { false } }
    }

    /// Without its handle a transfer can't be cancelled, nor a pause be withdrawn.
    private mutating func release(_ plan: inout TransferPlan, endsSession: Bool) {
        if !endsSession, plan.kind.outcome == .none { plan = TransferPlan(.small, seed: plan.seed) }
        switch number(0...(endsSession ? 4 : 3)) {
        case 0: plan.after = [.perform(.release)]
        case 1: plan.inside = [.release]
        case 2: plan.between = [number(0...2): [.release]]
        case 3: plan.afterEnd = [.release]
        default: plan.actions = [number(0...1): .pause([.release])]
        }
    }

    private mutating func addDeeds(to plan: inout TransferPlan, endsSession: Bool) {
        switch number(0...4) {
        case 0:
            plan.after += [.yield(number(0...1_500))] + deeds(endsSession).map { .perform($0) }
        case 1:
            plan.inside = deeds(endsSession)
            plan.isInsideOnSameThread = chance(40)
        case 2: plan.between[number(0...3)] = deeds(endsSession)
        case 3:
            let index = number(0...2)
            plan.actions[index] = chance(40) ? .pauseWithdrawn : .pause(chance(50) ? [] : deeds(endsSession))
            if chance(50) { plan.actions[index + 1] = .pause([]) }
        default: plan.actions[number(0...2)] = .cancel
        }
    }

    private mutating func deeds(_ endsSession: Bool) -> [Deed] {
        let all: [[Deed]] = [
            [.cancel], [.cancel, .cancel], [.suspend, .resume], [.suspend, .cancel, .resume], [.resumeReceiving],
            [.suspend, .resumeReceiving, .resume],
        ]
        return endsSession && chance(30) ? [.shutDown] : pick(all)
    }
}

/// Transfers of one transport, and whether it ends while they run.
package struct Scenario: Sendable, CustomStringConvertible {
    package var plans: [TransferPlan] = []
    /// After how many turns of other tasks the transport is shut down; `nil` for a transport that is used further.
    package var shutDown: Int?
    /// Whether all transfers are cancelled after that, which is too late to be the reason of their end.
    package var cancelsAtEnd = false
    /// The transfers that are started after that.
    package var late: [TransferPlan] = []

    package init(_ plans: [TransferPlan] = []) { self.plans = plans }

    package init(by maker: inout PlanMaker, endsSession: Bool) {
        plans = (0...maker.number(0...4)).map { _ in maker.makePlan(endsSession: endsSession) }
        guard endsSession else { return }
        shutDown = maker.number(0...3_000)
        cancelsAtEnd = maker.chance(50)
        late = (0..<maker.number(0...2)).map { _ in maker.makePlan(endsSession: true) }
    }

    package var description: String {
        let cancels = cancelsAtEnd ? ", then cancel all" : ""
        let end = shutDown.map { ["  shut down after \($0) turns\(cancels)"] + late.map { "  late: \($0)" } } ?? []
        return (plans.map { "  \($0)" } + end).joined(separator: "\n")
    }
}
