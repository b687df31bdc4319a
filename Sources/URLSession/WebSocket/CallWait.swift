// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewURLLoading

/// A call that a task awaits, and that ends with the first of its result and the cancellation of the task.
final class CallWait<Value: Sendable>: Sendable {
    private struct State {
        var continuation: UnsafeContinuation<Value, any Error>?
        /// Before there is a continuation.
        var result: Result<Value, any Error>?
        var hasEnded = false
    }

    private let state = Lock(State())

    func begin(_ continuation: UnsafeContinuation<Value, any Error>) {
        let result = state.withLock { state in
            if state.result == nil { state.continuation = continuation }
            return state.result.take()
        }
        if let result { continuation.resume(with: result) }
    }

    /// Ends the wait; does nothing after the first call.
    func end(_ result: Result<Value, any Error>) {
        let continuation = state.withLock { state -> UnsafeContinuation<Value, any Error>? in
            guard !state.hasEnded else { return nil }
            state.hasEnded = true
            if state.continuation == nil { state.result = result }
            return state.continuation.take()
        }
        continuation?.resume(with: result)
    }

    /// Waits for the result of a call.
    ///
    /// - Parameters:
    ///   - call: makes it, and ends the wait later.
    ///   - cancel: called when the waiting task is cancelled; returns `false` if the result is on its way, which then counts.
    /// - Throws: `URLError.cancelled` if the waiting task was cancelled.
    static func value(
        _ call: @escaping @Sendable (CallWait) -> Void, cancel: @escaping @Sendable () -> Bool = { true }
    ) async throws -> Value {
        let wait = CallWait()
        return try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { continuation in
                wait.begin(continuation)
                call(wait)
            }
        } onCancel: {
            if cancel() { wait.end(.failure(URLError(.cancelled))) }
        }
    }
}
