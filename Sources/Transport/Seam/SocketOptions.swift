// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The options of the sockets of connections (socket(7), ip(7), tcp(7)).
///
/// They are set before a socket connects, and so on new connections only. A connection whose socket does not accept one of them, because
/// the system lacks the option or the process the privilege, is not made: the transfer fails with ``TransferFailure/Kind/configuration``, as
/// one does with a value out of range.
public struct SocketOptions: Sendable, Hashable {
    /// When TCP probes an idle connection, and when it gives it up (RFC 9293, section 3.8.4).
    public struct KeepAlive: Sendable, Hashable {
        /// The time without traffic after which a connection is probed, in whole seconds; 60 seconds by default.
        public var idle: Duration
        /// The time between two probes, in whole seconds; 60 seconds by default.
        public var interval: Duration
        /// The number of probes without a reply after which the connection is closed; `nil`, the default, for the system's.
        public var count: Int?

        /// Creates settings; each parameter is the property of its name.
        public init(idle: Duration = .seconds(60), interval: Duration = .seconds(60), count: Int? = nil) {
            self.idle = idle
            self.interval = interval
            self.count = count
        }
    }

    /// TCP's probes of idle connections; `nil`, the default, for none.
    public var keepAlive: KeepAlive?

    /// The size of the socket's send buffer in bytes (`SO_SNDBUF`); `nil`, the default, for the system's, which adapts.
    public var sendBufferSize: Int?

    /// The size of the socket's receive buffer in bytes (`SO_RCVBUF`); `nil`, the default, for the system's, which adapts.
    public var receiveBufferSize: Int?

    /// The code point of differentiated services (RFC 2474), 0 to 63, such as 46 for expedited forwarding; `nil`, the default, for 0.
    public var dscp: Int?

    /// The priority of the socket's packets in the system's queues (`SO_PRIORITY`), 0 to 6 without privileges; `nil`, the default, for the
    /// system's. Linux only.
    public var priority: Int?

    /// The mark of the socket's packets for routing and filters (`SO_MARK`); `nil`, the default, for none. Linux only, and needs the
    /// capability `CAP_NET_ADMIN`.
    public var mark: UInt32?

    /// Whether small pieces are sent at once, without waiting for others to fill a segment (`TCP_NODELAY`); `true` by default.
    public var sendsImmediately = true

    /// Whether the first bytes are sent with the first segment of a connection to a known host (TCP Fast Open, RFC 7413); `false` by default.
    ///
    /// Such bytes may reach the server twice, so only for requests that may be repeated. Without support by the system it has no effect.
    public var usesFastOpen = false

    /// Creates options with the system's defaults.
    public init() {}
}
