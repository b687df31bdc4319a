// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// The object behind a task: the body, the error, and the queue of the handlers, which is suspended until the request has finished.
///
/// Thread-safe. A request has one for all its attempts.
public final class TaskDelegate: Sendable {
    let driver: RequestDriver

    init(_ driver: RequestDriver) {
        self.driver = driver
    }

    /// Runs the request's handlers: one at a time, suspended until the request has finished.
    ///
    /// Operations added here run in their order among the handlers. Created with the first handler, or when it is first read.
    public var queue: OperationQueue { driver.state.withLock { $0.handlerQueue() } }

    /// The body; `nil` if it is not stored in memory. For a download, its ``DownloadRequest/resumeData``.
    public var data: Data? { driver.body.data }

    /// Why the request failed; `nil` while it has not.
    public var error: (any Error)? { ownError.map { driver.session.delivered($0) } }

    /// The error before it is translated (``Session/deliverErrors(as:)``).
    package var ownError: (any Error)? { driver.state.withLock { $0.attempt.error } }

    package var metrics: TaskMetrics {
        driver.state.withLock { TaskMetrics(transactionMetrics: $0.transactions, redirectCount: $0.task?.redirectCount ?? 0) }
    }

    /// What belongs to each entry of ``metrics``, for a request with an owner; empty for others.
    package var exchanges: [ExchangeRecord] { driver.state.withLock { $0.exchanges } }

    /// Returns the times of the request, whose serialization has completed now.
    func timeline() -> Timeline {
        let (start, initial, end) = driver.state.withLock { ($0.attempt.startTime, $0.attempt.initialResponseTime, $0.attempt.endTime) }
        let now = CFAbsoluteTime.now
        let completed = end ?? now
        let started = start ?? completed
        // Measured by another clock, which does not advance while the machine sleeps.
        let initially = min(max(initial ?? completed, started), completed)
        return Timeline(
            requestStartTime: started, initialResponseTime: initially, requestCompletedTime: completed, serializationCompletedTime: now)
    }
}
