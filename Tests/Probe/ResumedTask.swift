// SPDX-License-Identifier: Apache-2.0
import CurlewURLSession

/// A download task that resumes by the data of a file, in a process that a test kills; reports its "offset".
final class ResumedTask: NSObject, URLSessionDownloadDelegate {
    private let continuation: AsyncThrowingStream<Void, any Error>.Continuation
    private let target: URL

    private init(_ target: URL, _ continuation: AsyncThrowingStream<Void, any Error>.Continuation) {
        self.target = target
        self.continuation = continuation
    }

    static func run(_ data: URL, to target: URL) async throws {
        let (ends, continuation) = AsyncThrowingStream.makeStream(of: Void.self)
        let session = URLSession(configuration: .default, delegate: ResumedTask(target, continuation), delegateQueue: nil)
        session.downloadTask(withResumeData: try Data(contentsOf: data)).resume()
        session.finishTasksAndInvalidate()
        for try await _ in ends {}
    }

    func urlSession(_: URLSession, downloadTask _: URLSessionDownloadTask, didResumeAtOffset offset: Int64, expectedTotalBytes _: Int64) {
        Probe.report("offset", Int(offset))
    }

    func urlSession(_: URLSession, downloadTask _: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        do {
            try FileManager.default.moveItem(at: location, to: target)
        } catch {
            continuation.finish(throwing: error)
        }
    }

    func urlSession(_: URLSession, task _: URLSessionTask, didCompleteWithError error: (any Error)?) {
        continuation.finish(throwing: error)
    }
}
