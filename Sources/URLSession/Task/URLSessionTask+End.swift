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
            outcome.error = values.withLock { $0.failure } ?? URLError.of(error, self, resumeData: resumeData(of: request))
        } else if let download = request as? DownloadRequest {
            outcome.file = download.fileURL
        }
        outcome.data = request.delegate.data
        if let successor = values.withLock({ $0.successor }) {
            // The data task has ended without a call when the other one took its place.
            outcome.file = values.withLock { values in
                values.state = .completed
                values.hasEnded = true
                return values.file.take()
            }
            successor.end(outcome)
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
        updateProgress()
        let (isFirst, wait, waiters) = values.withLock { values -> (Bool, ConnectivityWait?, Waiters?) in
            guard !values.hasEnded else { return (false, nil, nil) }
            values.hasEnded = true
            values.error = outcome.error
            if let response = outcome.response { values.response = response }
            values.data = outcome.data
            values.file = outcome.file
            let wait = values.wait.take()
            let hasCalls = hasDelegate(values)
            guard case .awaited = completion, !hasCalls else { return (true, wait, nil) }
            values.state = .completed
            values.closures = nil
            values.isOver = true
            return (true, wait, values.takeWaiters())
        }
        guard isFirst else { return }
        wait?.stop()
        session.leave(self) {
            // A task that is awaited, without a delegate, has nothing to be called on its queue.
            if let waiters { waiters.resume() } else { session.queue.schedule { self.notifyEnd(outcome) } }
        }
    }

    /// On the delegate queue.
    private func notifyEnd(_ outcome: Outcome) {
        values.withLock { $0.state = .completed }
        if hasDelegate {
            let metrics = URLSessionTaskMetrics(self)
            notifyNow { (delegate: any URLSessionTaskDelegate, task) in
                delegate.urlSession(task.session, task: task, didFinishCollecting: metrics)
            }
        }
        switch completion {
        case .awaited: break
        // A task that has failed shows its response as its property.
        case .data(let handler):
            outcome.error == nil ? handler(outcome.data ?? Data(), response, nil) : handler(nil, nil, outcome.error)
        case .file(let handler):
            outcome.error == nil ? handler(outcome.file, response, nil) : handler(nil, nil, outcome.error)
            removeFile()
        case .delegate: notifyDelegate(outcome)
        }
        let waiters = values.withLock { values in
            values.delegate = nil
            values.closures = nil
            values.isOver = true
            return values.takeWaiters()
        }
        waiters.resume()
    }

    private func notifyDelegate(_ outcome: Outcome) {
        if let task = self as? URLSessionDataTask, let collected = values.withLock({ $0.collected.take() }) { task.give(collected) }
        if let download = self as? URLSessionDownloadTask, outcome.error == nil, let file = outcome.file {
            notifyNow { (delegate: any URLSessionDownloadDelegate, task) in
                delegate.urlSession(task.session, downloadTask: download, didFinishDownloadingTo: file)
            }
            removeFile()
        }
        notifyNow { (delegate: any URLSessionTaskDelegate, task) in
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
            await waitForEnd()
        } onCancel: {
            cancel()
        }
    }

    /// Waits until the task has completed, and the last calls about it were made.
    func waitForEnd() async { await wait { $0.isOver } }

    /// Waits for a body that is read as it is received, which begins to be received only when it is taken; `nil` if the task has ended without.
    func madeBody() async -> ReadBody? {
        await wait { $0.body != nil || $0.isOver }
        return values.withLock { $0.body.take() }
    }

    /// Hands over a body that is read as it is received.
    func hand(over body: ReadBody) { wake { $0.body = body } }

    /// Hands over a piece of a body that is loaded without a network.
    func hand(over piece: Data) { wake { $0.localPiece = ($0.localPiece ?? Data()) + piece } }

    /// Has a piece loaded, and waits for it; `nil` if the task has ended without.
    func nextPiece(_ load: LocalLoad) async -> Data? {
        while true {
            load.readNext()
            await wait { $0.localPiece != nil || $0.isOver }
            let (piece, isOver) = values.withLock { ($0.localPiece.take(), $0.isOver) }
            // Of two tasks that read, the other may have taken it.
            if piece != nil || isOver { return piece }
        }
    }

    private func wake(_ change: (inout Values) -> Void) {
        let waiters = values.withLock { values in
            change(&values)
            return values.takeWaiters()
        }
        waiters.resume()
    }

    private func wait(until isTrue: (Values) -> Bool) async {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            let mustWait = values.withLock { values in
                guard !isTrue(values) else { return false }
                if values.waiter == nil { values.waiter = continuation } else { values.otherWaiters.append(continuation) }
                return true
            }
            if !mustWait { continuation.resume() }
        }
    }

    /// The response of a task that has completed, or its error.
    func finalResponse() throws -> URLResponse {
        if let error { throw error }
        guard let response else { throw URLError.of(.badServerResponse, self) }
        return response
    }
}

/// Tasks that have waited.
private struct Waiters {
    var first: UnsafeContinuation<Void, Never>?
    var others: [UnsafeContinuation<Void, Never>]

    func resume() {
        first?.resume()
        for other in others { other.resume() }
    }
}

extension URLSessionTask.Values {
    /// Ends all waits, which have to be resumed after unlocking.
    fileprivate mutating func takeWaiters() -> Waiters {
        defer { otherWaiters = [] }
        return Waiters(first: waiter.take(), others: otherWaiters)
    }
}
