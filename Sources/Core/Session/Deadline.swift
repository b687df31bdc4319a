// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// A point in time by which requests have to finish, on a monotonic clock that does not advance while the machine sleeps.
///
/// ``withDeadline(_:isolation:_:)-(Duration,_,_)`` bounds all requests that are created inside, ``RequestOptions/deadline`` a single one.
///
/// A request has finished once its response is received and validated. What a serializer makes of it then is not interrupted, neither by a
/// deadline nor by a cancellation, as no decoder can be; ``SessionConfiguration/maximumBodySize`` bounds the work.
public struct Deadline: Sendable, ComparedByKey, Comparable {
    /// The deadline of the task that reads it; `nil` if there is none. Child tasks and unstructured tasks inherit it.
    @TaskLocal public static var current: Deadline?

    let time: Nanoseconds
    /// The clock; `nil` for the system's monotonic one.
    private let clock: (any SessionClock)?

    private init(time: Nanoseconds, clock: (any SessionClock)?) {
        self.time = time
        self.clock = clock
    }

    /// The point in time after a duration from now; for a duration of 0 or less, now. More than a hundred years count as that.
    public static func after(_ duration: Duration) -> Deadline {
        after(duration, on: DeadlineClock.current)
    }

    /// The point in time after a duration from now on a clock; `nil` for the system's.
    static func after(_ duration: Duration, on clock: (any SessionClock)?) -> Deadline {
        Deadline(time: (clock?.time ?? MonotonicTime.now()) + duration.nanoseconds, clock: clock)
    }

    private var now: Nanoseconds { clock?.time ?? MonotonicTime.now() }

    /// The time that remains; 0 once it has passed.
    public var remaining: Duration { .nanoseconds(Int64(clamping: remainingNanoseconds)) }

    var remainingNanoseconds: Nanoseconds {
        let now = now
        return time > now ? time - now : 0
    }

    /// The seconds that remain, with three decimal places, for a header field (``RequestOptions/deadlineHeader``).
    package var headerValue: String {
        let milliseconds = remaining.nanoseconds / 1_000_000
        let fraction = String(milliseconds % 1000 + 1000).dropFirst()
        return "\(milliseconds / 1000).\(fraction)"
    }

    /// Whether it has passed.
    public var hasPassed: Bool { time <= now }

    /// Whether `lhs` is earlier than `rhs`.
    public static func < (lhs: Deadline, rhs: Deadline) -> Bool {
        lhs.clock === rhs.clock ? lhs.time < rhs.time : lhs.remaining < rhs.remaining
    }

    package var comparisonKey: Key { Key(time: time, clock: clock.map { ObjectIdentifier($0) }) }

    /// A point in time on a clock.
    package struct Key: Hashable {
        let time: Nanoseconds
        let clock: ObjectIdentifier?
    }
}

/// Calls `operation` with a deadline for all requests that it creates, in child tasks too: the time from now until then, or until the end of
/// an enclosing deadline, whichever is earlier.
///
/// ```swift
/// let page = try await withDeadline(.seconds(2)) {
///     async let user = manager.request(userURL).serializingDecodable(User.self).value
///     async let orders = manager.request(ordersURL).serializingDecodable([Order].self).value
///     return try await Page(user: user, orders: orders)
/// }
/// ```
///
/// A request that has not finished by then fails with ``TransferFailure/Kind/deadline``. Other work of `operation` is not cancelled. A
/// WebSocket counts only until its handshake is complete.
///
/// - Parameters:
///   - duration: the time from now; 0 or less has passed already.
///   - isolation: the caller's actor.
///   - operation: creates the requests, and usually awaits them.
/// - Throws: what `operation` throws.
public func withDeadline<Value>(
    _ duration: Duration, isolation: isolated (any Actor)? = #isolation, _ operation: () async throws -> Value
) async rethrows -> Value {
    try await withDeadline(.after(duration), isolation: isolation, operation)
}

/// Calls `operation` with a deadline for all requests that it creates: the given one, such as another service's, or that of the enclosing
/// task, whichever is earlier. As ``withDeadline(_:isolation:_:)-(Duration,_,_)``.
public func withDeadline<Value>(
    _ deadline: Deadline, isolation: isolated (any Actor)? = #isolation, _ operation: () async throws -> Value
) async rethrows -> Value {
    try await Deadline.$current.withValue(min(deadline, Deadline.current ?? deadline), operation: operation, isolation: isolation)
}

extension Deadline {
    /// The earlier one of the calling task's deadline and the end of a duration from now; `nil` without both.
    package static func earliest(_ duration: Duration?) -> Deadline? {
        earliest(duration, on: DeadlineClock.current)
    }

    /// The same, with a duration from now on a clock; `nil` for the system's.
    static func earliest(_ duration: Duration?, on clock: (any SessionClock)?) -> Deadline? {
        guard let own = duration.map({ Deadline.after($0, on: clock) }) else { return current }
        return current.map { min($0, own) } ?? own
    }

    /// Calls `body` with a deadline that was captured at the user's call, for the requests that it creates later, on another thread; `nil` for
    /// that of the calling task.
    package static func with<Value>(_ deadline: Deadline?, _ body: () throws -> Value) rethrows -> Value {
        guard let deadline else { return try body() }
        return try $current.withValue(deadline, operation: body)
    }

    /// The error of a request whose deadline has passed while it had no transfer.
    package static func failure(of url: String, attempt: UInt, during phase: TransferFailure.Phase) -> CurlewError {
        DeadlineFailure(attempt: attempt, phase: phase).transferFailure(url: url, nil)
    }

    /// Returns the same failure with another number of the attempt, which its message has.
    package static func failure(_ failure: TransferFailure, attempt: UInt) -> CurlewError {
        .transferFailed(
            TransferFailure(
                kind: failure.kind, url: failure.url, phase: failure.phase, message: DeadlineFailure.message(attempt),
                requestWasSent: failure.requestWasSent, bytesReceived: failure.bytesReceived))
    }
}

extension Session {
    /// Calls `body` on the session's queue once the deadline has passed, unless the returned closure is called before.
    package func atEnd(of deadline: Deadline, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        let timer = timers.start(after: deadline.remaining, body)
        return { [timers] in timers.cancel(timer) }
    }
}

/// The deadline of a request.
struct RequestDeadline {
    let deadline: Deadline
    let timer: Timers.Timer
}

/// What was going on when a request's deadline passed.
struct DeadlineFailure: Error {
    /// The number of the attempt, from 1.
    let attempt: UInt
    /// What the request was waiting for; `nil` during a transfer, whose metrics have the phase.
    let phase: TransferFailure.Phase?

    static func message(_ attempt: UInt) -> String { "The request's deadline has passed during attempt \(attempt)" }

    func transferFailure(url: String, _ metrics: TransferMetrics?) -> CurlewError {
        let phase = phase ?? metrics?.lastPhase ?? .queued
        return .transferFailed(
            TransferFailure(
                kind: .deadline, url: url, phase: phase, message: Self.message(attempt),
                requestWasSent: phase >= .sending, bytesReceived: metrics?.responseBodyBytes ?? 0))
    }
}

extension TransferCompletion {
    /// Returns the completion of a request that was cancelled because its deadline has passed, with that as its error.
    func explained(by failure: DeadlineFailure?, _ request: Request) -> TransferCompletion {
        guard let failure, case CurlewError.cancelled? = error else { return self }
        let url = request.task?.currentTransfer?.url ?? request.originalURL ?? ""
        return TransferCompletion(error: failure.transferFailure(url: url, metrics), metrics: metrics)
    }
}

extension TransferMetrics {
    /// The phase that the transfer had reached.
    fileprivate var lastPhase: TransferFailure.Phase {
        if responseBodyBytes > 0 { return .receivingBody }
        if responseStart != nil { return .receivingHead }
        if requestStart != nil { return .waiting }
        if connectEnd != nil { return .securing }
        if nameLookupEnd != nil { return .connecting }
        return queueDuration == nil ? .queued : .resolving
    }
}
