// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// When which multi handle of a loop has to be looked at, so that a turn costs the same however many pools there are.
///
/// For the event loop's thread only.
final class PoolSchedule {
    /// The most pools without transfers that the sessions of a loop keep their connections in; those unused for longest are closed first.
    static let mostIdle = 64

    /// The multi handles with a timer of libcurl's, or to be closed.
    @exclusivity(unchecked) var timers = DeadlineHeap<MultiHandle>()
    /// Those that may have completed members.
    @exclusivity(unchecked) var called: [MultiHandle] = []
    /// The pools without transfers of sessions that share the loop, by the time at which they are closed.
    @exclusivity(unchecked) var idle = DeadlineHeap<ConnectionPools>()
    /// Those for which a name may still be resolved.
    @exclusivity(unchecked) var lingering = DeadlineHeap<ConnectionPools>()

    /// The earliest time to call ``timerAction(at:)``.
    var timerDeadline: Nanoseconds? {
        guard idle.count > 0 || lingering.count > 0 else { return timers.earliest }
        return min(timers.earliest ?? .max, idleDeadline ?? .max, lingering.earliest ?? .max)
    }

    private var idleDeadline: Nanoseconds? { idle.count > Self.mostIdle ? 0 : idle.earliest }

    /// Runs expired libcurl timers, and closes multi handles that have been unused for long.
    func timerAction(at now: Nanoseconds) {
        // Each multi handle once: a timer that libcurl sets to now waits for the next turn.
        var left = timers.count
        while left > 0, let multi = timers.popExpired(at: now) {
            left -= 1
            multi.timerAction(at: now)
            multi.timerPassed(at: now)
        }
        while let deadline = idleDeadline, deadline <= now, let pools = idle.popExpired(at: .max) { pools.closeUnused() }
        while let pools = lingering.popExpired(at: now) { pools.closeUnused() }
    }

    /// Calls `body` with each completed member and its result.
    func takeCompleted(_ body: (MultiMember, CURLcode) -> Void) {
        while let multi = called.popLast() {
            multi.wasCalled = false
            while let (member, code) = multi.nextCompleted() { body(member, code) }
        }
    }
}
