// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The Unix domain socket that takes the place of TCP connections.
package enum UnixSocket: Sendable, Hashable {
    /// A socket in the file system.
    case path(String)
    /// A socket in Linux's abstract namespace, by its name without the leading NUL.
    case abstract(String)

    /// By the bytes: texts are equal if they are canonically equivalent.
    package static func == (lhs: UnixSocket, rhs: UnixSocket) -> Bool {
        switch (lhs, rhs) {
        case (.path(let name), .path(let other)), (.abstract(let name), .abstract(let other)): name.hasSameBytes(as: other)
        default: false
        }
    }

    /// The path or name.
    var name: String {
        switch self {
        case .path(let name), .abstract(let name): name
        }
    }

    /// For messages: the path, or the name with the sign that the system's tools write for its leading NUL.
    var shown: String { if case .abstract = self { "@\(name)" } else { name } }
}

/// Where transfers connect to: the options that a request can have of its own.
package struct RoutingOptions: Sendable, Hashable {
    package var unixSocket: UnixSocket?
    package var resolve: RouteTable<[String]>?
    package var connectTo: RouteTable<String>?
    package var resolver: HostResolver?

    package init() {}

    /// Returns these options, with others in place of those that are not set.
    package func filled(from others: RoutingOptions) -> RoutingOptions {
        var result = self
        result.unixSocket = unixSocket ?? others.unixSocket
        result.resolve = resolve ?? others.resolve
        result.connectTo = connectTo ?? others.connectTo
        result.resolver = resolver ?? others.resolver
        return result
    }
}

/// The options that few sessions set, behind one reference in ``TransferOptions``.
package struct ReachOptions: Sendable, Hashable {
    /// Immutable, so that copies of options share it.
    final class Box: Sendable, Hashable {
        let value: ReachOptions

        init(_ value: ReachOptions) { self.value = value }

        static func == (lhs: Box, rhs: Box) -> Bool { lhs === rhs || lhs.value == rhs.value }
        func hash(into hasher: inout Hasher) { hasher.combine(value) }
    }

    package var routing = RoutingOptions()
    package var ipVersion = IPVersion.any
    package var connectionAttemptDelay: Duration?
    package var localPorts: ClosedRange<Int>?
    package var socket = SocketOptions()
    package var dohURL: String?
    package var dohVerifiesServer = true
    package var alternativeServices: AlternativeServices?

    static let standard = ReachOptions()

    package init() {}
}

/// The versions of the Internet Protocol that transfers use.
public enum IPVersion: Sendable, Hashable {
    /// IPv6 and IPv4; the default.
    case any
    /// IPv4 only.
    case v4
    /// IPv6 only.
    case v6
}

extension TransferOptions {
    /// The options that few sessions set. Setting the defaults releases them.
    package var reach: ReachOptions {
        get { reachBox?.value ?? .standard }
        set { reachBox = newValue == .standard ? nil : ReachOptions.Box(newValue) }
    }

    // MARK: Unix domain sockets

    /// The path of a Unix domain socket to connect to instead of the URL's host, such as `/var/run/docker.sock`; `nil`, the default, for TCP.
    ///
    /// The URL still names the host: in the field `Host`, for cookies, for credentials, and for TLS if it is `https`. Proxies are not used,
    /// names are not resolved, ``addresses`` do not apply: the path comes from the program, not from a URL. Connections over a socket and
    /// TCP connections are never reused in place of each other. The socket belongs to the origin (scheme, host, port) of the request: a
    /// redirect to another origin is followed over TCP, and one back to it uses the socket again. Responses are not cached.
    ///
    /// A path that is empty, contains a NUL or has more than 107 bytes fails with ``TransferFailure/Kind/configuration``, a socket on which
    /// no server listens with ``TransferFailure/Kind/connect``, the path and the system's reason in its
    /// message. Setting it removes ``abstractUnixSocket``.
    public var unixSocketPath: String? {
        get { if case .path(let path) = reach.routing.unixSocket { path } else { nil } }
        set { reach.routing.unixSocket = newValue.map { .path($0) } }
    }

    /// The name of a Unix domain socket in Linux's abstract namespace, without the leading NUL; `nil`, the default, for TCP.
    ///
    /// As ``unixSocketPath``, which setting it removes. Linux only: elsewhere it fails with ``TransferFailure/Kind/configuration``.
    public var abstractUnixSocket: String? {
        get { if case .abstract(let name) = reach.routing.unixSocket { name } else { nil } }
        set { reach.routing.unixSocket = newValue.map { .abstract($0) } }
    }

    // MARK: Names

    /// Addresses to connect to in place of those that a name resolves to, by `host:port`; empty by default.
    ///
    /// ```swift
    /// configuration.resolve["api.example.org:443"] = ["10.0.0.7", "10.0.0.8"]
    /// ```
    ///
    /// Keys are `host:port`, `host` for all of its ports, `*:port` or `*` for all hosts; the first of these that is there counts. An IPv6
    /// host with a port is put in brackets. Any spelling of a host matches: capitals, a trailing dot, an internationalized name, `127.1`.
    /// Values are IPv4 and IPv6 addresses, which are tried as the addresses of a name are. The field
    /// `Host` and TLS keep the URL's name. A name without an entry is resolved as usual; to withdraw an entry, remove it. Connections to
    /// other addresses are not reused. Not applied to transfers through a proxy, which resolves the name itself.
    ///
    /// An entry without a valid address, or a key that can match no host (`https://example.org`, `*.example.org`), fails with
    /// ``TransferFailure/Kind/configuration``.
    public var resolve: [String: [String]] {
        get { reach.routing.resolve?.entries ?? [:] }
        set { reach.routing.resolve = newValue.isEmpty ? nil : RouteTable(newValue) }
    }

    /// Hosts to connect to in place of the URL's, by `host:port`; empty by default.
    ///
    /// ```swift
    /// configuration.connectTo["api.example.org:443"] = "canary.example.org:8443"
    /// ```
    ///
    /// Keys as in ``resolve``, which is applied to the host of the value, once. A value is `host:port`, `host` for the same port, or
    /// `:port` for the same host. The field `Host` and TLS keep the URL's name. Not applied to transfers through a proxy.
    public var connectTo: [String: String] {
        get { reach.routing.connectTo?.entries ?? [:] }
        set { reach.routing.connectTo = newValue.isEmpty ? nil : RouteTable(newValue) }
    }

    /// Resolves the names of hosts, in place of the system's resolver; `nil`, the default, for the system's.
    ///
    /// ``resolve`` has precedence. Not asked about addresses, for transfers over a Unix domain socket, or through a proxy.
    public var resolver: HostResolver? {
        get { reach.routing.resolver }
        set { reach.routing.resolver = newValue }
    }

    /// The `https` URL of a server that resolves names (DNS over HTTPS, RFC 8484); `nil`, the default, for the system's resolver.
    ///
    /// The server's certificate is verified with the authorities of ``tls``; its own name is resolved by the system. Names that
    /// ``resolve`` or ``resolver`` answers are not sent to it. A URL of another scheme fails with ``TransferFailure/Kind/configuration``,
    /// a server that can't be reached or has no address for the name with ``TransferFailure/Kind/nameResolution``.
    public var dohURL: String? {
        get { reach.dohURL }
        set { reach.dohURL = newValue }
    }

    /// Whether the certificate and the name of the server of ``dohURL`` are verified; `true` by default. `false` lets a man in the middle
    /// choose the addresses.
    public var dohVerifiesServer: Bool {
        get { reach.dohVerifiesServer }
        set { reach.dohVerifiesServer = newValue }
    }

    // MARK: Connections

    /// Where hosts also offer HTTP/3 (Alt-Svc, RFC 7838), so that later requests use it; `nil`, the default, ignores such offers.
    public var alternativeServices: AlternativeServices? {
        get { reach.alternativeServices }
        set { reach.alternativeServices = newValue }
    }

    /// The versions of IP to use; both by default.
    public var ipVersion: IPVersion {
        get { reach.ipVersion }
        set { reach.ipVersion = newValue }
    }

    /// How long an attempt to connect over IPv6 runs before one over IPv4 is started beside it (RFC 8305, section 5); `nil`, the default,
    /// for libcurl's 200 milliseconds.
    public var connectionAttemptDelay: Duration? {
        get { reach.connectionAttemptDelay }
        set { reach.connectionAttemptDelay = newValue }
    }

    /// The local ports to connect from, of which the first free one is used; `nil`, the default, leaves the choice to the system.
    ///
    /// A range with 0 or beyond 65,535 fails with ``TransferFailure/Kind/configuration``, and one without a free port with
    /// ``TransferFailure/Kind/connect``. A port stays taken for a while after its connection has ended, so have more than connections.
    public var localPorts: ClosedRange<Int>? {
        get { reach.localPorts }
        set { reach.localPorts = newValue }
    }

    /// The options of sockets: keep-alive, buffers, marks. The system's defaults by default.
    public var socket: SocketOptions {
        get { reach.socket }
        set { reach.socket = newValue }
    }
}

extension TransferRequest {
    /// Where the transfer connects to; that of a plain request without any options of this kind.
    package var routing: RoutingOptions { prepared.options.reachBox?.value.routing ?? RoutingOptions() }

    /// The Unix domain socket that the transfer uses; `nil` for TCP.
    package var unixSocket: UnixSocket? {
        get { prepared.options.reachBox?.value.routing.unixSocket }
        set { options.reach.routing.unixSocket = newValue }
    }
}
