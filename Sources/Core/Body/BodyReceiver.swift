// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Receives the body of a request's response: into memory, for a reader, or to a file.
///
/// A request has one receiver for all its attempts. Within an attempt the methods are called in the order of their declaration. An error
/// that one throws fails the request, unless it has failed before.
protocol BodyReceiver: AnyObject, Sendable {
    /// Whether the request retains its manager while it may be awaited; `true` by default.
    var retainsManager: Bool { get }

    // MARK: The received bytes. Any thread.

    /// The value of ``TaskDelegate/data``.
    var data: Data? { get }
    /// The number of received bytes of the body, decoded.
    var receivedCount: Int64 { get }
    /// Returns up to `count` bytes of the beginning of the body; `nil` if it is not stored, or not readable. May read a file.
    func beginning(_ count: Int) -> Data?

    // MARK: While the transfer runs. On the event loop's thread.

    /// Whether the body is received only once it has a reader or the request a handler, and its head is validated before its first piece.
    var waitsForReader: Bool { get }
    /// Whether a reader that the request does not know, as it is neither a handler nor an awaiting task, receives the end of the body;
    /// `false` by default.
    var hasReader: Bool { get }

    /// Receives the head of the accepted response.
    func receive(_ head: ResponseHead, _ exchange: Exchange) throws -> HeadAction

    /// Receives a piece of the body.
    func receive(_ bytes: UnsafeRawBufferPointer) throws -> ReceiveAction

    /// Receives a piece of the body that is in a file.
    ///
    /// - Returns: how many of its first bytes were received; `nil`, the default, if it has to come as bytes.
    func receive(_ range: FileRange) throws -> Int64?

    /// Ends the body: the last transfer of the attempt has completed.
    func complete(_ outcome: TransferCompletion) throws

    // MARK: When the attempt is concluded

    /// Whether ``settle(_:)`` and ``commit(_:)`` have to be called, on the session's queue because they may block, or run users' code.
    var concludesOnQueue: Bool { get }

    /// Prepares the received body for validation: closes its file, hands its last piece to a closure. On the session's queue; may be
    /// skipped unless ``concludesOnQueue``.
    func settle(_ attempt: CompletedAttempt) throws

    /// Commits the received body after validation or, for a failed attempt, discards it. On the session's queue; may be skipped unless
    /// ``concludesOnQueue``.
    func commit(_ attempt: CompletedAttempt) throws

    /// Withholds the buffered bytes from readers until it is known whether another attempt begins.
    ///
    /// - Returns: `false` if a reader has received a part of the body, to which another attempt would append a whole one.
    func holdForRetry() -> Bool

    /// Whether a failed attempt has left a file that is of no use if the request ends with another error.
    var isDiscardable: Bool { get }

    /// Removes the file that a failed attempt has left. On the session's queue.
    func discard()

    /// Forgets the last attempt's body, because another attempt begins.
    func reset()

    /// The request has finished: no other attempt begins, and it may have had none. Any thread.
    func requestDidFinish(_ request: Request)
}

extension BodyReceiver {
    var retainsManager: Bool { true }
    func beginning(_ count: Int) -> Data? { nil }
    var waitsForReader: Bool { false }
    var hasReader: Bool { false }
    func receive(_ range: FileRange) throws -> Int64? { nil }
    func complete(_ outcome: TransferCompletion) throws {}
    var isDiscardable: Bool { false }
    func discard() {}
    func requestDidFinish(_ request: Request) {}
}

/// What a receiver knows about the exchange whose response it receives.
struct Exchange: Sendable {
    /// Whether the request's method is HEAD.
    let isHead: Bool
    /// `nil` if the session's delegate has no closure for bodies.
    let listeners: BodyListeners?
    /// The task of the exchange.
    var task: SessionTask?
}

/// The closures of a session's delegate that concern the bodies of one task, to be called on the session's queue.
struct BodyListeners: Sendable {
    /// Where the closures are called: the session's queue.
    let queue: DispatchQueue
    /// Resumes the transfer.
    let resume: @Sendable () -> Void
    /// Whether the request's progress is updated even where a closure reports it: for the closures of its owner.
    var keepsProgress = false
    /// Receives the body's pieces in place of the request.
    var takePiece: BodyBuffer.Taker?
    /// Receives the URL of the complete file.
    var takeFile: (@Sendable (URL) -> Void)?
    /// Reports written bytes: of this piece, so far, and the expected total.
    var written: (@Sendable (Int64, Int64, Int64) -> Void)?
    /// Reports that a download is resumed: the offset, and the expected total.
    var resumed: (@Sendable (Int64, Int64) -> Void)?
    /// Reports that the body is written to a file.
    var becameDownload: (@Sendable () -> Void)?
}

/// What a receiver does about a head.
///
/// The transfer pauses at the head of a download until its file is open, and at that of a streamed body until it has a reader or the
/// request a handler: so validators that are added in the meantime count, no piece of a refused body is handed on, and no file is opened on
/// the event loop's thread.
enum HeadAction {
    /// The body is received.
    case proceed
    /// The body is received as soon as the request has a reader or a handler.
    case waitForReader
    /// The body is refused with this error, unless a reader is attached in a moment.
    case refuse(any Error)
    /// The body is received once this closure was called, on the session's queue. A head replaces the response's.
    case prepare(head: ResponseHead?, @Sendable () throws -> Void)
    /// The response can't be used: the same request is sent again, changed so that it requests the whole.
    case restart(@Sendable (inout TransferRequest) -> Void)
}

/// What a receiver knows about an attempt whose transfer has completed.
struct CompletedAttempt {
    /// Why the attempt has failed; `nil` if it has not.
    let error: (any Error)?
    /// Whether its transfer has received a complete response.
    let isComplete: Bool
    /// Whether the request has validators of the user.
    let hasCustomValidator: Bool
    let listeners: BodyListeners?
    let context: ResponseContext
}

extension ResponseHead {
    /// The announced length of the body that follows, in bytes; `nil` if it is unknown. Responses to `HEAD`, and those with 204 or 304,
    /// have none even if they announce a length (RFC 9110, section 6.4.1).
    func bodyLength(toHead isHead: Bool) -> Int64? {
        expectedBodyLength.map { isHead || statusCode == 204 || statusCode == 304 ? 0 : $0 }
    }
}

/// Why a body was rejected while it was received. The driver adds the request's URL.
struct BodyFailure: Error {
    let kind: TransferFailure.Kind
    let message: String
    let bytesReceived: Int64

    func transferFailure(url: String) -> CurlewError {
        .transferFailed(
            TransferFailure(
                kind: kind, url: url, phase: .receivingBody, message: message, requestWasSent: true, bytesReceived: bytesReceived))
    }
}
