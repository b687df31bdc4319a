// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A state that tasks wait for to become what they need.
///
/// Each change lets those go on, first come, first served, for whom it is enough; nobody wakes in vain.
package final class Watched<State: Sendable>: Sendable {
    private struct Waiter {
        let number: Int
        /// Takes what the task needs, if it is there; then what resumes the task.
        let attempt: @Sendable (inout State) -> (@Sendable () -> Void)?
        let giveUp: @Sendable () -> Void
    }

    private struct Contents {
        var state: State
        var waiters: [Waiter] = []
        var lastNumber = 0

        mutating func attemptAll(_ resumptions: inout [@Sendable () -> Void]) {
            var index = 0
            while index < waiters.count {
                if let resume = waiters[index].attempt(&state) {
                    resumptions.append(resume)
                    waiters.remove(at: index)
                    // What one has taken may be what one before it has waited for.
                    index = 0
                } else {
                    index += 1
                }
            }
        }
    }

    private let contents: Lock<Contents>

    package init(_ state: State) {
        contents = Lock(Contents(state: state))
    }

    /// Changes the state. The closure runs behind a lock: it calls nobody.
    @discardableResult
    package func update<R>(_ change: (inout State) throws -> R) rethrows -> R {
        var resumptions: [@Sendable () -> Void] = []
        let result = try contents.withLock { contents in
            let result = try change(&contents.state)
            if !contents.waiters.isEmpty { contents.attemptAll(&resumptions) }
            return result
        }
        for resume in resumptions { resume() }
        return result
    }

    /// Waits until `take` gives something, and returns that. It runs behind a lock, at once and after each change, until it gives something.
    ///
    /// - Throws: ``CurlewError/cancelled`` when the task that waits is cancelled.
    package func wait<R: Sendable>(for take: @escaping @Sendable (inout State) -> R?) async throws -> R {
        if let result = update(take) { return result }
        let number = contents.withLock { contents in
            contents.lastNumber += 1
            return contents.lastNumber
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                enter(
                    Waiter(
                        number: number,
                        attempt: { state in
                            guard let result = take(&state) else { return nil }
                            return { continuation.resume(returning: result) }
                        },
                        giveUp: { continuation.resume(throwing: CurlewError.cancelled) }))
            }
        } onCancel: {
            let waiter = contents.withLock { contents in
                contents.waiters.firstIndex { $0.number == number }.map { contents.waiters.remove(at: $0) }
            }
            waiter?.giveUp()
        }
    }

    private func enter(_ waiter: Waiter) {
        var resumptions: [@Sendable () -> Void] = []
        let isCancelled = contents.withLock { contents in
            // A cancellation from now on finds the waiter, one before now is seen here.
            guard !Task.isCancelled else { return true }
            contents.waiters.append(waiter)
            contents.attemptAll(&resumptions)
            return false
        }
        if isCancelled { waiter.giveUp() }
        for resume in resumptions { resume() }
    }
}

/// What is taken in the order in which it was put in.
struct Queue<Element: Sendable>: Sendable {
    private var elements: [Element?] = []
    private var head = 0

    var isEmpty: Bool { head == elements.count }

    var first: Element? { isEmpty ? nil : elements[head] }

    mutating func append(_ element: Element) {
        elements.append(element)
    }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        defer {
            elements[head] = nil
            head += 1
            if head == elements.count {
                elements.removeAll(keepingCapacity: head <= 64)
                head = 0
            } else if head >= 64, head * 2 >= elements.count {
                elements.removeFirst(head)
                head = 0
            }
        }
        return elements[head]
    }

    mutating func removeAll() {
        self = Queue()
    }
}

/// Runs an operation; if it takes longer than the limit it is cancelled, and `error` thrown.
func withTimeLimit<R: Sendable>(
    _ limit: Duration?, _ clock: any Clock<Duration>, throwing error: any Error, _ operation: @escaping @Sendable () async throws -> R
) async throws -> R {
    guard let limit else { return try await operation() }
    return try await withLimit(throwing: error, operation) { try await clock.sleep(for: limit) }
}

/// Runs an operation; if `limit` returns before it is done it is cancelled, and `error` thrown.
func withLimit<R: Sendable>(
    throwing error: any Error, _ operation: @escaping @Sendable () async throws -> R, limit: @escaping @Sendable () async throws -> Void
) async throws -> R {
    try await withThrowingTaskGroup(of: R?.self) { group in
        group.addTask { try await operation() }
        group.addTask {
            try await limit()
            return nil
        }
        defer { group.cancelAll() }
        guard let first = try await group.next(), let result = first else { throw error }
        return result
    }
}
