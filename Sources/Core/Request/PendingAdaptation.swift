// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Thrown by an adapter that can't adapt yet, and will when something has happened.
///
/// No user sees it: the request waits, as it does for a retrier, and is then adapted anew. See `SessionDelegate.wait(for:of:isRetry:)`.
struct PendingAdaptation: Error {
    /// Brings about what is missing; calls back once, on any thread, with why it can't be had. Called on the session's queue.
    let prepare: @Sendable (SessionManager, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) -> Void
}

extension Request {
    /// Puts a better error in place of the one about which a retrier is being asked; nothing when nobody asks any more.
    func replaceError(with error: any Error) {
        delegate.state.withLock { state in
            if state.lifecycle.stage == .retrying { state.error = error }
        }
    }
}
