// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Dispatch

// The loop's thread runs tasks too, if they ask for it: then a result reaches who awaits it without a change of threads.

@available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
extension EventLoop {
    /// Runs tasks on the loop's thread: `withTaskExecutorPreference(loop.taskExecutor) { … }`, or `Task(executorPreference:)`.
    ///
    /// A request that such a task awaits costs no change of threads, neither on its way to the loop nor back. In return, what the task does
    /// between its `await`s holds up every transfer of the loop. So it must not block: no file, lock or semaphore that others hold for
    /// long, no `Thread.sleep`, no long computation, such as decoding a large body. What is slow belongs into a task without this preference.
    ///
    /// Actors have executors of their own and are not affected. Once the loop is shut down, tasks run on a global queue instead; none is
    /// lost. May be kept longer than the loop, and used from any thread.
    public var taskExecutor: any TaskExecutor { mailbox }
}

@available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
extension Mailbox: TaskExecutor {
    /// Has the thread run a piece of a task, in its next turn.
    func enqueue(_ job: consuming ExecutorJob) {
        post(EventLoop.Command.run(UnownedJob(job)))
    }

    func run(_ job: UnownedJob) {
        job.runSynchronously(on: asUnownedTaskExecutor())
    }
}

extension EventLoop.Command {
    /// Runs a piece of a task on whatever thread this is.
    static func perform(_ job: UnownedJob, of mailbox: Mailbox) {
        // There are such jobs only where there are such executors.
        guard #available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *) else { return }
        mailbox.run(job)
    }
}
