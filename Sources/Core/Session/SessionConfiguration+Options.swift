// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

// The members of `options` and `connections`, declared one by one and not looked up dynamically: for a value of the wrong type the compiler
// then names both types, instead of a missing dynamic member. `OptionMembersTests` fails if one is missing here.

// MARK: - Options of transfers

extension SessionConfiguration {
    /// The longest time for resolving the host, connecting and setting up TLS; 30 seconds by default.
    ///
    /// ``TransferOptions/connectTimeout`` of ``options``.
    public var connectTimeout: Duration? {
        get { options.connectTimeout }
        set { options.connectTimeout = newValue }
    }

    /// The longest wait between the request's last byte and the response's first byte; `nil`, the default, for no limit but
    /// ``idleTimeout``.
    ///
    /// ``TransferOptions/firstByteTimeout`` of ``options``.
    public var firstByteTimeout: Duration? {
        get { options.firstByteTimeout }
        set { options.firstByteTimeout = newValue }
    }

    /// The longest pause between two bytes, sent or received, once connected; 60 seconds by default, `nil` for no limit.
    ///
    /// ``TransferOptions/idleTimeout`` of ``options``, which documents what does not count. A request's ``RequestOptions/idleTimeout``
    /// replaces it, and so does its `URLRequest.timeoutInterval` unless that is 60: Foundation's default, which can't be distinguished from
    /// one that was set.
    public var idleTimeout: Duration? {
        get { options.idleTimeout }
        set { options.idleTimeout = newValue }
    }

    /// The longest time for the whole transfer; `nil`, the default, for no limit. A retry starts from zero.
    ///
    /// ``TransferOptions/totalTimeout`` of ``options``, which documents what counts.
    public var totalTimeout: Duration? {
        get { options.totalTimeout }
        set { options.totalTimeout = newValue }
    }

    /// The longest wait for a free connection to the host: ``TransferOptions/queueTimeout`` of ``options``, with its default.
    public var queueTimeout: Duration? {
        get { options.queueTimeout }
        set { options.queueTimeout = newValue }
    }

    /// The HTTP versions to use; `automatic` by default.
    ///
    /// ``TransferOptions/httpVersion`` of ``options``.
    public var httpVersion: HTTPVersionPolicy {
        get { options.httpVersion }
        set { options.httpVersion = newValue }
    }

    /// The TLS settings, whose members are set in place: `configuration.tls.minimumVersion = .v1_3`.
    ///
    /// ``TransferOptions/tls`` of ``options``.
    public var tls: TLSOptions {
        get { options.tls }
        set { options.tls = newValue }
    }

    /// The proxy; taken from the environment by default.
    ///
    /// ``TransferOptions/proxy`` of ``options``.
    public var proxy: ProxyPolicy {
        get { options.proxy }
        set { options.proxy = newValue }
    }

    /// The network interface to send from: its name, such as `eth0`, or an address of this machine, such as `192.0.2.7`; `nil`, the default,
    /// leaves the choice to the system's routes.
    ///
    /// ``TransferOptions/interface`` of ``options``.
    public var interface: String? {
        get { options.interface }
        set { options.interface = newValue }
    }

    /// The addresses that transfers may connect to; ``AddressPolicy/any`` by default.
    ///
    /// ``TransferOptions/addresses`` of ``options``.
    public var addresses: AddressPolicy {
        get { options.addresses }
        set { options.addresses = newValue }
    }

    /// Whether the content codings that Curlew knows (RFC 9110, section 8.4.1) are undone; `true` by default.
    ///
    /// ``TransferOptions/decodesContent`` of ``options``.
    public var decodesContent: Bool {
        get { options.decodesContent }
        set { options.decodesContent = newValue }
    }

    /// The most bytes to which each received byte of a coded body may expand; 256 by default, `nil` for no limit.
    ///
    /// ``TransferOptions/maximumExpansion`` of ``options``.
    public var maximumExpansion: Int? {
        get { options.maximumExpansion }
        set { options.maximumExpansion = newValue }
    }

    /// The largest response head in bytes, interim responses and trailers included; 256 KiB by default.
    ///
    /// ``TransferOptions/maximumHeadSize`` of ``options``.
    public var maximumHeadSize: Int {
        get { options.maximumHeadSize }
        set { options.maximumHeadSize = newValue }
    }

    /// The largest field of a response head in bytes, with its name and line break; 64 KiB by default.
    ///
    /// ``TransferOptions/maximumHeaderSize`` of ``options``.
    public var maximumHeaderSize: Int {
        get { options.maximumHeaderSize }
        set { options.maximumHeaderSize = newValue }
    }

    /// The most fields in a response head, and likewise in its trailers; 1,000 by default.
    ///
    /// ``TransferOptions/maximumHeaderCount`` of ``options``.
    public var maximumHeaderCount: Int {
        get { options.maximumHeaderCount }
        set { options.maximumHeaderCount = newValue }
    }

    /// The most interim responses (1xx; RFC 9110, section 15.2) before a final one; 32 by default.
    ///
    /// ``TransferOptions/maximumInterimResponses`` of ``options``.
    public var maximumInterimResponses: Int {
        get { options.maximumInterimResponses }
        set { options.maximumInterimResponses = newValue }
    }
}

// MARK: - Connections

extension SessionConfiguration {
    /// The most transfers to one host (scheme, name and port) at a time; 64 by default, `nil` for no limit.
    ///
    /// ``TransportConfiguration/maximumConnectionsPerHost`` of ``connections``.
    public var maximumConnectionsPerHost: Int? {
        get { connections.maximumConnectionsPerHost }
        set { connections.maximumConnectionsPerHost = newValue }
    }

    /// The most idle connections pooled for later requests; 256 by default.
    ///
    /// ``TransportConfiguration/maximumIdleConnections`` of ``connections``.
    public var maximumIdleConnections: Int {
        get { connections.maximumIdleConnections }
        set { connections.maximumIdleConnections = newValue }
    }

    /// The longest time for which a connection may be idle and then be used again; 118 seconds by default, `nil` for no limit.
    ///
    /// ``TransportConfiguration/maximumIdleTime`` of ``connections``, which documents what servers' `Keep-Alive` does.
    public var maximumIdleTime: Duration? {
        get { connections.maximumIdleTime }
        set { connections.maximumIdleTime = newValue }
    }

    /// Whether several transfers share one HTTP/2 connection; `nil`, the default, for where libcurl does that reliably.
    ///
    /// ``TransportConfiguration/multiplexes`` of ``connections``.
    public var multiplexes: Bool? {
        get { connections.multiplexes }
        set { connections.multiplexes = newValue }
    }

    /// The number of event loops, among which the session's transfers are spread by origin and load; 1 by default, at most 64.
    ///
    /// ``TransportConfiguration/loops`` of ``connections``.
    public var loops: Int {
        get { connections.loops }
        set { connections.loops = newValue }
    }
}
