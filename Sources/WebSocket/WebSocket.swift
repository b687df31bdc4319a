// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// A WebSocket (RFC 6455): messages in both directions over a connection that stays open.
///
/// Made by ``CurlewCore/SessionManager/webSocket(_:subprotocols:headers:configuration:adapter:)``; it connects at once, and messages may be
/// sent right away. All members may be used from any thread. Letting go of it closes the connection with ``WebSocketCloseCode/goingAway``;
/// letting go of the manager ends it with ``CurlewError/sessionInvalidated``.
///
/// ```swift
/// let socket = manager.webSocket("wss://example.org/chat")
/// try await socket.send("Hello")
/// for try await message in socket.messages { … }
/// ```
public final class WebSocket: Sendable {
    let driver: SocketDriver
    private let task: Task<Void, Never>

    init(_ driver: SocketDriver) {
        self.driver = driver
        task = Task { await driver.run() }
    }

    deinit {
        driver.abandon()
    }

    // MARK: State

    /// How it stands now.
    public var state: WebSocketState { driver.state.update { $0.status } }

    /// How it stands now, and each change.
    public var states: WebSocketStates { WebSocketStates(driver: driver) }

    /// Waits until it is open.
    ///
    /// - Throws: why it never will be: ``WebSocketError``, ``CurlewError``, or what an adapter threw. While it is still being tried to
    ///   connect, it waits. ``CurlewError/cancelled`` when the task that waits is cancelled.
    @discardableResult
    public func open() async throws -> WebSocketHandshake {
        try await driver.state.wait { state -> Result<WebSocketHandshake, any Error>? in
            if case .open(let handshake) = state.status { return .success(handshake) }
            return state.refusal.map { .failure($0) }
        }.get()
    }

    // MARK: Messages

    /// The messages that come in.
    public var messages: WebSocketMessages { WebSocketMessages(socket: self) }

    /// Sends a message, behind those sent before; one sent before the connection stands is kept until then.
    ///
    /// Returns when the message was taken to be sent and not too much else waits (``WebSocketConfiguration/sendBufferSize``). That the
    /// server has it, only the server can say. Cancelling the task that waits ends the wait; the message goes out all the same.
    ///
    /// - Throws: why it will not be sent: ``WebSocketError/closed(_:)`` behind ``close(code:reason:)`` or the server's closing, or why the
    ///   connection is over.
    public func send(_ message: WebSocketMessage) async throws {
        guard try !driver.state.update({ try $0.send(message) }) else { return }
        try await driver.state.wait { $0.mayGoOnSending() }.get()
    }

    /// Sends a text; see ``send(_:)-(WebSocketMessage)``.
    public func send(_ text: String) async throws {
        try await send(.text(text))
    }

    /// Sends bytes; see ``send(_:)-(WebSocketMessage)``.
    public func send(_ data: Data) async throws {
        try await send(.binary(data))
    }

    /// Sends messages as they come, to the last; see ``send(_:)-(WebSocketMessage)``.
    ///
    /// - Throws: what the sequence throws, and why a message will not be sent.
    public func send<Messages: AsyncSequence>(from messages: Messages) async throws where Messages.Element == WebSocketMessage {
        for try await message in messages { try await send(message) }
    }

    /// Sends a ping, which goes before messages that wait, and waits for its pong; how long that took.
    ///
    /// Pings of the server are answered without anybody's doing.
    ///
    /// - Parameter payload: up to 125 bytes that the pong has to repeat; random by default.
    /// - Throws: ``WebSocketError/pingTooLarge(byteCount:)``; why the connection is over, or was lost before the pong.
    @discardableResult
    public func ping(_ payload: Data? = nil) async throws -> Duration {
        let payload = payload ?? SocketDriver.makePingPayload()
        guard payload.count <= FrameHeader.largestControlPayload else { throw WebSocketError.pingTooLarge(byteCount: payload.count) }
        let start = ContinuousClock.now
        let number = try driver.state.update { try $0.ping(payload) }
        try await driver.state.wait { $0.answer(toPing: number) }.get()
        return start.duration(to: .now)
    }

    // MARK: Ending

    /// Closes the connection, behind what was sent, and waits until it is over; what the server still sends is let go.
    ///
    /// At the latest after ``WebSocketConfiguration/closeTimeout`` the connection is cut. Closing again waits for the same end.
    ///
    /// - Parameters:
    ///   - code: 1000 by default; 1000 to 1003, 1007 to 1014, 3000 to 4999, or ``WebSocketCloseCode/noStatus`` for none.
    ///   - reason: for people, up to 123 bytes of UTF-8.
    /// - Returns: what the server's close frame says.
    /// - Throws: ``WebSocketError/invalidClosure(_:)``; why there was no proper end.
    @discardableResult
    public func close(code: WebSocketCloseCode = .normalClosure, reason: String = "") async throws -> WebSocketClosure {
        let closure = WebSocketClosure(code: code, reason: reason)
        guard closure.maySend else { throw WebSocketError.invalidClosure(closure) }
        driver.state.update { $0.close(closure) }
        return try await waitUntilClosed()
    }

    /// Waits until it is over for good, with no other connection to come.
    ///
    /// - Returns: what the server's close frame says, whatever the code.
    /// - Throws: why there was none: ``WebSocketError``, ``CurlewError``.
    @discardableResult
    public func waitUntilClosed() async throws -> WebSocketClosure {
        try await driver.state.wait { $0.end }.get()
    }

    /// Ends it at once, without a word to the server; what waits is lost. It is over with ``CurlewError/cancelled``.
    public func cancel() {
        driver.state.update { state in
            state.finish(.failure(CurlewError.cancelled))
            state.dropInbox()
        }
        task.cancel()
    }
}

extension WebSocketClosure {
    /// Whether a close frame can say so.
    fileprivate var maySend: Bool {
        code.maySend && reason.utf8.count <= CloseFrame.largestReason && (code != .noStatus || reason.isEmpty)
    }
}
