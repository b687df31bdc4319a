// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// Counts the bytes of a body, and reports them to a `Progress` and a handler.
///
/// Only counts until one of them exists: the `Progress` is created when it is first read. Calls of the handler are coalesced: there is at
/// most one in its queue. Thread-safe.
final class ProgressReporter: Sendable {
    private struct State {
        var completed: Int64 = 0
        var total: Int64 = -1
        var progress: ProgressBox?
        var handler: (@Sendable (Progress) -> Void)?
        var queue: DispatchQueue?
        var isCallPending = false
    }

    /// `Progress` guards its counts itself, but does not say so on every platform.
    private struct ProgressBox: @unchecked Sendable {
        let value: Progress
    }

    private let state: Lock<State>

    /// - Parameter total: the expected number of bytes; −1 if it is unknown.
    init(completed: Int64 = 0, total: Int64 = -1) {
        state = Lock(State(completed: completed, total: total))
    }

    var progress: Progress {
        state.withLock { Self.updatedProgress(&$0).value }
    }

    /// The number of bytes received or sent.
    var count: Int64 { state.withLock { $0.completed } }

    /// Sets the number of bytes received or sent and, unless it is `nil`, the expected total.
    func update(completed: Int64, total: Int64? = nil) {
        let isObserved = state.withLock { state in
            state.completed = completed
            if let total { state.total = total }
            return state.progress != nil || state.handler != nil
        }
        if isObserved { report() }
    }

    private func report() {
        let call = state.withLock { state -> (@Sendable () -> Void)? in
            if state.progress != nil { _ = Self.updatedProgress(&state) }
            return scheduleCall(&state)
        }
        call?()
    }

    func setTotal(_ total: Int64) {
        state.withLock { $0.total = total }
    }

    /// Sets the counts for an attempt that begins at zero, or at the offset of a resumed download. Not reported, as it is no progress.
    func reset(completed: Int64 = 0, total: Int64 = -1) {
        state.withLock {
            $0.completed = completed
            $0.total = total
            if $0.progress != nil { _ = Self.updatedProgress(&$0) }
        }
    }

    /// Restarts at zero, because another attempt or exchange sends the same bytes again. Reported, because otherwise the count would
    /// decrease unannounced.
    func restart(total: Int64 = -1) {
        let (hadBegun, isObserved) = state.withLock { state in
            defer {
                state.completed = 0
                state.total = total
            }
            return (state.completed > 0, state.progress != nil || state.handler != nil)
        }
        if hadBegun, isObserved { report() }
    }

    func setHandler(_ handler: @escaping @Sendable (Progress) -> Void, queue: DispatchQueue) {
        let call = state.withLock { state -> (@Sendable () -> Void)? in
            state.handler = handler
            state.queue = queue
            // Bytes counted before the handler was set are reported at once.
            return state.completed > 0 ? scheduleCall(&state) : nil
        }
        call?()
    }

    private func scheduleCall(_ state: inout State) -> (@Sendable () -> Void)? {
        guard state.handler != nil, let queue = state.queue, !state.isCallPending else { return nil }
        state.isCallPending = true
        return { queue.async { self.callHandler() } }
    }

    private func callHandler() {
        let (handler, progress) = state.withLock { state in
            state.isCallPending = false
            return (state.handler, Self.updatedProgress(&state))
        }
        handler?(progress.value)
    }

    private static func updatedProgress(_ state: inout State) -> ProgressBox {
        let box = state.progress ?? ProgressBox(value: Progress(totalUnitCount: state.total))
        state.progress = box
        box.value.totalUnitCount = state.total
        box.value.completedUnitCount = state.completed
        return box
    }
}
