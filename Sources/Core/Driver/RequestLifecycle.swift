// SPDX-License-Identifier: Apache-2.0

/// The stages of a request, from its first attempt to its handlers: events in, actions out.
///
/// A request does not finish with its transfer but with its first handler or `await`, so that everything chained to it takes part, however
/// fast the server was. A request without either finishes by itself a moment later.
struct RequestLifecycle {
    enum Stage: Equatable {
        /// A task is in flight, or not started.
        case running
        /// The task has completed; the request has no handler.
        case completed
        /// The response is being validated and committed.
        case concluding
        /// No task exists: the adapter, the retrier or the delay before a retry is awaited.
        case betweenAttempts
        /// The handlers are released.
        case finished
    }

    enum Action: Equatable {
        case none
        /// Settle the body, validate, commit, ask the retrier, finish.
        case conclude
        /// Conclude in a moment unless a handler is attached.
        case waitForHandler
    }

    /// The effect of a cancellation.
    enum Cancellation: Equatable {
        /// The request has finished, or will without another attempt.
        case none
        /// The task has to be cancelled.
        case cancelTask
        /// No task is running: the wait has to be ended, and the request with it.
        case endWait
        /// An asynchronous validation is running, if any: its wait has to be ended.
        case endValidation
    }

    private(set) var stage = Stage.running
    private(set) var hasHandler = false
    /// Whether the user has cancelled the request, which is then not retried.
    private(set) var isCancelled = false
    /// Whether the request has finished without a handler, and was reopened by a late validation.
    private(set) var isReopened = false
    /// Whether the attempt has been concluded before the request was reopened: its end is not reported again.
    private(set) var isAttemptReported = false

    /// The task has completed.
    mutating func taskCompleted() -> Action {
        guard stage == .running else { return .none }
        stage = hasHandler ? .concluding : .completed
        return hasHandler ? .conclude : .waitForHandler
    }

    /// A handler is attached.
    ///
    /// - Parameter isUnvalidated: whether validators were added after the request had finished without a handler: they still count.
    mutating func handlerAttached(isUnvalidated: Bool) -> Action {
        let isFirst = !hasHandler
        hasHandler = true
        if stage == .finished, isFirst, isUnvalidated {
            isReopened = true
        } else if stage != .completed {
            return .none
        }
        stage = .concluding
        return .conclude
    }

    /// The wait for a handler has timed out.
    mutating func waitTimedOut() -> Action {
        guard stage == .completed else { return .none }
        stage = .concluding
        return .conclude
    }

    /// The next attempt has to wait; returns `false` if none is wanted any more. The first attempt waits for its adapter only.
    mutating func waitForAttempt() -> Bool {
        guard !isCancelled, stage != .completed, stage != .finished else { return false }
        stage = .betweenAttempts
        return true
    }

    /// The task of an attempt takes the place of the last one; returns `false` if the request was cancelled while it was made.
    mutating func attemptBegan() -> Bool {
        guard !isCancelled else { return false }
        if stage == .betweenAttempts { isAttemptReported = false }
        stage = .running
        return true
    }

    /// The request could not be adapted for its first attempt after a wait. What follows is the same as for a task that failed.
    mutating func firstAttemptFailed() {
        if stage == .betweenAttempts { stage = .running }
    }

    /// The user cancels the request.
    ///
    /// - Parameter isWaiting: whether a step waits. Between attempts, a step that is running checks for the cancellation at its end.
    mutating func cancel(isWaiting: Bool) -> Cancellation {
        guard stage != .finished else { return .none }
        isCancelled = true
        if stage == .running { return .cancelTask }
        if stage == .concluding { return .endValidation }
        return stage == .betweenAttempts && isWaiting ? .endWait : .none
    }

    /// The response has to be validated again for a validator that was added late: its end has been reported.
    mutating func concludeAgain() {
        isAttemptReported = true
    }

    /// The handlers are released; `false` if they were before.
    mutating func finish() -> Bool {
        guard stage != .finished else { return false }
        stage = .finished
        isAttemptReported = true
        return true
    }
}
