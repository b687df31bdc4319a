// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

// The request's deadline, and that of its response's head.

extension RequestDriver {
    /// Starts the request's deadline: its own, or that of the calling task, whichever is earlier. On the thread of the call that creates the
    /// request. Returns `false` if it has passed.
    func beginDeadline() -> Bool {
        guard let deadline = Deadline.earliest(settings?.options.deadline, on: session.configuration.clock) else { return true }
        let remaining = deadline.remainingNanoseconds
        let timer = session.timers.start(after: remaining) { [self] in if state.withLock({ $0.deadline != nil }) { deadlinePassed() } }
        defer { session.configuration.clock?.waitBegan() }
        return state.withLock { state in
            state.deadline = RequestDeadline(deadline: deadline, timer: timer)
            guard remaining == 0 else { return true }
            state.deadlineFailure = DeadlineFailure(attempt: 1, phase: .preparing)
            _ = state.cancel()
            return false
        }
    }

    /// Ends the request's deadline, as it does not bound what follows: the messages of a WebSocket, after its handshake. Returns `false` if it
    /// has passed, which cancels the request.
    func endDeadline() -> Bool {
        let (deadline, isOver) = state.withLock { state in
            let (deadline, isOver) = (state.deadline, state.deadlineFailure != nil)
            if !isOver { state.deadline = nil }
            return (deadline, isOver)
        }
        if let deadline { session.timers.cancel(deadline.timer) }
        return !isOver
    }

    /// Begins a deadline for a part of the request, beside its own. Returns a closure that ends it, and returns `false` if it has passed, which
    /// cancels the request.
    func beginDeadline(after duration: Duration) -> @Sendable () -> Bool {
        let isOpen = Lock(true)
        let close: @Sendable () -> Bool = {
            isOpen.withLock { isOpen in
                defer { isOpen = false }
                return isOpen
            }
        }
        let stop = session.atEnd(of: .after(duration, on: session.configuration.clock)) { [self] in if close() { deadlinePassed() } }
        session.configuration.clock?.waitBegan()
        return {
            stop()
            return close()
        }
    }

    /// Cancels the request because a deadline has passed. On the session's queue.
    private func deadlinePassed() {
        session.assertOnQueue()
        let (request, cancellation) = state.withLock { state -> (Request?, RequestState.CancelEffects?) in
            guard state.lifecycle.stage != .finished, !state.lifecycle.isCancelled else { return (nil, nil) }
            let failure = DeadlineFailure(attempt: state.retryCount + 1, phase: state.phaseOutsideTransfer)
            state.deadlineFailure = failure
            return (state.request, state.cancel())
        }
        if let request, let cancellation { perform(cancellation, of: request) }
    }
}
