// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Opens a raw TCP connection to a host, by name or address.
    ///
    /// The configuration's connect timeout and proxy apply; an established connection has no timeouts.
    @discardableResult
    public func stream(withHostName hostName: String, port: Int) -> StreamRequest {
        makeStream(Streamable(host: hostName, port: port, isSecure: false))
    }

    /// Opens a TLS connection to a host, with the configuration's TLS options, and without ALPN.
    @discardableResult
    public func stream(withSecureHostName hostName: String, port: Int) -> StreamRequest {
        makeStream(Streamable(host: hostName, port: port, isSecure: true))
    }

    private func makeStream(_ streamable: Streamable) -> StreamRequest {
        perform(
            StreamRequest(
                original: original(Request.RequestTask.stream) { try streamable.validated() },
                session: session, sessionDelegate: delegate))
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
