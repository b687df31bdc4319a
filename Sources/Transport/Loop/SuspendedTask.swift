// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP
import Dispatch

/// A task that waits for the end of a transfer.
package struct SuspendedTask: Sendable {
    private let continuation: UnsafeContinuation<Void, Never>
    /// Whether it runs on the thread of a loop, and is resumed there.
    private let runsOnLoop: Bool

    /// Takes the continuation of the task that runs on this thread.
    package init(_ continuation: UnsafeContinuation<Void, Never>) {
        self.continuation = continuation
        runsOnLoop = ResumptionBatch.current != nil
    }

    /// Resumes the task, once: at once, or together with those that wait for transfers which the loop completes in the same turn.
    package func resume() {
        guard !runsOnLoop, let batch = ResumptionBatch.current, batch.isOpen else { return continuation.resume() }
        batch.add(continuation)
    }
}

/// The tasks that a loop resumes at the end of a turn.
///
/// To resume a task is to wake one of Swift's threads, which on a busy processor takes the loop's place at once, and gives it back after a
/// task: two changes of threads for each request, a tenth of what it costs. So it is one of these threads that resumes them, one by one,
/// if there are several. Loop's thread only.
final class ResumptionBatch {
    /// That of the loop whose thread this is.
    static var current: ResumptionBatch? {
        ccurlew_thread_pointer().map { Unmanaged<ResumptionBatch>.fromOpaque($0).takeUnretainedValue() }
    }

    /// So many do not wait for the turn's end: the longer tasks wait, the longer nothing new is asked of the loop.
    private static let limit = 16

    /// Whether somebody is going to call ``end()``.
    @exclusivity(unchecked) private(set) var isOpen = false
    /// Those that wait for the end.
    @exclusivity(unchecked) private(set) var continuations: [UnsafeContinuation<Void, Never>] = []

    /// Has the calling thread use it, while `body` runs.
    func use<Result>(_ body: () -> Result) -> Result {
        ccurlew_set_thread_pointer(Unmanaged.passUnretained(self).toOpaque())
        defer { ccurlew_set_thread_pointer(nil) }
        return body()
    }

    /// From here on tasks are kept.
    func begin() {
        isOpen = true
    }

    func add(_ continuation: UnsafeContinuation<Void, Never>) {
        continuations.append(continuation)
        if continuations.count == Self.limit { resumeAll() }
    }

    /// Resumes those that were kept.
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
