// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Opens a WebSocket (RFC 6455).
    ///
    /// Never throws: an invalid request fails the WebSocket. TLS, trust policies, proxy, connect timeout and cookies are the session's. Its
    /// header fields are added unless the request has one of that name, except `Accept-Encoding`; user name and password in the URL are
    /// sent as Basic authentication. Redirects and challenges are not followed: they fail with ``WebSocketError/handshakeRejected(_:)``.
    ///
    /// - Parameters:
    ///   - url: the URL, with scheme `ws` or `wss`; `http` and `https` are accepted too.
    ///   - subprotocols: the subprotocols to offer, in order of preference.
    ///   - headers: additional header fields of the handshake.
    ///   - configuration: limits, timeouts, compression and reconnection.
    ///   - adapter: adapts the request, before the manager's adapter does; both are called for each connection.
    public func webSocket(
        _ url: any URLConvertible, subprotocols: [String] = [], headers: HTTPHeaders? = nil,
        configuration: WebSocketConfiguration = WebSocketConfiguration(), adapter: (any RequestAdapter)? = nil
    ) -> WebSocket {
        makeWebSocket(Result { try URLRequest(url: url, method: .get, headers: headers) }, subprotocols, configuration, adapter)
    }

    /// Opens a WebSocket for a `URLRequest`, of which the URL and the header fields are used; see
    /// ``webSocket(_:subprotocols:headers:configuration:adapter:)``.
    public func webSocket(
        _ urlRequest: any URLRequestConvertible, subprotocols: [String] = [],
        configuration: WebSocketConfiguration = WebSocketConfiguration(), adapter: (any RequestAdapter)? = nil
    ) -> WebSocket {
        makeWebSocket(Result { try urlRequest.asURLRequest() }, subprotocols, configuration, adapter)
    }

    private func makeWebSocket(
        _ request: Result<URLRequest, any Error>, _ subprotocols: [String], _ configuration: WebSocketConfiguration,
        _ adapter: (any RequestAdapter)?
    ) -> WebSocket {
        webSocket(subprotocols: subprotocols, configuration: configuration, adapter: adapter) { try request.get() }
    }

    /// Opens a WebSocket for a request that is made, possibly asynchronously, for each connection.
    package func webSocket(
        subprotocols: [String], configuration: WebSocketConfiguration, adapter: (any RequestAdapter)? = nil,
        making request: @escaping @Sendable () async throws -> URLRequest
    ) -> WebSocket {
        WebSocket(
            SocketReconnector(request, subprotocols: subprotocols, configuration: configuration, adapter: adapter, manager: self))
    }
}
