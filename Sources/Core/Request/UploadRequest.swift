// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A data request that sends a body out of memory, a file or a stream.
open class UploadRequest: DataRequest, @unchecked Sendable {  // as its superclass
    private let uploadDelegate: UploadTaskDelegate

    init(original: Result<RequestTask, any Error>, delegate: UploadTaskDelegate, interceptor: (any RequestInterceptor)? = nil) {
        uploadDelegate = delegate
        super.init(original: original, delegate: delegate, interceptor: interceptor)
    }

    /// How much of the body was handed to the network; the total is −1 for a stream, until it was sent.
    open var uploadProgress: Progress { uploadDelegate.uploadProgress.progress }

    /// Has `closure` called while the body goes out, on `queue`, at last with the whole of it.
    ///
    /// When a redirect, a challenge or a retry sends the body again, the count restarts and `closure` is called with 0, unless bytes have
    /// been sent again by then.
    /// Calls are dropped while one is waiting for the queue. One closure a request: a later one replaces it.
    @preconcurrency @discardableResult
    public func uploadProgress(queue: DispatchQueue? = nil, closure: @escaping ProgressHandler) -> Self {
        uploadDelegate.uploadProgress.setHandler(closure, queue: queue ?? session.configuration.callbackQueue)
        return self
    }
}
