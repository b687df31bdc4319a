// SPDX-License-Identifier: Apache-2.0

/// The state of an operation.
public enum OperationState: Int, Sendable, Hashable, Codable {
    /// Stopped until resumed or cancelled: neither ready, executing nor finished, so that the operation stays in its queue.
    case paused = -1
    /// May be started.
    case ready = 1
    /// The connection is in flight.
    case executing = 2
    /// Finished: succeeded, failed or cancelled.
    case finished = 3
}

/// Decides which events have an effect in which state; the others change nothing.
struct OperationLifecycle: Sendable {
    /// What the owner has to do after an event.
    enum Action: Equatable {
        case none
        /// Start the connection.
        case begin
        /// Cancel the connection, keeping what was received.
        case stop
        /// Finish the operation as cancelled.
        case finishCancelled
    }

    private(set) var state = OperationState.ready
    /// Whether `start()` was called: a queue calls it once, and not again after a pause.
    private(set) var wasStarted = false
    private(set) var isCancelled = false
    /// Whether finishing has begun; further events have no effect.
    private(set) var isFinishing = false

    init(state: OperationState = .ready) {
        self.state = state
        isFinishing = state == .finished
    }

    /// Starts the operation, from a queue or the user.
    mutating func start() -> Action {
        guard !isFinishing, state != .executing else { return .none }
        wasStarted = true
        if isCancelled { return finishCancelled() }
        // Paused before its start: resuming starts it.
        guard state == .ready else { return .none }
        state = .executing
        return .begin
    }

    mutating func pause() -> Action {
        guard !isFinishing, !isCancelled, state == .ready || state == .executing else { return .none }
        defer { state = .paused }
        return state == .executing ? .stop : .none
    }

    /// Restarts at once an operation that was started, as it has kept its place in the queue; another waits for its start as before.
    mutating func resume() -> Action {
        guard !isFinishing, state == .paused else { return .none }
        state = wasStarted ? .executing : .ready
        return wasStarted ? .begin : .none
    }

    /// Marks the operation as cancelled ahead of `cancel()`, so that a start in between has no effect.
    mutating func markCancelled() {
        if !isFinishing { isCancelled = true }
    }

    mutating func cancel() -> Action {
        guard !isFinishing else { return .none }
        isCancelled = true
        if state == .executing || wasStarted { return finishCancelled() }
        // Its queue starts it, which then finishes it as cancelled.
        state = .ready
        return .none
    }

    private mutating func finishCancelled() -> Action {
        isFinishing = true
        return .finishCancelled
    }

    /// Begins to finish; `false` if finishing has begun already, or the operation is not executing.
    mutating func beginFinishing() -> Bool {
        guard !isFinishing, state == .executing else { return false }
        isFinishing = true
        return true
    }

    /// Enters the state `finished`.
    mutating func finish() {
        state = .finished
    }
}
