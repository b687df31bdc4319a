// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The state of a closure that passes its answer to a completion.
private enum ClosureAnswer<Answer: Sendable>: Sendable {
    /// The closure is running and has not answered.
    case running
    /// The closure is running and has answered.
    case early(Answer)
    /// The closure has returned and has not answered.
    case pending
    case taken
}

extension Session {
    /// Calls a closure that passes its answer to a completion, and continues with the first answer, on the session's queue.
    ///
    /// An answer given before the closure returns is used in the same turn of the queue, so that a closure that need not wait costs no
    /// more than one that returns its answer. On the session's queue.
    ///
    /// - Parameters:
    ///   - closure: receives the completion, which may be called on any thread. Later answers are ignored.
    ///   - proceed: receives the answer; never called without one.
    func ask<Answer: Sendable>(
        _ closure: (@escaping @Sendable (Answer) -> Void) -> Void, then proceed: @escaping @Sendable (Answer) -> Void
    ) {
        let state = Lock(ClosureAnswer<Answer>.running)
        closure { [queue] answer in
            let isLate = state.withLock { state in
                switch state {
                case .running: state = .early(answer)
                case .pending:
                    state = .taken
                    return true
                case .early, .taken: break
                }
                return false
            }
            if isLate { queue.async { proceed(answer) } }
        }
        let answer = state.withLock { state -> Answer? in
            guard case .early(let answer) = state else {
                state = .pending
                return nil
            }
            state = .taken
            return .some(answer)
        }
        if let answer { proceed(answer) }
    }
}
