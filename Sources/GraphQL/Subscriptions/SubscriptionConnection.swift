// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewWebSocket

/// The connection of a client's subscriptions, and those that follow it where lost ones are to be re-established.
///
/// Ends with its last subscription; the next one is begun on another. Its task retains it, and the client and the subscriptions do.
final class SubscriptionConnection: Sendable {
    /// A subscription, which ends when this is released.
    final class Handle: Sendable {
        private let connection: SubscriptionConnection
        private let number: Int

        fileprivate init(_ connection: SubscriptionConnection, _ number: Int) {
            self.connection = connection
            self.number = number
        }

        deinit {
            connection.remove(number)
        }

        /// Returns the next event, a whole message; `nil` after the last one.
        func next() async throws -> Data? {
            try await connection.state.wait { [number] in $0.next(of: number) }.get()
        }

        /// Waits until the operation was requested for the first time, or has ended; throws once the deadline has passed.
        func waitUntilRequested(by deadline: Deadline?) async throws {
            guard let deadline else { return }
            let url = try connection.url.asURL().absoluteString
            try await withLimit(throwing: Deadline.failure(of: url, attempt: 1, during: .connecting)) { [connection, number] in
                try await connection.state.wait { $0.wasRequested(number) ? () : nil }
            } limit: {
                try await Task.sleep(for: deadline.remaining)
            }
        }
    }

    private static let subprotocol = "graphql-transport-ws"

    private let manager: SessionManager
    private let configuration: GraphQLConfiguration
    fileprivate let url: any URLConvertible
    fileprivate let state: Watched<SubscriptionState<WebSocket>>
    private let task = Lock<Task<Void, Never>?>(nil)

    /// Creates a connection, which is opened for its first subscription.
    init(_ client: GraphQLClient) {
        manager = client.manager
        configuration = client.configuration
        url = client.configuration.subscriptionURL ?? client.url
        state = Watched(SubscriptionState(bufferSize: configuration.eventBufferSize, overflow: configuration.overflow))
    }

    /// Adds a subscription; `nil` if the connection is over, or is being lost.
    func begin(_ payload: Data) -> Handle? {
        guard let number = state.update({ $0.begin(payload) }) else { return nil }
        task.withLock { task in
            // For all subscriptions, so without the deadline of the first.
            if task == nil { task = SharedWork.task { await self.run() } }
        }
        return Handle(self, number)
    }

    private func remove(_ number: Int) {
        let isOver = state.update { state in
            state.remove(number)
            return state.isOver
        }
        if isOver { task.withLock { $0 }?.cancel() }
    }

    // MARK: Connections

    private func run() async {
        var failures = 0
        while true {
            // A server that acknowledges, and then fails, is not asked without end.
            var provenAt: ContinuousClock.Instant?
            let end = await runConnection(&provenAt)
            if let provenAt, provenAt <= .now { failures = 0 }
            state.update { $0.lost() }
            guard let end, !state.update({ $0.isOver }) else { return }
            guard let delay = delay(after: end, failures: failures),
                (try? await configuration.webSocket.clock.sleep(for: delay)) != nil
            else { return state.update { $0.fail(Self.shown(end)) } }
            failures += 1
        }
    }

    /// Runs a connection; returns why it has ended, `nil` if no subscription needs it any more.
    ///
    /// - Parameter provenAt: set to when it has had a message of an operation, or will have lasted for the maximum delay.
    private func runConnection(_ provenAt: inout ContinuousClock.Instant?) async -> (any Error)? {
        var current: WebSocket?
        do {
            // Before the WebSocket is open, because the server waits only a few seconds for it.
            let payload = try await withTimeout(
                configuration.webSocket.handshakeTimeout, configuration.webSocket.clock, throwing: WebSocketError.timedOut(.handshake)
            ) { [configuration] in
                try await configuration.connectionPayload?()
            }
            let socket = try open()
            current = socket
            try await initialize(socket, payload)
            provenAt = .now + configuration.webSocket.reconnection.maximumDelay
            state.update { $0.acknowledged(socket) }
            try await receive(from: socket, &provenAt)
            socket.beginClose(WebSocketClosure(code: .normalClosure))
            return nil
        } catch {
            if let current { Self.close(current, after: error) }
            return error
        }
    }

    private func open() throws -> WebSocket {
        var webSocket = configuration.webSocket
        // Another connection begins with `connection_init`.
        webSocket.reconnection = .never
        var options = configuration.options
        options?.deadline = nil
        return manager.webSocket(
            url, subprotocols: [Self.subprotocol], headers: configuration.headers, configuration: webSocket,
            interceptor: configuration.interceptor, options: options)
    }

    /// Requests the connection within the WebSocket, and waits until the server has acknowledged it.
    private func initialize(_ socket: WebSocket, _ payload: [String: JSONValue]?) async throws {
        let handshake = try await socket.open()
        guard handshake.subprotocol == Self.subprotocol else { throw GraphQLClientError.subprotocolNotAccepted(handshake.subprotocol) }
        try await socket.send(ClientMessage(type: "connection_init", payload: payload.map { .object($0) }).encoded())
        try await withTimeout(
            configuration.acknowledgementTimeout, configuration.webSocket.clock, throwing: GraphQLClientError.acknowledgementTimedOut
        ) {
            while true {
                switch try await Self.message(from: socket) {
                case .acknowledged: return
                case .ping(let payload): try await Self.answerPing(payload, on: socket)
                case .pong: break
                case .next, .error, .complete:
                    throw GraphQLClientError.invalidMessage(reason: "a message of an operation before \"connection_ack\"")
                }
            }
        }
    }

    /// Receives messages until no subscription needs the connection any more.
    private func receive(from socket: WebSocket, _ provenAt: inout ContinuousClock.Instant?) async throws {
        while !state.update({ $0.isOver }) {
            switch try await Self.message(from: socket) {
            case .acknowledged: throw GraphQLClientError.invalidMessage(reason: "a second \"connection_ack\"")
            case .ping(let payload): try await Self.answerPing(payload, on: socket)
            case .pong: break
            case let message:
                provenAt = .now
                try await state.wait { $0.receive(message) ? () : nil }
            }
        }
    }

    private static func message(from socket: WebSocket) async throws -> ServerMessage {
        var messages = socket.messages.makeAsyncIterator()
        guard let message = try await messages.next() else {
            // A closure that is normal for a WebSocket is not for its subscriptions.
            throw WebSocketError.closed(try await socket.waitUntilClosed())
        }
        return try ServerMessage(message)
    }

    /// Waits while the send buffer is full, so that a server that only pings does not fill it.
    private static func answerPing(_ payload: JSONValue?, on socket: WebSocket) async throws {
        try await socket.send(ClientMessage(type: "pong", payload: payload).encoded())
    }

    // MARK: Ends

    private static func close(_ socket: WebSocket, after error: any Error) {
        // What is not open yet would be opened first.
        guard case .open = socket.state else { return socket.cancel() }
        switch error {
        case GraphQLClientError.invalidMessage(let reason):
            // A close frame has room for 123 bytes.
            socket.beginClose(WebSocketClosure(code: .graphQLBadRequest, reason: String(reason.unicodeScalars.prefix(30))))
        case GraphQLClientError.acknowledgementTimedOut:
            socket.beginClose(WebSocketClosure(code: .graphQLAcknowledgementTimeout, reason: "Connection acknowledgement timeout"))
        case GraphQLClientError.subprotocolNotAccepted:
            socket.beginClose(WebSocketClosure(code: .graphQLSubprotocolNotAcceptable, reason: "Subprotocol not acceptable"))
        default: socket.beginClose(WebSocketClosure(code: .normalClosure))
        }
    }

    /// The error that the subscriptions end with.
    private static func shown(_ error: any Error) -> any Error {
        if case WebSocketError.closed(let closure) = error { return GraphQLClientError.closed(closure) }
        return error
    }

    /// The error that the policy is asked about: the timeouts of this protocol are part of the handshake.
    private static func judged(_ error: any Error) -> any Error {
        switch error {
        case GraphQLClientError.acknowledgementTimedOut: WebSocketError.timedOut(.handshake)
        case WebSocketError.closed(let closure) where closure.code == .graphQLInitialisationTimeout: WebSocketError.timedOut(.handshake)
        default: error
        }
    }

    /// Returns the delay before another connection; `nil` for none.
    private func delay(after error: any Error, failures: Int) -> Duration? {
        let policy = configuration.webSocket.reconnection
        guard failures < policy.limit ?? .max, policy.shouldReconnect(Self.judged(error)) else { return nil }
        if case WebSocketError.handshakeRejected(let rejection) = error, let asked = RetryAfter(rejection.response) {
            return asked.delay(upTo: policy.maximumDelay)
        }
        let backoff = Backoff(
            first: policy.firstDelay.seconds, factor: Double.maximum(policy.factor, 1), limit: policy.maximumDelay.seconds)
        return .seconds(backoff.delay(after: failures, jitter: policy.jitter()))
    }
}
