// SPDX-License-Identifier: Apache-2.0

/// A value guarded by a lock, whose changes can be awaited.
///
/// Built on `NSCondition` rather than `Synchronization.Mutex`, which the thread sanitizer does not support on Linux.
package final class Monitor<State>: @unchecked Sendable {  // every access to `state` is inside the condition's lock
    private let condition = NSCondition()
    private var state: State

    package init(_ state: State) {
        self.state = state
    }

    /// Runs `body` with exclusive access to the state and wakes waiting threads. Not recursive.
    package func update<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        condition.lock()
        defer {
            condition.broadcast()
            condition.unlock()
        }
        return try body(&state)
    }

    /// Runs `body` with exclusive access to the state without waking waiting threads.
    package func read<Result>(_ body: (State) throws -> Result) rethrows -> Result {
        condition.lock()
        defer { condition.unlock() }
        return try body(state)
    }

    /// Waits until `isMet` holds for the state. Returns false on timeout.
    package func wait(timeout: Duration, until isMet: (State) -> Bool) -> Bool {
        let deadline = Date(timeIntervalSinceNow: timeout.inSeconds)
        condition.lock()
        defer { condition.unlock() }
        while !isMet(state) {
            guard condition.wait(until: deadline) else { return isMet(state) }
        }
        return true
    }
}

extension Duration {
    package var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }

    /// Returns the time remaining since `start`, in whole milliseconds for `poll`; at least 0.
    package func millisecondsLeft(since start: ContinuousClock.Instant) -> Int32 {
        let left = (self - start.duration(to: .now)).inSeconds * 1000
        return Int32(min(max(left.rounded(.up), 0), 1e9))
    }
}
