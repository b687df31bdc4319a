// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A state with tasks that wait for conditions on it, like a monitor.
///
/// Each change resumes the waiting tasks whose condition it meets, in the order of their arrival; a task is only resumed if its condition
/// is met. Closures are called likewise, those of a change after those of the changes before, by one thread at a time.
package final class Watched<State: Sendable>: Sendable {
    private struct Waiter {
        let number: Int
        /// Whether it is resumed after the others that a change resumes.
        var isLast = false
        /// Takes what the task needs, if available, and returns the closure that resumes it.
        let attempt: @Sendable (inout State) -> (@Sendable () -> Void)?
        let cancel: @Sendable () -> Void
    }

    private struct Contents {
        var state: State
        var waiters: [Waiter] = []
        var lastNumber = 0
        /// What resumes those whose condition is met.
        var wakeups = OrderedCalls()

        /// Adds one that waits unless its condition is met. That may note that it waits, which is what others may wait for: they are asked
        /// again.
        mutating func add(_ waiter: Waiter) {
            waiters.append(waiter)
            attemptAll()
            if waiters.last?.number == waiter.number { attemptAll() }
        }

        mutating func attemptAll() {
            var index = 0
            var last: [@Sendable () -> Void] = []
            defer { for resume in last { wakeups.add(resume) } }
            while index < waiters.count {
                if let resume = waiters[index].attempt(&state) {
                    if waiters[index].isLast { last.append(resume) } else { wakeups.add(resume) }
                    waiters.remove(at: index)
                    // Taking may have changed the state to what an earlier waiter needs, so the scan restarts.
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

    /// Changes the state. The closure runs under a lock and must not call out.
    @discardableResult
    package func update<R>(_ change: (inout State) throws -> R) rethrows -> R {
        let (result, isDue) = try contents.withLock { contents in
            let result = try change(&contents.state)
            if !contents.waiters.isEmpty { contents.attemptAll() }
            return (result, !contents.wakeups.isEmpty)
        }
        if isDue { resumeAll() }
        return result
    }

    private func resumeAll() {
        OrderedCalls.make { isCalling in contents.withLock { $0.wakeups.take(isCalling) } }
    }

    /// Waits until `take` returns a value, and returns that. `take` runs under a lock, immediately and after each change, until it returns
    /// a value.
    ///
    /// - Throws: ``CurlewError/cancelled`` if the waiting task is cancelled.
    package func wait<R: Sendable>(for take: @escaping @Sendable (inout State) -> R?) async throws -> R {
        if let result = update(take) { return result }
        let number = contents.withLock { contents in
            contents.lastNumber += 1
            return contents.lastNumber
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                register(
                    Waiter(
                        number: number,
                        attempt: { state in
                            guard let result = take(&state) else { return nil }
                            return { continuation.resume(returning: result) }
                        },
                        cancel: { continuation.resume(throwing: CurlewError.cancelled) }))
            }
        } onCancel: {
            let waiter = contents.withLock { contents in
                contents.waiters.firstIndex { $0.number == number }.map { contents.waiters.remove(at: $0) }
            }
            waiter?.cancel()
        }
    }

    /// Calls `body` once with what `take` returns, as soon as that is not `nil`, after calls that have waited longer and those of changes
    /// before: from the thread of the change, or of one whose calls are being made. Returns a number for ``forget(_:)``.
    ///
    /// - Parameter isLast: whether the call comes after those of all others that the same change resumes.
    @discardableResult
    package func when<R: Sendable>(
        isLast: Bool = false, _ take: @escaping @Sendable (inout State) -> R?, _ body: @escaping @Sendable (R) -> Void
    ) -> Int {
        let (number, isDue) = contents.withLock { contents -> (Int, Bool) in
            contents.lastNumber += 1
            let number = contents.lastNumber
            let waiter = Waiter(
                number: number, isLast: isLast,
                attempt: { state in
                    guard let result = take(&state) else { return nil }
                    return { body(result) }
                },
                cancel: {})
            contents.add(waiter)
            return (number, !contents.wakeups.isEmpty)
        }
        if isDue { resumeAll() }
        return number
    }

    /// Ends a wait of ``when(isLast:_:_:)``; `false` if its closure was called, or is about to be.
    @discardableResult
    package func forget(_ number: Int) -> Bool {
        contents.withLock { contents in
            guard let index = contents.waiters.firstIndex(where: { $0.number == number }) else { return false }
            contents.waiters.remove(at: index)
            return true
        }
    }

    private func register(_ waiter: Waiter) {
        let (isCancelled, isDue) = contents.withLock { contents -> (Bool, Bool) in
            // A later cancellation finds the waiter; an earlier one is seen here.
            guard !Task.isCancelled else { return (true, false) }
            contents.add(waiter)
            return (false, !contents.wakeups.isEmpty)
        }
        if isCancelled { waiter.cancel() }
        if isDue { resumeAll() }
    }
}

/// A FIFO queue.
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
