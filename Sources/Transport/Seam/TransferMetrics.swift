// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The measurements of a transfer: times, bytes, connection.
///
/// Times are durations since the transfer was handed to the transport; `nil` for a phase that was not reached or, like DNS on a reused
/// connection, did not take place.
public struct TransferMetrics: Sendable, Hashable {
    /// The HTTP version of the response. Later versions may add versions, so a `switch` needs a `default`.
    public enum HTTPVersion: String, Sendable, Hashable {
        /// HTTP/1.0 (RFC 1945).
        case http1_0 = "HTTP/1.0"
        /// HTTP/1.1 (RFC 9112).
        case http1_1 = "HTTP/1.1"
        /// HTTP/2 (RFC 9113).
        case http2 = "HTTP/2"
        /// HTTP/3 (RFC 9114).
        case http3 = "HTTP/3"
    }

    /// What a session's cache did for a request. Later versions may add cases, so a `switch` needs a `default`.
    public enum CacheOutcome: String, Sendable, Hashable {
        /// It had a fresh response, which was served without an exchange.
        case hit
        /// Its response was validated with the server, and served.
        case revalidated
        /// Its response was served although it was stale, as the request allows.
        case stale
        /// It had no response that it may use, or one that the server has replaced: a 200 in response to a validation is a miss whose reason
        /// is that of the validation.
        case miss
        /// It was not asked: the request forbids that, or has conditions of its own.
        case bypass
    }

    /// The times as measured, because each conversion to a `Duration` takes a 128-bit multiplication.
    package struct Nanoseconds: Sendable, Hashable {
        package var queue: Int64?
        package var nameLookup: Int64?
        package var connect: Int64?
        package var secureConnection: Int64?
        package var requestStart: Int64?
        package var responseStart: Int64?
        package var total: Int64 = 0
    }

    package var nanoseconds = Nanoseconds()
    var connection = ConnectionInfo.unknown

    /// When the transfer was handed to the transport.
    public var startDate: Date
    /// Until a connection to the host could be used or made, within the limits on connections.
    public var queueDuration: Duration? {
        get { nanoseconds.queue.map { .nanoseconds($0) } }
        set { nanoseconds.queue = newValue?.signedNanoseconds }
    }
    /// Until the host's name was resolved.
    public var nameLookupEnd: Duration? {
        get { nanoseconds.nameLookup.map { .nanoseconds($0) } }
        set { nanoseconds.nameLookup = newValue?.signedNanoseconds }
    }
    /// Until the connection to the host, or to the proxy, was established.
    public var connectEnd: Duration? {
        get { nanoseconds.connect.map { .nanoseconds($0) } }
        set { nanoseconds.connect = newValue?.signedNanoseconds }
    }
    /// Until TLS was established.
    public var secureConnectionEnd: Duration? {
        get { nanoseconds.secureConnection.map { .nanoseconds($0) } }
        set { nanoseconds.secureConnection = newValue?.signedNanoseconds }
    }
    /// Until the request's first byte could be sent.
    public var requestStart: Duration? {
        get { nanoseconds.requestStart.map { .nanoseconds($0) } }
        set { nanoseconds.requestStart = newValue?.signedNanoseconds }
    }
    /// Until the response's first byte was received.
    public var responseStart: Duration? {
        get { nanoseconds.responseStart.map { .nanoseconds($0) } }
        set { nanoseconds.responseStart = newValue?.signedNanoseconds }
    }
    /// Until the transfer completed.
    public var total: Duration {
        get { .nanoseconds(nanoseconds.total) }
        set { nanoseconds.total = newValue.signedNanoseconds }
    }
    /// How often the request was sent: 0 if it was not, and more than 1 if it was sent again, because a reused connection was closed before
    /// a response, or because the connection's authentication (NTLM, Negotiate) takes several exchanges.
    public var timesSent = 0
    /// The bytes of the request's head as sent, all attempts of libcurl included.
    public var requestHeaderBytes: Int64 = 0
    /// The bytes of the last attempt's request body, as handed to the network.
    public var requestBodyBytes: Int64 = 0
    /// The bytes of the response's head as received.
    public var responseHeaderBytes: Int64 = 0
    /// The bytes of the response's body as received, before decoding.
    public var responseBodyBytes: Int64 = 0
    /// The IP address of the host, or of the proxy.
    public var remoteAddress: String? {
        get { connection.values.remoteAddress }
        set { connection = ConnectionInfo(connection) { $0.remoteAddress = newValue } }
    }
    /// The port of the host, or of the proxy.
    public var remotePort: Int? {
        get { connection.values.remotePort }
        set { connection = ConnectionInfo(connection) { $0.remotePort = newValue } }
    }
    /// The local IP address.
    public var localAddress: String? {
        get { connection.values.localAddress }
        set { connection = ConnectionInfo(connection) { $0.localAddress = newValue } }
    }
    /// The local port.
    public var localPort: Int? {
        get { connection.values.localPort }
        set { connection = ConnectionInfo(connection) { $0.localPort = newValue } }
    }
    /// The HTTP version; `nil` without a response.
    public var httpVersion: HTTPVersion?
    /// The TLS version, such as `TLSv1.3`; `nil` without TLS, or if libcurl does not use OpenSSL.
    public var tlsVersion: String? {
        get { connection.values.tlsVersion }
        set { connection = ConnectionInfo(connection) { $0.tlsVersion = newValue } }
    }
    /// The TLS cipher suite by OpenSSL's name; `nil` under the same conditions as ``tlsVersion``.
    public var tlsCipher: String? {
        get { connection.values.tlsCipher }
        set { connection = ConnectionInfo(connection) { $0.tlsCipher = newValue } }
    }
    /// Whether the connection of an earlier transfer was reused.
    ///
    /// Over HTTP/3 (RFC 9114, section 4.1.1), libcurl opens another connection after a host has reset a stream in the middle of its response,
    /// although the connection could be used further; after other failures of a stream it is reused.
    public var reusedConnection = false
    /// Whether the response was taken from the session's cache; the other figures are those of the exchange that validated it, if there was
    /// one.
    public var isFromCache = false
    /// What the session's cache did for the request; `nil` without a cache, for a request that it does not concern, and for one that did
    /// not get as far.
    public var cacheOutcome: CacheOutcome?
    /// Why the cache was used, or not; `nil` without a cache.
    public var cacheReason: CacheReason?
    package var cacheDetail = CacheDetail()

    /// What `Cache-Status` reports besides outcome and reason (RFC 9211).
    package struct CacheDetail: Sendable, Hashable {
        /// The status of the response to the forwarded request, unless it is the one delivered.
        package var forwardStatus: Int16?
        /// The remaining freshness lifetime of a stored response, in seconds.
        package var timeToLive: Int32?
        /// Whether the response was stored.
        package var isStored = false

        package init() {}
    }

    /// Creates metrics without measurements.
    public init() {
        self.init(startDate: Date())
    }

    init(startDate: Date) {
        self.startDate = startDate
    }

    /// The date of the first byte, received or, for a request body, ready to be sent; `nil` if there was none.
    package var firstByteDate: Date? {
        let sent = requestBodyBytes > 0 ? nanoseconds.requestStart : nil
        return (sent ?? nanoseconds.responseStart).map { startDate + TimeInterval($0) / 1_000_000_000 }
    }
}

/// The metrics that all transfers on a connection share: a class, because metrics are copied for each of them.
final class ConnectionInfo: Sendable, Hashable {
    typealias HTTPVersion = TransferMetrics.HTTPVersion

    struct Values: Sendable, Hashable {
        var remoteAddress: String?
        var remotePort: Int?
        var localAddress: String?
        var localPort: Int?
        var tlsVersion: String?
        var tlsCipher: String?
        /// The version that TLS or QUIC has negotiated, or that was agreed on by prior knowledge.
        var httpVersion = HTTPVersion.http1_1

        var isHTTP2: Bool { httpVersion == .http2 }
        /// Whether several requests can be in flight on it.
        var isMultiplexed: Bool { httpVersion == .http2 || httpVersion == .http3 }
    }

    /// The information of a transfer without a connection.
    static let unknown = ConnectionInfo(Values())

    let values: Values

    init(_ values: Values) {
        self.values = values
    }

    /// Creates a changed copy.
    init(_ other: ConnectionInfo, _ change: (inout Values) -> Void) {
        var values = other.values
        change(&values)
        self.values = values
    }

    static func == (lhs: ConnectionInfo, rhs: ConnectionInfo) -> Bool { lhs.values == rhs.values }

    func hash(into hasher: inout Hasher) {
        hasher.combine(values)
    }
}

extension Duration {
    fileprivate var signedNanoseconds: Int64 { self < .zero ? -Int64((.zero - self).nanoseconds) : Int64(nanoseconds) }
}
