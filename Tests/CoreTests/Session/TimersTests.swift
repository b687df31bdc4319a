// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

/// A clock that the test sets.
private final class HeldAlarm: Alarm {
    private struct State {
        var now: Nanoseconds = 1_000_000_000
        var time: Nanoseconds?
        var body: (@Sendable () -> Void)?
        var settings = 0
    }

    private let state = Lock(State())

    var now: Nanoseconds { state.withLock { $0.now } }
    /// How often it was set.
    var settings: Int { state.withLock { $0.settings } }

    func set(to time: Nanoseconds, _ body: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.time = time
            state.body = body
            state.settings += 1
        }
    }

    /// Lets time go by, and calls for all that has come by then.
    func advance(by duration: Duration) {
        let end = now + duration.nanoseconds
        while let body = state.withLock({ state -> (@Sendable () -> Void)? in
            guard let time = state.time, time <= end else { return nil }
            state.now = max(state.now, time)
            state.time = nil
            return state.body
        }) { body() }
        state.withLock { $0.now = end }
    }
}

@Suite(.timeLimit(.minutes(1))) struct TimersTests {
    private let alarm = HeldAlarm()
    private let fired = Inbox<Int>()

    @Test("closures run in the order of their times, whatever the order in which they were started")
    func order() {
        let timers = Timers(alarm)
        for delay in [3, 1, 2, 1] { timers.start(after: .seconds(delay)) { [fired] in fired.put(delay) } }
        alarm.advance(by: .milliseconds(999))
        #expect(fired.all.isEmpty)
        alarm.advance(by: .milliseconds(1))
        #expect(fired.all == [1, 1])
        alarm.advance(by: .seconds(5))
        #expect(fired.all == [1, 1, 2, 3])
        #expect(timers.count == 0)
    }

    @Test("the alarm is set again only for an earlier time")
    func settings() {
        let timers = Timers(alarm)
        for delay in [5, 6, 7, 4, 8] { timers.start(after: .seconds(delay)) {} }
        #expect(alarm.settings == 2)
        alarm.advance(by: .seconds(10))
        #expect(timers.count == 0)
    }

    @Test("a cancelled wait does not fire, also one that another cancels at the same time")
    func cancelled() {
        let timers = Timers(alarm)
        let second = Lock<Timers.Timer?>(nil)
        let third = timers.start(after: .seconds(2)) { [fired] in fired.put(3) }
        timers.start(after: .seconds(1)) { [fired] in
            fired.put(1)
            if let second = second.withLock({ $0 }) { timers.cancel(second) }
        }
        second.withLock { $0 = timers.start(after: .seconds(1)) { [fired] in fired.put(2) } }
        timers.cancel(third)
        timers.cancel(third)
        alarm.advance(by: .seconds(3))
        #expect(fired.all == [1])
        #expect(timers.count == 0)
    }

    @Test("a wait that is started by another one fires, too")
    func nested() {
        let timers = Timers(alarm)
        timers.start(after: .seconds(1)) { [fired] in
            timers.start(after: .zero) { fired.put(1) }
            timers.start(after: .seconds(1)) { fired.put(2) }
        }
        alarm.advance(by: .seconds(2))
        #expect(fired.all == [1, 2])
    }

    @Test("waits for longer than there are clocks for are waits")
    func longest() {
        let timers = Timers(alarm)
        timers.start(after: .seconds(Int64.max)) { [fired] in fired.put(0) }
        timers.start(after: .seconds(-1)) { [fired] in fired.put(1) }
        alarm.advance(by: .seconds(1))
        #expect(fired.all == [1])
        #expect(timers.count == 1)
    }

    @Test("the system's clock calls on the queue, and the timers hold nothing when they are gone")
    func system() async {
        let queue = DispatchQueue(label: "test")
        let key = DispatchSpecificKey<Bool>()
        queue.setSpecific(key: key, value: true)
        var timers: Timers? = Timers(queue: queue)
        let isOnQueue = Inbox<Bool>()
        timers?.start(after: .milliseconds(20)) { isOnQueue.put(DispatchQueue.getSpecific(key: key) == true) }
        timers?.start(after: .milliseconds(1)) { isOnQueue.put(DispatchQueue.getSpecific(key: key) == true) }
        #expect(await isOnQueue.first(2) == [true, true])
        var object: Inbox<Void>? = Inbox()
        let box = object.map { WeakBox($0) }
        timers?.start(after: .seconds(3600)) { [object] in object?.put(()) }
        object = nil
        timers = nil
        // The queue may hold the timers until it has left them.
        #expect(await eventually { box?.isEmpty == true })
    }

    @Test("a cancelled request leaves no wait for its retry behind")
    func retry() async {
        let manager = SessionManager(mock: .answering(inTurn: [.failure()]))
        // A request that ended before its handler was there would wait for that, too.
        manager.startRequestsImmediately = false
        let answered = Inbox<Void>()
        manager.retrier = Retrying { _, _, completion in
            completion(true, 3600)
            answered.put(())
        }
        let request = manager.request("http://mock/").response { _ in }
        request.resume()
        _ = await answered[0]
        #expect(manager.session.timers.count == 1)
        request.cancel()
        #expect(isCancelled(await request.serializingData().response.error))
        #expect(manager.session.timers.count == 0)
    }
}
