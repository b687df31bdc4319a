// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Opens a WebSocket (RFC 6455).
    ///
    /// Needs `import CurlewWebSocket`.
    ///
    /// Never throws: an invalid request fails the WebSocket. TLS, trust policies and cookies are the session's, and so are proxy and connect
    /// timeout without options. Its header fields are added unless the request has one of that name, except `Accept-Encoding`; user name and
    /// password in the URL are sent as Basic authentication. Redirects and challenges are not followed: they fail with
    /// ``WebSocketError/handshakeRejected(_:)``.
    ///
    /// - Parameters:
    ///   - url: the URL, with scheme `ws` or `wss`; `http` and `https` are accepted too.
    ///   - subprotocols: the subprotocols to offer, in order of preference.
    ///   - headers: additional header fields of the handshake.
    ///   - configuration: limits, timeouts, compression and reconnection.
    ///   - adapter: adapts the request, before the others do; if it is also a retrier, it decides as one.
    ///   - interceptor: adapts the request of each connection, before the session's interceptor, and decides whether a failed handshake is
    ///     repeated: one that was not answered, was rejected (``WebSocketError/handshakeRejected(_:)``), timed out, or had no connection. `nil`,
    ///     the default, for none. The session's is asked as well. An open WebSocket is re-established by the configuration's `reconnection`
    ///     only, which is also what follows a handshake that is not retried.
    ///   - options: the settings of this WebSocket; `nil`, the default, for the session's. The deadline, its header, the connect timeout, the
    ///     proxy, the addresses, the interceptor, the name and the user info count. The deadline, like that of
    ///     ``withDeadline(_:isolation:_:)-(Duration,_,_)``, bounds the time until the WebSocket is open for the first time, with all attempts and
    ///     delays; one that is open has none.
    public func webSocket(
        _ url: any URLConvertible, subprotocols: [String] = [], headers: HTTPHeaders? = nil,
        configuration: WebSocketConfiguration = WebSocketConfiguration(), adapter: (any RequestAdapter)? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> WebSocket {
        makeWebSocket(
            Result { try URLRequest(url: url, method: .get, headers: headers) }, subprotocols, configuration,
            Self.both(adapter, interceptor), options)
    }

    /// Opens a WebSocket for a `URLRequest`, of which the URL and the header fields are used; see
    /// ``webSocket(_:subprotocols:headers:configuration:adapter:interceptor:options:)``.
    ///
    /// Needs `import CurlewWebSocket`.
    public func webSocket(
        _ urlRequest: any URLRequestConvertible, subprotocols: [String] = [],
        configuration: WebSocketConfiguration = WebSocketConfiguration(), adapter: (any RequestAdapter)? = nil,
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> WebSocket {
        makeWebSocket(
            Result { try urlRequest.asURLRequest() }, subprotocols, configuration, Self.both(adapter, interceptor), options)
    }

    private func makeWebSocket(
        _ request: Result<URLRequest, any Error>, _ subprotocols: [String], _ configuration: WebSocketConfiguration,
        _ interceptor: (any RequestInterceptor)?, _ options: RequestOptions?
    ) -> WebSocket {
        webSocket(subprotocols: subprotocols, configuration: configuration, interceptor: interceptor, options: options) {
            try request.get()
        }
    }

    /// An adapter that is also a retrier takes part as both.
    private static func both(_ adapter: (any RequestAdapter)?, _ interceptor: (any RequestInterceptor)?) -> (any RequestInterceptor)? {
        guard let adapter else { return interceptor }
        let retrier = adapter as? any RequestRetrier
        return Interceptor(adapters: [adapter], retriers: retrier.map { [$0] } ?? [], interceptors: interceptor.map { [$0] } ?? [])
    }

    /// Opens a WebSocket for a request that is made, possibly asynchronously, for each connection.
    package func webSocket(
        subprotocols: [String], configuration: WebSocketConfiguration, interceptor: (any RequestInterceptor)? = nil,
        options: RequestOptions? = nil, making request: @escaping @Sendable () async throws -> URLRequest
    ) -> WebSocket {
        WebSocket(
            SocketReconnector(
                request, subprotocols: subprotocols, configuration: configuration, interceptor: interceptor, options: options,
                manager: self))
    }
}
