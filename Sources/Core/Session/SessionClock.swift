// SPDX-License-Identifier: Apache-2.0
import CurlewTransport
import Dispatch

/// A clock that takes the place of the system's in a session, as in tests: the delays before retries, deadlines and grace periods count on
/// it. Timeouts of transfers, which libcurl and the event loop measure, don't.
///
/// A seam for `CurlewTesting`; sessions without one look at no more than an empty reference, and only where they wait.
package protocol SessionClock: AnyObject, Sendable {
    /// The current time, in nanoseconds since an arbitrary start.
    var time: Nanoseconds { get }

    /// Returns a new alarm, which calls its closures on a queue.
    func makeAlarm(on queue: DispatchQueue) -> any Alarm

    /// A session on this clock was created. The clock must not retain it.
    func began(_ session: any ClockedSession)

    /// A request of a session waits for a time from now on, or has got a deadline.
    func waitBegan()
}

/// What a clock sees of a session.
package protocol ClockedSession: AnyObject, Sendable {
    /// What the requests in flight are waiting for. A snapshot: each request is looked at by itself.
    var requestWaits: RequestWaits { get }

    /// The number of requests in flight if none has more than one exchange at a time, and there are no exchanges without a request; `nil` if
    /// that may be. Those that ``requestWaits`` does not count are included.
    var exchangingRequests: Int? { get }

    /// Calls a closure on the session's queue, after what is queued there now.
    func afterQueuedWork(_ body: @escaping @Sendable () -> Void)
}

/// The clock of the deadlines that a task creates.
package enum DeadlineClock {
    /// `nil` for the system's clock.
    @TaskLocal package static var current: (any SessionClock)?
}

/// What the requests of a session that are in flight are waiting for. Suspended ones, and those that were not started, are not counted.
package struct RequestWaits: Sendable, Hashable {
    /// The requests that are being worked on, on some thread or in users' code.
    package var busy = 0
    /// The requests that wait for the delay before a retry.
    package var delayed = 0
    /// The requests whose transfer is in flight.
    package var transferring = 0

    package init() {}

    package static func += (lhs: inout RequestWaits, rhs: RequestWaits) {
        lhs.busy += rhs.busy
        lhs.delayed += rhs.delayed
        lhs.transferring += rhs.transferring
    }
}
