// SPDX-License-Identifier: Apache-2.0

/// A `CheckedContinuation` that the thread sanitizer understands even if it is resumed before its task waits: Swift's runtime does not tell
/// it of that case (seen with 6.3), and what one thread has made and the other reads then looks like a race.
public struct TrackedContinuation<Value: Sendable>: Sendable {
    fileprivate let continuation: CheckedContinuation<Value, Never>
    fileprivate let handOver: NSLock

    /// Resumes the task with a value; once.
    public func resume(returning value: Value) {
        handOver.withLock {}
        continuation.resume(returning: value)
    }
}

extension TrackedContinuation<Void> {
    /// Resumes the task; once.
    public func resume() {
        resume(returning: ())
    }
}

/// As `withCheckedContinuation`, with a ``TrackedContinuation``.
public func withTrackedContinuation<Value: Sendable>(_ body: (TrackedContinuation<Value>) -> Void) async -> Value {
    let handOver = NSLock()
    let value = await withCheckedContinuation { body(TrackedContinuation(continuation: $0, handOver: handOver)) }
    handOver.withLock {}
    return value
}
