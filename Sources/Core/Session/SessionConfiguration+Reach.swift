// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

// The members of `options` that few sessions set, as the others in `SessionConfiguration+Options.swift`.

extension SessionConfiguration {
    /// The path of a Unix domain socket to connect to instead of the URL's host; `nil`, the default, for TCP.
    ///
    /// ``TransferOptions/unixSocketPath`` of ``options``, which documents what it applies to.
    public var unixSocketPath: String? {
        get { options.unixSocketPath }
        set { options.unixSocketPath = newValue }
    }

    /// The name of a Unix domain socket in Linux's abstract namespace; `nil`, the default, for TCP.
    ///
    /// ``TransferOptions/abstractUnixSocket`` of ``options``.
    public var abstractUnixSocket: String? {
        get { options.abstractUnixSocket }
        set { options.abstractUnixSocket = newValue }
    }

    /// Addresses to connect to in place of those that a name resolves to, by `host:port`; empty by default.
    ///
    /// ``TransferOptions/resolve`` of ``options``, which documents what it applies to.
    public var resolve: [String: [String]] {
        get { options.resolve }
        set { options.resolve = newValue }
    }

    /// Hosts to connect to in place of the URL's, by `host:port`; empty by default.
    ///
    /// ``TransferOptions/connectTo`` of ``options``, which documents what it applies to.
    public var connectTo: [String: String] {
        get { options.connectTo }
        set { options.connectTo = newValue }
    }

    /// Resolves the names of hosts, in place of the system's resolver; `nil`, the default, for the system's.
    ///
    /// ``TransferOptions/resolver`` of ``options``, which documents what it applies to.
    public var resolver: HostResolver? {
        get { options.resolver }
        set { options.resolver = newValue }
    }

    /// The `https` URL of a server that resolves names (DNS over HTTPS, RFC 8484); `nil`, the default, for the system's resolver.
    ///
    /// ``TransferOptions/dohURL`` of ``options``.
    public var dohURL: String? {
        get { options.dohURL }
        set { options.dohURL = newValue }
    }

    /// Whether the certificate and the name of the server of ``dohURL`` are verified; `true` by default.
    ///
    /// ``TransferOptions/dohVerifiesServer`` of ``options``.
    public var dohVerifiesServer: Bool {
        get { options.dohVerifiesServer }
        set { options.dohVerifiesServer = newValue }
    }

    /// The versions of IP to use; both by default.
    ///
    /// ``TransferOptions/ipVersion`` of ``options``.
    public var ipVersion: IPVersion {
        get { options.ipVersion }
        set { options.ipVersion = newValue }
    }

    /// How long an attempt over IPv6 runs before one over IPv4 is started beside it; `nil`, the default, for 200 milliseconds.
    ///
    /// ``TransferOptions/connectionAttemptDelay`` of ``options``.
    public var connectionAttemptDelay: Duration? {
        get { options.connectionAttemptDelay }
        set { options.connectionAttemptDelay = newValue }
    }

    /// The local ports to connect from; `nil`, the default, leaves the choice to the system.
    ///
    /// ``TransferOptions/localPorts`` of ``options``.
    public var localPorts: ClosedRange<Int>? {
        get { options.localPorts }
        set { options.localPorts = newValue }
    }

    /// The options of sockets, whose members are set in place: `configuration.socket.keepAlive = .init(idle: .seconds(30))`.
    ///
    /// ``TransferOptions/socket`` of ``options``.
    public var socket: SocketOptions {
        get { options.socket }
        set { options.socket = newValue }
    }

    /// Where hosts also offer HTTP/3 (Alt-Svc, RFC 7838), so that later requests use it; `nil`, the default, ignores such offers.
    ///
    /// ``TransferOptions/alternativeServices`` of ``options``.
    public var alternativeServices: AlternativeServices? {
        get { options.alternativeServices }
        set { options.alternativeServices = newValue }
    }
}
