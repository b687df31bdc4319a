// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Opens a raw TCP connection to a host, by name or address.
    ///
    /// The connect timeout and the proxy of the options or the configuration apply; an established connection has no timeouts, but ends with
    /// a deadline of its options.
    @discardableResult
    public func stream(withHostName hostName: String, port: Int, options: RequestOptions? = nil) -> StreamRequest {
        makeStream(Streamable(host: hostName, port: port, isSecure: false), options)
    }

    /// Opens a TLS connection to a host, with the configuration's TLS options, and without ALPN.
    @discardableResult
    public func stream(withSecureHostName hostName: String, port: Int, options: RequestOptions? = nil) -> StreamRequest {
        makeStream(Streamable(host: hostName, port: port, isSecure: true), options)
    }

    private func makeStream(_ streamable: Streamable, _ options: RequestOptions?) -> StreamRequest {
        perform(
            StreamRequest(
                original: original(Request.RequestTask.stream) { try streamable.validated() },
                session: session, sessionDelegate: delegate, settings: RequestSettings(nil, options)))
    }
}

extension Streamable {
    /// Returns the same with its host normalized, or throws the reason why no connection can be made.
    fileprivate func validated() throws(CurlewError) -> Streamable {
        guard (1...65_535).contains(port) else { throw .urlRequestValidationFailed(reason: .invalidPort(port)) }
        do {
            return Streamable(host: try URLHost.normalized(ofStream: host), port: port, isSecure: isSecure)
        } catch {
            throw error == .invalid ? .invalidURL(url: host) : .invalidHost(error, of: host)
        }
    }
}
