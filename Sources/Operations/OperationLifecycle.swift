// SPDX-License-Identifier: Apache-2.0

/// Where an operation is on its way.
public enum OperationState: Int, Sendable, Hashable, Codable {
    /// Stopped until it is resumed or cancelled: neither ready nor executing nor finished, so that it stays in its queue.
    case paused = -1
    /// May be started.
    case ready = 1
    /// Its connection is on its way.
    case executing = 2
    /// Over, be it with success, with an error, or cancelled.
    case finished = 3
}

/// Knows which events count in which state; what does not count changes nothing.
struct OperationLifecycle: Sendable {
    /// What the owner has to do once the event has been taken.
    enum Action: Equatable {
        case none
        /// Make the connection.
        case begin
        /// Give up the connection, and keep what came.
        case stop
        /// Bring the operation to its end as a cancelled one.
        case endCancelled
    }

    private(set) var state = OperationState.ready
    /// Whether somebody has called `start()`: a queue does that once, and would not do it again after a pause.
    private(set) var wasStarted = false
    private(set) var isCancelled = false
    /// Whether its end was begun, and nothing else counts any more.
    private(set) var isEnding = false

    init(state: OperationState = .ready) {
        self.state = state
        isEnding = state == .finished
    }

    /// A queue, or the user, wants it to run.
    mutating func start() -> Action {
        guard !isEnding, state != .executing else { return .none }
        wasStarted = true
        if isCancelled { return endCancelled() }
        // A pause came in between: resuming will start it.
        guard state == .ready else { return .none }
        state = .executing
        return .begin
    }

    mutating func pause() -> Action {
        guard !isEnding, state == .ready || state == .executing else { return .none }
        defer { state = .paused }
        return state == .executing ? .stop : .none
    }

    /// One that was started goes on at once, as it has kept its place in the queue; another waits for its start as before.
    mutating func resume() -> Action {
        guard !isEnding, state == .paused else { return .none }
        state = wasStarted ? .executing : .ready
        return wasStarted ? .begin : .none
    }

    /// It will be cancelled: whoever starts it from now on finds it so.
    mutating func announceCancel() {
        if !isEnding { isCancelled = true }
    }

    mutating func cancel() -> Action {
        guard !isEnding else { return .none }
        isCancelled = true
        if state == .executing || wasStarted { return endCancelled() }
        // Its queue starts it, and finds that it was cancelled.
        state = .ready
        return .none
    }

    private mutating func endCancelled() -> Action {
        isEnding = true
        return .endCancelled
    }

    /// Its end begins; `false` when that was so before, or it is not executing.
    mutating func beginEnding() -> Bool {
        guard !isEnding, state == .executing else { return false }
        isEnding = true
        return true
    }

    /// It is over.
    mutating func finish() {
        state = .finished
    }
}
