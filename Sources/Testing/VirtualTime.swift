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

/// What the exchanges of mock transports wait for.
struct ExchangeWaits {
    /// Those at which something is about to happen.
    var busy = 0
    /// Those that wait for a delay, or respond no more.
    var timed = 0
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
    /// Counts what has happened, so that a look at the requests can be told to be outdated.
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
        changes += 1
    }

    mutating func remove(_ number: Int) {
        waits[number] = nil
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
        guard let wait = waits.removeValue(forKey: number) else {
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
            if let wait = next, wait.time <= advance.target { return end(wait) }
            now = max(now, advance.target)
            advances.removeFirst()
            return .arrived(advance.continuation)
        }
        guard isAutomatic, let wait = next else { return stop() }
        let isSleeping = waits.values.contains { $0.sleep != nil }
        let isWaiting = requests.delayed > 0 || exchanges.timed > 0 || isSleeping
        // Nothing is in flight: what is left are alarms for requests that have finished.
        guard isBusy || isWaiting || requests.transferring > 0 else { return stop() }
        guard !isBusy, isWaiting, requests.transferring <= exchanges.timed else { return again() }
        tries = 0
        return end(wait)
    }

    private var next: VirtualWait? {
        waits.values.min { $0.time != $1.time ? $0.time < $1.time : $0.number < $1.number }
    }

    private mutating func end(_ wait: VirtualWait) -> Step {
        now = max(now, wait.time)
        waits[wait.number] = nil
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
