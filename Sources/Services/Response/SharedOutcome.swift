// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// An operation that runs once, from the first request for its outcome, for all consumers.
///
/// Later consumers receive the same outcome, so that a response that is awaited, published and subscribed to sends one request. When the
/// last consumer is removed before completion, the operation's task is cancelled. The operation is bounded by no consumer's deadline; each
/// consumer's wait is.
final class SharedOutcome<Outcome: Sendable>: Sendable {
    typealias Consumer = @Sendable (Outcome) -> Void

    /// How the wait of a consumer ends whose task has a deadline.
    struct Expiry: Sendable {
        /// A deadline of the operation itself; a consumer's own counts if it is earlier.
        let deadline: Deadline?
        /// Calls a closure once a deadline has passed, unless the returned one is called before.
        let start: @Sendable (Deadline, @escaping @Sendable () -> Void) -> @Sendable () -> Void
        /// What the consumer receives then.
        let outcome: @Sendable () -> Outcome
    }

    private struct Entry {
        let receive: Consumer
        /// Stops the timer of the consumer's deadline.
        var stopTimer: (@Sendable () -> Void)?
    }

    private enum State {
        case idle(@Sendable () async -> Outcome)
        case running(Task<Void, Never>?, [Int: Entry])
        case finished(Outcome)
    }

    /// What adding a consumer leads to, outside the lock.
    private enum Action {
        case nothing
        case start(@Sendable () async -> Outcome)
        case complete(Outcome)
    }

    private let state: Lock<State>
    private let nextID = Lock(0)
    private let priority: @Sendable () -> TaskPriority
    private let expiry: Expiry?

    init(
        priority: @escaping @Sendable () -> TaskPriority, expiry: Expiry? = nil, _ operation: @escaping @Sendable () async -> Outcome
    ) {
        self.priority = priority
        self.expiry = expiry
        state = Lock(.idle(operation))
    }

    /// Adds a consumer, which is called once, from any thread, possibly before this method returns.
    ///
    /// - Returns: the identifier for ``remove(_:)``.
    func add(_ consumer: @escaping Consumer) -> Int {
        let id = nextID.withLock { id in
            id += 1
            return id
        }
        let action = state.withLock { state -> Action in
            switch state {
            case .idle(let operation):
                state = .running(nil, [id: Entry(receive: consumer)])
                return .start(operation)
            case .running(let task, var consumers):
                consumers[id] = Entry(receive: consumer)
                state = .running(task, consumers)
                return .nothing
            case .finished(let outcome): return .complete(outcome)
            }
        }
        switch action {
        case .nothing: break
        case .start(let operation): start(operation)
        case .complete(let outcome):
            consumer(outcome)
            return id
        }
        expire(id)
        return id
    }

    /// Ends a consumer's wait once the deadline of the calling task has passed.
    private func expire(_ id: Int) {
        guard let expiry, let deadline = Deadline.current, expiry.deadline.map({ deadline < $0 }) ?? true else { return }
        let stop = expiry.start(deadline) { [weak self] in self?.remove(id)?(expiry.outcome()) }
        let isWaiting = state.withLock { state in
            guard case .running(let task, var consumers) = state, consumers[id] != nil else { return false }
            consumers[id]?.stopTimer = stop
            state = .running(task, consumers)
            return true
        }
        if !isWaiting { stop() }
    }

    /// Removes a consumer; removing the last one cancels the operation.
    ///
    /// - Returns: the consumer; `nil` if it has been called or removed.
    @discardableResult
    func remove(_ id: Int) -> Consumer? {
        let (entry, abandoned) = state.withLock { state -> (Entry?, Task<Void, Never>?) in
            guard case .running(let task, var consumers) = state, let entry = consumers.removeValue(forKey: id) else { return (nil, nil) }
            state = .running(task, consumers)
            return (entry, consumers.isEmpty ? task : nil)
        }
        entry?.stopTimer?()
        abandoned?.cancel()
        return entry?.receive
    }

    private func start(_ operation: @escaping @Sendable () async -> Outcome) {
        let task = SharedWork.task(priority: priority()) { [self] in finish(await operation()) }
        let isAbandoned = state.withLock { state in
            guard case .running(_, let consumers) = state else { return false }
            state = .running(task, consumers)
            return consumers.isEmpty
        }
        if isAbandoned { task.cancel() }
    }

    private func finish(_ outcome: Outcome) {
        let consumers = state.withLock { state -> [Int: Entry] in
            guard case .running(_, let consumers) = state else { return [:] }
            state = .finished(outcome)
            return consumers
        }
        for (_, consumer) in consumers.sorted(by: { $0.key < $1.key }) {
            consumer.stopTimer?()
            consumer.receive(outcome)
        }
    }

    /// Returns the outcome, or `cancelled` as soon as the awaiting task is cancelled; the operation continues for other consumers.
    func outcome(orWhenCancelled cancelled: Outcome) async -> Outcome {
        let waiter = Waiter<Outcome>()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard waiter.wait(continuation) else { return continuation.resume(returning: cancelled) }
                let id = add { waiter.resume(with: $0) }
                waiter.onCancel { self.remove(id) }
            }
        } onCancel: {
            waiter.cancel(with: cancelled)
        }
    }
}

/// A task that awaits an outcome or its own cancellation, whichever comes first.
private final class Waiter<Outcome: Sendable>: Sendable {
    private struct State {
        var continuation: CheckedContinuation<Outcome, Never>?
        var onCancel: (@Sendable () -> Void)?
        var isCancelled = false
    }

    private let state = Lock(State())

    /// Stores the continuation to resume; returns `false` if the task is already cancelled.
    func wait(_ continuation: CheckedContinuation<Outcome, Never>) -> Bool {
        state.withLock { state in
            if !state.isCancelled { state.continuation = continuation }
            return !state.isCancelled
        }
    }

    /// Runs `body` on cancellation, immediately if the task is already cancelled.
    func onCancel(_ body: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            if !state.isCancelled, state.continuation != nil { state.onCancel = body }
            return state.isCancelled
        }
        if isCancelled { body() }
    }

    func resume(with outcome: Outcome) {
        let continuation = state.withLock { state in
            defer {
                state.continuation = nil
                state.onCancel = nil
            }
            return state.continuation
        }
        continuation?.resume(returning: outcome)
    }

    func cancel(with outcome: Outcome) {
        let (continuation, onCancel) = state.withLock { state in
            defer {
                state.continuation = nil
                state.onCancel = nil
                state.isCancelled = true
            }
            return (state.continuation, state.onCancel)
        }
        // Runs first, so that the resumed task finds the request cancelled.
        onCancel?()
        continuation?.resume(returning: outcome)
    }
}
