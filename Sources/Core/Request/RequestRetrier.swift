// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Answers whether to try again, and after how many seconds. To be called once, from any thread; later calls do nothing.
@preconcurrency public typealias RequestRetryCompletion = @Sendable (_ shouldRetry: Bool, _ timeDelay: TimeInterval) -> Void

/// Decides whether a failed request is tried again.
@preconcurrency public protocol RequestRetrier: Sendable {
    /// Asks about a failed request: transport, validation and adapter errors; not those of encoding, nor when the request was cancelled
    /// or can't be sent or read again: its body is a stream that was read, pieces of its ``DataRequest/bodyStream()`` were, or it is a
    /// raw connection.
    ///
    /// Called on the session's queue, once for each failed attempt; ``Request/retryCount`` tells how many there were. The request waits
    /// until `completion` is called, it is cancelled, or the session ends.
    func should(_ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion)
}
