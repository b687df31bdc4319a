// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Runs exchanges over the network: the interface between a session and libcurl.
///
/// A session uses an event loop on libcurl unless it is given another transport, such as one that responds from memory, records, or
/// replays. A transport knows single exchanges only. Redirects, retries, validation and files belong to the layers above it: libcurl's own
/// redirects, for one, know neither the session's rules for header fields nor how to rewind a body.
///
/// Transfers have numbers, unique in their session, rather than objects: no reference cycle runs through libcurl, and a completion that
/// arrives late, for an earlier attempt, finds no request and is dropped. A retry has a new number; a redirect keeps its task's.
public protocol Transport: Sendable {
    /// Starts a transfer and returns at once.
    ///
    /// Its events are delivered to `observer` serially, ``TransferObserver/transfer(_:didComplete:)`` always and as the last one, even if
    /// the transport was shut down. Events may be delivered before this call returns, so the caller must not hold a lock that the observer
    /// needs; the session never does.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - id: the number by which the other calls and the events refer to this transfer; must not be in use.
    ///   - observer: receives the events; retained until the last one.
    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver)

    /// Cancels a transfer asynchronously; it completes with ``CurlewError/cancelled``. Unknown and completed transfers are ignored.
    /// Thread-safe.
    func cancel(_ id: Int)

    /// Suspends or resumes both directions of a transfer, on behalf of the task's user. Thread-safe.
    func setSuspended(_ suspended: Bool, of id: Int)

    /// Withdraws a ``ReceiveAction/pause`` that the observer has returned or is about to return, over which it takes precedence.
    /// Thread-safe.
    func resumeReceiving(_ id: Int)

    /// Opens a raw stream: a TCP or TLS connection without HTTP; its events follow the same rules as a transfer's.
    func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver)

    /// Sends bytes on a stream, after those sent before; `endOfStream` closes its sending side after them. Thread-safe.
    ///
    /// ``StreamTransferObserver/stream(_:didSend:)`` reports when they were sent, never before this call returns: the caller may hold a
    /// lock.
    func send(_ bytes: Data, endOfStream: Bool, on id: Int)

    /// Completes all transfers with ``CurlewError/sessionInvalidated`` and refuses new ones. Returns immediately; thread-safe, and may be
    /// called repeatedly.
    func shutDown()

    /// Returns when the transport has ended after ``shutDown()``: its threads have ended, its connections are closed, and all transfers have
    /// completed. Thread-safe; may be called before ``shutDown()``, and repeatedly. Not cancelled with its task.
    ///
    /// By default it returns at once, for a transport that has ended when ``shutDown()`` returns.
    func waitUntilShutDown() async
}

extension Transport {
    /// Returns at once.
    public func waitUntilShutDown() async {}
}

/// Receives the events of a transfer.
///
/// Each transfer has an observer of its own, rather than one per session: looking up the request for each piece of a body would cost a
/// download more than libcurl does, as would a lock for each part of its state.
///
/// Called on the transport's own thread, which serves all other transfers as well: implementations store, count and return. They don't
/// block, take no lock that is held during callbacks, and run no users' code.
public protocol TransferObserver: AnyObject, Sendable {
    /// The head of the final response was received. Interim responses (1xx) are not reported by themselves, but in
    /// ``ResponseHead/interimResponses``.
    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction

    /// A piece of the body was received and its content coding decoded; valid during the call only, never empty.
    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction

    /// Request body bytes were handed to the network; `count` is the total so far, and restarts from zero when the request is sent again.
    func transfer(_ id: Int, didSend count: Int64)

    /// The transfer has completed. The last event, delivered exactly once.
    func transfer(_ id: Int, didComplete completion: TransferCompletion)
}

/// What a transfer does after delivering a piece of a response.
public enum ReceiveAction: Sendable, Hashable {
    /// Continue receiving.
    case proceed
    /// Pause until ``Transport/resumeReceiving(_:)``. At the head, this holds back the body until there is a place for it: a file opened on
    /// another thread, or a reader. The piece just delivered counts as consumed. A response whose last piece that was completes
    /// nevertheless.
    case pause
    /// Cancel the transfer; it completes with ``CurlewError/cancelled``, and the observer knows the reason.
    case cancel
}

/// The completion of a transfer.
public struct TransferCompletion: Sendable {
    /// The reason for a failure: a ``CurlewError``, or the error of the request's body; `nil` if the response is complete.
    public let error: (any Error)?
    /// The measurements, also of a failed transfer.
    public let metrics: TransferMetrics
    /// The fields that followed the response's body, in the order received; empty if there were none (RFC 9110, section 6.5).
    public let trailers: HTTPHeaders

    /// Creates a completion; without trailers by default.
    public init(error: (any Error)?, metrics: TransferMetrics, trailers: HTTPHeaders = HTTPHeaders()) {
        self.error = error
        self.metrics = metrics
        self.trailers = trailers
    }
}

/// Receives the events of a raw stream, under the rules of ``TransferObserver``.
public protocol StreamTransferObserver: AnyObject, Sendable {
    /// The connection is established.
    func streamDidOpen(_ id: Int)
    /// Bytes were received; valid during the call only, never empty.
    func stream(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction
    /// The peer closed its sending side: no more bytes will be received. The other direction stays open.
    func streamDidEndReceiving(_ id: Int)
    /// Bytes were sent; `count` is the total so far.
    func stream(_ id: Int, didSend count: Int64)
    /// The stream has completed. The last event, delivered exactly once.
    func stream(_ id: Int, didComplete completion: TransferCompletion)
}
