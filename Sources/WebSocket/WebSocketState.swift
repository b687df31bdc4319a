// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// How a WebSocket stands.
public enum WebSocketState: Sendable {
    /// Connecting, and shaking hands; the attempt is 1 for the first, and for the first after a connection that stood.
    case connecting(attempt: Int)
    /// Open.
    case open(WebSocketHandshake)
    /// Waiting before another attempt, after a failure.
    case waiting(delay: Duration, error: any Error)
    /// Closing: a close frame was sent, or came.
    case closing
    /// Over for good: with the server's close frame, or why there was none.
    case closed(Result<WebSocketClosure, any Error>)

    var isClosed: Bool { if case .closed = self { true } else { false } }
}

/// The states of a WebSocket: the present one, then each change, up to and with ``WebSocketState/closed(_:)``.
///
/// Who reads slowly misses what was in between, never the last.
public struct WebSocketStates: AsyncSequence, Sendable {
    /// A state.
    public typealias Element = WebSocketState

    let driver: SocketDriver

    /// Reads the states.
    public struct Iterator: AsyncIteratorProtocol {
        let driver: SocketDriver
        var lastNumber = 0
        var isOver = false

        /// The next state; `nil` behind the last one, and when the task that waits is cancelled.
        public mutating func next() async -> WebSocketState? {
            guard !isOver else { return nil }
            let seen = lastNumber
            let next = try? await driver.state.wait { $0.statusNumber > seen ? ($0.status, $0.statusNumber) : nil }
            guard let (state, number) = next else { return nil }
            lastNumber = number
            isOver = state.isClosed
            return state
        }
    }

    /// An iterator, which begins with the present state.
    public func makeAsyncIterator() -> Iterator {
        Iterator(driver: driver)
    }
}

/// The messages of a WebSocket, one after the other.
///
/// The sequence ends when the connection is closed in order: by ``WebSocket/close(code:reason:)``, or by the server with 1000, 1001 or
/// no code. Another code of the server's is thrown as ``WebSocketError/closed(_:)``, and so is a connection that ended without a word
/// (1006); other failures as they are. What came before the end is given out first. As long as the sequence or an iterator is kept, the
/// WebSocket is.
public struct WebSocketMessages: AsyncSequence, Sendable {
    /// A message.
    public typealias Element = WebSocketMessage

    let socket: WebSocket

    /// Reads the messages.
    public struct Iterator: AsyncIteratorProtocol {
        let socket: WebSocket

        /// The next message; `nil` at a proper end. Cancelling the task that waits ends the wait with ``CurlewError/cancelled``; the
        /// connection stands.
        public mutating func next() async throws -> WebSocketMessage? {
            try await socket.driver.state.wait { $0.nextMessage() }.get()
        }
    }

    /// An iterator; all of them read from the same messages, and each message goes to one.
    public func makeAsyncIterator() -> Iterator {
        Iterator(socket: socket)
    }
}
