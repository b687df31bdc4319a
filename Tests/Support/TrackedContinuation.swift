// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// A `CheckedContinuation` that the thread sanitizer understands even if it is resumed before its task waits: Swift's runtime does not
/// report that case (seen with 6.3), so a value written by one thread and read by the other would look like a race.
public struct TrackedContinuation<Value: Sendable>: Sendable {
    fileprivate let continuation: CheckedContinuation<Value, Never>
    fileprivate let handOver: NSLock

    /// Resumes the task with a value. Must be called once.
    public func resume(returning value: Value) {
        handOver.withLock {}
        continuation.resume(returning: value)
    }
}

extension TrackedContinuation<Void> {
    /// Resumes the task. Must be called once.
    public func resume() {
        resume(returning: ())
    }
}

/// Same as `withCheckedContinuation`, with a ``TrackedContinuation``.
///
/// Swift's continuations outlast a cancellation, so a wait for what never comes would make a test's time limit wait, too. A wait that has
/// not ended ten seconds after its task was cancelled ends the process.
public func withTrackedContinuation<Value: Sendable>(
    file: StaticString = #file, line: UInt = #line, _ body: (TrackedContinuation<Value>) -> Void
) async -> Value {
    let handOver = NSLock()
    let end = End()
    let value = await withTaskCancellationHandler {
        await withCheckedContinuation { body(TrackedContinuation(continuation: $0, handOver: handOver)) }
    } onCancel: {
        DispatchQueue.global().asyncAfter(deadline: .now() + 10) {
            guard end.isReached else { fatalError("this wait has outlasted its test's time limit", file: file, line: line) }
        }
    }
    end.reach()
    handOver.withLock {}
    return value
}

/// Whether a wait has ended.
private final class End: @unchecked Sendable {
    private let lock = NSLock()
    private var value = false

    var isReached: Bool { lock.withLock { value } }

    func reach() {
        lock.withLock { value = true }
    }
}
