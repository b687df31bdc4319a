// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport
import Dispatch

/// The timers of a session, which call closures on its queue.
///
/// They share one timer of the system. Starting or cancelling one changes a heap under a lock, and the system's timer is set only to an
/// earlier deadline.
final class Timers: Sendable {
    /// A timer that was started. Thread-safe.
    typealias Timer = DeadlineTimer

    private struct State {
        var heap = TimerHeap()
        /// The deadline to which the alarm is set.
        var alarmTime = Nanoseconds.max
    }

    private let alarm: any Alarm
    private let state = Lock(State())

    /// - Parameter alarm: the clock, and the system's timer.
    init(_ alarm: any Alarm) {
        self.alarm = alarm
    }

    /// Creates timers on the system's clock, which call their closures on a queue.
    convenience init(queue: DispatchQueue) {
        self.init(SystemAlarm(queue: queue))
    }

    /// Creates timers on a clock, which call their closures on a queue; with `nil` on the system's.
    convenience init(queue: DispatchQueue, clock: (any SessionClock)?) {
        self.init(clock?.makeAlarm(on: queue) ?? SystemAlarm(queue: queue))
    }

    /// The current time of the clock.
    var now: Nanoseconds { alarm.now }

    /// Calls `body` on the session's queue after a delay of at most a hundred years.
    @discardableResult
    func start(after delay: Duration, _ body: @escaping @Sendable () -> Void) -> Timer {
        start(after: delay.nanoseconds, body)
    }

    /// The same, in nanoseconds.
    func start(after delay: Nanoseconds, _ body: @escaping @Sendable () -> Void) -> Timer {
        let timer = Timer(body)
        let deadline = alarm.now + delay
        state.withLock { state in
            state.heap.set(timer, to: deadline)
            setAlarm(&state)
        }
        return timer
    }

    /// Cancels a timer; does nothing if its closure has been called, or is being called.
    func cancel(_ timer: Timer) {
        state.withLock { $0.heap.remove(timer) }
    }

    /// The number of timers that are set.
    var count: Int { state.withLock { $0.heap.count } }

    private func setAlarm(_ state: inout State) {
        guard let earliest = state.heap.earliest, earliest < state.alarmTime else { return }
        state.alarmTime = earliest
        // Inside the lock, so that of two threads the one with the earlier deadline sets the alarm last.
        alarm.set(to: earliest) { [weak self] in self?.fire() }
    }

    /// Calls the closures that are due. On the session's queue.
    private func fire() {
        let now = alarm.now
        state.withLock { $0.alarmTime = .max }
        // One at a time, so that a closure can cancel the next one.
        while let timer = state.withLock({ $0.heap.popExpired(at: now) }) { timer.body() }
        state.withLock { setAlarm(&$0) }
    }
}

/// A clock with one alarm.
package protocol Alarm: AnyObject, Sendable {
    /// The current time of a monotonic clock.
    var now: Nanoseconds { get }

    /// Calls `body` once at a deadline, on the session's queue. Replaces the alarm that was set before.
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

    var now: Nanoseconds { uptimeOfDispatch() }

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
