// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// A `CheckedContinuation` that the thread sanitizer understands even if it is resumed before its task waits: Swift's runtime does not
/// report that case (seen with 6.3), so a value written by one thread and read by the other would look like a race.
package struct TrackedContinuation<Value: Sendable>: Sendable {
    fileprivate let continuation: CheckedContinuation<Value, Never>
    fileprivate let handOver: NSLock

    /// Resumes the task with a value. Must be called once.
    package func resume(returning value: Value) {
        handOver.withLock {}
        continuation.resume(returning: value)
    }
}

extension TrackedContinuation<Void> {
    /// Resumes the task. Must be called once.
    package func resume() {
        resume(returning: ())
    }
}

/// Same as `withCheckedContinuation`, with a ``TrackedContinuation``.
package func withTrackedContinuation<Value: Sendable>(_ body: (TrackedContinuation<Value>) -> Void) async -> Value {
    let handOver = NSLock()
    let value = await withCheckedContinuation { body(TrackedContinuation(continuation: $0, handOver: handOver)) }
    handOver.withLock {}
    return value
}
