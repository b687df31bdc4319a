// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Dispatch

// The event loop's thread can run tasks as well, which then receive results without a context switch.

@available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
extension CurlTransport {
    /// Runs tasks on the event loop's thread, with several loops the first one's.
    package var taskExecutor: any TaskExecutor { mailbox }

    /// The executors of all loops, each as ``taskExecutor``: for programs that distribute their tasks among them.
    package var taskExecutors: [any TaskExecutor] { mailboxes }
}

@available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
extension Mailbox: TaskExecutor {
    /// Runs a job on the thread in its next turn.
    func enqueue(_ job: consuming ExecutorJob) {
        post(CurlTransport.Command.run(UnownedJob(job)))
    }

    func run(_ job: UnownedJob) {
        job.runSynchronously(on: asUnownedTaskExecutor())
    }
}

extension CurlTransport.Command {
    /// Runs a job on the calling thread.
    static func perform(_ job: UnownedJob, of mailbox: Mailbox) {
        // Jobs exist only where task executors do.
        guard #available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *) else { return }
        mailbox.run(job)
    }
}
