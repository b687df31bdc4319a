// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Thrown by an adapter that can't adapt yet, and will when something has happened.
///
/// No user sees it: the request waits, as it does for a retrier, and is then adapted again.
struct PendingAdaptation: Error {
    /// Brings about what is missing; calls back once, on any thread, with why it can't be had. Called on the session's queue.
    let prepare: @Sendable (SessionManager, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) -> Void
}

extension Request {
    /// Replaces the error about which a retrier is being asked with a better one; does nothing once the retrier has answered.
    func replaceError(with error: any Error) {
        driver.state.withLock { state in
            if state.lifecycle.stage == .betweenAttempts { state.error = error }
        }
    }
}
