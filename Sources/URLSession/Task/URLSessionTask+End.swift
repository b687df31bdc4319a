// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

// The end of a task: metrics, the file of a download, and then the completion.

extension URLSessionTask {
    /// The request of Core has finished. On its thread.
    func requestEnded(_ request: Request) {
        var outcome = Outcome()
        if let error = request.delegate.error {
            outcome.error = URLError.of(error, self, resumeData: resumeData(of: request))
        } else if let download = request as? DownloadRequest {
            outcome.file = download.fileURL
        }
        outcome.data = request.delegate.data
        if let successor = values.withLock({ $0.successor }) {
            outcome.file = values.withLock { $0.file.take() }
            successor.end(outcome)
            // The data task has ended without a call when the other one took its place.
            values.withLock { values in
                values.state = .completed
                values.hasEnded = true
            }
        } else {
            end(outcome)
        }
    }

    private func resumeData(of request: Request) -> Data? {
        guard let download = request as? DownloadRequest else { return nil }
        return download.resumeData
    }

    /// Ends the task, once: has all calls about it made that are left.
    func end(_ outcome: Outcome) {
        let (isFirst, waiter) = values.withLock { values -> (Bool, UnsafeContinuation<Void, Never>?) in
            guard !values.hasEnded else { return (false, nil) }
            values.hasEnded = true
            values.error = outcome.error
            if let response = outcome.response { values.response = response }
            values.data = outcome.data
            values.file = outcome.file
            let hasCalls = hasDelegate(values)
            guard case .awaited = completion, !hasCalls else { return (true, nil) }
            values.state = .completed
            values.closures = nil
            return (true, values.waiter.take())
        }
        guard isFirst else { return }
        if case .awaited = completion, values.withLock({ $0.state == .completed }) {
            // Without a delegate there is nothing to be called on its queue.
            waiter?.resume()
        } else {
            session.queue.schedule { self.tellEnd(outcome) }
        }
        session.leave(self)
    }

    /// On the delegate queue.
    private func tellEnd(_ outcome: Outcome) {
        values.withLock { $0.state = .completed }
        if hasDelegate {
            let metrics = URLSessionTaskMetrics(self)
            tellNow { (delegate: any URLSessionTaskDelegate, task) in
                delegate.urlSession(task.session, task: task, didFinishCollecting: metrics)
            }
        }
        switch completion {
        case .awaited: break
        case .data(let handler):
            outcome.error == nil ? handler(outcome.data ?? Data(), response, nil) : handler(nil, response, outcome.error)
        case .file(let handler):
            handler(outcome.error == nil ? outcome.file : nil, response, outcome.error)
            removeFile()
        case .delegate: tellDelegate(outcome)
        }
        let waiter = values.withLock { values in
            values.delegate = nil
            values.closures = nil
            return values.waiter.take()
        }
        waiter?.resume()
    }

    private func tellDelegate(_ outcome: Outcome) {
        if let download = self as? URLSessionDownloadTask, outcome.error == nil, let file = outcome.file {
            tellNow { (delegate: any URLSessionDownloadDelegate, task) in
                delegate.urlSession(task.session, downloadTask: download, didFinishDownloadingTo: file)
            }
            removeFile()
        }
        tellNow { (delegate: any URLSessionTaskDelegate, task) in
            delegate.urlSession(task.session, task: task, didCompleteWithError: outcome.error)
        }
    }

    /// Removes the file, unless it was moved.
    private func removeFile() {
        guard let file = values.withLock({ $0.file.take() }) else { return }
        unlink(file.path)
    }

    // MARK: Awaiting

    /// Starts the task and waits for its end; cancelling the waiting task cancels it.
    func runToEnd() async {
        resume()
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                let isComplete = values.withLock { values in
                    if values.state != .completed { values.waiter = continuation }
                    return values.state == .completed
                }
                if isComplete { continuation.resume() }
            }
        } onCancel: {
            cancel()
        }
    }

    /// The response of a task that has completed, or its error.
    func finalResponse() throws -> URLResponse {
        if let error { throw error }
        guard let response else { throw URLError.of(.badServerResponse, self) }
        return response
    }
}
