// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

// The makers of tasks that are connections. They have a delegate only: for their end, and for challenges.

extension URLSession {
    /// Makes a task that opens a WebSocket (RFC 6455). The URL's scheme is `ws` or `wss`; with another one than these, `http` and `https`,
    /// the task fails with `URLError.unsupportedURL`.
    public func webSocketTask(with url: URL) -> URLSessionWebSocketTask { webSocketTask(with: url, protocols: []) }

    /// Makes a task that opens a WebSocket and offers subprotocols, in the order of preference; the server's choice is passed to
    /// ``URLSessionWebSocketDelegate/urlSession(_:webSocketTask:didOpenWithProtocol:)``. The task fails with `URLError.badURL` if one is no
    /// token, or there twice.
    public func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        enter { URLSessionWebSocketTask(self, $0, URLRequest(url: url), protocols) }
    }

    /// Makes a task that opens a WebSocket with the URL and the header fields of a request. Those that the handshake sets itself,
    /// `Connection` or `Sec-WebSocket-Key` for example, are replaced; subprotocols are offered with `Sec-WebSocket-Protocol`. The task
    /// fails with `URLError.badURL` unless the method is GET and there is no body.
    public func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
        enter { URLSessionWebSocketTask(self, $0, request, []) }
    }

    /// Makes a task that connects to a host, by name or address, over TCP. The port is 1 to 65535; with another one the task fails with
    /// `URLError.badURL`.
    public func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        enter { URLSessionStreamTask(self, $0, host: hostname, port: port) }
    }
}

extension URLSessionTask {
    /// The owner of the task's connections; `nil` if no delegate can be asked about them.
    var connectionOwner: (any RequestOwner)? {
        session.delegate == nil && values.withLock { $0.delegate == nil } ? nil : self
    }

    /// The timeout for making a connection, in seconds: the request's own unless it is the default, or else the session's.
    func connectionTimeout(of request: URLRequest?) -> TimeInterval {
        if let timeout = request?.timeoutInterval, timeout != 60, timeout > 0 { return min(timeout, 1e9) }
        return min(session.curlew.session.configuration.timeoutIntervalForRequest, 1e9)
    }

    /// The options of the task's connections.
    func connectionOptions(of request: URLRequest?) -> RequestOptions {
        var options = RequestOptions()
        if let timeout = request?.timeoutInterval, timeout != 60, timeout > 0 { options.connectTimeout = .seconds(min(timeout, 1e9)) }
        return options
    }
}
