// SPDX-License-Identifier: Apache-2.0

/// Where a request stands between its task's end and its own: events in, actions out.
///
/// A request does not end with its transfer but with its first handler or `await`, so that whatever is chained to it takes part, however
/// fast the server answered. One that nobody listens to ends by itself a moment later.
struct RequestLifecycle {
    enum Stage: Equatable {
        /// A task is on its way, or not started.
        case running
        /// The task is over; nobody listens yet.
        case ended
        /// Validation runs.
        case concluding
        /// The retrier is asked, or a retry is due.
        case retrying
        /// The handlers are released.
        case finished
    }

    enum Action: Equatable {
        case none
        /// Validate, ask the retrier, finish.
        case conclude
        /// Conclude in a moment unless a handler comes.
        case waitForHandler
    }

    /// What a cancellation comes to.
    enum Cancellation: Equatable {
        /// The request is over, or will be without another attempt.
        case none
        /// The task is to be cancelled.
        case cancelTask
        /// No task runs: the request is to be ended.
        case end
    }

    private(set) var stage = Stage.running
    private(set) var hasHandler = false
    /// Counts attempts, so that a late answer of a retrier is known to be late.
    private(set) var attempt = 0
    /// Whether the user has cancelled the request, which then is not tried again.
    private(set) var isCancelled = false
    private var hasAnswer = false
    /// Whether the next attempt is being prepared; a cancellation takes effect after that.
    private var isBeginning = false

    /// The task is over.
    mutating func taskEnded() -> Action {
        guard stage == .running else { return .none }
        stage = hasHandler ? .concluding : .ended
        return hasHandler ? .conclude : .waitForHandler
    }

    /// Somebody wants the result.
    ///
    /// - Parameter isUnvalidated: whether validations came after the request had ended for want of a handler: they still count.
    mutating func handlerAttached(isUnvalidated: Bool) -> Action {
        let isFirst = !hasHandler
        hasHandler = true
        guard stage == .ended || (stage == .finished && isFirst && isUnvalidated) else { return .none }
        stage = .concluding
        return .conclude
    }

    /// Nobody came.
    mutating func waitEnded() -> Action {
        guard stage == .ended else { return .none }
        stage = .concluding
        return .conclude
    }

    /// The retrier is going to be asked; the number by which its answer is known to be in time, `nil` when nobody wants a retry any more.
    mutating func beginRetrying() -> Int? {
        guard stage == .concluding, !isCancelled else { return nil }
        stage = .retrying
        attempt += 1
        hasAnswer = false
        return attempt
    }

    /// The retrier has answered; `false` when it came too late, or had answered before.
    mutating func retrierAnswered(_ attempt: Int) -> Bool {
        guard isRetrying(attempt), !hasAnswer else { return false }
        hasAnswer = true
        return true
    }

    /// Whether the attempt is still wanted.
    func isRetrying(_ attempt: Int) -> Bool {
        stage == .retrying && self.attempt == attempt
    }

    /// The state of the last attempt is about to be reset; returns `false` if the request was cancelled or finished in the meantime.
    mutating func beginAttempt(_ attempt: Int) -> Bool {
        guard isRetrying(attempt), !isCancelled else { return false }
        isBeginning = true
        return true
    }

    /// A new task takes the old one's place, after ``beginAttempt(_:)``; `false` when the user wants no more, and the request is to be
    /// ended.
    mutating func retried(_ attempt: Int) -> Bool {
        isBeginning = false
        guard isRetrying(attempt), !isCancelled else { return false }
        stage = .running
        return true
    }

    /// Nothing will be tried again; `false` unless a retry was considered and has not begun.
    mutating func retryingEnded() -> Bool {
        guard stage == .retrying, !isBeginning else { return false }
        stage = .concluding
        return true
    }

    /// The user wants no more.
    mutating func cancel() -> Cancellation {
        guard stage != .finished else { return .none }
        isCancelled = true
        if stage == .running { return .cancelTask }
        return retryingEnded() ? .end : .none
    }

    /// The request is over; `false` when it was before.
    mutating func finish() -> Bool {
        guard stage != .finished else { return false }
        stage = .finished
        return true
    }
}
