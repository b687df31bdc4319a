// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// An exchange that has passed all policies, and is sent a second time if its response is late.
///
/// Until then it has a place in the line of its group, and nothing else: a second request, and the ``PolicyTransfer`` that decides between
/// two attempts, exist from the moment on at which the second one is due. That transfer has the events of the first attempt then.
///
/// Small on purpose: beyond 120 bytes, what one thread allocates and another one frees takes each request 200 instructions more.
final class HedgeableTransfer: TransferObserver, @unchecked Sendable {  // built by one thread; the line's part inside of the mutex
    let id: Int
    /// When it was sent, in nanoseconds of the session's clock.
    let sent: Int64
    private let transport: PolicyTransport
    private let request: TransferRequest
    /// The request's, or the ``PassedTransfer`` that has it.
    private let observer: any TransferObserver
    // The three are of the line, inside of the mutex. The map of lines retains those that are not empty.
    @exclusivity(unchecked) fileprivate var line: Unmanaged<HedgeLine>?
    @exclusivity(unchecked) fileprivate var previous: Unmanaged<HedgeableTransfer>?
    @exclusivity(unchecked) fileprivate var next: Unmanaged<HedgeableTransfer>?
    /// Where the latency counts, if that is wanted.
    @exclusivity(unchecked) fileprivate var slot: GroupSlot<HedgingState>?
    /// Has the events from the second attempt on; not set any more once the response's head was received.
    @exclusivity(unchecked) private var successor: PolicyTransfer?
    /// Whether a second attempt can't become due, or not any more, for the thread of the events.
    @exclusivity(unchecked) fileprivate var isSettled = true

    init(_ transport: PolicyTransport, _ request: TransferRequest, id: Int, _ observer: any TransferObserver, sent: Int64) {
        self.transport = transport
        self.request = request
        self.id = id
        self.observer = observer
        self.sent = sent
    }

    /// Makes the transfer one of two attempts. Inside of the mutex, after it has left the line of a group.
    fileprivate func succeed(_ slot: GroupSlot<HedgingState>) -> PolicyTransfer {
        var (observer, held) = (observer, HeldPlaces())
        if let passed = observer as? PassedTransfer, passed.transport === transport { (observer, held) = (passed.observer, passed.held) }
        let transfer = PolicyTransfer(transport, request, id: id, observer, held)
        transfer.becomeSent(.nanoseconds(sent), slot)
        successor = transfer
        return transfer
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        if slot != nil { measure() } else if !isSettled { settle() }
        if let successor { return successor.transfer(id, didReceive: head) }
        return observer.transfer(id, didReceive: head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        if let successor { return successor.transfer(id, didReceive: bytes) }
        return observer.transfer(id, didReceive: bytes)
    }

    func transfer(_ id: Int, didSend count: Int64) { observer.transfer(id, didSend: count) }

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        if !isSettled { settle() }
        if let successor { return successor.transfer(id, didComplete: completion) }
        observer.transfer(id, didComplete: completion)
    }

    /// A second attempt is not needed any more.
    private func settle() {
        isSettled = true
        transport.settle(self)
    }

    /// The same, and counts the latency unless the successor does.
    private func measure() {
        isSettled = true
        let latency = Duration.nanoseconds(transport.nanoseconds - sent)
        transport.withTransfers { transfers in
            transfers.remove(self)
            if successor == nil { slot?.inLock { $0.responded(after: latency) } }
        }
    }
}

/// The transfers of one group that may become due for a second attempt, in the order in which they were sent; with one alarm for all.
///
/// Retains them by hand: what a counted reference costs is paid for each of the four that change with a transfer otherwise.
final class HedgeLine: @unchecked Sendable {  // changed inside of the mutex of its group's table
    let slot: GroupSlot<HedgingState>
    /// The delay, as the last request that was sent found it: it counts for all, so that the first one is due first.
    @exclusivity(unchecked) private(set) var delay = Duration.zero
    /// The same in nanoseconds.
    @exclusivity(unchecked) private var wait: Int64 = 0
    @exclusivity(unchecked) private var first: Unmanaged<HedgeableTransfer>?
    @exclusivity(unchecked) private var last: Unmanaged<HedgeableTransfer>?
    /// When the first one was sent.
    @exclusivity(unchecked) private var firstSent: Int64 = 0
    /// When the alarm fires that is set; the latest time without one. It stays when the transfer has left for which it was set.
    @exclusivity(unchecked) private var alarmTime = Int64.max
    @exclusivity(unchecked) private var timer: LayerTimer?
    /// The number of the alarm that is set, or was last.
    @exclusivity(unchecked) private var lastAlarm = 0

    init(_ slot: GroupSlot<HedgingState>) { self.slot = slot }

    var isEmpty: Bool { first == nil }

    /// Returns the alarm to set; `nil` if an earlier one is set.
    @inline(__always)
    func append(_ transfer: HedgeableTransfer, delay: Duration) -> HedgeAlarm? {
        if delay != self.delay {
            self.delay = delay
            wait = Int64(truncatingIfNeeded: delay.nanoseconds)
        }
        let place = Unmanaged.passRetained(transfer)
        transfer.line = Unmanaged.passUnretained(self)
        transfer.previous = last
        if let last {
            last._withUnsafeGuaranteedRef { $0.next = place }
        } else {
            first = place
            firstSent = transfer.sent
        }
        last = place
        return firstSent &+ wait < alarmTime ? nextAlarm(at: transfer.sent) : nil
    }

    @inline(__always)
    func remove(_ transfer: HedgeableTransfer) {
        let (previous, next) = (transfer.previous, transfer.next)
        if let next { next._withUnsafeGuaranteedRef { $0.previous = previous } } else { last = previous }
        if let previous {
            previous._withUnsafeGuaranteedRef { $0.next = next }
        } else {
            first = next
            if let next { firstSent = next._withUnsafeGuaranteedRef { $0.sent } }
        }
        transfer.previous = nil
        transfer.next = nil
        transfer.line = nil
        Unmanaged.passUnretained(transfer).release()
    }

    /// Calls a closure with each transfer.
    func forEach(_ body: (HedgeableTransfer) -> Void) {
        var present = first
        while let transfer = present?.takeUnretainedValue() {
            body(transfer)
            present = transfer.next
        }
    }

    /// The first transfer, if it is due.
    func due(at now: Int64) -> HedgeableTransfer? {
        guard let first, firstSent &+ wait <= now else { return nil }
        return first.takeUnretainedValue()
    }

    /// An alarm was set with a timer; returns a timer that is to be cancelled: that of the alarm which this one replaces, or its own if it
    /// was replaced or has fired already.
    func alarmWasSet(_ set: HedgeAlarm, _ timer: LayerTimer) -> LayerTimer? {
        guard isPresent(set) else { return timer }
        defer { self.timer = timer }
        return self.timer
    }

    /// An alarm has fired, and what is due has left; returns the next one to set.
    func alarmFired(_ fired: HedgeAlarm, at now: Int64) -> HedgeAlarm? {
        if isPresent(fired) {
            alarmTime = .max
            timer = nil
        }
        return first != nil && firstSent &+ wait < alarmTime ? nextAlarm(at: now) : nil
    }

    /// Forgets the alarm; returns its timer, unless that is yet to be set.
    func takeTimer() -> LayerTimer? {
        alarmTime = .max
        return timer.take()
    }

    private func isPresent(_ alarm: HedgeAlarm) -> Bool { alarmTime != .max && alarm.number == lastAlarm }

    @inline(never)
    private func nextAlarm(at now: Int64) -> HedgeAlarm {
        lastAlarm += 1
        alarmTime = firstSent &+ wait
        return HedgeAlarm(number: lastAlarm, delay: Nanoseconds(max(alarmTime &- now, 0)))
    }
}

/// An alarm of a line.
struct HedgeAlarm {
    /// Unique in its line.
    let number: Int
    /// From the moment on at which it is to be set.
    let delay: Nanoseconds
}

/// The transfers of a session that a policy may still do something with.
struct PolicyTransfers: Sendable {
    /// What a user's call has made of a transfer in a line.
    private enum Mark {
        case cancelled
        case suspended
    }

    /// Those that wait, or have two attempts, by their numbers.
    var known = NumberMap<PolicyTransfer>()
    private var lines: [ObjectIdentifier: HedgeLine] = [:]
    /// That of the last request.
    private var lastLine: Unmanaged<HedgeLine>?
    private var lastSlot: ObjectIdentifier?
    /// How many are in the lines.
    private var pending = 0
    /// Few calls concern a transfer, and most transfers are in a line: so it is not looked up, but marked when it is called for. By numbers,
    /// of which some are of no transfer in a line.
    private var marks = NumberMap<Mark>()
    /// Those of second attempts.
    var numbers = TransferNumbers()
    private(set) var isShutDown = false

    private mutating func line(of slot: GroupSlot<HedgingState>) -> Unmanaged<HedgeLine> {
        if lines.count >= GroupTable<HedgingState>.capacity { removeEmptyLines() }
        let line = lines[ObjectIdentifier(slot)] ?? HedgeLine(slot)
        lines[ObjectIdentifier(slot)] = line
        lastSlot = ObjectIdentifier(slot)
        lastLine = Unmanaged.passUnretained(line)
        return Unmanaged.passUnretained(line)
    }

    private mutating func removeEmptyLines() {
        for line in lines.values where line.isEmpty { line.takeTimer()?.cancel() }
        lines = lines.filter { !$0.value.isEmpty }
        lastSlot = nil
        lastLine = nil
    }

    /// Adds a transfer to the line of its group; returns the line and the alarm to set, `nil` if none is.
    @inline(__always)
    mutating func append(
        _ transfer: HedgeableTransfer, to slot: GroupSlot<HedgingState>, delay: Duration
    ) -> (line: HedgeLine, alarm: HedgeAlarm)? {
        let line: Unmanaged<HedgeLine>
        if let lastLine, lastSlot == ObjectIdentifier(slot) { line = lastLine } else { line = self.line(of: slot) }
        pending += 1
        // A mark is of an earlier transfer with the number.
        if marks.count > 0 { marks[transfer.id] = nil }
        guard let alarm = line._withUnsafeGuaranteedRef({ $0.append(transfer, delay: delay) }), !isShutDown else { return nil }
        return (line.takeUnretainedValue(), alarm)
    }

    /// Takes a transfer out of its line, if it is in one.
    @inline(__always)
    mutating func remove(_ transfer: HedgeableTransfer) {
        guard let line = transfer.line else { return }
        line._withUnsafeGuaranteedRef { $0.remove(transfer) }
        pending -= 1
        if marks.count > 0 { forgetMark(of: transfer.id) }
    }

    private mutating func forgetMark(of id: Int) {
        if pending == 0 { marks = NumberMap() } else { marks[id] = nil }
    }

    /// A transfer is cancelled: a second attempt would be useless.
    mutating func cancel(_ id: Int) { mark(id, .cancelled) }

    mutating func setSuspended(_ suspended: Bool, of id: Int) {
        if suspended { mark(id, .suspended) } else if marks.count > 0, marks[id] == .suspended { marks[id] = nil }
    }

    private mutating func mark(_ id: Int, _ mark: Mark) {
        guard pending > 0, marks[id] != .cancelled else { return }
        marks[id] = mark
        // Half of them at the most are of no transfer in a line then, so that each mark has paid for its part of this.
        if marks.count > 2 * pending + 16 { forgetOtherMarks() }
    }

    private mutating func forgetOtherMarks() {
        var needed = NumberMap<Mark>()
        for line in lines.values {
            line.forEach { transfer in
                if let mark = marks[transfer.id] { needed[transfer.id] = mark }
            }
        }
        marks = needed
    }

    /// The session ends: no second attempt is made any more. Returns the alarms.
    mutating func shutDown() -> [LayerTimer] {
        isShutDown = true
        return lines.values.compactMap { $0.takeTimer() }
    }

    /// An alarm of a line has fired; returns the next one to set.
    func next(_ fired: HedgeAlarm, of line: HedgeLine, at now: Int64) -> HedgeAlarm? {
        isShutDown ? nil : line.alarmFired(fired, at: now)
    }

    /// The transfers of a line that are due, as ones with two attempts; those that are suspended or cancelled get none.
    mutating func takeDue(_ line: HedgeLine, at now: Int64) -> [PolicyTransfer] {
        var due: [PolicyTransfer] = []
        while let transfer = line.due(at: now) {
            let isUnwanted = marks.count > 0 && marks[transfer.id] != nil
            remove(transfer)
            guard !isUnwanted, !isShutDown else { continue }
            let successor = transfer.succeed(line.slot)
            known[transfer.id] = successor
            due.append(successor)
        }
        return due
    }
}

// MARK: - The transport's part

extension PolicyTransport {
    /// Gives a transfer that has passed all policies a place in the line of its group, before it is started.
    @inline(__always)
    func begin(_ transfer: HedgeableTransfer, _ request: TransferRequest, _ hedges: GroupTable<HedgingState>) {
        var first: (line: HedgeLine, alarm: HedgeAlarm)?
        hedges.withSlot(for: request) { slot, state in
            if runtime.measuresHedges { transfer.slot = slot }
            guard let delay = state.requestBegins(atNanoseconds: transfer.sent) else { return }
            transfer.isSettled = false
            first = transfers.append(transfer, to: slot, delay: delay)
        }
        if let first { set(first.alarm, of: first.line) }
    }

    /// A second attempt of a transfer is not needed any more. A call of its own, in which the transport need not be retained.
    @inline(never)
    fileprivate func settle(_ transfer: HedgeableTransfer) { withTransfers { $0.remove(transfer) } }

    /// The alarm retains the transport until it fires or is cancelled: one to which there is a weak reference takes each request 500
    /// instructions more.
    private func set(_ alarm: HedgeAlarm, of line: HedgeLine) {
        let timer = context.after(alarm.delay) { self.fired(alarm, of: line) }
        withTransfers { _ in line.alarmWasSet(alarm, timer) }?.cancel()
    }

    private func fired(_ alarm: HedgeAlarm, of line: HedgeLine) {
        let now = nanoseconds
        let (due, delay, next) = withTransfers { ($0.takeDue(line, at: now), line.delay, $0.next(alarm, of: line, at: now)) }
        if let next { set(next, of: line) }
        for transfer in due { transfer.sendHedge(after: delay) }
    }
}

extension TransferRequest {
    /// Whether the request may be sent twice at the same time (RFC 9110, section 9.2.2).
    var mayBeHedged: Bool { (isWithoutBody || body is DataBody) && isIdempotent }
}
