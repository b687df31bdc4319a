// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What has happened to a connection of an event loop: it was opened, reused, became idle, or was closed.
///
/// Connections that were never established are not reported: their transfers fail.
public struct ConnectionEvent: Sendable, Hashable {
    /// The kind of an event. Later versions may add kinds, so a `switch` needs a `default`.
    public enum Kind: Sendable, Hashable {
        /// It was established, TLS included, for a transfer that is about to use it.
        case opened
        /// Another transfer is about to use it: it was idle, or HTTP/2 shares it.
        case reused
        /// Its last transfer has completed; it is pooled for later ones.
        case becameIdle
        /// It was closed, for this reason.
        case closed(CloseReason)
    }

    /// Why a connection was closed, as far as that can be known.
    ///
    /// An open set: later versions may add reasons, so a `switch` needs a `default`.
    public struct CloseReason: RawRepresentable, Sendable, Hashable {
        /// The reason's name.
        public let rawValue: String

        /// Creates a reason from a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The peer has closed it while it was idle, or just as a request was sent on it.
        public static let closedByPeer = CloseReason(rawValue: "closedByPeer")
        /// Its last exchange is complete, and it can't be reused: the response says so, or it was a stream.
        public static let finished = CloseReason(rawValue: "finished")
        /// Its transfer was cancelled, and the rest of the response would have had to be received.
        public static let cancelled = CloseReason(rawValue: "cancelled")
        /// Its transfer has failed.
        public static let failed = CloseReason(rawValue: "failed")
        /// It was idle for too long, or there were too many idle connections.
        public static let unused = CloseReason(rawValue: "unused")
        /// Its session has ended.
        public static let sessionEnded = CloseReason(rawValue: "sessionEnded")
    }

    /// What has happened.
    public let kind: Kind
    /// The connection's number in its transport, from 1.
    public let connection: Int
    /// The origin of the request for which it was opened: the host's, also through a proxy. `nil` if its URL has none.
    public let origin: HTTPOrigin?
    /// The number of transfers that use it after the event.
    public let transferCount: Int
    /// Whether it was idle before the event.
    public let wasIdle: Bool
    /// The time since the connection was established.
    public let age: Duration
    let info: ConnectionInfo

    /// The IP address of the host, or of the proxy.
    public var remoteAddress: String? { info.values.remoteAddress }
    /// The port of the host, or of the proxy.
    public var remotePort: Int? { info.values.remotePort }
    /// The local IP address.
    public var localAddress: String? { info.values.localAddress }
    /// The local port.
    public var localPort: Int? { info.values.localPort }
    /// The TLS version, such as `TLSv1.3`; `nil` without TLS, or if libcurl does not use OpenSSL.
    public var tlsVersion: String? { info.values.tlsVersion }
    /// Whether HTTP/2 was negotiated, or agreed on by prior knowledge.
    package var isHTTP2: Bool { info.values.isHTTP2 }
    /// The HTTP version of its requests: HTTP/3 on QUIC (RFC 9114), HTTP/2 if that was negotiated, or agreed on by prior knowledge
    /// (RFC 9113, section 3), otherwise HTTP/1.1, also on the connections of raw streams.
    public var httpVersion: TransferMetrics.HTTPVersion { info.values.httpVersion }
}
