// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// Runs tasks one at a time: whether one gives others a turn shows.
package final class SerialTaskExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "curlew.test.tasks")

    package init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
