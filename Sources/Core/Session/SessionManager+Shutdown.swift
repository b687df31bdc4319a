// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport
import Dispatch

extension SessionManager {
    /// Shuts the session down: refuses new requests, lets those in flight finish, cancels what is left after a grace period, and returns
    /// when threads, connections and files are gone.
    ///
    /// ```swift
    /// await manager.shutdown(gracePeriod: .seconds(20))
    /// ```
    ///
    /// From the call on, new requests fail with ``CurlewError/sessionShutDown``, and so do those that were created but not started; nothing
    /// of them is sent, and no retrier is asked. Requests in flight continue, with their retries, delays, redirects and waits for adapters,
    /// as do suspended ones and raw connections: a WebSocket or an event stream that is not closed takes the whole grace period. When it
    /// has passed, the rest fail with ``CurlewError/sessionShutDown``.
    ///
    /// On return all requests have finished and awaiting tasks are resumed (handlers may still be running, on their queues), the event
    /// loop's thread has ended, its connections are closed, monitors have been notified of everything, and no file remains that was not
    /// asked for. Users' code that blocks the session's queue delays it.
    ///
    /// May be called by several tasks and repeatedly, also for a session that has ended: all calls return at the same end, and the earliest
    /// end of a grace period counts. Cancelling a waiting task ends the grace period at once; the call returns when the session has ended,
    /// nevertheless. Thread-safe, also for tasks on ``taskExecutor``, which continue elsewhere once the thread has ended. The manager is
    /// retained until then.
    ///
    /// - Parameter gracePeriod: how long requests in flight may take; with 0 or less they are cancelled at once.
    public func shutdown(gracePeriod: Duration) async {
        session.startDraining()
        delegate.endUnstarted()
        if gracePeriod > .zero { await drain(for: gracePeriod) }
        session.endShutdown()
        await drain(for: nil)
        await session.transport.waitUntilShutDown()
        // All notifications of monitors are on the session's queue by now.
        await withCheckedContinuation { continuation in session.afterQueuedWork { continuation.resume() } }
    }

    /// Waits until no request is in flight, at most for a time or until the task is cancelled; with `nil` regardless of both.
    private func drain(for limit: Duration?) async {
        let wait = DrainWait()
        guard let limit else {
            delegate.end(wait)
            return await wait.value()
        }
        // Not the session's timers, because a closure that blocks the session's queue must not extend the grace period.
        let timers = Timers(
            queue: DispatchQueue(label: "curlew.shutdown", target: .global(qos: .utility)), clock: session.configuration.clock)
        timers.start(after: limit) { wait.end() }
        delegate.end(wait)
        await withTaskCancellationHandler {
            await wait.value()
        } onCancel: {
            wait.end()
        }
        withExtendedLifetime(timers) {}
    }
}
