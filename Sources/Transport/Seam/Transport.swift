// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Moves bytes between a request and a response: the seam below which libcurl works.
///
/// A session uses an event loop over libcurl unless it is given another transport: one that answers from memory, records, or replays.
/// A transport knows single exchanges only. Redirects, retries, validation and files belong to the layers above it.
public protocol Transport: Sendable {
    /// Starts a transfer and returns at once.
    ///
    /// Its events reach `observer` one at a time, ``TransferObserver/transfer(_:didComplete:)`` always and as the last one, also when
    /// the transport was shut down. No event may arrive before this call has returned to a caller that holds a lock: the session never does.
    ///
    /// - Parameters:
    ///   - request: what to send, and how.
    ///   - id: the number by which the other calls and the events name this transfer; not in use at the moment.
    ///   - observer: receives the events; kept until the last of them.
    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver)

    /// Ends a transfer soon; it completes with ``CurlewError/cancelled``. Unknown and ended transfers are ignored. Any thread.
    func cancel(_ id: Int)

    /// Stops or lets go on both directions of a transfer, as the user of a task asks for it. Any thread.
    func setSuspended(_ suspended: Bool, of id: Int)

    /// Takes back a ``ReceiveAction/pause`` that an observer answered, or is about to answer: then it wins. Any thread.
    func resumeReceiving(_ id: Int)

    /// Starts a raw stream: a TCP or TLS connection without HTTP; events as for a transfer.
    func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver)

    /// Sends bytes on a stream behind those sent before; `endOfStream` closes its sending side after them. Any thread.
    ///
    /// ``StreamTransferObserver/stream(_:didSend:)`` says when they left, never before this has returned: the caller may hold a lock.
    func send(_ bytes: Data, endOfStream: Bool, on id: Int)

    /// Ends all transfers with ``CurlewError/sessionInvalidated`` and refuses new ones. Returns at once; any thread, any number of times.
    func shutDown()
}

/// Receives the events of a transfer.
///
/// Called on the transport's own thread, which serves every other transfer too: implementations store, count and return. They don't
/// block, take no lock that is held while calling out, and run no code of users.
public protocol TransferObserver: AnyObject, Sendable {
    /// The head of the final response is there. Interim responses (1xx) are not reported.
    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction

    /// A piece of the body, its content coding undone; valid during the call only. Never empty.
    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction

    /// The number of request body bytes handed to the network so far; begins anew when the request is sent once more.
    func transfer(_ id: Int, didSend count: Int64)

    /// The transfer is over. The last event, sent exactly once.
    func transfer(_ id: Int, didComplete outcome: TransferOutcome)
}

/// What an observer wants after a piece of a response.
public enum ReceiveAction: Sendable, Hashable {
    /// Go on.
    case proceed
    /// Go on only after ``Transport/resumeReceiving(_:)``. The piece at hand counts as taken; of a compressed body, what came with it from
    /// the network may still follow. A response of which nothing is left to come completes nevertheless.
    case pause
    /// End the transfer; it completes with ``CurlewError/cancelled``, and the observer knows why.
    case cancel
}

/// How a transfer ended.
public struct TransferOutcome: Sendable {
    /// Why it failed: a ``CurlewError``, or what the request's body threw; `nil` when the response is whole.
    public let error: (any Error)?
    /// What was measured, also when it failed.
    public let metrics: TransferMetrics

    /// Makes an outcome.
    public init(error: (any Error)?, metrics: TransferMetrics) {
        self.error = error
        self.metrics = metrics
    }
}

/// Receives the events of a raw stream, under the rules of ``TransferObserver``.
public protocol StreamTransferObserver: AnyObject, Sendable {
    /// The connection stands.
    func streamDidOpen(_ id: Int)
    /// Bytes came in; valid during the call only, never empty.
    func stream(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction
    /// The peer closed its sending side: no more bytes will come. Ours stays open.
    func streamDidEndReceiving(_ id: Int)
    /// That many bytes in all have left.
    func stream(_ id: Int, didSend count: Int64)
    /// The stream is over. The last event, sent exactly once.
    func stream(_ id: Int, didComplete outcome: TransferOutcome)
}
