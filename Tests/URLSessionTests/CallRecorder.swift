// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewURLSession

/// A delegate of a session that records its calls in their order, and gives the answers that a test wants.
final class CallRecorder: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    struct Answers: Sendable {
        var response = URLSession.ResponseDisposition.allow
        var challenge: (@Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?))?
        /// Called with each piece of a body.
        var piece: (@Sendable (Data) -> Void)?
    }

    struct Seen: Sendable {
        var response: URLResponse?
        var body = Data()
        var largestPiece = 0
        var file: Data?
        var written: [Int64] = []
        var metrics: [URLSessionTaskMetrics] = []
        var errors: [(any Error)?] = []
    }

    /// The names of the calls; those of pieces and of written bytes once for a row of them.
    let calls = Log<String>()
    /// An element for each task that has completed.
    let completions = Log<Void>()
    private let answers: Answers
    private let state = Lock(Seen())

    var seen: Seen { state.withLock { $0 } }

    init(_ answers: Answers = Answers()) {
        self.answers = answers
    }

    private func note(_ name: String, _ change: (inout Seen) -> Void = { _ in }) {
        if calls.elements.last != name || (name != "data" && name != "written") { calls.append(name) }
        state.withLock { change(&$0) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        note("challenge")
        let answer = answers.challenge?(challenge) ?? (.performDefaultHandling, nil)
        completionHandler(answer.0, answer.1)
    }

    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) { note("waiting") }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note("response") { $0.response = response }
        completionHandler(answers.response)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask) {
        note("became download")
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note("data") { seen in
            seen.body += data
            seen.largestPiece = max(seen.largestPiece, data.count)
        }
        answers.piece?(data)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        note("written") { $0.written.append(totalBytesWritten) }
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        note("finished") { $0.file = try? Data(contentsOf: location) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        note("metrics") { $0.metrics.append(metrics) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note("complete") { $0.errors.append(error) }
        completions.append(())
    }
}
