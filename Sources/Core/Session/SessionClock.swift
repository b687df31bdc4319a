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
    func began(_ session: Session)

    /// A request of a session waits for a time from now on, or has got a deadline.
    func waitBegan()
}

/// The clock of the deadlines that a task creates.
package enum DeadlineClock {
    /// `nil` for the system's clock.
    @TaskLocal package static var current: (any SessionClock)?
}

/// What the requests of a session that are in flight are waiting for. Suspended ones, and those that were not started, are not counted.
package struct RequestWaits: Sendable, Hashable {
    /// Those that are being worked on, on some thread or in users' code.
    package var busy = 0
    /// Those that wait for the delay before a retry.
    package var delayed = 0
    /// Those whose transfer is in flight.
    package var transferring = 0

    package init() {}
}

extension Session {
    /// What the requests in flight are waiting for. A snapshot: each request is looked at by itself.
    package var requestWaits: RequestWaits {
        var waits = RequestWaits()
        for request in delegate?.requestsInFlight ?? [] { request.driver.count(in: &waits) }
        return waits
    }

    /// Calls a closure on the session's queue, after what is queued there now.
    package func afterQueuedWork(_ body: @escaping @Sendable () -> Void) {
        queue.async(execute: body)
    }
}

extension RequestDriver {
    fileprivate func count(in waits: inout RequestWaits) {
        state.withLock { state in
            switch state.lifecycle.stage {
            case .finished: break
            case .running:
                guard let task = state.task else { return waits.busy += 1 }
                switch task.state {
                case .running where !state.pendingDecision.isOpen: waits.transferring += 1
                case .suspended: break
                case .running, .canceling, .completed: waits.busy += 1
                }
            case .betweenAttempts where state.retryTimer != nil && state.waiting != nil: waits.delayed += 1
            case .completed, .concluding, .betweenAttempts: waits.busy += 1
            }
        }
    }
}
