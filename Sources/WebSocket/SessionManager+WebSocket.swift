// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Opens a WebSocket (RFC 6455).
    ///
    /// Never throws: what is wrong with the request ends the WebSocket. TLS, trust policies, proxy, connect timeout and cookies are the
    /// session's; its header fields are sent where there are none of that name, but `Accept-Encoding`; user name and password of the URL as
    /// Basic authentication. Redirects and challenges are not followed: they end as ``WebSocketError/handshakeRefused(_:)``.
    ///
    /// - Parameters:
    ///   - url: where to; with the scheme `ws` or `wss`, for which `http` and `https` may stand too.
    ///   - subprotocols: those to choose from, the best first.
    ///   - headers: further fields of the handshake.
    ///   - configuration: how it works.
    ///   - adapter: changes the request, before the manager's adapter does; both are asked for each connection.
    public func webSocket(
        _ url: any URLConvertible, subprotocols: [String] = [], headers: HTTPHeaders? = nil,
        configuration: WebSocketConfiguration = WebSocketConfiguration(), adapter: (any RequestAdapter)? = nil
    ) -> WebSocket {
        makeWebSocket(Result { try URLRequest(url: url, method: .get, headers: headers) }, subprotocols, configuration, adapter)
    }

    /// Opens a WebSocket for a `URLRequest`, of which URL and header fields count; see
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

    /// Opens a WebSocket for a request that is made anew for each connection, and may have to be waited for.
    package func webSocket(
        subprotocols: [String], configuration: WebSocketConfiguration, adapter: (any RequestAdapter)? = nil,
        making request: @escaping @Sendable () async throws -> URLRequest
    ) -> WebSocket {
        WebSocket(
            SocketDriver(request, subprotocols: subprotocols, configuration: configuration, adapter: adapter, manager: self))
    }
}
