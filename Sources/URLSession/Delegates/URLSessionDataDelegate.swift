// SPDX-License-Identifier: Apache-2.0
import CurlewURLLoading

/// Receives the responses and bodies of data and upload tasks without a completion handler.
@preconcurrency public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
    /// The head of a response was received: decides whether its body is.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)

    /// The same as the method with a handler, in `async` form.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition

    /// The body goes to a file, as the disposition was ``URLSession/ResponseDisposition/becomeDownload``: the download task has the place of
    /// the data task from now on.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)

    /// Never called: no data task becomes a stream task.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)

    /// A piece of the body was received. A slow method slows down the transfer.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)

    /// A response is about to be stored in the cache: completes with what is stored, or `nil` for nothing.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void)

    /// The same as the method with a handler, in `async` form.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse?
}

extension URLSessionDataDelegate {
    /// Calls the `async` form.
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        session.calls.askAsync(self, .response) {
            await self.urlSession(session, dataTask: dataTask, didReceive: response)
        } answered: {
            completionHandler($0)
        }
    }

    /// Receives the body.
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition {
        DelegateCall.noteDefault(of: self, .response)
        return .allow
    }

    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask) {
        DelegateCall.noteDefault(of: self, in: session)
    }

    /// Does nothing.
    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask) {}

    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        DelegateCall.noteDefault(of: self, in: session)
    }

    /// Calls the `async` form.
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        let shown = Shown(proposedResponse)
        session.calls.askAsync(self, .caching) {
            Shown(await self.urlSession(session, dataTask: dataTask, willCacheResponse: shown.value))
        } answered: {
            completionHandler($0.value)
        }
    }

    /// Stores the proposed response.
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? {
        DelegateCall.noteDefault(of: self, .caching)
        return proposedResponse
    }
}

/// Receives the files of download tasks without a completion handler.
@preconcurrency public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// The file is complete. It is removed when the method returns, so move it, or open it.
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// A part of the body was written: bytes since the last call, bytes so far, and the length, −1 (`NSURLSessionTransferSizeUnknown`) if it is
    /// unknown.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64)

    /// A download was resumed: the offset, and the length, −1 (`NSURLSessionTransferSizeUnknown`) if it is unknown.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64, expectedTotalBytes: Int64)
}

extension URLSessionDownloadDelegate {
    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) { DelegateCall.noteDefault(of: self, in: session) }

    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64, expectedTotalBytes: Int64
    ) { DelegateCall.noteDefault(of: self, in: session) }
}

/// Receives the events of WebSocket tasks.
@preconcurrency public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
    /// The handshake has succeeded, with a subprotocol if one was agreed on (RFC 6455, section 1.9).
    func urlSession(_ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)

    /// The peer has sent a close frame (RFC 6455, section 5.5.1).
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?)
}

extension URLSessionWebSocketDelegate {
    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(_ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?) {
        DelegateCall.noteDefault(of: self, in: session)
    }

    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?
    ) { DelegateCall.noteDefault(of: self, in: session) }
}

/// Receives the events of stream tasks.
@preconcurrency public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {
    /// The reading side is closed: there are no more bytes to read.
    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask)

    /// The writing side is closed.
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask)

    /// Never called: routes are not watched for stream tasks.
    func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask)

    /// The streams that ``URLSessionStreamTask/captureStreams()`` has asked for; the task has ended.
    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream, outputStream: OutputStream)
}

extension URLSessionStreamDelegate {
    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {
        DelegateCall.noteDefault(of: self, in: session)
    }

    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) {
        DelegateCall.noteDefault(of: self, in: session)
    }

    /// Does nothing.
    public func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask) {}

    /// Does nothing; if this is a task's delegate, the session's is called.
    public func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream, outputStream: OutputStream
    ) { DelegateCall.noteDefault(of: self, in: session) }
}
