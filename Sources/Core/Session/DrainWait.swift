// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A task's wait until its session has no request in flight, ended once. Thread-safe.
final class DrainWait: Sendable {
    private enum State {
        case pending
        case awaited(CheckedContinuation<Void, Never>)
        case ended
    }

    private let state = Lock(State.pending)

    /// Ends the wait. Does nothing for one that has ended.
    func end() {
        let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
            defer { state = .ended }
            guard case .awaited(let continuation) = state else { return nil }
            return continuation
        }
        continuation?.resume()
    }

    /// Returns when the wait has ended. For one task.
    func value() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                guard case .pending = state else { return true }
                state = .awaited(continuation)
                return false
            }
            if hasEnded { continuation.resume() }
        }
    }
}
