// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Opens a raw TCP connection to a host, by name or address.
    ///
    /// The connect timeout and the proxy of the options or the configuration apply; an established connection has no timeouts, but ends with
    /// a deadline of its options.
    ///
    /// - Parameters:
    ///   - hostName: a name or an address.
    ///   - port: 1 to 65,535; another one fails the request with ``CurlewError/urlRequestValidationFailed(reason:in:)``.
    ///   - interceptor: decides, before the session's, whether the connection is attempted again if it could not be established; `nil`, the
    ///     default, for none. An established connection is never retried, as its bytes can't be repeated; what was written before is sent on
    ///     the one that is established. Adapters, of the session too, are not called: there is no HTTP request to adapt.
    ///   - options: the settings of this connection; `nil`, the default, for the session's. ``RequestOptions`` lists those that count.
    @discardableResult
    public func stream(
        withHostName hostName: String, port: Int, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> StreamRequest {
        makeStream(Streamable(host: hostName, port: port, isSecure: false), RequestSettings.of(interceptor, options))
    }

    /// Opens a TLS connection to a host, with the configuration's TLS options, and without ALPN. Parameters as in
    /// ``stream(withHostName:port:interceptor:options:)``.
    @discardableResult
    public func stream(
        withSecureHostName hostName: String, port: Int, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> StreamRequest {
        makeStream(Streamable(host: hostName, port: port, isSecure: true), RequestSettings.of(interceptor, options))
    }

    private func makeStream(_ streamable: Streamable, _ settings: RequestSettings?) -> StreamRequest {
        perform(
            StreamRequest(
                original: original(Request.RequestTask.stream) { try streamable.validated() },
                session: session, sessionDelegate: delegate, settings: settings))
    }
}

extension Streamable {
    /// Returns the same with its host normalized, or throws the reason why no connection can be made.
    func validated() throws(CurlewError) -> Streamable {
        guard (1...65_535).contains(port) else { throw .urlRequestValidationFailed(reason: .invalidPort(port)) }
        do {
            return Streamable(
                host: try URLHost.normalized(ofStream: host), port: port, isSecure: isSecure, allowsCellularAccess: allowsCellularAccess)
        } catch {
            throw error == .invalid ? .invalidURL(url: host) : .invalidHost(error, of: host)
        }
    }
}
