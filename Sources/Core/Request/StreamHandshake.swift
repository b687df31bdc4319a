// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What opens a protocol on a raw connection, such as the handshake of a WebSocket.
package struct StreamHandshake: Sendable {
    let request: UpgradeRequest
    /// The URL of the request, for the session's instruments.
    let url: String
    /// Whether a WebSocket is opened.
    let isWebSocket: Bool
    /// Whether it takes the place of a connection that has ended.
    let isReconnection: Bool
    /// Whether it is made over TLS because its host is known to want that.
    let isUpgraded: Bool
    /// Called with the exchange of each attempt; `nil` if the layer does not want them.
    let didBegin: (@Sendable (HandshakeExchange) -> Void)?

    package init(
        _ request: UpgradeRequest, url: String, isWebSocket: Bool, isReconnection: Bool, isUpgraded: Bool,
        didBegin: (@Sendable (HandshakeExchange) -> Void)?
    ) {
        (self.request, self.url, self.isWebSocket) = (request, url, isWebSocket)
        (self.isReconnection, self.isUpgraded, self.didBegin) = (isReconnection, isUpgraded, didBegin)
    }
}

/// What was received in response to an attempt of a handshake.
package struct ReceivedHandshake: Sendable {
    /// The head of the final response; `nil` for none.
    package var head: ResponseHead?
    /// When the first byte was received.
    package var start: ContinuousClock.Instant?
    /// The bytes of the heads, interim ones included.
    package var headBytes = 0
    /// The bytes of a rejection's body.
    package var bodyBytes = 0

    package init() {}
}

/// What is known of the response to the current attempt of a handshake, while it is received.
package final class HandshakeProgress: Sendable {
    private struct Contents: Sendable {
        var attempt: Int?
        var received = ReceivedHandshake()
    }

    private let contents = Lock(Contents())

    package init() {}

    /// The number of the attempt whose response is being received; `nil` before its first byte.
    package var attempt: Int? { contents.withLock { $0.attempt } }

    package var received: ReceivedHandshake {
        get { contents.withLock { $0.received } }
        set { contents.withLock { $0.received = newValue } }
    }

    /// The first byte was received.
    fileprivate func begin(_ attempt: Int) {
        contents.withLock { contents in
            contents.attempt = attempt
            contents.received.start = .now
        }
    }
}

extension SessionManager {
    /// Opens a raw connection for a protocol that begins with an HTTP request, which adapters and retriers see.
    ///
    /// Each attempt adapts the request, calls `make` with the result, begins its exchange, connects, and sends the handshake's bytes. The
    /// layer reads the response, ends the exchange by ``StreamRequest/endHandshakeExchange(of:_:error:)``, and calls
    /// ``StreamRequest/handshakeCompleted(attempt:)`` or ``StreamRequest/handshakeFailed(_:head:attempt:)``.
    ///
    /// - Parameters:
    ///   - urlRequest: what the adapters are called with.
    ///   - make: makes the handshake of an adapted request; on the thread of the attempt.
    package func handshakeStream(
        _ urlRequest: URLRequest, interceptor: (any RequestInterceptor)?, options: RequestOptions?,
        make: @escaping @Sendable (URLRequest, Session) throws -> StreamHandshake
    ) -> StreamRequest {
        let connection = RawConnection()
        connection.beginHandshake()
        let original = HandshakeOriginal(urlRequest, connection: connection, make: make)
        return perform(
            StreamRequest(
                original: .success(.stream(original, nil)), session: session, sessionDelegate: delegate, connection: connection,
                settings: RequestSettings.of(interceptor, options)))
    }
}

extension StreamRequest {
    /// The number of the handshake's attempt, from 1; 0 after the handshake.
    package var handshakeAttempt: Int { connection.handshakeAttempt }

    /// Reads the response to an attempt's handshake; returns `nil` if the connection ended first, also if another attempt has taken its
    /// place. The body of a refusal is received for two seconds at most, as it may never end.
    package func readHandshake(_ progress: HandshakeProgress, toHead isToHead: Bool = false) async throws -> UpgradeReader.Result? {
        let reader = Lock(UpgradeReader(toHead: isToHead))
        defer { (progress.received.headBytes, progress.received.bodyBytes) = reader.withLock { ($0.headBytes, $0.bodyBytes) } }
        var result: UpgradeReader.Result?
        for try await piece in bytes() {
            guard isPart(piece, of: progress) else { break }
            result = try reader.withLock { reader throws(UpgradeReader.Malformed) in try reader.feed(piece) }
            if result != nil || reader.withLock({ $0.refusedHead }) != nil { break }
        }
        if result == nil, reader.withLock({ $0.refusedHead }) != nil { result = try await readRefusal(reader, progress) }
        result = result ?? reader.withLock { $0.end() }
        progress.received.head = result?.head
        return result
    }

    /// Whether a piece belongs to the response that is being received. One that follows on the connection of the next attempt, after that of
    /// this one was lost, is left to the reading of that attempt's response.
    private func isPart(_ piece: Data, of progress: HandshakeProgress) -> Bool {
        // Not the current attempt: the connection may have been lost since the piece was taken.
        let attempt = connection.lastReadAttempt
        guard let current = progress.attempt else {
            progress.begin(attempt)
            return true
        }
        guard attempt > current else { return true }
        connection.buffer.putBack(piece)
        return false
    }

    /// Reads the rest of a refusal; returns `nil` if it has not ended in time, or the connection was lost.
    private func readRefusal(_ reader: Lock<UpgradeReader>, _ progress: HandshakeProgress) async throws -> UpgradeReader.Result? {
        do {
            return try await withTimeout(RefusedBody.timeout, ContinuousClock(), throwing: CurlewError.cancelled) { [self] in
                for try await piece in bytes() {
                    guard isPart(piece, of: progress) else { break }
                    if let result = try reader.withLock({ try $0.feed(piece) }) { return result }
                }
                return nil
            }
        } catch {
            try Task.checkCancellation()
            return nil
        }
    }

    /// Ends the exchange of an attempt for the session's instruments. Does nothing if it has ended: the connection may have failed before.
    ///
    /// - Parameters:
    ///   - attempt: which attempt it was; 0 for the last one.
    ///   - received: the response.
    ///   - error: why the attempt has failed; `nil` if the response was received, as a status is no error.
    package func endHandshakeExchange(of attempt: Int, _ received: ReceivedHandshake, error: (any Error)?) {
        connection.endExchange(of: attempt, received, error: error)
    }

    /// An attempt's handshake is complete: the request is not retried any more, and has no deadline.
    ///
    /// - Throws: the error of a deadline that has passed already; ``CurlewError/cancelled`` if another attempt has begun.
    package func handshakeCompleted(attempt: Int) async throws {
        guard connection.endHandshake(of: attempt) else { throw CurlewError.cancelled }
        guard !driver.endDeadline() else { return }
        try await waitUntilCompleted()
        throw CurlewError.cancelled
    }

    /// Fails an attempt's handshake. Returns when the retrier has had the next one begin.
    ///
    /// - Parameters:
    ///   - error: why the handshake has failed, if the connection has not.
    ///   - head: the response to it, which retriers see; `nil` for none.
    ///   - attempt: which attempt it was; nothing happens if it is not the current one.
    /// - Throws: why the request has failed, unless it is retried.
    package func handshakeFailed(_ error: any Error, head: ResponseHead?, attempt: Int) async throws {
        do {
            try await connection.waitForNextAttempt(after: attempt) {
                driver.noteHandshake(head)
                driver.fail(error)
                driver.task?.cancel()
            }
        } catch {
            cancel()
            throw delegate.error ?? error
        }
    }
}

extension RequestDriver {
    fileprivate func noteHandshake(_ head: ResponseHead?) {
        guard let head else { return }
        state.withLock { state in
            state.attempt.head = head
            state.attempt.context = nil
        }
    }
}

/// The original of a raw connection with a handshake.
private final class HandshakeOriginal: TaskConvertible {
    private let given: URLRequest
    private let adapted = Lock<URLRequest?>(nil)
    private let connection: RawConnection
    private let make: @Sendable (URLRequest, Session) throws -> StreamHandshake

    init(
        _ urlRequest: URLRequest, connection: RawConnection, make: @escaping @Sendable (URLRequest, Session) throws -> StreamHandshake
    ) {
        given = urlRequest
        self.connection = connection
        self.make = make
    }

    var urlRequest: URLRequest? { adapted.withLock { $0 } ?? given }

    var target: (method: HTTPMethod?, url: String)? {
        (HTTPMethod(rawValue: given.httpMethod ?? "GET"), urlRequest?.url?.absoluteString ?? "")
    }

    var isRepeatable: Bool { true }

    var streamBody: StreamBody? { nil }

    /// Adapters see the whole handshake.
    func adaptable(by adapter: any RequestAdapter, headersSuffice: Bool) -> AdaptableRequest? { .request(given, given: nil) }

    func work(in session: Session, adapted: AdaptableRequest?) throws -> SessionTask.Work {
        let adapted = if case .request(let request, _) = adapted { request } else { given }
        self.adapted.withLock { $0 = adapted }
        let handshake = try make(adapted, session)
        let request = handshake.request
        let stream = Streamable(
            host: request.host, port: request.port, isSecure: request.isSecure, allowsCellularAccess: adapted.allowsCellularAccess)
        let work = try stream.validated().work(in: session, adapted: nil)
        connection.beginAttempt(handshake)
        return work
    }
}
