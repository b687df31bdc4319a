// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// Makes the connections of a WebSocket, one after the other, until it is over.
///
/// Knows nothing of the ``WebSocket`` it works for, so that letting go of that ends it.
final class SocketDriver: Sendable {
    let state: Watched<SocketState>
    private let configuration: WebSocketConfiguration
    /// Makes the request of a connection.
    private let makeRequest: @Sendable () async throws -> URLRequest
    private let subprotocols: [String]
    private let adapter: (any RequestAdapter)?
    private let manager: Lock<Weak>

    /// Letting go of a manager ends its requests: they don't keep it.
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

    /// Nobody reads or sends any more.
    func abandon() {
        state.update { state in
            state.dropInbox()
            state.close(WebSocketClosure(code: .goingAway))
        }
    }

    func run() async {
        var failures = 0
        while true {
            state.update { $0.connect(attempt: failures + 1) }
            let (end, hasStood) = await runConnection()
            if hasStood { failures = 0 }
            guard let delay = delay(after: end, failures: failures) else { return state.update { $0.finish(end) } }
            failures += 1
            guard await pause(delay, after: end.failure) else { return state.update { $0.finish(end) } }
        }
    }

    /// Makes a connection and serves it to its end; whether it ever stood.
    private func runConnection() async -> (Result<WebSocketClosure, any Error>, hasStood: Bool) {
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

    /// Waits before the next attempt; `false` when there is to be none.
    private func pause(_ delay: Duration, after error: any Error) async -> Bool {
        state.update { state in
            state.connectionEnded()
            state.wait(delay, after: error)
        }
        let isOver = try? await withTimeLimit(delay, configuration.clock, throwing: CurlewError.cancelled) { [state] in
            try await state.wait { $0.userClosure != nil || $0.end != nil ? true : nil }
        }
        return isOver == nil && !Task.isCancelled
    }

    // MARK: Connecting

    private func connect() async throws -> SocketConnection {
        let (stream, request, session) = try await makeStream()
        do {
            let result = try await withTimeLimit(
                configuration.handshakeTimeout, configuration.clock, throwing: WebSocketError.timedOut(.handshake)
            ) {
                try await withLimit(throwing: WebSocketError.timedOut(.close)) {
                    try await Self.shakeHands(over: stream, request)
                } limit: { [self] in
                    try await closingIsTooLong()
                }
            }
            if let response = result?.response, let url = request.cookieURL { session.storeCookies(of: response, from: url) }
            guard case .switched(let response, let rest) = result else {
                if case .refused(let refusal) = result { throw WebSocketError.handshakeRefused(refusal) }
                throw WebSocketError.closed(WebSocketClosure(code: .abnormalClosure))
            }
            let (handshake, agreement) = try WebSocketHandshake.judge(response, to: request)
            return SocketConnection(
                stream: stream, state: state, configuration: configuration, handshake: handshake, agreement: agreement, rest: rest)
        } catch {
            stream.cancel()
            if let violation = error as? HandshakeViolation { throw WebSocketError.handshakeFailed(reason: violation) }
            throw error
        }
    }

    /// Returns when the user has closed what does not come about, and has waited long enough.
    private func closingIsTooLong() async throws {
        try await state.wait { $0.userClosure == nil ? nil : () }
        try await configuration.clock.sleep(for: configuration.closeTimeout)
    }

    /// Opens the raw connection that the adapted request asks for.
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

    /// Sends the handshake and reads the answer; `nil` when the connection ended before that.
    private static func shakeHands(over stream: StreamRequest, _ request: HandshakeRequest) async throws -> HandshakeReader.Result? {
        try await stream.write(request.bytes)
        var reader = HandshakeReader()
        for try await piece in stream.bytes() {
            if let result = try reader.feed(piece) { return result }
        }
        return reader.end()
    }
}

extension Result<WebSocketClosure, any Error> {
    /// What a policy is asked about.
    fileprivate var failure: any Error {
        switch self {
        case .success(let closure): WebSocketError.closed(closure)
        case .failure(let error): error
        }
    }
}
