// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

/// The key of the data in an error's `userInfo` by which a failed download can be resumed: `URLSession.downloadTask(withResumeData:)`.
///
/// With it stays the part of the file that was received, in the directory of temporary files, until a download has used it.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

/// A task that writes the body of a response to a file, which the delegate or handler has to move before it returns.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {  // as its superclass
    /// Cancels the task without resume data.
    open override func cancel() {
        cancel { ($0 as? DownloadRequest)?.cancel(createResumeData: false) ?? $0.cancel() }
    }

    /// Cancels the task, and calls `completionHandler` on the delegate queue with the data that resumes it; with `nil` if it can't be
    /// resumed, or has completed.
    @preconcurrency open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        let (request, isUnstarted) = values.withLock { values in
            (values.request, values.request == nil && (values.state == .running || values.state == .suspended))
        }
        // One that was not started, or waits for its date or a network, has nothing but what it was made with.
        let given = isUnstarted ? givenResumeData : nil
        cancel(resumeData: given) { $0.cancel() }
        guard let request else { return session.queue.schedule { completionHandler(given) } }
        request.whenFinished { [self, queue = session.queue] in
            // The task ends before, also if another thread was just starting it. One that was a data task is ended by that.
            if request is DownloadRequest { requestEnded(request) }
            let data = request.delegate.error == nil ? nil : (request as? DownloadRequest)?.resumeData
            queue.schedule { completionHandler(data) }
        }
    }

    /// Cancels the task; returns the data that resumes it, or `nil`.
    open func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in cancel { continuation.resume(returning: $0) } }
    }

    /// Takes the place of a data task, with its request.
    ///
    /// - Parameter ends: whether the data task ends by that, in the same step; then `false` if it has ended, or is about to.
    func take(over task: URLSessionDataTask, ending ends: Bool) -> Bool {
        let taken = task.values.withLock { values -> (Request?, URLResponse?, (any URLSessionTaskDelegate)?, State)? in
            let taken = (values.request, values.response, values.delegate, values.state)
            if ends {
                guard !values.hasEnded, values.state != .canceling else { return nil }
                (values.state, values.hasEnded) = (.completed, true)
            }
            values.successor = self
            return taken
        }
        guard let taken else { return false }
        values.withLock { values in
            (values.request, values.response, values.delegate, values.state) = taken
            values.isStarted = true
        }
        return true
    }

    /// Notes written bytes; they are reported together to a slow delegate.
    func wrote(_ count: Int64, _ total: Int64, _ expected: Int64) {
        let mustSchedule = values.withLock { values in
            values.written.unreported += count
            values.written.total = total
            values.written.expected = expected
            defer { values.written.isScheduled = true }
            return !values.written.isScheduled
        }
        guard mustSchedule else { return }
        notify { (delegate: any URLSessionDownloadDelegate, _) in
            let written = self.values.withLock { values in
                defer { values.written.unreported = 0 }
                values.written.isScheduled = false
                return values.written
            }
            guard written.unreported > 0 else { return }
            delegate.urlSession(
                self.session, downloadTask: self, didWriteData: written.unreported, totalBytesWritten: written.total,
                totalBytesExpectedToWrite: written.expected)
        }
    }
}
