// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

/// What was measured of one exchange with a server, or with the session's cache.
///
/// Dates are `nil` for phases that were not reached, or did not take place. Thread-safe.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {  // what changes is behind a lock
    private struct Made {
        var request: URLRequest?
        var response: URLResponse?
    }

    private let metrics: TransferMetrics
    private let record: ExchangeRecord?
    private let made: Lock<Made>

    /// - Parameters:
    ///   - record: `nil` for an exchange that was not made by a request of Core.
    ///   - request: if there is no record, or no request can be made of it.
    ///   - response: if there is no record.
    init(_ metrics: TransferMetrics, _ record: ExchangeRecord?, request: URLRequest?, response: URLResponse?) {
        self.metrics = metrics
        self.record = record
        made = Lock(record == nil ? Made(request: request, response: response) : Made())
        fallback = request
        super.init()
    }

    private let fallback: URLRequest?

    // MARK: Request and response

    /// The request of this exchange with all its header fields, credentials and cookies among them, but without a body that is a file or a
    /// stream.
    open var request: URLRequest {
        made.withLock { made in
            if let request = made.request { return request }
            // Made of a valid request; another URL is only there as the type wants one.
            let request = record?.request ?? fallback ?? URLRequest(url: URL(fileURLWithPath: "/"))
            made.request = request
            return request
        }
    }

    /// The response of this exchange: that of a redirect or a challenge where another one followed. `nil` if none was received.
    open var response: URLResponse? {
        made.withLock { made in
            if made.response == nil { made.response = record?.response }
            return made.response
        }
    }

    // MARK: Dates

    /// When the exchange was begun, even if it then had to wait for a connection.
    open var fetchStartDate: Date? { metrics.startDate }

    /// When the lookup of the host's name began; `nil` on a reused connection.
    open var domainLookupStartDate: Date? {
        guard !isReusedConnection, metrics.nanoseconds.nameLookup != nil else { return nil }
        return date(metrics.nanoseconds.queue) ?? metrics.startDate
    }

    /// When the host's name was looked up; `nil` on a reused connection.
    open var domainLookupEndDate: Date? { isReusedConnection ? nil : date(metrics.nanoseconds.nameLookup) }

    /// When connecting began; `nil` on a reused connection.
    open var connectStartDate: Date? { domainLookupEndDate }

    /// When the connection was established, with TLS if that is used; `nil` on a reused connection.
    open var connectEndDate: Date? {
        guard !isReusedConnection, let connected = metrics.nanoseconds.connect else { return nil }
        // Not established, if TLS has failed.
        if isSecure, metrics.nanoseconds.secureConnection == nil { return nil }
        return date(max(metrics.nanoseconds.secureConnection ?? 0, connected))
    }

    /// When TLS began; `nil` without TLS and on a reused connection.
    open var secureConnectionStartDate: Date? {
        isReusedConnection || !isSecure ? nil : date(metrics.nanoseconds.connect)
    }

    /// When TLS was established; `nil` without TLS and on a reused connection.
    open var secureConnectionEndDate: Date? {
        isReusedConnection || !isSecure ? nil : date(metrics.nanoseconds.secureConnection)
    }

    /// When the first byte of the request could be sent.
    open var requestStartDate: Date? { wasSent ? date(metrics.nanoseconds.requestStart) : nil }

    /// When the last byte of the request was handed to the network. Without a body, which the head does not wait for, this is
    /// ``requestStartDate``.
    open var requestEndDate: Date? {
        guard let start = requestStartDate else { return nil }
        return max(start, record?.bodyEnd ?? start)
    }

    /// When the first byte of the response was received.
    open var responseStartDate: Date? { date(metrics.nanoseconds.responseStart) }

    /// When the last byte of the response was received, or the exchange failed while it was; `nil` without a response.
    open var responseEndDate: Date? {
        if metrics.nanoseconds.responseStart == nil, resourceFetchType == .networkLoad { return nil }
        return response == nil ? nil : date(metrics.nanoseconds.total)
    }

    private func date(_ offset: Int64?) -> Date? {
        offset.map { metrics.startDate.addingTimeInterval(TimeInterval($0) / 1_000_000_000) }
    }

    private var wasSent: Bool { metrics.requestHeaderBytes > 0 }

    private var isSecure: Bool {
        if metrics.tlsVersion != nil { return true }
        return ["https", "wss"].contains(request.url?.scheme?.lowercased())
    }

    // MARK: Connection

    /// The protocol: `http/1.0`, `http/1.1`, `h2` or `h3`; `nil` without a response of a server.
    open var networkProtocolName: String? {
        switch metrics.httpVersion {
        case .http1_0: "http/1.0"
        case .http1_1: "http/1.1"
        case .http2: "h2"
        case .http3: "h3"
        case nil: nil
        }
    }

    /// Whether the request was sent through a proxy.
    open var isProxyConnection: Bool { resourceFetchType != .localCache && record?.usesProxy == true }

    /// Whether the connection was made for an earlier exchange.
    open var isReusedConnection: Bool { metrics.reusedConnection }

    /// Where the response came from. A stored one that the server has validated is a ``URLSessionTaskMetrics/ResourceFetchType/networkLoad``,
    /// as it took an exchange.
    open var resourceFetchType: URLSessionTaskMetrics.ResourceFetchType {
        switch metrics.cacheOutcome {
        case .hit, .stale: .localCache
        default: wasSent || response is HTTPURLResponse ? .networkLoad : .unknown
        }
    }

    /// The IP address of this machine on the connection.
    open var localAddress: String? { metrics.localAddress }

    /// The port of this machine on the connection.
    open var localPort: Int? { metrics.localPort }

    /// The IP address of the server, or of the proxy.
    open var remoteAddress: String? { metrics.remoteAddress }

    /// The port of the server, or of the proxy.
    open var remotePort: Int? { metrics.remotePort }

    /// The version of TLS; `nil` without TLS.
    open var negotiatedTLSProtocolVersion: tls_protocol_version_t? { metrics.tlsVersion.flatMap { TLSNames.version($0) } }

    /// The cipher suite of TLS; `nil` without TLS, and for one that Apple's type does not have.
    open var negotiatedTLSCipherSuite: tls_ciphersuite_t? { metrics.tlsCipher.flatMap { TLSNames.suite($0) } }

    /// Whether the connection used a cellular interface: one whose name is that of a modem. Looked up when it is read.
    open var isCellular: Bool {
        guard let address = metrics.localAddress, let name = LocalInterface.name(of: address) else { return false }
        return NetworkPath(interface: name).isCellular
    }

    /// Whether the connection is an expensive one: ``isCellular``, as Linux does not report more.
    open var isExpensive: Bool { isCellular }

    /// Always `false`: Linux does not report whether a network is constrained.
    open var isConstrained: Bool { false }

    /// Always `false`: Multipath TCP is not used.
    open var isMultipath: Bool { false }

    /// How the host's name was looked up.
    open var domainResolutionProtocol: URLSessionTaskMetrics.DomainResolutionProtocol {
        domainLookupEndDate != nil && record?.usesDNSOverHTTPS == true ? .https : .unknown
    }

    // MARK: Bytes

    /// The bytes of the request's head, those of all attempts included if it was sent again by itself.
    open var countOfRequestHeaderBytesSent: Int64 { metrics.requestHeaderBytes }

    /// The bytes of the request's body that were sent.
    open var countOfRequestBodyBytesSent: Int64 { metrics.requestBodyBytes }

    /// The bytes of the request's body before a content coding: those sent, as a session sends a body as it is given.
    open var countOfRequestBodyBytesBeforeEncoding: Int64 { metrics.requestBodyBytes }

    /// The bytes of the response's head.
    open var countOfResponseHeaderBytesReceived: Int64 { metrics.responseHeaderBytes }

    /// The bytes of the response's body as received, before its content coding is decoded.
    open var countOfResponseBodyBytesReceived: Int64 { metrics.responseBodyBytes }

    /// The bytes of the response's body, decoded.
    open var countOfResponseBodyBytesAfterDecoding: Int64 { record?.decodedBytes ?? metrics.responseBodyBytes }

    /// The request line without secrets, the status and the duration.
    open override var description: String {
        let status = (response as? HTTPURLResponse).map { " \($0.statusCode)" } ?? ""
        let url = request.url?.absoluteString.redactedURL ?? ""
        return "\(request.httpMethod ?? "GET") \(url)\(status), \(networkProtocolName ?? "no response"), \(metrics.total)"
    }
}
