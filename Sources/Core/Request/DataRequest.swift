// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A request whose response's body is received into memory, or handed on piece by piece.
public class DataRequest: Request, @unchecked Sendable {  // as its superclass
    let receiver: DataReceiver

    init(
        original: Result<RequestTask, any Error>, session: Session, sessionDelegate: SessionDelegate, receiver: DataReceiver,
        sentBody: SentBody? = nil, settings: RequestSettings? = nil
    ) {
        self.receiver = receiver
        super.init(
            original: original,
            driver: RequestDriver(
                session: session, sessionDelegate: sessionDelegate, body: receiver, sentBody: sentBody, settings: settings))
    }

    override var hasBody: Bool { receiver.receivedCount > 0 }

    /// The progress of receiving the body, in decoded bytes; the total is −1 until it is known.
    public var progress: Progress { receiver.downloadProgress.progress }

    /// Calls `closure` while the body is received, and last when it is complete.
    ///
    /// Calls are coalesced: at most one is queued at a time. If bytes have been received already, one is queued at once. A request has one
    /// closure; setting another replaces it.
    ///
    /// - Parameters:
    ///   - queue: where the closure is called; `nil`, the default, is the configuration's ``SessionConfiguration/callbackQueue``.
    ///   - closure: receives the progress.
    @preconcurrency @discardableResult
    public func downloadProgress(queue: DispatchQueue? = nil, closure: @escaping ProgressHandler) -> Self {
        receiver.downloadProgress.setHandler(closure, queue: queue ?? session.configuration.callbackQueue)
        return self
    }

    /// Hands the body to `closure` piece by piece instead of storing it: the response's data is then `nil`.
    ///
    /// Called on the session's queue, in order, before any handler. A slow closure pauses the transfer when 1 MiB is buffered. `nil` drops
    /// the body.
    @preconcurrency @discardableResult
    public func stream(closure: (@Sendable (Data) -> Void)? = nil) -> Self {
        receiver.setReader(on: session.queue, closure.map(BodyBuffer.taker), resume: driver.resumeTransfer)
        driver.attached(.reader)
        return self
    }
}
