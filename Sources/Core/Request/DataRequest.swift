// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A request whose response's body is kept in memory, or handed on piece by piece.
open class DataRequest: Request, @unchecked Sendable {  // as its superclass
    let receiver: DataReceiver

    init(
        original: Result<RequestTask, any Error>, session: Session, sessionDelegate: SessionDelegate, receiver: DataReceiver,
        sentBody: SentBody? = nil, interceptor: (any RequestInterceptor)? = nil
    ) {
        self.receiver = receiver
        super.init(
            original: original,
            driver: RequestDriver(session: session, sessionDelegate: sessionDelegate, body: receiver, sentBody: sentBody),
            interceptor: interceptor)
    }

    override var hasBody: Bool { receiver.receivedCount > 0 }

    /// How much of the body has come, after decoding; the total is −1 as long as nobody knows it.
    open var progress: Progress { receiver.downloadProgress.progress }

    /// Has `closure` called while the body comes in, on `queue`, at last with the whole of it.
    ///
    /// Calls are dropped while one is waiting for the queue. One closure a request: a later one replaces it. When bytes have come already,
    /// it is called at once.
    @preconcurrency @discardableResult
    public func downloadProgress(queue: DispatchQueue? = nil, closure: @escaping ProgressHandler) -> Self {
        receiver.downloadProgress.setHandler(closure, queue: queue ?? session.configuration.callbackQueue)
        return self
    }

    /// Hands the body to `closure` piece by piece instead of keeping it: the response's data is then `nil`.
    ///
    /// Called on the session's queue, in order, before any handler. A closure that is slow slows down the transfer; none of the body waits
    /// in memory beyond 1 MiB. `nil` drops the body.
    @preconcurrency @discardableResult
    open func stream(closure: (@Sendable (Data) -> Void)? = nil) -> Self {
        receiver.setReader(on: session.queue, closure, resume: driver.resumeTransfer)
        driver.attached(.reader)
        return self
    }
}

extension DataRequest {
    /// Has the beginning of the body received where the response is refused at its head, for ``refusedBody``; without it the transfer ends
    /// there. For requests whose body is streamed; before the body is asked for.
    ///
    /// - Parameters:
    ///   - limit: how many bytes at the most.
    ///   - timeout: how long the request waits for them before it fails.
    package func keepRefusedBody(upTo limit: Int, for timeout: Duration) {
        receiver.keepRefusedBodies(RefusedBody.Policy(limit: limit, timeout: timeout))
    }

    /// What came of the body that was refused; `nil` for none.
    package var refusedBody: Data? { receiver.refusedBody }
}
