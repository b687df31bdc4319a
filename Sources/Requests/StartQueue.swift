// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Dispatch

/// Runs jobs one at a time: the next one starts when the current one calls `done`. No thread is blocked.
final class StartQueue: Sendable {
    typealias Job = @Sendable (_ done: @escaping @Sendable () -> Void) -> Void

    private struct Jobs {
        var waiting: [Job] = []
        var isBusy = false
    }

    static let shared = StartQueue()

    private let jobs = Lock(Jobs())
    private let queue = DispatchQueue(label: "curlew.requests.start")

    /// Enqueues a job, which runs on the queue's own dispatch queue. It must call `done`, from any thread; further calls have no effect.
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
