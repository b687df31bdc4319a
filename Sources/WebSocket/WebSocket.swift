// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// A WebSocket (RFC 6455): messages in both directions over a connection that stays open.
///
/// Made by ``CurlewCore/SessionManager/webSocket(_:subprotocols:headers:configuration:adapter:interceptor:options:)``; it connects
/// immediately, and messages may be sent right away. Thread-safe. Releasing it closes the connection with
/// ``WebSocketCloseCode/goingAway``; releasing the manager ends it with ``CurlewError/sessionInvalidated``.
///
/// ```swift
/// let socket = manager.webSocket("wss://example.org/chat")
/// try await socket.send("Hello")
/// for try await message in socket.messages { … }
/// ```
public final class WebSocket: Sendable {
    let driver: SocketReconnector
    private let task: Task<Void, Never>

    init(_ driver: SocketReconnector) {
        self.driver = driver
        task = Task { await driver.run() }
    }

    deinit {
        driver.abandon()
    }

    // MARK: State

    /// The current state.
    public var state: WebSocketState { driver.state.update { $0.status } }

    /// The current state and each change.
    public var states: WebSocketStates { WebSocketStates(driver: driver) }

    /// Waits until the WebSocket is open, through failed attempts if it reconnects.
    ///
    /// - Throws: the error that ended it: ``WebSocketError``, ``CurlewError``, or what an adapter threw; ``CurlewError/cancelled`` if the
    ///   waiting task is cancelled.
    @discardableResult
    public func open() async throws -> WebSocketHandshake {
        try await driver.state.wait { state -> Result<WebSocketHandshake, any Error>? in
            if case .open(let handshake) = state.status { return .success(handshake) }
            return state.terminalError.map { .failure($0) }
        }.get()
    }

    // MARK: Messages

    /// The received messages.
    public var messages: WebSocketMessages { WebSocketMessages(socket: self) }

    /// Sends a message, after those sent before; one sent before the connection is open is queued until it is.
    ///
    /// Returns when the message is queued and the send buffer is below its limit (``WebSocketConfiguration/sendBufferSize``); only the
    /// server can confirm that it was received. Cancelling the waiting task ends the wait; the message is sent nevertheless.
    ///
    /// - Throws: the error that prevents sending: ``WebSocketError/closed(_:)`` after ``close(code:reason:)`` or when the server has
    ///   closed, or the error that ended the connection.
    public func send(_ message: WebSocketMessage) async throws {
        guard try !driver.state.update({ try $0.send(message) }) else { return }
        try await driver.state.wait { $0.sendOutcome() }.get()
    }

    /// Sends a text message; see ``send(_:)-(WebSocketMessage)``.
    public func send(_ text: String) async throws {
        try await send(.text(text))
    }

    /// Sends a binary message; see ``send(_:)-(WebSocketMessage)``.
    public func send(_ data: Data) async throws {
        try await send(.binary(data))
    }

    /// Sends the messages of a sequence, in order, to its end; see ``send(_:)-(WebSocketMessage)``.
    ///
    /// - Throws: the error of the sequence, or of the first message that can't be sent.
    public func send<Messages: AsyncSequence>(from messages: Messages) async throws where Messages.Element == WebSocketMessage {
        for try await message in messages { try await send(message) }
    }

    /// Sends a ping, ahead of queued messages, waits for its pong, and returns the round-trip time.
    ///
    /// The server's pings are answered automatically.
    ///
    /// - Parameter payload: up to 125 bytes, which the pong repeats; random by default.
    /// - Throws: ``WebSocketError/pingTooLarge(byteCount:)``; the error that ended or lost the connection before the pong.
    @discardableResult
    public func ping(_ payload: Data? = nil) async throws -> Duration {
        let payload = payload ?? SocketReconnector.makePingPayload()
        guard payload.count <= FrameHeader.largestControlPayload else { throw WebSocketError.pingTooLarge(byteCount: payload.count) }
        let start = ContinuousClock.now
        let number = try driver.state.update { try $0.ping(payload) }
        try await driver.state.wait { $0.pongOutcome(forPing: number) }.get()
        return start.duration(to: .now)
    }

    // MARK: Ending

    /// Closes the connection after the messages already sent, and waits until it is closed; messages still received are discarded.
    ///
    /// The connection is aborted after ``WebSocketConfiguration/closeTimeout``. Closing again waits for the same result.
    ///
    /// - Parameters:
    ///   - code: 1000 by default; 1000 to 1003, 1007 to 1014, 3000 to 4999, or ``WebSocketCloseCode/noStatus`` to send none.
    ///   - reason: a human-readable reason, up to 123 bytes of UTF-8.
    /// - Returns: the contents of the server's close frame.
    /// - Throws: ``WebSocketError/invalidClosure(_:)``; the error if the connection ended without the server's close frame.
    @discardableResult
    public func close(code: WebSocketCloseCode = .normalClosure, reason: String = "") async throws -> WebSocketClosure {
        let closure = WebSocketClosure(code: code, reason: reason)
        guard closure.maySend else { throw WebSocketError.invalidClosure(closure) }
        driver.state.update { $0.close(closure) }
        return try await waitUntilClosed()
    }

    /// Waits until the WebSocket is closed for good, with no reconnection to follow.
    ///
    /// - Returns: the contents of the server's close frame, whichever its code.
    /// - Throws: the error if there was none: ``WebSocketError``, ``CurlewError``.
    @discardableResult
    public func waitUntilClosed() async throws -> WebSocketClosure {
        try await driver.state.wait { $0.end }.get()
    }

    /// Aborts the connection immediately, without a close frame; queued messages are lost. The WebSocket ends with
    /// ``CurlewError/cancelled``.
    public func cancel() {
        driver.state.update { state in
            state.finish(.failure(CurlewError.cancelled))
            state.discardInbox()
        }
        task.cancel()
    }
}

extension WebSocketClosure {
    /// Whether a close frame can carry it.
    fileprivate var maySend: Bool {
        code.maySend && reason.utf8.count <= CloseFrame.largestReason && (code != .noStatus || reason.isEmpty)
    }
}
