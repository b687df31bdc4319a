// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension SessionManager {
    /// The requests that have not finished, in the order in which their last attempts began: not started, in flight, suspended, between two
    /// attempts, or completed and about to release their handlers.
    ///
    /// A request that could not be made is among them only while it waits for its retrier. A copy; thread-safe.
    public var requests: [Request] { delegate.orderedRequests }

    /// Cancels all ``requests``, as ``Request/cancel()`` does, but not the session: new requests can be made.
    ///
    /// Requests that other threads make meanwhile may escape. Thread-safe.
    public func cancelAllRequests() {
        for request in requests { request.cancel() }
    }
}

extension Session {
    /// Refuses new requests from now on, which fail with ``CurlewError/sessionShutDown``, and ends the session when those that there are have
    /// finished. Returns at once.
    ///
    /// A request that was not started may still be started, and the session waits for it. Releasing the manager ends the session before.
    /// ``SessionManager/shutdown(gracePeriod:)`` waits, for a limited time. Thread-safe.
    public func finishTasksAndInvalidate() {
        startDraining()
        guard let delegate else { return endShutdown() }
        SharedWork.task {
            let wait = DrainWait()
            delegate.end(wait)
            await wait.value()
            self.endShutdown()
        }
    }
}
