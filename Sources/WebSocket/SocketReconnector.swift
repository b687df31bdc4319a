// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

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
    private let interceptor: (any RequestInterceptor)?
    /// Without a deadline, which is ``deadline``.
    private let options: RequestOptions?
    /// Bounds everything until the WebSocket is open for the first time; `nil` from then on.
    private let deadline: Lock<Deadline?>
    private let manager: Lock<Weak>

    /// Weak, so that releasing the manager ends its WebSockets, like its requests.
    private struct Weak: Sendable {
        weak var manager: SessionManager?
    }

    init(
        _ makeRequest: @escaping @Sendable () async throws -> URLRequest, subprotocols: [String], configuration: WebSocketConfiguration,
        interceptor: (any RequestInterceptor)?, options: RequestOptions?, manager: SessionManager
    ) {
        state = Watched(SocketState(configuration))
        self.configuration = configuration
        self.makeRequest = makeRequest
        self.subprotocols = subprotocols
        self.interceptor = interceptor
        deadline = Lock(Deadline.earliest(options?.deadline))
        var options = options
        options?.deadline = nil
        self.options = options
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
        var attempt = 1
        var isReconnection = false
        while true {
            state.update { $0.connect(attempt: attempt) }
            let (end, wasOpen) = await runConnection(isReconnection: isReconnection)
            isReconnection = true
            if wasOpen { failures = 0 }
            attempt = wasOpen ? 1 : attempt + 1
            guard let delay = delay(after: end, failures: failures) else { return state.update { $0.finish(end) } }
            failures += 1
            let deadline = deadline.withLock { $0 }
            if let deadline, deadline.remaining <= delay {
                _ = await pause(deadline.remaining, after: end.failure)
                return state.update { $0.finish(deadline.hasPassed ? .failure(deadlineFailure(failures)) : end) }
            }
            guard await pause(delay, after: end.failure) else { return state.update { $0.finish(end) } }
        }
    }

    /// Makes a connection and runs it to its end; returns whether it was ever open.
    private func runConnection(isReconnection: Bool) async -> (Result<WebSocketClosure, any Error>, wasOpen: Bool) {
        do {
            // A reconnection has no deadline, and the caller's has passed or will.
            let connection = try await Deadline.$current.withValue(deadline.withLock { $0 }) {
                try await connect(isReconnection: isReconnection)
            }
            deadline.withLock { $0 = nil }
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

    private func connect(isReconnection: Bool) async throws -> SocketConnection {
        let urlRequest = try await withLimit(throwing: WebSocketError.timedOut(.close)) { [self] in
            try await beforeDeadline { [makeRequest] in try await makeRequest() }
        } limit: { [self] in
            try await waitForCloseTimeout()
        }
        let sent = Lock<HandshakeRequest?>(nil)
        let (stream, session) = try makeStream(urlRequest, sent, isReconnection: isReconnection)
        do {
            while true {
                let response = HandshakeProgress()
                do {
                    let result = try await bounded(stream) { try await stream.readHandshake(response) }
                    guard let request = sent.withLock({ $0 }) else { throw CurlewError.cancelled }
                    let (head, rest) = try accept(result, to: request, in: session)
                    let (handshake, agreement) = try WebSocketHandshake.validate(head, for: request)
                    let attempt = response.attempt ?? stream.handshakeAttempt
                    stream.endHandshakeExchange(of: attempt, response.received, error: nil)
                    try await stream.handshakeCompleted(attempt: attempt)
                    return SocketConnection(
                        stream: stream, state: state, configuration: configuration, handshake: handshake, agreement: agreement, rest: rest)
                } catch {
                    try await failed(error, response, over: stream)
                }
            }
        } catch {
            stream.cancel()
            throw error
        }
    }

    /// Returns when the retrier has had another attempt begin; else throws why the handshake has failed.
    private func failed(_ error: any Error, _ response: HandshakeProgress, over stream: StreamRequest) async throws {
        let violation = error is UpgradeReader.Malformed ? .invalidResponse : error as? HandshakeViolation
        let error = violation.map { WebSocketError.handshakeFailed(reason: $0) } ?? error
        let (received, attempt) = (response.received, response.attempt ?? stream.handshakeAttempt)
        // A status is no error of the exchange.
        let isRejection = if case WebSocketError.handshakeRejected = error { true } else { false }
        stream.endHandshakeExchange(of: attempt, received, error: isRejection ? nil : error)
        let isWanted = state.update { $0.userClosure == nil && $0.end == nil }
        guard isWanted, !Task.isCancelled, stream.handshakeAttempt > 0 else { throw error }
        try await withLimit(throwing: WebSocketError.timedOut(.close)) {
            try await stream.handshakeFailed(error, head: received.head, attempt: attempt)
        } limit: { [self] in
            try await waitForCloseTimeout()
        }
    }

    /// Returns the head of a response that accepts the handshake, and the bytes after it.
    private func accept(
        _ result: UpgradeReader.Result?, to request: HandshakeRequest, in session: Session
    ) throws -> (ResponseHead, rest: Data) {
        guard let result else { throw WebSocketError.closed(WebSocketClosure(code: .abnormalClosure)) }
        if let url = request.cookieURL { session.storeCookies(of: result.head, from: url, in: request.upgrade.document) }
        session.noteSecurity(of: result.head, from: request.url, owner: configuration.layer?.owner)
        switch result {
        case .switched(let head, let rest): return (head, rest)
        case .refused(let head, let body): throw WebSocketError.handshakeRejected(WebSocketRejection(response: head, body: body))
        }
    }

    /// Runs an attempt's handshake for at most its timeout, or the close timeout after the user has closed the WebSocket.
    private func bounded<Value: Sendable>(
        _ stream: StreamRequest, _ handshake: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let inTime: @Sendable () async throws -> Value = { [self] in
            try await withLimit(throwing: WebSocketError.timedOut(.close), handshake) { [self] in try await waitForCloseTimeout() }
        }
        guard let timeout = configuration.handshakeTimeout else { return try await inTime() }
        let clock = configuration.clock
        return try await withLimit(throwing: WebSocketError.timedOut(.handshake), inTime) {
            // A retried attempt has a timeout of its own.
            var attempt: Int
            repeat {
                attempt = stream.handshakeAttempt
                try await clock.sleep(for: timeout)
            } while stream.handshakeAttempt != attempt
        }
    }

    /// Returns when the user has closed the WebSocket before it was open, and the close timeout has elapsed since.
    private func waitForCloseTimeout() async throws {
        try await state.wait { $0.userClosure == nil ? nil : () }
        try await configuration.clock.sleep(for: configuration.closeTimeout)
    }

    /// Opens the byte stream to the adapted request's host. Retains no manager, whose release ends the WebSocket.
    private func makeStream(
        _ urlRequest: URLRequest, _ sent: Lock<HandshakeRequest?>, isReconnection: Bool
    ) throws -> (StreamRequest, Session) {
        guard let manager = manager.withLock({ $0.manager }) else { throw CurlewError.sessionInvalidated }
        let deadline = deadline.withLock { $0 }
        let layer = configuration.layer
        var options = options
        var didBegin: (@Sendable (HandshakeExchange) -> Void)?
        // One for each connection, as it ends with that.
        if let layer, let owner = layer.owner {
            options = options ?? RequestOptions()
            options?.ownership = RequestOwnership(owner)
            didBegin = { layer.began($0) }
        }
        let stream = manager.handshakeStream(urlRequest, interceptor: interceptor, options: options) {
            [subprotocols, didBegin, deadlineHeader = options?.deadlineHeader, compression = configuration.compression] adapted, session in
            var adapted = adapted
            if let name = deadlineHeader, let deadline, adapted.url != nil {
                adapted.setValue(deadline.headerValue, forHTTPHeaderField: name)
            }
            let given = adapted.url
            if let given { adapted.url = session.secured(given) }
            let isUpgraded = adapted.url != given
            if let layer { adapted = layer.prepare(adapted, in: session) }
            let request = try HandshakeRequest(
                adapted, subprotocols: subprotocols, defaults: layer == nil ? session.configuration.headers : [:],
                compression: compression,
                cookies: { [document = adapted.mainDocumentURL] in session.cookieField(for: $0, given: $1, in: document) })
            sent.withLock { $0 = request }
            return StreamHandshake(
                request.upgrade, url: request.url, isWebSocket: true, isReconnection: isReconnection, isUpgraded: isUpgraded,
                didBegin: didBegin)
        }
        stream.resume()
        return (stream, manager.session)
    }

    // MARK: The deadline

    /// Runs code of the user until the deadline.
    private func beforeDeadline<Value: Sendable>(_ operation: @escaping @Sendable () async throws -> Value) async throws -> Value {
        guard let deadline = deadline.withLock({ $0 }) else { return try await operation() }
        return try await withLimit(throwing: deadlineFailure(1), operation) { try await Task.sleep(for: deadline.remaining) }
    }

    private func deadlineFailure(_ attempt: Int) -> CurlewError {
        Deadline.failure(of: "", attempt: UInt(attempt), during: .preparing)
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
