// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewURLLoading

/// Calls delegates and completion handlers on a session's delegate queue: one at a time and in order, also on a concurrent queue.
///
/// Each call is an operation of its own, so that operations of the program get their turn.
final class DelegateQueue: Sendable {
    private struct State {
        /// Those that have run are `nil`.
        var waiting: [(@Sendable () -> Void)?] = []
        /// How many of them have run.
        var done = 0
        var isRunning = false
    }

    let operations: OperationQueue
    private let state = Lock(State())

    /// - Parameter operations: `nil` for a new serial queue.
    init(_ operations: OperationQueue?) {
        if let operations {
            self.operations = operations
        } else {
            self.operations = OperationQueue()
            self.operations.maxConcurrentOperationCount = 1
            self.operations.name = "curlew.urlsession.delegate"
        }
    }

    /// Runs a closure after those scheduled before.
    func schedule(_ body: @escaping @Sendable () -> Void) {
        let mustStart = state.withLock { state in
            state.waiting.append(body)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustStart { operations.addOperation(Call(self)) }
    }

    fileprivate func run() {
        let body = state.withLock { state -> (@Sendable () -> Void)? in
            guard state.done < state.waiting.count else { return nil }
            defer { state.done += 1 }
            return state.waiting[state.done].take()
        }
        body?()
        let hasMore = state.withLock { state in
            if state.done == state.waiting.count {
                (state.waiting, state.done) = ([], 0)
                state.isRunning = false
            } else if state.done >= 64, state.done * 2 >= state.waiting.count {
                state.waiting.removeFirst(state.done)
                state.done = 0
            }
            return state.isRunning
        }
        if hasMore { operations.addOperation(Call(self)) }
    }
}

/// Runs the next closure, also if the operation is cancelled: calls of delegates and handlers can't be cancelled.
private final class Call: Operation, @unchecked Sendable {  // changed by the thread that runs it, and then by its completion
    private let queue: DelegateQueue
    private var hasRun = false

    init(_ queue: DelegateQueue) {
        self.queue = queue
        super.init()
        completionBlock = { [weak self] in if self?.hasRun == false { queue.run() } }
    }

    override func main() {
        hasRun = true
        queue.run()
    }
}
