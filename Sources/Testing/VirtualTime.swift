// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewLoopback
import CurlewTransport
import Dispatch

/// A wait on a virtual clock.
struct VirtualWait: Sendable {
    let time: Nanoseconds
    /// Unique in its clock, and increasing: waits that end at the same time do so in this order.
    let number: Int
    let queue: DispatchQueue
    /// `nil` for waits that no task sleeps in.
    var sleep: Sleep?
    let body: @Sendable () -> Void
}

/// The waits of a clock, in the order in which they end.
///
/// A heap, since each step of the clock takes the next one. It may have numbers of waits that were removed, which are dropped when they are
/// first, or are most of it.
private struct WaitOrder: Sendable {
    private struct Entry: Sendable {
        let time: Nanoseconds
        let number: Int

        static func < (lhs: Entry, rhs: Entry) -> Bool { lhs.time != rhs.time ? lhs.time < rhs.time : lhs.number < rhs.number }
    }

    private var entries: [Entry] = []

    mutating func insert(_ wait: VirtualWait) {
        entries.append(Entry(time: wait.time, number: wait.number))
        var index = entries.count - 1
        while index > 0, entries[index] < entries[(index - 1) / 2] {
            entries.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    /// The first of the waits, which are those of a dictionary.
    mutating func first(of waits: [Int: VirtualWait]) -> VirtualWait? {
        // Sorted, it is a heap.
        if entries.count > 2 * waits.count + 64 { entries = entries.filter { waits[$0.number] != nil }.sorted(by: <) }
        while let entry = entries.first {
            if let wait = waits[entry.number] { return wait }
            removeFirst()
        }
        return nil
    }

    private mutating func removeFirst() {
        let last = entries.removeLast()
        guard !entries.isEmpty else { return }
        entries[0] = last
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < entries.count && entries[child] < entries[least] { least = child }
            guard least != index else { return }
            entries.swapAt(index, least)
            index = least
        }
    }
}

/// What the exchanges of mock transports wait for.
struct ExchangeWaits: Sendable {
    /// What one exchange waits for.
    enum Kind: Sendable {
        /// Something is about to happen.
        case busy
        /// A delay passes, or nothing more is sent.
        case timed
    }

    private(set) var busy = 0
    private(set) var timed = 0

    /// An exchange now waits for something else; `nil` for one that is not counted.
    mutating func change(from old: Kind?, to new: Kind?) {
        for (kind, change) in [(old, -1), (new, 1)] {
            switch kind {
            case .busy?: busy += change
            case .timed?: timed += change
            case nil: break
            }
        }
    }

    static func += (lhs: inout ExchangeWaits, rhs: ExchangeWaits) {
        lhs.busy += rhs.busy
        lhs.timed += rhs.timed
    }
}

struct WeakSession {
    weak var session: (any ClockedSession)?
}

struct WeakTransport {
    weak var transport: ScriptedTransport?
}

/// The state of a virtual clock: a value, whose owner performs the steps after unlocking.
struct VirtualTime: Sendable {
    /// A wait for time to pass.
    private struct Advance {
        let target: Nanoseconds
        let continuation: TrackedContinuation<Void>
        /// In real time.
        let start = ContinuousClock.now
    }

    /// What to do next.
    enum Step {
        /// Time can't pass until something calls.
        case stop
        /// Requests are being worked on: look again, after that many tries.
        case again(Int)
        /// A wait ends.
        case end(VirtualWait)
        /// The time of an advance has passed.
        case arrived(TrackedContinuation<Void>)
    }

    private(set) var now: Nanoseconds = 0
    private(set) var waits: [Int: VirtualWait] = [:]
    private var order = WaitOrder()
    /// The number of waits in which a task sleeps.
    private var sleeping = 0
    /// Counts what has happened, so that an outdated look at the requests is recognized.
    var changes = 0
    var sessions: [WeakSession] = []
    var transports: [WeakTransport] = []
    /// How long tasks wanted to sleep.
    var sleeps: [Duration] = []
    private var advances: [Advance] = []
    private var lastNumber = 0
    private var cancelledSleeps: Set<Int> = []
    private var isLooking = false
    /// Whether something has called since the last look began.
    private var isCalled = false
    private var tries = 0
    /// The number of closures that are being called.
    private var running = 0

    /// The sessions that exist; forgets the others.
    var livingSessions: [any ClockedSession] {
        mutating get {
            sessions.removeAll { $0.session == nil }
            return sessions.compactMap(\.session)
        }
    }

    var livingTransports: [ScriptedTransport] {
        mutating get {
            transports.removeAll { $0.transport == nil }
            return transports.compactMap(\.transport)
        }
    }

    mutating func makeNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    mutating func add(_ wait: VirtualWait) {
        waits[wait.number] = wait
        order.insert(wait)
        if wait.sleep != nil { sleeping += 1 }
        changes += 1
    }

    @discardableResult
    mutating func remove(_ number: Int) -> VirtualWait? {
        let wait = waits.removeValue(forKey: number)
        if wait?.sleep != nil { sleeping -= 1 }
        return wait
    }

    mutating func advance(by duration: Nanoseconds, _ continuation: TrackedContinuation<Void>) {
        advances.append(Advance(target: now + duration, continuation: continuation))
        advances.sort { $0.target < $1.target }
    }

    /// A task is about to sleep; returns `false` if it was cancelled before.
    mutating func sleepBegins(_ number: Int) -> Bool { cancelledSleeps.remove(number) == nil }

    /// A sleeping task was cancelled; returns its sleep, if that has begun.
    mutating func cancelSleep(_ number: Int) -> Sleep? {
        changes += 1
        guard let wait = remove(number) else {
            // It may have ended as well; a number is never used again.
            cancelledSleeps.insert(number)
            return nil
        }
        return wait.sleep
    }

    // MARK: Steps

    /// Returns whether to begin looking at the requests; not if that is going on.
    mutating func beginLooking(isAutomatic: Bool) -> Bool {
        isCalled = true
        guard !isLooking, !advances.isEmpty || isAutomatic && !waits.isEmpty else { return false }
        isLooking = true
        tries = 0
        return true
    }

    /// The closure of a wait has returned.
    mutating func waitEnded() {
        running -= 1
        changes += 1
    }

    /// Returns what to do after a look at the requests.
    ///
    /// - Parameter unchangedSince: ``changes`` when the look began; if there were more, it is outdated.
    mutating func step(
        _ requests: RequestWaits, _ exchanges: ExchangeWaits, unchangedSince: Int, isAutomatic: Bool, patience: Duration
    ) -> Step {
        let isBusy = requests.busy > 0 || exchanges.busy > 0 || running > 0 || changes != unchangedSince
        if let advance = advances.first {
            guard !isBusy || advance.start.duration(to: .now) > patience else { return again() }
            tries = 0
            if let wait = order.first(of: waits), wait.time <= advance.target { return end(wait) }
            now = max(now, advance.target)
            advances.removeFirst()
            return .arrived(advance.continuation)
        }
        guard isAutomatic, let wait = order.first(of: waits) else { return stop() }
        let isWaiting = requests.delayed > 0 || exchanges.timed > 0 || sleeping > 0
        // Nothing is in flight: what is left are alarms for requests that have finished.
        guard isBusy || isWaiting || requests.transferring > 0 else { return stop() }
        guard !isBusy, isWaiting, requests.transferring <= exchanges.timed else { return again() }
        tries = 0
        return end(wait)
    }

    private mutating func end(_ wait: VirtualWait) -> Step {
        now = max(now, wait.time)
        remove(wait.number)
        running += 1
        changes += 1
        isCalled = false
        return .end(wait)
    }

    private mutating func again() -> Step {
        tries += 1
        isCalled = false
        return .again(tries)
    }

    private mutating func stop() -> Step {
        guard !isCalled else { return again() }
        isLooking = false
        return .stop
    }
}
