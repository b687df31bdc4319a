// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport
import Dispatch

/// The waits of a session: runs closures at points in time, on the session's queue.
///
/// All of them share one timer of the system. Starting or cancelling one is a change of a heap under a lock, and the system's timer is armed
/// again only for an earlier point in time.
final class Timers: Sendable {
    /// A wait that was started. Thread-safe.
    final class Timer: DeadlineHolder, @unchecked Sendable {  // the heap's fields are only used under its lock
        var deadline: Nanoseconds = 0
        var heapIndex = -1
        fileprivate let body: @Sendable () -> Void

        fileprivate init(_ body: @escaping @Sendable () -> Void) {
            self.body = body
        }
    }

    private struct State {
        var heap = DeadlineHeap<Timer>()
        /// For when the alarm is set.
        var alarmTime = Nanoseconds.max
    }

    private let alarm: any Alarm
    private let state = Lock(State())

    /// - Parameter alarm: tells the time, and wakes the timers up.
    init(_ alarm: any Alarm) {
        self.alarm = alarm
    }

    /// Timers that run on a queue, by the system's clock.
    convenience init(queue: DispatchQueue) {
        self.init(SystemAlarm(queue: queue))
    }

    /// Has `body` run on the session's queue after a delay; at most a hundred years.
    @discardableResult
    func start(after delay: Duration, _ body: @escaping @Sendable () -> Void) -> Timer {
        let timer = Timer(body)
        let deadline = alarm.now + delay.nanoseconds
        state.withLock { state in
            state.heap.set(timer, to: deadline)
            setAlarm(&state)
        }
        return timer
    }

    /// Forgets a wait; does nothing when its closure has been called, or is being called.
    func cancel(_ timer: Timer) {
        state.withLock { $0.heap.remove(timer) }
    }

    /// How many waits there are.
    var count: Int { state.withLock { $0.heap.count } }

    private func setAlarm(_ state: inout State) {
        guard let earliest = state.heap.earliest, earliest < state.alarmTime else { return }
        state.alarmTime = earliest
        // Inside the lock, so that of two threads the one with the earlier time is last.
        alarm.set(to: earliest) { [weak self] in self?.fire() }
    }

    /// Runs what is due; on the session's queue.
    private func fire() {
        let now = alarm.now
        state.withLock { $0.alarmTime = .max }
        // One at a time, so that a closure can cancel the next one.
        while let timer = state.withLock({ $0.heap.popExpired(at: now) }) { timer.body() }
        state.withLock { setAlarm(&$0) }
    }
}

/// Tells the time, and calls when it has come.
protocol Alarm: Sendable {
    /// The time now, which only goes forward.
    var now: Nanoseconds { get }

    /// Calls `body` once at a point in time, on the session's queue; instead of what was set before.
    func set(to time: Nanoseconds, _ body: @escaping @Sendable () -> Void)
}

/// The system's clock.
private final class SystemAlarm: Alarm {
    private struct State {
        /// Created with the first alarm: most sessions need none.
        var source: (any DispatchSourceTimer)?
        var body: (@Sendable () -> Void)?
    }

    private let queue: DispatchQueue
    private let state: Lock<State>

    init(queue: DispatchQueue) {
        self.queue = queue
        state = Lock(State())
    }

    deinit {
        state.withLock { $0.source }?.cancel()
    }

    var now: Nanoseconds { DispatchTime.now().uptimeNanoseconds }

    func set(to time: Nanoseconds, _ body: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.body = body
            let source = state.source ?? makeSource()
            source.schedule(deadline: DispatchTime(uptimeNanoseconds: time), leeway: .milliseconds(1))
            if state.source == nil { source.activate() }
            state.source = source
        }
    }

    private func makeSource() -> any DispatchSourceTimer {
        let source = DispatchSource.makeTimerSource(queue: queue)
        source.setEventHandler { [weak self] in
            let body = self?.state.withLock { state in
                defer { state.body = nil }
                return state.body
            }
            body?()
        }
        return source
    }
}
