// SPDX-License-Identifier: Apache-2.0
import Dispatch

// How an operation finishes, on its queue: the body is committed or discarded, the completion closure runs, dependent operations start.

extension URLConnectionOperation {
    /// Handles the completion of an attempt's connection.
    func completed(_ attempt: ConnectionAttempt, with error: (any Error)?) {
        queue.async { [self] in
            guard isCurrent(attempt) else { return }
            let challengeWasCancelled = storage.withLock { $0.cancelledChallenge }
            if challengeWasCancelled {
                fail(URLError.operationError(.userCancelledAuthentication, request))
            } else if let error {
                fail(error)
            } else {
                succeed()
            }
        }
    }

    func cancelledChallenge(of attempt: ConnectionAttempt) {
        storage.withLock { if $0.attempt === attempt { $0.cancelledChallenge = true } }
    }

    /// Finishes the operation, whose body is complete, unless it is finishing already.
    func succeed() {
        guard storage.withLock({ $0.lifecycle.beginFinishing() }) else { return }
        finish(with: nil)
    }

    /// Finishes the operation with an error, unless it is finishing already.
    func fail(_ error: any Error) {
        guard storage.withLock({ $0.lifecycle.beginFinishing() }) else { return }
        finish(with: error.asOperationError(of: request))
    }

    func finishCancelled() {
        finish(with: URLError.operationError(.cancelled, request))
    }

    /// Finishes the operation; the only way to do so.
    private func finish(with error: (any Error)?) {
        let attempt = storage.withLock { storage in
            storage.error = error
            let memory = storage.attempt?.errorSink ?? storage.sink as? MemorySink
            storage.responseData = storage.response == nil ? nil : memory?.data
            return storage.attempt
        }
        if let attempt { detach(attempt) }
        processResponse()
        commitOrDiscardBody(isComplete: attempt?.errorSink == nil)
        if let failure = storage.withLock({ $0.error }) { connection(didFailWithError: failure) } else { connectionDidFinishLoading() }
        if settings.completesBeforeDependents {
            runCompletion { self.queue.async { self.becomeFinished() } }
        } else {
            becomeFinished { self.runCompletion {} }
        }
        postFinish()
    }

    /// Commits the body of an accepted response, and discards another one.
    private func commitOrDiscardBody(isComplete: Bool) {
        let sink = sink
        guard isComplete, error == nil else { return sink.discard() }
        do {
            try sink.commit()
        } catch {
            sink.discard()
            storage.withLock { $0.error = error }
        }
    }

    /// Runs the completion closure and releases it, then calls `done`.
    private func runCompletion(_ done: @escaping @Sendable () -> Void) {
        let (completion, settings) = storage.withLock { storage in
            defer { storage.completion = nil }
            return (storage.completion, storage.settings)
        }
        guard let completion else { return done() }
        let callbacks = settings.completionQueue ?? settings.session.configuration.callbackQueue
        callbacks.async(group: settings.completionGroup) {
            // Retains the operation while its closure runs, as the closure may use it and there may be no other reference.
            withExtendedLifetime(self) { completion() }
            done()
        }
    }

    /// Enters the state `finished`.
    ///
    /// - Parameter enqueue: enqueues what has to be queued before operations that depend on this one can start.
    private func becomeFinished(enqueue: () -> Void = {}) {
        let keys = ["isExecuting", "isFinished"]
        for key in keys { willChangeValue(forKey: key) }
        let (waiters, activity) = storage.withLock { storage in
            storage.lifecycle.finish()
            defer {
                storage.waiters = []
                storage.activity = nil
            }
            return (storage.waiters, storage.activity)
        }
        enqueue()
        storage.withLock { Self.notifyObservers(of: .finished, storage: &$0) }
        for key in keys { didChangeValue(forKey: key) }
        activity?.end()
        for waiter in waiters { waiter() }
    }
}
