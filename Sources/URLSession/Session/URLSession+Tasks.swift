// SPDX-License-Identifier: Apache-2.0
import CurlewURLLoading

// The makers of tasks. A task with a completion handler does not call the delegate's methods for its response, body and completion.

extension URLSession {
    /// The handler of a data or upload task: body, response and error. On the delegate queue.
    public typealias DataHandler = @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    /// The handler of a download task: the file, which is removed when the handler returns, response and error. On the delegate queue.
    public typealias FileHandler = @Sendable (URL?, URLResponse?, (any Error)?) -> Void

    // MARK: Data

    /// Makes a task that receives the response to a request.
    public func dataTask(with request: URLRequest) -> URLSessionDataTask {
        enter { URLSessionDataTask(self, $0, .request(request), .delegate) }
    }

    /// Makes a task that receives the response to a GET of a URL.
    public func dataTask(with url: URL) -> URLSessionDataTask { dataTask(with: URLRequest(url: url)) }

    /// Makes a task that calls a handler with the response to a request.
    @preconcurrency public func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        enter { URLSessionDataTask(self, $0, .request(request), .data(completionHandler)) }
    }

    /// Makes a task that calls a handler with the response to a GET of a URL.
    @preconcurrency public func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask { dataTask(with: URLRequest(url: url), completionHandler: completionHandler) }

    // MARK: Uploads

    /// Makes a task that sends a file as the body of a request.
    public func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        enter { URLSessionUploadTask(self, $0, .upload(request, .file(fileURL)), .delegate) }
    }

    /// Makes a task that sends bytes as the body of a request.
    public func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        enter { URLSessionUploadTask(self, $0, .upload(request, .data(bodyData)), .delegate) }
    }

    /// Makes a task that sends the stream of the delegate's `needNewBodyStream` as the body of a request or, without one, the request's own.
    public func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        enter { URLSessionUploadTask(self, $0, .upload(request, .asked), .delegate) }
    }

    /// Makes a task that sends a file, and calls a handler.
    @preconcurrency public func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        enter { URLSessionUploadTask(self, $0, .upload(request, .file(fileURL)), .data(completionHandler)) }
    }

    /// Makes a task that sends bytes, none if they are `nil`, and calls a handler.
    @preconcurrency public func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        enter { URLSessionUploadTask(self, $0, .upload(request, .data(bodyData ?? Data())), .data(completionHandler)) }
    }

    // MARK: Downloads

    /// Makes a task that downloads the response to a request to a file.
    public func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        enter { URLSessionDownloadTask(self, $0, .request(request), .delegate) }
    }

    /// Makes a task that downloads a URL to a file.
    public func downloadTask(with url: URL) -> URLSessionDownloadTask { downloadTask(with: URLRequest(url: url)) }

    /// Makes a task that resumes a download. The data is that of ``URLSessionDownloadTask/cancel(byProducingResumeData:)``, or of an error
    /// under ``NSURLSessionDownloadTaskResumeData``; other data fails the task.
    public func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        enter { URLSessionDownloadTask(self, $0, .resumedDownload(resumeData), .delegate) }
    }

    /// Makes a task that downloads the response to a request, and calls a handler with the file.
    @preconcurrency public func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        enter { URLSessionDownloadTask(self, $0, .request(request), .file(completionHandler)) }
    }

    /// Makes a task that downloads a URL, and calls a handler with the file.
    @preconcurrency public func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask { downloadTask(with: URLRequest(url: url), completionHandler: completionHandler) }

    /// Makes a task that resumes a download, and calls a handler with the file.
    @preconcurrency public func downloadTask(
        withResumeData resumeData: Data, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        enter { URLSessionDownloadTask(self, $0, .resumedDownload(resumeData), .file(completionHandler)) }
    }
}
