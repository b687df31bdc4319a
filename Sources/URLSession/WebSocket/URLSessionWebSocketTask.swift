// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading
import CurlewWebSocket

/// A task that is a WebSocket (RFC 6455): messages in both directions over a connection that stays open.
///
/// Messages that are sent before it is open wait for that, and ``receive()`` returns one message. The server's pings are answered. Messages
/// are compressed where the server supports it (permessage-deflate; RFC 7692). A handshake takes part in redirects, cookies and challenges
/// as other requests do, except for NTLM and Negotiate; if the server rejects it the task fails with `URLError.badServerResponse`, and
/// ``URLSessionTask/response`` is the rejection, as it is the response with status 101 otherwise.
///
/// The task has completed when the server has closed, with an error only if it did so without a close frame. Messages that were received
/// before can be read even then. While the task is suspended, messages to send and calls that receive wait. An open WebSocket has no
/// timeout.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {  // as its superclass
    /// A message.
    public enum Message: Sendable {
        /// A binary message.
        case data(Data)
        /// A text message.
        case string(String)
    }

    private let protocols: [String]
    private let link = SocketLink()
    private let largestMessage = Lock(1 << 20)
    /// `nil` before the start.
    private let handshakes = Lock<WebSocketHandshakes?>(nil)

    init(_ session: URLSession, _ identifier: Int, _ request: URLRequest, _ protocols: [String]) {
        self.protocols = protocols
        super.init(session, identifier, .connection(request), .delegate)
    }

    // MARK: Properties

    /// The largest message that is received, in bytes after decompression; 1 MiB by default. After a larger one the task fails with
    /// `URLError.dataLengthExceedsMaximum`, and the server gets the code ``CloseCode/messageTooBig``. To be set before
    /// ``resume()``.
    open var maximumMessageSize: Int {
        get { largestMessage.withLock { $0 } }
        set { largestMessage.withLock { $0 = max(newValue, 0) } }
    }

    /// The code of the server's close frame; ``CloseCode/invalid`` before it, and if the connection ended without one. Known when
    /// ``receive()`` fails because of it.
    open var closeCode: CloseCode { (link.socket?.peerClosure).map { CloseCode($0.code) } ?? .invalid }

    /// The reason in the server's close frame, in UTF-8; `nil` before it, and without one.
    open var closeReason: Data? { (link.socket?.peerClosure).flatMap(\.reasonBytes) }

    /// The number of bytes of the messages that were written to the network, before compression.
    open override var countOfBytesSent: Int64 { link.socket?.messageBytes.sent ?? 0 }

    /// The number of bytes of the messages that were received, after decompression.
    open override var countOfBytesReceived: Int64 { link.socket?.messageBytes.received ?? 0 }

    // MARK: Messages

    /// Sends a message after those sent before. Returns when it was written to the network; only the server can confirm that it was
    /// received.
    ///
    /// Cancelling the task that waits ends the wait with `URLError.cancelled`; the message is sent nevertheless.
    ///
    /// - Throws: `URLError`: why the message is not sent, `networkConnectionLost` if the server has closed.
    open func send(_ message: Message) async throws {
        try await CallWait<Void>.value { wait in self.send(message) { wait.end($0) } }
    }

    /// Sends a message as ``send(_:)`` does; calls `completionHandler` on the delegate queue.
    @preconcurrency open func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        send(message) { [queue = session.queue] result in queue.schedule { completionHandler(result.failure) } }
    }

    private func send(_ message: Message, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        link.perform { [self] socket in
            switch socket {
            case .success(let socket): socket.send(WebSocketMessage(message)) { done(self.shown($0)) }
            case .failure(let error): done(.failure(error))
            }
        }
    }

    /// Waits for the next message. Of several calls each gets one, in their order.
    ///
    /// Cancelling the task that waits ends the wait with `URLError.cancelled`; the WebSocket stays open, and no message is lost.
    ///
    /// - Throws: `URLError`: `networkConnectionLost` if the server has closed, and all messages before were received; `cancelled` after
    ///   ``cancel(with:reason:)``; or the task's error, after ``URLSessionTask/response`` has become the response that rejects a handshake.
    open func receive() async throws -> Message {
        let place = SocketReceiver(link)
        return try await CallWait<Message>.value { [self] wait in
            place.begin { wait.end(self.shown($0).map { Message($0) }) }
        } cancel: {
            place.stop()
        }
    }

    /// Calls `completionHandler` on the delegate queue with the next message, as ``receive()`` returns it, or the error.
    @preconcurrency open func receive(completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        SocketReceiver(link).begin { [self] result in
            let message = shown(result).map { Message($0) }
            session.queue.schedule { completionHandler(message) }
        }
    }

    /// Sends a ping, as soon as the WebSocket is open and before messages that wait; calls `pongReceiveHandler` on the delegate queue when
    /// its pong was received, or with the error by which there is none. Handlers are called in the order of their pings.
    @preconcurrency open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
        let done = { @Sendable [self] (result: Result<Void, any Error>) in
            let error = shown(result).failure
            session.queue.schedule { pongReceiveHandler(error) }
        }
        link.perform { socket in
            switch socket {
            case .success(let socket): socket.ping(done)
            case .failure(let error): done(.failure(error))
            }
        }
    }

    // MARK: Ending

    /// Closes the WebSocket: messages already sent go first, those that are received from now on are dropped. The task completes with the
    /// server's close frame, whose code and reason ``closeCode`` and ``closeReason`` are, or after 10 seconds without one with
    /// `URLError.timedOut`. One that was not started fails with `URLError.cancelled`.
    ///
    /// - Parameters:
    ///   - closeCode: the code; none is sent for those that may not be sent (RFC 6455, section 7.4), ``CloseCode/noStatusReceived`` among
    ///     them.
    ///   - reason: text in UTF-8, up to 123 bytes; `nil` for none. Other bytes are not sent, nor is a reason without a code.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        guard let socket = link.socket else { return cancel() }
        let isFresh = values.withLock { values in
            guard values.state == .running || values.state == .suspended else { return false }
            values.state = .canceling
            return true
        }
        guard isFresh else { return }
        link.hold(false)
        socket.beginClose(WebSocketClosure(closeCode, reason))
    }

    /// Starts the task, or resumes it after ``suspend()``. Does nothing for one that runs, or was cancelled.
    open override func resume() {
        super.resume()
        link.hold(state == .suspended)
    }

    /// Suspends the task: calls that send or receive wait from now on. The connection stays open, and what the server sends is kept for
    /// later.
    open override func suspend() {
        super.suspend()
        link.hold(state == .suspended)
    }

    override func endUnstarted(with error: any Error) {
        link.socket?.cancel()
        link.end(error)
        super.endUnstarted(with: error)
    }

    // MARK: The connection

    override func connect(_ request: URLRequest?) {
        guard let request else { return }
        var configuration = WebSocketConfiguration()
        configuration.maximumMessageSize = maximumMessageSize
        configuration.maximumFrameSize = maximumMessageSize
        configuration.handshakeTimeout = .seconds(connectionTimeout(of: request))
        let handshakes = WebSocketHandshakes(self, request)
        self.handshakes.withLock { $0 = handshakes }
        configuration.layer = handshakes
        configuration.reconnection = handshakes.reconnection
        var options = connectionOptions(of: request)
        options.certificateURL = request.url?.absoluteString.withHTTPScheme
        let socket = session.curlew.webSocket(subprotocols: protocols, configuration: configuration, options: options) {
            try await handshakes.nextRequest()
        }
        link.connect(socket) {
            socket.whenOpen { self.opened($0, handshakes) }
            socket.whenFailed { self.failed($0) }
            socket.whenConcluded { self.concluded($0) }
        }
    }

    override var measured: (metrics: TaskMetrics, records: [ExchangeRecord]) {
        handshakes.withLock { $0 }?.measured ?? super.measured
    }

    private func opened(_ handshake: WebSocketHandshake, _ handshakes: WebSocketHandshakes) {
        let response = currentRequest?.url.flatMap { HTTPURLResponse(handshake.response, of: $0) }
        values.withLock { $0.response = response }
        handshakes.accepted(handshake.response, in: session.curlew.session)
        notify { (delegate: any URLSessionWebSocketDelegate, task) in
            delegate.urlSession(task.session, webSocketTask: self, didOpenWithProtocol: handshake.subprotocol)
        }
    }

    /// The calls for messages fail next: what their errors are about is to be seen by then.
    private func failed(_ error: any Error) {
        var response: URLResponse?
        if case WebSocketError.handshakeRejected(let rejection) = error, let url = currentRequest?.url {
            response = HTTPURLResponse(rejection.response, of: url)
        }
        let failure = shown(error)
        values.withLock { [response] values in
            guard !values.hasEnded else { return }
            values.error = failure
            if let response { values.response = response }
        }
    }

    private func concluded(_ result: Result<WebSocketClosure, any Error>) {
        var outcome = Outcome()
        switch result {
        case .success(let closure):
            notify { (delegate: any URLSessionWebSocketDelegate, task) in
                let code = CloseCode(closure.code)
                delegate.urlSession(task.session, webSocketTask: self, didCloseWith: code, reason: closure.reasonBytes)
            }
        case .failure(let error):
            outcome.error = shown(error)
        }
        link.end(outcome.error ?? URLError.of(.networkConnectionLost, self))
        guard let socket = link.socket else { return end(outcome) }
        // After the calls that a suspended task has made wait, which fail now, but not before this call returns.
        socket.afterCalls { [outcome] in self.end(outcome) }
    }

    private func shown(_ error: any Error) -> any Error { URLError.of(webSocket: error, self) }

    private func shown<Value>(_ result: Result<Value, any Error>) -> Result<Value, any Error> { result.mapError { shown($0) } }
}

extension WebSocketClosure {
    /// `nil` without a reason.
    fileprivate var reasonBytes: Data? { reason.isEmpty ? nil : Data(reason.utf8) }
}

extension WebSocketMessage {
    fileprivate init(_ message: URLSessionWebSocketTask.Message) {
        switch message {
        case .data(let data): self = .binary(data)
        case .string(let text): self = .text(text)
        }
    }
}

extension URLSessionWebSocketTask.Message {
    fileprivate init(_ message: WebSocketMessage) {
        switch message {
        case .binary(let data): self = .data(data)
        case .text(let text): self = .string(text)
        }
    }
}
