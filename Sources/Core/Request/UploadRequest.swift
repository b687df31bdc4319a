// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A data request that sends a body out of memory, a file or a stream.
open class UploadRequest: DataRequest, @unchecked Sendable {  // as its superclass
    private let sentBody: SentBody

    init(
        original: Result<RequestTask, any Error>, session: Session, sessionDelegate: SessionDelegate, receiver: DataReceiver,
        sentBody: SentBody, interceptor: (any RequestInterceptor)? = nil
    ) {
        self.sentBody = sentBody
        super.init(
            original: original, session: session, sessionDelegate: sessionDelegate, receiver: receiver, sentBody: sentBody,
            interceptor: interceptor)
    }

    /// How much of the body was handed to the network; the total is −1 for a stream, until it was sent.
    open var uploadProgress: Progress { sentBody.progress.progress }

    /// Has `closure` called while the body goes out, on `queue`, at last with the whole of it.
    ///
    /// When a redirect, a challenge or a retry sends the body again, the count restarts and `closure` is called with 0, unless bytes have
    /// been sent again by then.
    /// Calls are dropped while one is waiting for the queue. One closure a request: a later one replaces it.
    @preconcurrency @discardableResult
    public func uploadProgress(queue: DispatchQueue? = nil, closure: @escaping ProgressHandler) -> Self {
        sentBody.progress.setHandler(closure, queue: queue ?? session.configuration.callbackQueue)
        return self
    }
}
