// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Dispatch

/// Starts one thing after the other: the next when the last says that it is done. Nothing waits in a thread.
final class StartQueue: Sendable {
    typealias Job = @Sendable (_ done: @escaping @Sendable () -> Void) -> Void

    private struct Jobs {
        var waiting: [Job] = []
        var isBusy = false
    }

    static let shared = StartQueue()

    private let jobs = Lock(Jobs())
    private let queue = DispatchQueue(label: "curlew.requests.start")

    /// Has a job run when its turn has come, on a queue of its own. It calls `done` once, from any thread.
    func add(_ job: @escaping Job) {
        jobs.withLock { $0.waiting.append(job) }
        next()
    }

    private func next() {
        let job = jobs.withLock { jobs -> Job? in
            guard !jobs.isBusy, !jobs.waiting.isEmpty else { return nil }
            jobs.isBusy = true
            return jobs.waiting.removeFirst()
        }
        guard let job else { return }
        queue.async {
            let isDone = Lock(false)
            job {
                let isFirst = isDone.withLock { isDone in
                    defer { isDone = true }
                    return !isDone
                }
                guard isFirst else { return }
                self.jobs.withLock { $0.isBusy = false }
                self.next()
            }
        }
    }
}
