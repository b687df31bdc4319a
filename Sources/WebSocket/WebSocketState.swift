// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The state of a WebSocket.
public enum WebSocketState: Sendable {
    /// Connecting, including the handshake; `attempt` starts at 1, again after each connection that was open.
    case connecting(attempt: Int)
    /// Open.
    case open(WebSocketHandshake)
    /// Waiting before another attempt, after an error.
    case waiting(delay: Duration, error: any Error)
    /// Closing: a close frame was sent or received.
    case closing
    /// Closed for good: with the server's close frame, or the error.
    case closed(Result<WebSocketClosure, any Error>)

    var isClosed: Bool { if case .closed = self { true } else { false } }
}

/// The states of a WebSocket: the current one, then each change, up to and including ``WebSocketState/closed(_:)``.
///
/// A slow reader may miss intermediate states, but never the last one.
public struct WebSocketStates: AsyncSequence, Sendable {
    /// A state.
    public typealias Element = WebSocketState

    let driver: SocketReconnector

    /// Reads the states.
    public struct Iterator: AsyncIteratorProtocol {
        let driver: SocketReconnector
        var lastNumber = 0
        var isFinished = false

        /// Returns the next state; `nil` after the last one, and if the waiting task is cancelled.
        public mutating func next() async -> WebSocketState? {
            guard !isFinished else { return nil }
            let seen = lastNumber
            let next = try? await driver.state.wait { $0.statusNumber > seen ? ($0.status, $0.statusNumber) : nil }
            guard let (state, number) = next else { return nil }
            lastNumber = number
            isFinished = state.isClosed
            return state
        }
    }

    /// Makes an iterator that starts with the current state.
    public func makeAsyncIterator() -> Iterator {
        Iterator(driver: driver)
    }
}

/// The received messages of a WebSocket, in order.
///
/// The sequence ends after a normal closure: by ``WebSocket/close(code:reason:)``, or by the server with 1000, 1001 or no code. Other codes
/// of the server are thrown as ``WebSocketError/closed(_:)``, as is a connection that ended without a close frame (1006); other errors are
/// thrown unchanged. Messages received before the end are returned first. The sequence and its iterators retain the WebSocket.
public struct WebSocketMessages: AsyncSequence, Sendable {
    /// A message.
    public typealias Element = WebSocketMessage

    let socket: WebSocket

    /// Reads the messages.
    public struct Iterator: AsyncIteratorProtocol {
        let socket: WebSocket

        /// Returns the next message; `nil` after a normal closure. When the waiting task is cancelled, throws ``CurlewError/cancelled``;
        /// the connection stays open.
        public mutating func next() async throws -> WebSocketMessage? {
            try await socket.driver.state.wait { $0.nextMessage() }.get()
        }
    }

    /// Makes an iterator. All iterators share the same messages, and each message goes to one of them.
    public func makeAsyncIterator() -> Iterator {
        Iterator(socket: socket)
    }
}
