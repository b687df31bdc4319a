// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewURLSession
import Testing

extension LoopbackServer {
    /// The URL of a path.
    func address(_ path: String) throws -> URL { try #require(URL(string: url(path))) }
}

extension URLSessionTaskTransactionMetrics {
    /// Whether the times of a new connection with TLS are known and in order.
    var hasTimesOfTLS: Bool {
        let times = [connectStartDate, secureConnectionStartDate, secureConnectionEndDate, connectEndDate, requestStartDate]
        let dates = times.compactMap { $0 }
        return dates.count == 5 && dates == dates.sorted() && secureConnectionEndDate == connectEndDate
    }
}

/// Notes every call in its order, and decides as the closures say.
final class RecordingDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {  // set before use
    let calls = Log<String>()
    let bodies = Log<Data>()
    let errors = Log<(any Error)?>()
    let metrics = Log<URLSessionTaskMetrics>()
    let queues = Log<OperationQueue?>()
    var disposition = URLSession.ResponseDisposition.allow
    var redirect: @Sendable (URLRequest) -> URLRequest? = { $0 }
    var stream: @Sendable () -> InputStream? = { nil }
    var atFile: @Sendable (URL) -> Void = { _ in }

    private func note(_ call: String) {
        calls.append(call)
        queues.append(OperationQueue.current)
    }

    /// Waits for the task's completion.
    func completion() async -> (any Error)? {
        await errors.wait(for: 1)
        return errors.elements.last ?? nil
    }

    /// The calls without repetitions that follow each other.
    var order: [String] { calls.elements.reduce(into: []) { if $0.last != $1 { $0.append($1) } } }

    var body: Data { bodies.elements.reduce(Data(), +) }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { note("invalid") }

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { calls.append("created \(task.taskIdentifier)") }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        note("redirect \(response.statusCode)")
        completionHandler(redirect(request))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        note("stream")
        completionHandler(stream())
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) { note("sent") }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        note("metrics")
        self.metrics.append(metrics)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note("complete")
        errors.append(error)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note("response")
        completionHandler(disposition)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask) {
        note("became")
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note("data")
        bodies.append(data)
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        note("file")
        atFile(location)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) { note("written") }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64, expectedTotalBytes: Int64
    ) { note("resumed \(fileOffset) of \(expectedTotalBytes)") }
}
