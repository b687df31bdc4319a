// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading
import CurlewWebSocket

/// A call that receives a message: it waits for the WebSocket, and then for the message. It can be stopped without losing one.
final class SocketReceiver: Sendable {
    private enum Stage {
        case waiting
        /// It is being entered at the WebSocket.
        case entering
        case entered(WebSocket, number: Int)
        case stopped
    }

    private let link: SocketLink
    private let stage = Lock(Stage.waiting)

    init(_ link: SocketLink) {
        self.link = link
    }

    /// Begins to wait; calls `body` once, unless the call is stopped.
    func begin(_ body: @escaping @Sendable (Result<WebSocketMessage, any Error>) -> Void) {
        link.perform { [self] socket in
            switch socket {
            case .failure(let error): body(.failure(error))
            case .success(let socket): enter(at: socket, body)
            }
        }
    }

    private func enter(at socket: WebSocket, _ body: @escaping @Sendable (Result<WebSocketMessage, any Error>) -> Void) {
        let isWanted = stage.withLock { stage in
            if case .stopped = stage { return false }
            stage = .entering
            return true
        }
        guard isWanted else { return }
        let number = socket.receive(body)
        let isStopped = stage.withLock { stage in
            if case .stopped = stage { return true }
            stage = .entered(socket, number: number)
            return false
        }
        if isStopped, socket.stopReceiving(number) { body(.failure(CurlewError.cancelled)) }
    }

    /// Stops the call; `false` if `body` is called nevertheless, with a message that has come, or with `CurlewError.cancelled`.
    func stop() -> Bool {
        let stage = stage.withLock { stage in
            defer { stage = .stopped }
            return stage
        }
        switch stage {
        case .waiting, .stopped: return true
        case .entering: return false
        case .entered(let socket, let number): return socket.stopReceiving(number)
        }
    }
}
