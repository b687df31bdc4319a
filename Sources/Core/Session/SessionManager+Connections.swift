// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

extension SessionManager {
    /// Opens connections ahead of the requests that will use them, until `count` to the origin of a URL are idle.
    ///
    /// ```swift
    /// try await manager.prewarm("https://api.example.org", count: 8)
    /// ```
    ///
    /// The host's name is resolved, TCP and TLS connections are established, with the session's trust policies, and through the session's
    /// proxy; nothing of HTTP/1.1 (RFC 9112) is sent, and of HTTP/2 only what begins a connection (RFC 9113, section 3.4). Servers close
    /// connections that they find idle for too long, and a pooled connection is dropped after ``SessionConfiguration/maximumIdleTime``
    /// without a request. Idle connections that are there already count. At most ``SessionConfiguration/maximumConnectionsPerHost`` less
    /// those in use are opened, and one if requests share it (``SessionConfiguration/multiplexes``).
    ///
    /// No adapter, cookie, instrument or cache takes part, and no retrier is asked. For sessions on the network: on another transport
    /// nothing happens. Cancelling the task ends the attempts. Thread-safe.
    ///
    /// - Parameters:
    ///   - url: its scheme, host and port count.
    ///   - count: the number of idle connections; 1 by default, nothing happens with less.
    /// - Returns: the number of connections that were opened.
    /// - Throws: ``CurlewError``: `invalidURL`, `sessionShutDown` or `sessionInvalidated`, `cancelled`, or `transferFailed` for the first
    ///   connection that could not be opened; those that could are pooled.
    @discardableResult
    public func prewarm(_ url: any URLConvertible, count: Int = 1) async throws -> Int {
        if let refusal = session.refusal { throw session.delivered(refusal) }
        let url = try url.asURL().absoluteString
        guard HTTPOrigin(url: url) != nil else { throw session.delivered(CurlewError.invalidURL(url: url)) }
        guard let eventLoop = session.eventLoop else { return 0 }
        var request = TransferRequest(url: url, method: .get, headers: [:], body: nil, prepared: session.options)
        if let tls = session.tlsOptions(for: url) { request.options.tls = tls }
        if request.hasFiles { request.readFiles() }
        do {
            if !session.configuration.allowsCellularAccess { try request.avoidCellular(session.configuration.interfaces) }
            return try await eventLoop.prewarm(request, count: count)
        } catch CurlewError.sessionInvalidated {
            throw session.delivered(session.endError)
        } catch {
            throw session.delivered(error)
        }
    }

    /// The session's connections at this moment, by origin and use, and how many there were. Zero on another transport than libcurl.
    ///
    /// Each event loop counts its own in its turn. Thread-safe.
    public func connectionStatistics() async -> ConnectionStatistics {
        await session.eventLoop?.connectionStatistics() ?? ConnectionStatistics()
    }

    /// Closes the session's idle connections, and returns when they are closed.
    ///
    /// For programs that expect no requests for a while, or whose network or addresses have changed. Connections in use stay open, and are
    /// pooled afterwards. Beside connections in use, an idle TLS connection is ended without `close_notify`. Thread-safe.
    ///
    /// - Returns: the number of connections that were closed.
    @discardableResult
    public func closeIdleConnections() async -> Int {
        await session.eventLoop?.closeIdleConnections() ?? 0
    }
}
