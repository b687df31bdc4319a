// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewLoopback
import CurlewTransport
import Dispatch

/// A clock whose time passes without any real time, for the policies of sessions and for code that takes a `Clock`.
///
/// The delays before retries, the deadlines of requests, grace periods of a shutdown and the delays of a ``MockTransport`` on this clock
/// count on it. Timeouts of real transfers don't: libcurl and the event loop measure them in real time.
///
/// ```swift
/// let clock = VirtualClock(.automatic)
/// let manager = SessionManager(mock: MockTransport(.status(503), .json(user), clock: clock), interceptor: RetryPolicy())
/// let user = try await manager.request(url).validate().serializingDecodable(User.self).value  // no real time passes in the delay
/// ```
///
/// It is a `Clock` as well: give it to the configurations of event streams, WebSockets and services, and to your own code. What a task does
/// after a sleep on it, other than sending requests, is invisible to it.
///
/// Thread-safe. Retained by the configurations and transports that have it.
public final class VirtualClock: Clock, Sendable {
    /// How time passes.
    public enum Mode: Sendable, Hashable {
        /// Only by ``VirtualClock/advance(by:)``.
        case manual
        /// By itself: as soon as every request in flight waits for time, it jumps to the end of the wait that ends first.
        ///
        /// Requests wait for time in a delay before a retry, or in a delayed or stalled exchange of a ``MockTransport``; a sleep on the
        /// clock waits as well. One that is at another transport, or whose body is not read by the program, holds time up. The results of
        /// requests that run one after another are deterministic; of several that start at the same time, the later may start after a jump.
        case automatic
    }

    /// A point in time of a clock.
    public struct Instant: InstantProtocol, Hashable, Sendable {
        /// The time since the clock's start.
        public let offset: Duration

        /// Returns the instant after a duration.
        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }

        /// Returns the duration until another instant; negative if that is earlier.
        public func duration(to other: Instant) -> Duration { other.offset - offset }

        /// Whether `lhs` is earlier than `rhs`.
        public static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.offset < rhs.offset }
    }

    /// How long, in real time, ``advance(by:)`` waits for requests that are being worked on, such as those in a retrier that doesn't answer.
    private static let patience = Duration.seconds(10)
    /// The times between two looks at requests that are being worked on, in microseconds: each is twice the one before.
    private static let intervals = (shortest: 50, longest: 10_000)

    /// How time passes.
    public let mode: Mode
    private let state = Lock(VirtualTime())
    private let queue = DispatchQueue(label: "curlew.virtual-clock")

    /// Creates a clock at 0.
    ///
    /// - Parameter mode: how time passes; by default only when it is advanced.
    public init(_ mode: Mode = .manual) {
        self.mode = mode
    }

    /// The current time.
    public var now: Instant { Instant(offset: elapsed) }

    /// The time since the clock's start.
    public var elapsed: Duration { .nanoseconds(Int64(clamping: state.withLock { $0.now })) }

    /// A nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// The number of waits on the clock: delays and deadlines of sessions (one each), delays of transports, sleeps.
    public var waitCount: Int { state.withLock { $0.waits.count } }

    /// How long the sleeps on the clock were to take, in the order in which they began.
    public var sleeps: [Duration] { state.withLock { $0.sleeps } }

    // MARK: Passing time

    /// Lets time pass, from one end of a wait to the next, and returns when it has.
    ///
    /// Before each step it waits until no request in flight is being worked on: every one waits for time or for a network, is suspended, or
    /// its body is not being read. So a retry whose delay ends in the meantime is sent, and the delay after its failure counts. Requests
    /// that were not created yet can't be waited for: ``MockTransport/waitForRequests(_:timeout:)`` waits for those. At most 10 real
    /// seconds are spent on a request that is being worked on.
    ///
    /// Calls by several tasks each pass their time from the moment of the call.
    public func advance(by duration: Duration) async {
        await withTrackedContinuation { continuation in
            state.withLock { $0.advance(by: duration.nanoseconds, continuation) }
            look()
        }
    }

    /// Waits until something waits until exactly that time, and lets time pass until then: for waits that begin in other tasks, such as those
    /// of a WebSocket or of your own code. ``advance(by:)`` documents how time passes.
    ///
    /// - Parameter offset: the time since the clock's start.
    /// - Throws: `CancellationError` if the task is cancelled before.
    public func advance(toWaitAt offset: Duration) async throws {
        let time = offset.nanoseconds
        while !state.withLock({ state in state.now >= time || state.waits.values.contains { $0.time == time } }) {
            try await Task.sleep(for: .milliseconds(1))
        }
        await advance(by: max(offset - elapsed, .zero))
    }

    /// Calls `operation` with this clock as the one of the deadlines that are created inside: by `withDeadline`, `Deadline.after`, and in
    /// child tasks. Options with a deadline count on the clock of their session, and need no call of this.
    public func run<Value>(
        isolation: isolated (any Actor)? = #isolation, _ operation: () async throws -> Value
    ) async rethrows -> Value {
        try await DeadlineClock.$current.withValue(self, operation: operation, isolation: isolation)
    }

    /// Suspends the task until the time has passed on this clock.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, then at once.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let number = state.withLock { $0.makeNumber() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let sleep = Sleep(continuation)
                let isCancelled = state.withLock { state in
                    guard state.sleepBegins(number) else { return true }
                    let time = deadline.offset.nanoseconds
                    state.sleeps.append(.nanoseconds(Int64(clamping: time) - Int64(clamping: state.now)))
                    // A time that has passed is no wait.
                    guard time > state.now else {
                        queue.async { sleep.end(nil) }
                        return false
                    }
                    state.add(VirtualWait(time: time, number: number, queue: queue, sleep: sleep) { sleep.end(nil) })
                    return false
                }
                if isCancelled { sleep.end(CancellationError()) } else { look() }
            }
        } onCancel: {
            state.withLock { $0.cancelSleep(number) }?.end(CancellationError())
        }
    }

    // MARK: For transports

    /// Calls `body` on a queue after a delay. Returns a number by which the wait is cancelled.
    func wait(_ delay: Duration, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) -> Int {
        let number = state.withLock { state in
            let number = state.makeNumber()
            state.add(VirtualWait(time: state.now + delay.nanoseconds, number: number, queue: queue, body: body))
            return number
        }
        look()
        return number
    }

    /// Ends a wait without calling its closure.
    func cancel(_ number: Int) {
        state.withLock { state in
            state.remove(number)
            state.changes += 1
        }
        look()
    }

    /// A transport's exchange has begun, ended, or waits.
    func changed() {
        state.withLock { $0.changes += 1 }
        look()
    }

    func began(_ transport: ScriptedTransport) {
        state.withLock { $0.transports.append(WeakTransport(transport: transport)) }
    }

    // MARK: Looking at the requests

    /// Looks at the requests, soon, if time may pass.
    private func look() {
        guard state.withLock({ $0.beginLooking(isAutomatic: mode == .automatic) }) else { return }
        queue.async { self.flush() }
    }

    /// Lets the sessions and transports perform what is queued, because that may start something, and then decides.
    private func flush() {
        let (changes, sessions, transports) = state.withLock { ($0.changes, $0.livingSessions, $0.livingTransports) }
        let group = DispatchGroup()
        for session in sessions {
            group.enter()
            session.afterQueuedWork { group.leave() }
        }
        for transport in transports {
            group.enter()
            transport.afterQueuedWork { group.leave() }
        }
        group.notify(queue: queue) { self.decide(sessions, transports, changes) }
    }

    private func decide(_ sessions: [any ClockedSession], _ transports: [ScriptedTransport], _ changes: Int) {
        // Each time before the exchanges: a request that is created in the meantime changes the number of changes.
        let inFlight = sessions.map(\.exchangingRequests)
        var exchanges = transports.reduce(into: ExchangeWaits()) { $0 += $1.waits }
        var requests = RequestWaits()
        requests.transferring = inFlight.reduce(0) { $0 + ($1 ?? 0) }
        // If there are as many requests as exchanges that wait for time, none has to be looked at.
        if inFlight.contains(nil) || exchanges.busy > 0 || requests.transferring != exchanges.timed {
            requests = sessions.reduce(into: RequestWaits()) { $0 += $1.requestWaits }
            exchanges = transports.reduce(into: ExchangeWaits()) { $0 += $1.waits }
        }
        let isAutomatic = mode == .automatic
        let step = state.withLock { state in
            state.step(requests, exchanges, unchangedSince: changes, isAutomatic: isAutomatic, patience: Self.patience)
        }
        switch step {
        case .stop: break
        case .again(let tries):
            let interval = min(Self.intervals.shortest << min(tries - 1, 16), Self.intervals.longest)
            queue.asyncAfter(deadline: .now() + .microseconds(interval)) { self.flush() }
        case .end(let wait):
            wait.queue.async {
                wait.body()
                self.state.withLock { $0.waitEnded() }
                self.queue.async { self.flush() }
            }
        case .arrived(let continuation):
            continuation.resume()
            queue.async { self.flush() }
        }
    }
}

// MARK: - SessionClock

extension VirtualClock: SessionClock {
    /// The time since the clock's start, in nanoseconds.
    package var time: Nanoseconds { state.withLock { $0.now } }

    package func makeAlarm(on queue: DispatchQueue) -> any Alarm { VirtualAlarm(clock: self, queue: queue) }

    package func began(_ session: any ClockedSession) {
        state.withLock { $0.sessions.append(WeakSession(session: session)) }
    }

    package func waitBegan() { changed() }

    fileprivate func set(_ alarm: Int?, to time: Nanoseconds, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) -> Int {
        let number = state.withLock { state in
            if let alarm { state.remove(alarm) }
            let number = state.makeNumber()
            guard time > state.now else {
                queue.async(execute: body)
                return number
            }
            state.add(VirtualWait(time: time, number: number, queue: queue, body: body))
            return number
        }
        look()
        return number
    }
}

/// The alarm of a session's timers.
private final class VirtualAlarm: Alarm {
    private let clock: VirtualClock
    private let queue: DispatchQueue
    private let number = Lock<Int?>(nil)

    init(clock: VirtualClock, queue: DispatchQueue) {
        self.clock = clock
        self.queue = queue
    }

    deinit {
        if let number = number.withLock({ $0 }) { clock.cancel(number) }
    }

    var now: Nanoseconds { clock.time }

    func set(to time: Nanoseconds, _ body: @escaping @Sendable () -> Void) {
        number.withLock { $0 = clock.set($0, to: time, on: queue, body) }
    }
}

/// A task that sleeps, resumed once.
final class Sleep: Sendable {
    private let continuation: Lock<CheckedContinuation<Void, any Error>?>

    init(_ continuation: CheckedContinuation<Void, any Error>) {
        self.continuation = Lock(continuation)
    }

    func end(_ error: (any Error)?) {
        let continuation = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        if let error { continuation?.resume(throwing: error) } else { continuation?.resume() }
    }
}
