// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// Counts bytes, and tells those who want to know.
///
/// Counting is all that happens as long as nobody looks: the `Progress` object is made when it is first asked for, and calls of the handler
/// that have not run yet are not doubled.
final class ProgressReporter: Sendable {
    private struct State {
        var completed: Int64 = 0
        var total: Int64 = -1
        var progress: ProgressBox?
        var handler: Request.ProgressHandler?
        var queue: DispatchQueue?
        var isCallPending = false
    }

    /// `Progress` guards its counts itself, but does not say so on every platform.
    private struct ProgressBox: @unchecked Sendable {
        let value: Progress
    }

    private let state: Lock<State>

    /// Makes a reporter of what is known so far; the total is −1 if nobody knows it.
    init(completed: Int64 = 0, total: Int64 = -1) {
        state = Lock(State(completed: completed, total: total))
    }

    var progress: Progress {
        state.withLock { Self.updatedProgress(&$0).value }
    }

    /// How many bytes have come, or gone.
    var count: Int64 { state.withLock { $0.completed } }

    /// So much has come, or gone.
    func update(completed: Int64, total: Int64? = nil) {
        let isWatched = state.withLock { state in
            state.completed = completed
            if let total { state.total = total }
            return state.progress != nil || state.handler != nil
        }
        if isWatched { tell() }
    }

    private func tell() {
        let call = state.withLock { state -> (@Sendable () -> Void)? in
            if state.progress != nil { _ = Self.updatedProgress(&state) }
            return scheduleCall(&state)
        }
        call?()
    }

    func setTotal(_ total: Int64) {
        state.withLock { $0.total = total }
    }

    /// A new attempt begins at nothing, or where an earlier one ended. That is no progress to tell of.
    func reset(completed: Int64 = 0, total: Int64 = -1) {
        state.withLock {
            $0.completed = completed
            $0.total = total
            if $0.progress != nil { _ = Self.updatedProgress(&$0) }
        }
    }

    /// The same bytes are sent again by another attempt or exchange. Reported, because the count would otherwise just go back.
    func restart(total: Int64 = -1) {
        let (hadBegun, isWatched) = state.withLock { state in
            defer {
                state.completed = 0
                state.total = total
            }
            return (state.completed > 0, state.progress != nil || state.handler != nil)
        }
        if hadBegun, isWatched { tell() }
    }

    func setHandler(_ handler: @escaping Request.ProgressHandler, queue: DispatchQueue) {
        let call = state.withLock { state -> (@Sendable () -> Void)? in
            state.handler = handler
            state.queue = queue
            // What came before the handler did is told at once.
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
