// SPDX-License-Identifier: Apache-2.0
import CurlewURLSession
import Foundation

// A download with a delegate, as it is written for Apple's systems: it shows its progress, is paused half-way, and resumed.

final class Downloader: NSObject, URLSessionDownloadDelegate, @unchecked Sendable {  // what changes does so on the session's queue
    private let destination: URL
    private let pauseAt: Int64
    private var continuation: CheckedContinuation<Data?, any Error>?
    private var shownTenth: Int64 = -1
    private var isPaused = false
    /// Where the download was resumed, in bytes.
    private(set) var offset: Int64 = 0

    private lazy var queue: OperationQueue = {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        return queue
    }()
    private lazy var session = URLSession(configuration: .ephemeral, delegate: self, delegateQueue: queue)

    /// - Parameter pauseAt: how many bytes are received before the download is paused.
    init(to destination: URL, pauseAt: Int64) {
        self.destination = destination
        self.pauseAt = pauseAt
    }

    /// Downloads to the end, or to the pause: then returns what resumes it.
    func download(_ url: URL) async throws -> Data? { try await run { $0.downloadTask(with: url) } }

    /// Downloads the rest.
    func resume(with data: Data) async throws -> Data? { try await run { $0.downloadTask(withResumeData: data) } }

    /// Lets go of the session, which retains its delegate.
    func finish() { session.finishTasksAndInvalidate() }

    private func run(_ task: @escaping @Sendable (URLSession) -> URLSessionDownloadTask) async throws -> Data? {
        try await withCheckedThrowingContinuation { continuation in
            queue.addOperation {
                self.continuation = continuation
                task(self.session).resume()
            }
        }
    }

    // MARK: URLSessionDownloadDelegate

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        let tenth = 10 * totalBytesWritten / max(totalBytesExpectedToWrite, 1)
        if tenth > shownTenth {
            shownTenth = tenth
            print("\(10 * tenth) %")
        }
        guard !isPaused, totalBytesWritten >= pauseAt else { return }
        isPaused = true
        downloadTask.cancel { data in
            self.continuation?.resume(returning: data)
            self.continuation = nil
        }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64, expectedTotalBytes: Int64
    ) {
        offset = fileOffset
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        do {
            // The file is gone when this returns.
            try FileManager.default.moveItem(at: location, to: destination)
            continuation?.resume(returning: nil)
        } catch {
            continuation?.resume(throwing: error)
        }
        continuation = nil
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let error, !isPaused || (error as? URLError)?.code != .cancelled else { return }
        continuation?.resume(throwing: error)
        continuation = nil
    }
}

let size = 4_000_000
let server = try ArchiveServer(size: size)
defer { server.stop() }
let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString, isDirectory: true)
try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
defer { try? FileManager.default.removeItem(at: folder) }
let file = folder.appendingPathComponent("archive.bin")

let downloader = Downloader(to: file, pauseAt: Int64(size / 2))
guard let rest = try await downloader.download(server.url) else {
    print("it was complete before it could be paused")
    exit(1)
}
print("paused; \(rest.count) bytes of resume data")
server.sendAll()
guard try await downloader.resume(with: rest) == nil else { exit(1) }
downloader.finish()
let received = try Data(contentsOf: file)
print("resumed at byte \(downloader.offset), \(received.count) bytes")
guard received == server.content, downloader.offset > 0 else { exit(1) }
