// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Dispatch

// The event loop's thread can run tasks as well, which then receive results without a context switch.

@available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
extension CurlTransport {
    /// Runs tasks on the event loop's thread: `withTaskExecutorPreference(transport.taskExecutor) { … }`, or `Task(executorPreference:)`.
    ///
    /// A request awaited by such a task involves no context switch, neither on its way to the loop nor back. In return, the task's code
    /// between two `await`s delays every transfer of the loop, so it must not block: no file access, no contended lock or semaphore, no
    /// `Thread.sleep`, no long computation such as decoding a large body. Run slow work in a task without this preference.
    ///
    /// Actors have their own executors and are not affected. Once the transport is shut down, tasks run on a global queue instead; no task
    /// is lost. Thread-safe, and may outlive the transport.
    ///
    /// With several loops (``TransportConfiguration/loops``) it is the first one's; ``taskExecutors`` has them all. Transfers that a task
    /// starts on a loop's thread run on that loop, unless they share a connection of another, or another has the host's idle connection or
    /// clearly less to do.
    public var taskExecutor: any TaskExecutor { mailbox }

    /// The executors of all loops, each as ``taskExecutor``: for programs that distribute their tasks among them.
    public var taskExecutors: [any TaskExecutor] { mailboxes }
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
