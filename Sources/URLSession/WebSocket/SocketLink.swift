// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewURLLoading
import CurlewWebSocket

/// The way from a task's methods to its WebSocket: makes their calls in order, while the task is neither suspended nor without a WebSocket.
final class SocketLink: Sendable {
    typealias Call = @Sendable (Result<WebSocket, any Error>) -> Void

    private struct State {
        /// `nil` before the start.
        var socket: WebSocket?
        /// Why there will be no WebSocket.
        var failure: (any Error)?
        var hasEnded = false
        /// Whether the task is suspended.
        var isHeld = true
        /// Whether a call is being made, or none may be yet.
        var isCalling = false
        var waiting: [Call] = []
    }

    private let state = Lock(State())

    var socket: WebSocket? { state.withLock { $0.socket } }

    /// Makes a call after those before.
    func perform(_ call: @escaping Call) {
        state.withLock { $0.waiting.append(call) }
        makeCalls()
    }

    /// The task has its WebSocket; one that has ended does not take it.
    ///
    /// - Parameter observe: begins to observe it. It is taken before that, as it may have been closed by then, with messages to receive, and
    ///   its calls are made after that, as what the delegate learns comes first.
    func connect(_ socket: WebSocket, observe: () -> Void) {
        let isTaken = state.withLock { state in
            guard !state.hasEnded else { return false }
            state.socket = socket
            state.isCalling = true
            return true
        }
        guard isTaken else { return socket.cancel() }
        observe()
        state.withLock { $0.isCalling = false }
        makeCalls()
    }

    /// Makes calls wait, or not any more.
    func hold(_ isHeld: @autoclosure () -> Bool) {
        // Read inside the lock, so that the latest state of the task counts.
        state.withLock { $0.isHeld = isHeld() }
        makeCalls()
    }

    /// The task has ended: calls are made from now on, whose errors its WebSocket has.
    ///
    /// - Parameter failure: the error without a WebSocket.
    func end(_ failure: any Error) {
        state.withLock { state in
            state.hasEnded = true
            state.failure = failure
        }
        makeCalls()
    }

    private func makeCalls() {
        while true {
            let next = state.withLock { state -> (Call, Result<WebSocket, any Error>)? in
                guard !state.isCalling, !state.waiting.isEmpty, state.hasEnded || !state.isHeld else { return nil }
                guard let target = state.socket.map({ .success($0) }) ?? state.failure.map({ Result.failure($0) }) else { return nil }
                state.isCalling = true
                return (state.waiting.removeFirst(), target)
            }
            guard let (call, target) = next else { return }
            call(target)
            state.withLock { $0.isCalling = false }
        }
    }
}
