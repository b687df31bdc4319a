// SPDX-License-Identifier: Apache-2.0
import CurlewURLLoading

// The tasks of a session, from their creation to their completion.

extension URLSession {
    /// The tasks that have not completed, by their numbers.
    var orderedTasks: [URLSessionTask] {
        state.withLock { Array($0.tasks.values) }.sorted { $0.taskIdentifier < $1.taskIdentifier }
    }

    /// The same by their kinds.
    var sortedTasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        let tasks = orderedTasks
        let uploads = tasks.compactMap { $0 as? URLSessionUploadTask }
        let data = tasks.filter { !($0 is URLSessionUploadTask) }.compactMap { $0 as? URLSessionDataTask }
        return (data, uploads, tasks.compactMap { $0 as? URLSessionDownloadTask })
    }

    /// Enters a task, and notifies its delegate of it or, where that has no method for it, the session's. One that is made after the session's
    /// end fails when it is resumed.
    ///
    /// - Parameter own: the task's delegate; `nil`, the default, for none yet.
    func enter<Task: URLSessionTask>(_ own: (any URLSessionTaskDelegate)? = nil, _ make: (_ identifier: Int) -> Task) -> Task {
        let identifier = state.withLock { state in
            state.lastTask += 1
            return state.lastTask
        }
        let task = make(identifier)
        if let own { task.delegate = own }
        let (isOpen, delegate) = state.withLock { state -> (Bool, (any URLSessionDelegate)?) in
            guard state.stage == .open else { return (false, nil) }
            state.tasks[identifier] = task
            return (true, state.delegate)
        }
        guard isOpen else { return task }
        if let own, DelegateCall.hasNoted(task, own) { return task }
        if let delegate = delegate as? any URLSessionTaskDelegate { delegate.urlSession(self, didCreateTask: task) }
        return task
    }

    /// Returns the number of a new task, which is not entered.
    func makeIdentifier() -> Int {
        state.withLock { state in
            state.lastTask += 1
            return state.lastTask
        }
    }

    /// Puts a task in the place of another one, which it continues.
    func replace(_ task: URLSessionTask, by other: URLSessionTask) {
        state.withLock { state in
            state.tasks[task.taskIdentifier] = nil
            state.tasks[other.taskIdentifier] = other
        }
    }

    /// Whether a task may run: it was made before the session's end.
    func knows(_ task: URLSessionTask) -> Bool { state.withLock { $0.tasks[task.taskIdentifier] != nil } }

    /// Removes a task that has completed, before its last calls are scheduled.
    ///
    /// - Parameter tell: schedules the last calls about it, before that of the session's end.
    func leave(_ task: URLSessionTask, _ notify: () -> Void) {
        let isLast = state.withLock { state in
            state.tasks[task.taskIdentifier] = nil
            guard state.stage == .finishing, state.tasks.isEmpty else { return false }
            state.stage = .invalidated
            return true
        }
        notify()
        if isLast { end() }
    }

    /// The last call of the delegate, after all others.
    func end() {
        curlew.invalidateAndCancel()
        queue.schedule { [self] in
            let delegate = state.withLock { $0.delegate.take() }
            delegate?.urlSession(self, didBecomeInvalidWithError: nil)
        }
    }
}
