// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Dispatch

/// A transfer as its owner has it: what ``Transport/makeTransfer(_:id:observer:)`` makes. Thread-safe.
///
/// Inert until ``start()``; the calls before it count: one that is suspended then sends and receives nothing when it is started. A handle
/// that is released without a start has no event; one that is released later leaves its transfer to run to its end.
///
/// Only ``start()`` may deliver events before it returns, so that the other calls may be made while a lock is held which the observer needs.
public protocol TransferHandle: AnyObject, Sendable {
    /// Starts the transfer. Its events may be delivered before this returns. Does nothing for one that was started or cancelled.
    func start()

    /// Cancels the transfer asynchronously: it completes with ``CurlewError/cancelled``, also if it was not started, unless it has completed.
    func cancel()

    /// Suspends or resumes both directions, on behalf of the task's user. Of calls by several threads the last one counts.
    func setSuspended(_ suspended: Bool)

    /// Withdraws a ``ReceiveAction/pause`` that the observer has returned or is about to return, over which it takes precedence.
    func resumeReceiving()
}

/// A raw stream as its owner has it: what ``Transport/makeStream(_:id:observer:)`` makes. Thread-safe. Its observer pauses it;
/// ``CurlTransport`` does not suspend streams.
public protocol StreamHandle: TransferHandle {
    /// Sends bytes, after those sent before; `endOfStream` closes the sending side after them. Those sent before the start wait for it.
    ///
    /// ``StreamTransferObserver/stream(_:didSend:)`` reports when they were sent, never before this call returns: the caller may hold a
    /// lock.
    func send(_ bytes: Data, endOfStream: Bool)
}

extension TransferObserver {
    /// Completes a transfer that was cancelled before its start. Not in place: the caller may hold a lock.
    package func completeUnstarted(_ id: Int) {
        let completion = TransferCompletion(error: CurlewError.cancelled, metrics: TransferMetrics())
        DispatchQueue.global().async { self.transfer(id, didComplete: completion) }
    }
}

extension StreamTransferObserver {
    /// Completes a stream that was cancelled before its start. Not in place: the caller may hold a lock.
    package func completeUnstarted(_ id: Int) {
        let completion = TransferCompletion(error: CurlewError.cancelled, metrics: TransferMetrics())
        DispatchQueue.global().async { self.stream(id, didComplete: completion) }
    }
}
