// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// Makes the connections of a WebSocket, one at a time, until it is closed for good.
///
/// It holds no reference to its ``WebSocket``, so that releasing that closes the connection. Both share only the ``SocketState``, in a
/// ``Watched``, which resumes the tasks that wait for a change.
final class SocketReconnector: Sendable {
    let state: Watched<SocketState>
    private let configuration: WebSocketConfiguration
    /// Makes the request of a connection.
    private let makeRequest: @Sendable () async throws -> URLRequest
    private let subprotocols: [String]
    private let adapter: (any RequestAdapter)?
    private let manager: Lock<Weak>

    /// Weak, so that releasing the manager ends its WebSockets, like its requests.
    private struct Weak: Sendable {
        weak var manager: SessionManager?
    }

    init(
        _ makeRequest: @escaping @Sendable () async throws -> URLRequest, subprotocols: [String], configuration: WebSocketConfiguration,
        adapter: (any RequestAdapter)?, manager: SessionManager
    ) {
        state = Watched(SocketState(configuration))
        self.configuration = configuration
        self.makeRequest = makeRequest
        self.subprotocols = subprotocols
        self.adapter = adapter
        self.manager = Lock(Weak(manager: manager))
    }

    static func makePingPayload() -> Data {
        Data((0..<8).map { _ in UInt8.random(in: 0...255) })
    }

    /// Closes the WebSocket after its last reference is released.
    func abandon() {
        state.update { state in
            state.discardInbox()
            state.close(WebSocketClosure(code: .goingAway))
        }
    }

    func run() async {
        var failures = 0
        while true {
            state.update { $0.connect(attempt: failures + 1) }
            let (end, wasOpen) = await runConnection()
            if wasOpen { failures = 0 }
            guard let delay = delay(after: end, failures: failures) else { return state.update { $0.finish(end) } }
            failures += 1
            guard await pause(delay, after: end.failure) else { return state.update { $0.finish(end) } }
        }
    }

    /// Makes a connection and runs it to its end; returns whether it was ever open.
    private func runConnection() async -> (Result<WebSocketClosure, any Error>, wasOpen: Bool) {
        do {
            let connection = try await connect()
            state.update { $0.opened(connection.handshake) }
            let end = await connection.serve()
            return (end, true)
        } catch {
            return (.failure(error), false)
        }
    }

    // MARK: Connecting again

    private func delay(after end: Result<WebSocketClosure, any Error>, failures: Int) -> Duration? {
        guard state.update({ $0.userClosure == nil && $0.end == nil }) else { return nil }
        return configuration.reconnection.delay(after: end.failure, attempts: failures)
    }

    /// Waits before the next attempt; returns `false` if the WebSocket was closed meanwhile.
    private func pause(_ delay: Duration, after error: any Error) async -> Bool {
        state.update { state in
            state.connectionEnded()
            state.wait(delay, after: error)
        }
        let isClosed = try? await withTimeout(delay, configuration.clock, throwing: CurlewError.cancelled) { [state] in
            try await state.wait { $0.userClosure != nil || $0.end != nil ? true : nil }
        }
        return isClosed == nil && !Task.isCancelled
    }

    // MARK: Connecting

    private func connect() async throws -> SocketConnection {
        let (stream, request, session) = try await makeStream()
        do {
            let result = try await withTimeout(
                configuration.handshakeTimeout, configuration.clock, throwing: WebSocketError.timedOut(.handshake)
            ) {
                try await withLimit(throwing: WebSocketError.timedOut(.close)) {
                    try await Self.performHandshake(over: stream, request)
                } limit: { [self] in
                    try await waitForCloseTimeout()
                }
            }
            if let response = result?.response, let url = request.cookieURL { session.storeCookies(of: response, from: url) }
            guard case .switched(let response, let rest) = result else {
                if case .rejected(let rejection) = result { throw WebSocketError.handshakeRejected(rejection) }
                throw WebSocketError.closed(WebSocketClosure(code: .abnormalClosure))
            }
            let (handshake, agreement) = try WebSocketHandshake.validate(response, for: request)
            return SocketConnection(
                stream: stream, state: state, configuration: configuration, handshake: handshake, agreement: agreement, rest: rest)
        } catch {
            stream.cancel()
            if let violation = error as? HandshakeViolation { throw WebSocketError.handshakeFailed(reason: violation) }
            throw error
        }
    }

    /// Returns when the user has closed the WebSocket before it was open, and the close timeout has elapsed since.
    private func waitForCloseTimeout() async throws {
        try await state.wait { $0.userClosure == nil ? nil : () }
        try await configuration.clock.sleep(for: configuration.closeTimeout)
    }

    /// Opens the byte stream to the adapted request's host.
    private func makeStream() async throws -> (StreamRequest, HandshakeRequest, Session) {
        var urlRequest = try await makeRequest()
        guard let manager = manager.withLock({ $0.manager }) else { throw CurlewError.sessionInvalidated }
        for adapter in [adapter, manager.adapter] {
            if let adapter { urlRequest = try adapter.adapt(urlRequest) }
        }
        let session = manager.session
        let request = try HandshakeRequest(
            urlRequest, subprotocols: subprotocols, defaults: session.configuration.headers, compression: configuration.compression,
            cookies: { session.cookieField(for: $0, given: $1) })
        let stream =
            request.isSecure
            ? manager.stream(withSecureHostName: request.host, port: request.port)
            : manager.stream(withHostName: request.host, port: request.port)
        stream.resume()
        return (stream, request, session)
    }

    /// Sends the handshake and reads the response; returns `nil` if the connection ended first.
    private static func performHandshake(over stream: StreamRequest, _ request: HandshakeRequest) async throws -> HandshakeReader.Result? {
        try await stream.write(request.bytes)
        var reader = HandshakeReader()
        for try await piece in stream.bytes() {
            if let result = try reader.feed(piece) { return result }
        }
        return reader.end()
    }
}

extension Result<WebSocketClosure, any Error> {
    /// The error that is passed to the reconnection policy.
    fileprivate var failure: any Error {
        switch self {
        case .success(let closure): WebSocketError.closed(closure)
        case .failure(let error): error
        }
    }
}
