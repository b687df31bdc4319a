// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A connection that speaks another protocol than HTTP from now on.
public struct UpgradedConnection: Sendable {
    /// The response with status 101.
    public let responseHead: ResponseHead
    /// The connection. Its bytes begin with those that the server has sent after the response. It has no timeouts; close it, or cancel it.
    public let stream: StreamRequest
}

extension SessionManager {
    /// Asks a server for another protocol than HTTP on the connection (RFC 9110, section 7.8), and returns the connection once the server has
    /// switched.
    ///
    /// ```swift
    /// let docker = RequestOptions(unixSocketPath: "/var/run/docker.sock")
    /// let connection = try await manager.upgrade(
    ///     "http://localhost/containers/web/attach?stream=1&stdin=1&stdout=1", to: "tcp", method: .post, options: docker)
    /// try await connection.stream.write(Data("date\n".utf8))
    /// for try await piece in connection.stream.bytes() { show(piece) }
    /// ```
    ///
    /// Over HTTP/1.1 on a connection of its own, without ALPN. Adapters see the request, retriers each failure. Cookies, HSTS, TLS, trust and
    /// header fields are the session's, except `Accept-Encoding`; redirects and challenges are not followed.
    ///
    /// - Parameters:
    ///   - url: the URL, with scheme `http` or `https`.
    ///   - name: the protocol, as the server names it in `Upgrade`; compared without regard to case.
    ///   - method: GET by default.
    ///   - body: the request's body; `nil`, the default, for none.
    ///   - headers: header fields, which replace the session's of the same name.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request; `nil`, the default, for the session's. Those of raw connections count. A deadline ends when
    ///     the server has switched.
    ///   - timeout: the time until the server has switched, with all attempts and the delays between them; 60 seconds by default, `nil` for
    ///     none.
    /// - Throws: ``UpgradeError``; ``CurlewError`` if there was no connection or the request is invalid; ``TransferFailure/Kind/deadline`` after
    ///   the timeout; `CancellationError` if the task was cancelled.
    public func upgrade(
        _ url: any URLConvertible, to name: String, method: HTTPMethod = .get, body: Data? = nil, headers: HTTPHeaders? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil, timeout: Duration? = .seconds(60)
    ) async throws -> UpgradedConnection {
        try Task.checkCancellation()
        let urlRequest = try URLRequest(url: url, method: method, headers: headers)
        let sent = Lock<UpgradeRequest?>(nil)
        let stream = handshakeStream(urlRequest, interceptor: interceptor, options: options) { adapted, session in
            let url = adapted.url.map { session.secured($0) }
            let request = try UpgradeRequest(adapted, url, body: body, to: name, in: session)
            sent.withLock { $0 = request }
            return StreamHandshake(
                request, url: request.url, isWebSocket: false, isReconnection: false, isUpgraded: url != adapted.url, didBegin: nil)
        }
        let isInTime = timeout.map { stream.driver.beginDeadline(after: $0) }
        stream.resume()
        do {
            let connection = try await withTaskCancellationHandler {
                try await stream.upgraded(to: name) { sent.withLock { $0 } }
            } onCancel: {
                stream.cancel()
            }
            if isInTime?() ?? true { return connection }
            try await stream.waitUntilCompleted()
            throw Deadline.failure(of: sent.withLock { $0?.url } ?? "", attempt: stream.retryCount + 1, during: .receivingHead)
        } catch {
            _ = isInTime?()
            stream.cancel()
            try Task.checkCancellation()
            throw error
        }
    }
}

extension UpgradeRequest {
    fileprivate init(_ request: URLRequest, _ url: URL?, body: Data?, to protocolName: String, in session: Session) throws(CurlewError) {
        let name = request.httpMethod ?? "GET"
        guard let method = HTTPMethod(rawValue: name), method != .connect else {
            throw .urlRequestValidationFailed(reason: .invalidMethod(name))
        }
        do throws(Invalid) {
            try self.init(
                url, method, HTTPHeaders(request.allHTTPHeaderFields ?? [:]), body: body, to: protocolName,
                defaults: session.configuration.headers, document: request.mainDocumentURL,
                cookies: request.httpShouldHandleCookies
                    ? { session.cookieField(for: $0, given: $1, in: request.mainDocumentURL) } : nil)
        } catch {
            switch error {
            case .url(let text): throw .invalidURL(url: text)
            case .scheme: throw request.url.map { .urlRequestValidationFailed(reason: .unsupportedScheme(url: $0)) } ?? .invalidURL(url: "")
            case .header(let name): throw .urlRequestValidationFailed(reason: .invalidHeader(name: name))
            }
        }
    }
}

extension StreamRequest {
    /// Waits until an attempt's handshake is accepted.
    ///
    /// - Parameter sent: returns the request of the current attempt.
    fileprivate func upgraded(to name: String, _ sent: () -> UpgradeRequest?) async throws -> UpgradedConnection {
        while true {
            let progress = HandshakeProgress()
            do {
                let result = try await readHandshake(progress, toHead: sent()?.method == .head)
                if let head = result?.head, let request = sent() {
                    if request.handlesCookies { session.storeCookies(of: head, from: request.url, in: request.document) }
                    session.noteSecurity(of: head, from: request.url)
                }
                let attempt = progress.attempt ?? handshakeAttempt
                let (head, rest) = try UpgradeError.accepted(result, name)
                endHandshakeExchange(of: attempt, progress.received, error: nil)
                try await handshakeCompleted(attempt: attempt)
                connection.buffer.putBack(rest)
                return UpgradedConnection(responseHead: head, stream: self)
            } catch {
                let attempt = progress.attempt ?? handshakeAttempt
                let failure: any Error = error is UpgradeReader.Malformed ? UpgradeError.malformedResponse : error
                // A status is no error of the exchange.
                let isRefusal = if case UpgradeError.upgradeRefused = failure { true } else { false }
                endHandshakeExchange(of: attempt, progress.received, error: isRefusal ? nil : failure)
                guard handshakeAttempt > 0 else { throw failure }
                try await handshakeFailed(failure, head: progress.received.head, attempt: attempt)
            }
        }
    }
}

extension UpgradeError {
    /// Returns the head of a response that switches to a protocol, and the bytes after it.
    fileprivate static func accepted(_ result: UpgradeReader.Result?, _ name: String) throws(UpgradeError) -> (ResponseHead, rest: Data) {
        switch result {
        case nil: throw .connectionClosed
        case .refused(let head, let body): throw .upgradeRefused(UpgradeRefusal(responseHead: head, body: body))
        case .switched(let head, let rest):
            let isAccepted = head.headers.members(of: "Upgrade").contains { $0.equalsIgnoringASCIICase(name) }
            guard isAccepted else { throw .upgradeRefused(UpgradeRefusal(responseHead: head, body: Data())) }
            return (head, rest)
        }
    }
}
