// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A data request that sends a body from memory, a file or a stream.
public final class UploadRequest: DataRequest, @unchecked Sendable {  // as its superclass
    private let sentBody: SentBody

    init(
        original: Result<RequestTask, any Error>, session: Session, sessionDelegate: SessionDelegate, receiver: DataReceiver,
        sentBody: SentBody, settings: RequestSettings? = nil
    ) {
        self.sentBody = sentBody
        super.init(
            original: original, session: session, sessionDelegate: sessionDelegate, receiver: receiver, sentBody: sentBody,
            settings: settings)
    }

    /// The progress of sending the body, in bytes handed to the network; the total is −1 for a stream until it was sent.
    public var uploadProgress: Progress { sentBody.progress.progress }

    /// Calls `closure` while the body is sent, and last when all of it was sent.
    ///
    /// When a redirect, a challenge or a retry sends the body again, the count restarts and `closure` is called with 0, unless bytes have
    /// been sent again by then. Calls are coalesced: at most one is queued at a time. A request has one closure; setting another replaces
    /// it.
    ///
    /// - Parameters:
    ///   - queue: where the closure is called; `nil`, the default, is the configuration's ``SessionConfiguration/callbackQueue``.
    ///   - closure: receives the progress.
    @preconcurrency @discardableResult
    public func uploadProgress(queue: DispatchQueue? = nil, closure: @escaping ProgressHandler) -> Self {
        sentBody.progress.setHandler(closure, queue: queue ?? session.configuration.callbackQueue)
        return self
    }
}
