// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Runs exchanges over the network: the interface between a session and libcurl.
///
/// A session uses an event loop on libcurl unless it is given another transport, such as one that responds from memory, records, or
/// replays. A transport knows single exchanges only. Redirects, retries, validation and files belong to the layers above it: libcurl's own
/// redirects, for one, know neither the session's rules for header fields nor how to rewind a body.
///
/// A transfer is made first and started then: ``makeTransfer(_:id:observer:)`` returns its handle, on which calls count from the beginning.
/// Its events have the number that its owner gives it, so that one that arrives late, for an earlier attempt, finds no request and is
/// dropped: a retry has a new number; a redirect keeps its task's.
///
/// A transport in front of another one wraps what it has to observe: the observer, the handle, or neither.
public protocol Transport: Sendable {
    /// What keeps its responses apart from those of the network, where sessions share a cache or continue a file: a name of what makes them
    /// up. `nil`, the default, for a transport whose responses come from the network. Read when a session is created.
    var cachePartition: String? { get }

    /// Makes a transfer, which does nothing until it is started with its handle.
    ///
    /// From its start on its events are delivered to the observer serially, ``TransferObserver/transfer(_:didComplete:)`` always and as the
    /// last one, even if the transport was shut down.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - id: the number that the events have. Several transfers may have the same.
    ///   - observer: receives the events; retained until the last one, or until the handle is released without a start.
    func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle

    /// Makes a raw stream, a TCP or TLS connection without HTTP, which does nothing until it is started with its handle; under the rules of
    /// ``makeTransfer(_:id:observer:)``.
    func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle

    /// Completes all transfers that were started, and those that are later, with ``CurlewError/sessionInvalidated``. Returns immediately;
    /// thread-safe, and may be called repeatedly. A cancellation after it has returned does not change the reason.
    func shutDown()

    /// Returns when the transport has ended after ``shutDown()``: its threads have ended, its connections are closed, and all transfers have
    /// completed. Thread-safe; may be called before ``shutDown()``, and repeatedly. Not cancelled with its task.
    ///
    /// A transfer that is started after ``shutDown()`` completes before its start returns: a transport in front of this one may start some
    /// late, and waits for no more than this method and its own calls.
    ///
    /// By default it returns at once, for a transport that has ended when ``shutDown()`` returns.
    func waitUntilShutDown() async
}

extension Transport {
    /// `nil`: the responses come from the network.
    public var cachePartition: String? { nil }

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
    /// The head of an interim response was received (1xx; RFC 9110, section 15.2), such as `103 Early Hints` or the `104` of a resumable
    /// upload: as it comes, before the head of the final response, and perhaps while the request's body is sent. Does nothing by default: an
    /// observer that wraps another one has to forward it.
    ///
    /// Not for `100 Continue`, which the transport heeds itself, nor for `101 Switching Protocols`, which is final. The response that exceeds
    /// ``TransferOptions/maximumInterimResponses`` or a limit on heads is not reported, but fails the transfer. If libcurl sends the request
    /// again by itself, for the authentication of a connection or on a fresh one, those of all responses are reported, whereas
    /// ``ResponseHead/interimResponses`` has those that came before the final head.
    func transfer(_ id: Int, didReceiveInterim head: ResponseHead)

    /// The head of the final response was received; the interim ones before it are in ``ResponseHead/interimResponses``, too.
    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction

    /// A piece of the body was received and its content coding decoded; valid during the call only, never empty.
    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction

    /// Request body bytes were handed to the network; `count` is the total so far, and restarts from zero when the request is sent again.
    func transfer(_ id: Int, didSend count: Int64)

    /// The transfer has completed. The last event, delivered exactly once.
    func transfer(_ id: Int, didComplete completion: TransferCompletion)
}

extension TransferObserver {
    /// Does nothing.
    public func transfer(_ id: Int, didReceiveInterim head: ResponseHead) {}
}

/// What a transfer does after delivering a piece of a response.
public enum ReceiveAction: Sendable, Hashable {
    /// Continue receiving.
    case proceed
    /// Pause until ``TransferHandle/resumeReceiving()``. At the head, this holds back the body until there is a place for it: a file opened on
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
    ///
    /// - Parameter metrics: what was measured until now: the times of name lookup, connection and TLS, the addresses, version and cipher of
    ///   TLS, and the time so far as the total.
    func stream(_ id: Int, didOpen metrics: TransferMetrics)
    /// Bytes were received; valid during the call only, never empty.
    func stream(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction
    /// The peer closed its sending side: no more bytes will be received. The other direction stays open.
    func streamDidEndReceiving(_ id: Int)
    /// Bytes were sent; `count` is the total so far.
    func stream(_ id: Int, didSend count: Int64)
    /// The stream has completed. The last event, delivered exactly once.
    func stream(_ id: Int, didComplete completion: TransferCompletion)
}
