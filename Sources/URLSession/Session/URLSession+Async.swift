// SPDX-License-Identifier: Apache-2.0
import CurlewURLLoading

// Cancelling the task that awaits one of these cancels the transfer; it then throws `URLError.cancelled`. A delegate is called before the
// session's, except for the response, body and completion, which the function returns.

extension URLSession {
    /// Receives the response to a request.
    ///
    /// - Parameters:
    ///   - request: what is sent.
    ///   - delegate: for this task; `nil`, the default, for the session's only.
    /// - Throws: `URLError`.
    public func data(for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (Data, URLResponse) {
        try await data(enter(delegate) { URLSessionDataTask(self, $0, .request(request), .awaited) })
    }

    /// Receives the response to a GET of a URL.
    public func data(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Sends a file as the body of a request, and receives the response.
    public func upload(
        for request: URLRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await data(enter(delegate) { URLSessionUploadTask(self, $0, .upload(request, .file(fileURL)), .awaited) })
    }

    /// Sends bytes as the body of a request, and receives the response.
    public func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await data(enter(delegate) { URLSessionUploadTask(self, $0, .upload(request, .data(bodyData)), .awaited) })
    }

    /// Downloads the response to a request to a file, which stays until the caller removes it. It is on the device of the directory of temporary
    /// files: moving it to another device copies it.
    public func download(for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (URL, URLResponse) {
        try await file(enter(delegate) { URLSessionDownloadTask(self, $0, .request(request), .awaited) })
    }

    /// Downloads a URL to a file, as ``download(for:delegate:)`` does.
    public func download(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (URL, URLResponse) {
        try await download(for: URLRequest(url: url), delegate: delegate)
    }

    /// Resumes a download, as ``downloadTask(withResumeData:)`` does.
    public func download(resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (URL, URLResponse) {
        try await file(enter(delegate) { URLSessionDownloadTask(self, $0, .resumedDownload(resumeData), .awaited) })
    }

    private func data(_ task: URLSessionDataTask) async throws -> (Data, URLResponse) {
        await task.runToEnd()
        let response = try task.finalResponse()
        return (task.values.withLock { $0.data } ?? Data(), response)
    }

    private func file(_ task: URLSessionDownloadTask) async throws -> (URL, URLResponse) {
        await task.runToEnd()
        let response = try task.finalResponse()
        guard let file = task.values.withLock({ $0.file }) else { throw URLError.of(.cannotOpenFile, task) }
        return (file, response)
    }
}
