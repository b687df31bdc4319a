// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Opens a raw TCP connection to a host, which may be a name or an address.
    ///
    /// Of the configuration, connect timeout and proxy apply; once it stands, nothing times out.
    @discardableResult
    public func stream(withHostName hostName: String, port: Int) -> StreamRequest {
        makeStream(Streamable(host: hostName, port: port, isSecure: false))
    }

    /// Opens a TLS connection to a host, with the TLS settings of the configuration, and without ALPN.
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
    /// The same, if a connection can be made of it.
    fileprivate func validated() throws(CurlewError) -> Streamable {
        guard (1...65_535).contains(port) else { throw .urlRequestValidationFailed(reason: .invalidPort(port)) }
        do {
            return Streamable(host: try URLHost.normalized(ofStream: host), port: port, isSecure: isSecure)
        } catch {
            throw error == .invalid ? .invalidURL(url: host) : .invalidHost(error, of: host)
        }
    }
}
