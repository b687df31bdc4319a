// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP
import Dispatch

/// A task that awaits the completion of a transfer.
///
/// Resumed at the end of the loop's turn, by one of Swift's threads (``ResumptionBatch``); directly if it runs on the loop's thread, or is
/// the only one of its turn.
package struct SuspendedTask: Sendable {
    private let continuation: UnsafeContinuation<Void, Never>
    /// Whether it runs on a loop's thread, and is resumed there.
    private let runsOnLoop: Bool

    /// Creates it from the continuation of the task that runs on this thread.
    package init(_ continuation: UnsafeContinuation<Void, Never>) {
        self.continuation = continuation
        runsOnLoop = ResumptionBatch.current != nil
    }

    /// Resumes the task, once: immediately, or batched with the tasks that await transfers completed in the same turn.
    package func resume() {
        guard !runsOnLoop, let batch = ResumptionBatch.current, batch.isOpen else { return continuation.resume() }
        batch.add(continuation)
    }
}

/// The tasks that a loop resumes at the end of a turn.
///
/// Resuming a task wakes one of Swift's threads, which on a busy processor preempts the loop immediately and yields after one task: two
/// context switches per request, a tenth of its cost. If there are several tasks, one of Swift's threads therefore resumes them one by one.
/// For the loop's thread only.
final class ResumptionBatch {
    /// The batch of the loop whose thread is calling.
    static var current: ResumptionBatch? {
        ccurlew_thread_pointer().map { $0.object(ResumptionBatch.self) }
    }

    /// The size at which a batch is resumed early: the longer tasks wait, the longer the loop gets no new requests.
    private static let limit = 16

    /// The mailbox of the loop; `nil` in tests.
    let mailbox: Mailbox?

    init(mailbox: Mailbox? = nil) {
        self.mailbox = mailbox
    }

    /// Whether a call of ``end()`` will follow.
    @exclusivity(unchecked) private(set) var isOpen = false
    /// The continuations to resume at the end.
    @exclusivity(unchecked) private(set) var continuations: [UnsafeContinuation<Void, Never>] = []

    /// Makes it the calling thread's batch while `body` runs.
    func use<Result>(_ body: () -> Result) -> Result {
        ccurlew_set_thread_pointer(borrowedPointer(to: self))
        defer { ccurlew_set_thread_pointer(nil) }
        return body()
    }

    /// Begins to collect tasks.
    func begin() {
        isOpen = true
    }

    func add(_ continuation: UnsafeContinuation<Void, Never>) {
        continuations.append(continuation)
        if continuations.count == Self.limit { resumeAll() }
    }

    /// Resumes the collected tasks.
    func end() {
        isOpen = false
        if !continuations.isEmpty { resumeAll() }
    }

    private func resumeAll() {
        if continuations.count == 1 {
            continuations[0].resume()
        } else {
            DispatchQueue.global().async { [continuations] in
                for continuation in continuations { continuation.resume() }
            }
        }
        continuations.removeAll(keepingCapacity: true)
    }
}
