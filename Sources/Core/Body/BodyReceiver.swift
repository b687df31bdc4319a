// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Receives the body of a request's response, and brings it to where it belongs: into memory, to a reader, to a file.
///
/// A request has one receiver for all its attempts. Within an attempt the calls come in the order of this page. What a call throws fails the
/// request, unless it has failed before.
protocol BodyReceiver: AnyObject, Sendable {
    // MARK: What has come. Any thread.

    /// What ``TaskDelegate/data`` is.
    var data: Data? { get }
    /// The number of bytes of the body that have come, decoded.
    var receivedCount: Int64 { get }

    // MARK: While the transfer runs. On the event loop's thread.

    /// Whether the body is received only once it is asked for, and its head validated before its first piece.
    var waitsForReader: Bool { get }

    /// Takes the head of the response that was accepted.
    func receive(_ head: ResponseHead, _ exchange: Exchange) throws -> HeadAction

    /// Takes a piece of its body.
    func receive(_ bytes: UnsafeRawBufferPointer) throws -> ReceiveAction

    /// The last transfer of the attempt has completed.
    func complete(_ outcome: TransferCompletion) throws

    // MARK: When the attempt is concluded

    /// Whether the rest takes the session's queue: it may block, or runs users' code.
    var concludesOnQueue: Bool { get }

    /// Brings what has come into the state in which validators look at it. On the session's queue; skipped unless ``concludesOnQueue``.
    func settle(_ attempt: CompletedAttempt) throws

    /// Brings what has come to where it belongs or, for a failed attempt, puts it away; after validation. On the session's queue if
    /// ``concludesOnQueue``.
    func commit(_ attempt: CompletedAttempt) throws

    /// Withholds from readers what they have not got yet, until it is known whether another attempt takes its place; `false` where a reader
    /// has got a part of it, so that a retry would not give what a first attempt gives.
    func holdForRetry() -> Bool

    /// Whether a failed attempt has left something that is of no use if the request ends with another error.
    var isDiscardable: Bool { get }

    /// Removes what a failed attempt has left. On the session's queue.
    func discard()

    /// Another attempt begins: forgets what the last one brought.
    func reset()
}

extension BodyReceiver {
    var waitsForReader: Bool { false }
    func complete(_ outcome: TransferCompletion) throws {}
    var isDiscardable: Bool { false }
    func discard() {}
}

/// What a receiver knows about the exchange whose response it takes.
struct Exchange: Sendable {
    /// Whether the request's method is HEAD.
    let isHead: Bool
    /// `nil` where the session's delegate has no closure for bodies.
    let listeners: BodyListeners?
}

/// The closures of a session's delegate that concern the bodies of one task, to be called on the session's queue.
struct BodyListeners: Sendable {
    /// Where the closures are called: the session's queue.
    let queue: DispatchQueue
    /// Resumes the transfer.
    let resume: @Sendable () -> Void
    /// Takes the body's pieces in place of the request.
    var takePiece: (@Sendable (Data) -> Void)?
    /// Takes a complete file.
    var takeFile: (@Sendable (URL) -> Void)?
    /// Is told of written bytes: of this piece, so far, in all.
    var written: (@Sendable (Int64, Int64, Int64) -> Void)?
    /// Is told that a download is resumed: the offset, and the length in all.
    var resumed: (@Sendable (Int64, Int64) -> Void)?
    /// Is told that the body goes to a file.
    var becameDownload: (@Sendable () -> Void)?
}

/// What follows from a head.
enum HeadAction {
    /// The body is received.
    case proceed
    /// The body is received as soon as the request has a reader or a handler.
    case waitForReader
    /// The body is refused with this error, unless a reader is attached in a moment.
    case refuse(any Error)
    /// The body is received once this was called, on the session's queue. The head takes the place of the response's, where there is one.
    case prepare(head: ResponseHead?, @Sendable () throws -> Void)
    /// The response is of no use: the same request is sent again, changed so that it asks for the whole.
    case restart(@Sendable (inout TransferRequest) -> Void)
}

/// What a receiver knows about an attempt whose transfer has completed.
struct CompletedAttempt {
    /// Why it has failed so far.
    let error: (any Error)?
    /// Whether its transfer brought a complete response.
    let isComplete: Bool
    /// Whether users' validators look at it.
    let hasCustomValidator: Bool
    let listeners: BodyListeners?
    let context: ResponseContext
}

/// A body that was refused while it came; the request's URL is added to it.
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
