// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The settings of a single request, which take precedence over its session's. What is `nil` is the session's.
///
/// ```swift
/// let options = RequestOptions(deadline: .seconds(2), name: "GET /users/{id}")
/// let user = try await manager.request(url, options: options).serializingDecodable(User.self).value
/// ```
///
/// A value that can be stored and given to any number of requests of all kinds. For a raw connection (``StreamRequest``) the deadline, the
/// connect timeout, the proxy, the addresses, where to connect to (``unixSocketPath``, ``abstractUnixSocket``, ``resolve``, ``connectTo``,
/// ``resolver``), the interceptor's retrier, the name and the user info count. To lift a timeout of the session, set a very long one.
public struct RequestOptions: Sendable {
    /// The options of the group that is starting a request in this task; `nil` without one.
    @TaskLocal package static var ofGroup: RequestOptions?

    /// The longest time from the call that creates the request until it finishes: all attempts, redirects, delays before retries, and the
    /// waits for adapters, connections and decisions included. `nil` by default, for no limit.
    ///
    /// A request whose deadline has passed fails with ``TransferFailure/Kind/deadline``, during which attempt and phase its message says,
    /// and is not retried; one whose retry would begin after the deadline fails at once, with the error of its last attempt. Of this
    /// deadline and those of ``withDeadline(_:isolation:_:)-(Duration,_,_)`` the earliest counts. A deadline of 0 or less has passed
    /// already: the request is not sent.
    public var deadline: Duration?

    /// The name of a header field in which the seconds that remain until the deadline are sent, with three decimal places: those of the
    /// moment, with each attempt and follow-up, and only to the request's own origin. `nil`, the default, sends none; nor does a request
    /// without a deadline.
    public var deadlineHeader: String?

    /// The longest time for resolving, connecting and setting up TLS, for each connection; fails with
    /// ``TransferFailure/Kind/connectTimeout``. `nil`, the default, for the session's ``TransferOptions/connectTimeout``.
    public var connectTimeout: Duration?

    /// The longest wait for the first byte of a response, for each exchange; fails with ``TransferFailure/Kind/firstByteTimeout``. `nil`,
    /// the default, for the session's ``TransferOptions/firstByteTimeout``.
    public var firstByteTimeout: Duration?

    /// The longest pause between two bytes, sent or received; fails with ``TransferFailure/Kind/idleTimeout``. `nil`, the default, for the
    /// request's `timeoutInterval` or the session's ``TransferOptions/idleTimeout``, which documents what does not count.
    ///
    /// `URLRequest.timeoutInterval` is the same pause, in seconds, and counts unless it is 60: that is Foundation's default, which can't be
    /// distinguished from a value that was set. This property takes precedence over it, and counts with 60 seconds too.
    public var idleTimeout: Duration?

    /// The longest time for the transfers of an attempt; fails with ``TransferFailure/Kind/totalTimeout``. A retry starts from zero. `nil`,
    /// the default, for the session's ``TransferOptions/totalTimeout``.
    public var totalTimeout: Duration?

    /// Which redirects are followed, and with which header fields; see ``SessionConfiguration/redirects``.
    public var redirects: RedirectPolicy? {
        didSet { if let redirects { Redaction(headers: redirects.sensitiveHeaders).register() } }
    }

    /// The proxy; see ``TransferOptions/proxy``.
    public var proxy: ProxyPolicy?

    /// The addresses that may be connected to; see ``TransferOptions/addresses``.
    public var addresses: AddressPolicy?

    /// The largest body that is buffered in memory, in bytes; see ``SessionConfiguration/maximumBodySize``.
    public var maximumBodySize: Int?

    /// How the session's cache is used. It takes precedence over `URLRequest.cachePolicy`.
    public var cachePolicy: CachePolicy?

    /// The HTTP versions; see ``TransferOptions/httpVersion``.
    public var httpVersion: HTTPVersionPolicy?

    /// Where to connect to; `nil` for the session's. One reference, because few requests have it.
    package var routing: Routing?

    /// Whether an `OPTIONS` request is about the server as a whole (RFC 9110, section 9.3.7); `false` by default. Sent as `OPTIONS *`, and
    /// to a proxy that reads it with the URL without its path.
    ///
    /// The URL has no path but `/`, and no query: other URLs and methods fail with ``TransferFailure/Kind/configuration``. A redirect is
    /// followed to its own target.
    public var isServerWide = false

    /// The urgency, from 0, the most urgent, to 7: sent as the field `Priority` (RFC 9218, section 4.1), and the order in which requests get
    /// connections for which they wait. Other numbers are clamped. `nil`, the default, sends none, and counts as 3.
    public var priority: Int?

    /// Adapts this request and decides about its retries, after the interceptor that is a parameter of the call, and before the session's.
    public var interceptor: (any RequestInterceptor)?

    /// Signs each exchange of the request; `nil`, the default, for ``SessionConfiguration/signer``. Not for raw connections.
    public var signer: (any ExchangeSigner)?

    /// A name of low cardinality, such as `GET /users/{id}`, for logs, metrics and traces; ``Request/name`` returns it. Not sent.
    public var name: String?

    /// The URL to whose origin alone the session's client certificate is presented if it names no origins; `nil`, the default, for the
    /// request's own.
    package var certificateURL: String?

    /// Whether the request is sent without credentials, also those of the session and of adapters, and without a signature.
    package private(set) var withholdsCredentials = false

    /// The object of a layer above whose request it is; `nil`, the default, for none.
    package var ownership: RequestOwnership?

    /// Values for adapters, retriers and monitors, which read them from ``Request/options``. Empty by default; not sent.
    public var userInfo: [String: any Sendable] = [:]

    /// Creates options; those that are not given are the session's. Each parameter is the property of its name; of the two kinds of Unix
    /// domain sockets the abstract one counts.
    public init(
        deadline: Duration? = nil, deadlineHeader: String? = nil, connectTimeout: Duration? = nil, firstByteTimeout: Duration? = nil,
        idleTimeout: Duration? = nil, totalTimeout: Duration? = nil, redirects: RedirectPolicy? = nil, proxy: ProxyPolicy? = nil,
        addresses: AddressPolicy? = nil, maximumBodySize: Int? = nil, cachePolicy: CachePolicy? = nil,
        httpVersion: HTTPVersionPolicy? = nil, priority: Int? = nil, interceptor: (any RequestInterceptor)? = nil,
        signer: (any ExchangeSigner)? = nil, name: String? = nil,
        userInfo: [String: any Sendable] = [:], unixSocketPath: String? = nil, abstractUnixSocket: String? = nil,
        resolve: [String: [String]]? = nil, connectTo: [String: String]? = nil, resolver: HostResolver? = nil,
        isServerWide: Bool = false
    ) {
        self.deadline = deadline
        self.deadlineHeader = deadlineHeader
        self.connectTimeout = connectTimeout
        self.firstByteTimeout = firstByteTimeout
        self.idleTimeout = idleTimeout
        self.totalTimeout = totalTimeout
        self.redirects = redirects
        self.proxy = proxy
        self.addresses = addresses
        self.maximumBodySize = maximumBodySize
        self.cachePolicy = cachePolicy
        self.httpVersion = httpVersion
        self.priority = priority
        self.interceptor = interceptor
        self.signer = signer
        self.name = name
        self.userInfo = userInfo
        if let unixSocketPath { self.unixSocketPath = unixSocketPath }
        if let abstractUnixSocket { self.abstractUnixSocket = abstractUnixSocket }
        if let resolve { self.resolve = resolve }
        if let connectTo { self.connectTo = connectTo }
        if let resolver { self.resolver = resolver }
        self.isServerWide = isServerWide
        // An initializer calls no observers.
        if let redirects { Redaction(headers: redirects.sensitiveHeaders).register() }
    }
}

extension RequestOptions {
    /// Where to connect to.
    package final class Routing: Sendable {
        package let options: RoutingOptions

        init(_ options: RoutingOptions) { self.options = options }
    }

    private var routingOptions: RoutingOptions {
        get { routing?.options ?? RoutingOptions() }
        set { routing = newValue == RoutingOptions() ? nil : Routing(newValue) }
    }

    /// The path of a Unix domain socket to connect to; `nil`, the default, for the session's. See ``TransferOptions/unixSocketPath``.
    public var unixSocketPath: String? {
        get { if case .path(let path) = routing?.options.unixSocket { path } else { nil } }
        set { routingOptions.unixSocket = newValue.map { .path($0) } }
    }

    /// The name of an abstract Unix domain socket; `nil`, the default, for the session's. See ``TransferOptions/abstractUnixSocket``.
    public var abstractUnixSocket: String? {
        get { if case .abstract(let name) = routing?.options.unixSocket { name } else { nil } }
        set { routingOptions.unixSocket = newValue.map { .abstract($0) } }
    }

    /// Addresses for names, all of them in place of the session's; `nil`, the default, for the session's. See ``TransferOptions/resolve``.
    public var resolve: [String: [String]]? {
        get { routing?.options.resolve?.entries }
        set { routingOptions.resolve = newValue.map { RouteTable($0) } }
    }

    /// Hosts to connect to, all of them in place of the session's; `nil`, the default, for the session's. See
    /// ``TransferOptions/connectTo``.
    public var connectTo: [String: String]? {
        get { routing?.options.connectTo?.entries }
        set { routingOptions.connectTo = newValue.map { RouteTable($0) } }
    }

    /// Resolves the names of hosts; `nil`, the default, for the session's. See ``TransferOptions/resolver``.
    public var resolver: HostResolver? {
        get { routing?.options.resolver }
        set { routingOptions.resolver = newValue }
    }

    /// Returns the settings of a request to which a server has led, for another origin than that of a URL, to which the credentials belong.
    package func withoutCredentials(of url: String) -> RequestOptions {
        var result = self
        result.withholdsCredentials = true
        result.certificateURL = url
        return result
    }

    /// Returns these options, with others in place of those that are not set. The deadline is not taken over: it counts from a call of its own.
    package func filled(from others: RequestOptions?) -> RequestOptions {
        guard let others else { return self }
        var result = self
        result.deadlineHeader = deadlineHeader ?? others.deadlineHeader
        result.connectTimeout = connectTimeout ?? others.connectTimeout
        result.firstByteTimeout = firstByteTimeout ?? others.firstByteTimeout
        result.idleTimeout = idleTimeout ?? others.idleTimeout
        result.totalTimeout = totalTimeout ?? others.totalTimeout
        result.redirects = redirects ?? others.redirects
        result.proxy = proxy ?? others.proxy
        result.addresses = addresses ?? others.addresses
        result.maximumBodySize = maximumBodySize ?? others.maximumBodySize
        result.cachePolicy = cachePolicy ?? others.cachePolicy
        result.httpVersion = httpVersion ?? others.httpVersion
        result.isServerWide = isServerWide || others.isServerWide
        if let outer = others.routing { result.routing = routing.map { Routing($0.options.filled(from: outer.options)) } ?? outer }
        result.priority = priority ?? others.priority
        result.signer = signer ?? others.signer
        result.name = name ?? others.name
        result.certificateURL = certificateURL ?? others.certificateURL
        result.withholdsCredentials = withholdsCredentials || others.withholdsCredentials
        result.ownership = ownership ?? others.ownership
        result.userInfo = userInfo.merging(others.userInfo) { own, _ in own }
        if let outer = others.interceptor { result.interceptor = interceptor.map { Interceptor(interceptors: [$0, outer]) } ?? outer }
        return result
    }
}

/// What a request has of its own: an interceptor, options, or both.
package final class RequestSettings: Sendable {
    let options: RequestOptions
    /// The interceptor of the call that created the request, before that of its options.
    let interceptor: (any RequestInterceptor)?

    /// Returns the settings; `nil` if there is neither. Not an initializer, because that would copy its parameters for each request.
    package static func of(_ interceptor: (any RequestInterceptor)?, _ options: RequestOptions?) -> RequestSettings? {
        interceptor == nil && options == nil ? nil : RequestSettings(interceptor, options)
    }

    private init(_ interceptor: (any RequestInterceptor)?, _ options: RequestOptions?) {
        self.options = options ?? RequestOptions()
        guard let interceptor, let second = options?.interceptor else {
            self.interceptor = interceptor ?? options?.interceptor
            return
        }
        self.interceptor = Interceptor(interceptors: [interceptor, second])
    }
}
