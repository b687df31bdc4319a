// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewTransport

/// What is counted for the second attempts of a group, and the transfers that may have one, in the order in which theirs are due: one timer
/// for all of them, as nearly all have responded by then.
struct HedgeQueue: Sendable {
    /// How much later than due a second attempt may be: the system's timers are no more exact.
    private static let leeway = Duration.milliseconds(1)

    var hedging: HedgingState
    /// That of the last request, which counts for all.
    private var delay = Duration.zero
    /// With a hole for each that has responded after one that has not.
    private var waiting: [PolicyTransfer?] = []
    /// The index of the first one that has not responded.
    private var start = 0
    /// The number of the first element; that of a transfer is at least 1.
    private var firstNumber = 1
    private var alarm: LayerTimer?
    private var alarmTime = Duration.zero

    init(_ policy: Hedging) { hedging = HedgingState(policy) }

    /// A request is sent.
    mutating func begins(_ transfer: PolicyTransfer, at now: Duration, _ slot: GroupSlot<HedgeQueue>) {
        guard let delay = hedging.requestBegins(at: now) else { return }
        let isSooner = delay < self.delay
        self.delay = delay
        waiting.append(transfer)
        transfer.hedgeNumber = firstNumber + waiting.count - 1
        if isSooner || alarm == nil { setAlarm(at: now, slot) }
    }

    /// A request has its response's head, or has ended without one.
    mutating func ends(_ transfer: PolicyTransfer) {
        guard transfer.hedgeNumber > 0 else { return }
        waiting[transfer.hedgeNumber - firstNumber] = nil
        transfer.hedgeNumber = 0
        dropHoles()
    }

    private mutating func dropHoles() {
        while start < waiting.count, waiting[start] == nil { start += 1 }
        guard start == waiting.count || start >= 64 && start > waiting.count / 2 else { return }
        firstNumber += start
        if start == waiting.count { waiting.removeAll(keepingCapacity: true) } else { waiting.removeFirst(start) }
        start = 0
    }

    /// Removes and returns the transfers whose second attempts are due.
    private mutating func takeDue(_ slot: GroupSlot<HedgeQueue>) -> [PolicyTransfer] {
        var due: [PolicyTransfer] = []
        alarm?.cancel()
        alarm = nil
        while start < waiting.count, let first = waiting[start] {
            let now = first.now
            guard first.sent + delay <= now else {
                setAlarm(at: now, slot)
                break
            }
            due.append(first)
            ends(first)
        }
        return due
    }

    private mutating func setAlarm(at now: Duration, _ slot: GroupSlot<HedgeQueue>) {
        guard let first = waiting[start] else { return }
        let time = first.sent + delay
        if alarm != nil, alarmTime - time <= Self.leeway { return }
        alarm?.cancel()
        alarmTime = time
        alarm = first.transport.after(max(time - now, .zero)) { [weak slot] in
            guard let slot else { return }
            for transfer in slot.withLock({ $0.takeDue(slot) }) { transfer.sendHedge() }
        }
    }
}
