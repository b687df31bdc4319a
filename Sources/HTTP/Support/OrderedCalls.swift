// SPDX-License-Identifier: Apache-2.0

/// Calls about the changes of a state, which are made in the order of the changes, by one thread at a time.
///
/// A part of the state. A change adds its calls under the state's lock, and then has ``make(_:)`` make those that wait, without the lock:
///
/// ```swift
/// state.withLock { state in
///     state.count += 1
///     state.calls.add { [count = state.count] in observer(count) }
/// }
/// OrderedCalls.make { isCalling in state.withLock { $0.calls.take(isCalling) } }
/// ```
package struct OrderedCalls: Sendable {
    package typealias Call = @Sendable () -> Void

    private var waiting: [Call] = []
    /// Whether a thread makes calls.
    private var isCalling = false

    package init() {}

    /// Whether no call waits.
    package var isEmpty: Bool { waiting.isEmpty }

    /// Adds a call after those that wait.
    package mutating func add(_ call: @escaping Call) { waiting.append(call) }

    /// Returns the calls that the caller has to make; none if another thread makes them.
    ///
    /// - Parameter isCalling: whether the caller is the thread that makes calls.
    package mutating func take(_ isCalling: Bool) -> [Call] {
        guard isCalling || !self.isCalling else { return [] }
        defer { waiting = [] }
        self.isCalling = !waiting.isEmpty
        return waiting
    }

    /// Makes the calls that wait until there are none, unless another thread does: between its call and the next, or above this one on the
    /// stack.
    ///
    /// - Parameter take: returns what ``take(_:)`` does, under the lock.
    package static func make(_ take: (_ isCalling: Bool) -> [Call]) {
        var isCalling = false
        while true {
            let calls = take(isCalling)
            guard !calls.isEmpty else { return }
            isCalling = true
            for call in calls { call() }
        }
    }
}
