// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

/// The settings of a session, which copies them.
///
/// A property that has an equivalent in Curlew is a view of ``curlew``: what was set last counts. Not to be changed by one thread while
/// another reads it.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {  // as Apple's: its owner does not change it concurrently
    /// The settings of the session that is made from this configuration, with all that Curlew has beside Apple's properties: pinning, rules for
    /// addresses, instruments, monitors.
    ///
    /// Retries are off, as nothing here retries. Unlike in Curlew, the size of bodies in memory has no limit, and a host has at most 6
    /// connections.
    public var curlew: SessionConfiguration

    private var additionalHeaders: [AnyHashable: Any]?
    private var proxyDictionary: [AnyHashable: Any]?
    private var classes: [AnyClass]?

    /// The identifier of a ``background(withIdentifier:)`` configuration; `nil` for others.
    open private(set) var identifier: String?

    private init(_ curlew: SessionConfiguration) {
        self.curlew = curlew
        super.init()
    }

    private init(_ other: URLSessionConfiguration) {
        curlew = other.curlew
        additionalHeaders = other.additionalHeaders
        proxyDictionary = other.proxyDictionary
        classes = other.classes
        identifier = other.identifier
        networkServiceType = other.networkServiceType
        allowsExpensiveNetworkAccess = other.allowsExpensiveNetworkAccess
        allowsConstrainedNetworkAccess = other.allowsConstrainedNetworkAccess
        requiresDNSSECValidation = other.requiresDNSSECValidation
        waitsForConnectivity = other.waitsForConnectivity
        isDiscretionary = other.isDiscretionary
        sharedContainerIdentifier = other.sharedContainerIdentifier
        sessionSendsLaunchEvents = other.sessionSendsLaunchEvents
        httpShouldUsePipelining = other.httpShouldUsePipelining
        shouldUseExtendedBackgroundIdleMode = other.shouldUseExtendedBackgroundIdleMode
        multipathServiceType = other.multipathServiceType
        usesClassicLoadingMode = other.usesClassicLoadingMode
        enablesEarlyData = other.enablesEarlyData
        super.init()
    }

    /// A configuration with the defaults, and without storages: ``default`` has the shared ones.
    public override init() {
        curlew = Self.makeCurlew(storages: nil)
        super.init()
    }

    /// Returns a copy.
    open func copy(with zone: NSZone? = nil) -> Any { URLSessionConfiguration(self) }

    /// Returns a copy.
    open override func copy() -> Any { copy(with: nil) }

    // MARK: Kinds

    /// A new configuration with the shared cookies, cache and credentials.
    open class var `default`: URLSessionConfiguration {
        let configuration = URLSessionConfiguration(makeCurlew(storages: .default))
        configuration.classes = URLProtocol.registeredClasses
        return configuration
    }

    /// A new configuration with cookies, a cache and credentials of its own, which are in memory only.
    open class var ephemeral: URLSessionConfiguration {
        let configuration = URLSessionConfiguration(makeCurlew(storages: .ephemeral))
        configuration.urlCache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil)
        configuration.classes = URLProtocol.registeredClasses
        return configuration
    }

    /// A configuration like ``default`` with an identifier: its tasks run while the process does, as no other process runs them on.
    open class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        let configuration = self.default
        configuration.identifier = identifier
        BackgroundNotice.give()
        return configuration
    }

    private static func makeCurlew(storages: CurlewURLLoading.URLSessionConfiguration?) -> SessionConfiguration {
        var curlew = SessionConfiguration()
        curlew.timeoutIntervalForRequest = 60
        curlew.connectTimeout = curlew.idleTimeout
        curlew.timeoutIntervalForResource = 7 * 86_400
        curlew.connections.maximumConnectionsPerHost = 6
        curlew.maximumBodySize = .max
        curlew.queueTimeout = nil
        curlew.cookieStorage = storages?.httpCookieStorage
        curlew.credentialStorage = storages?.urlCredentialStorage
        curlew.urlCache = storages?.urlCache
        return curlew
    }

    // MARK: Requests

    /// The cache policy of requests that have none of their own; `useProtocolCachePolicy` by default.
    open var requestCachePolicy: URLRequest.CachePolicy {
        get { curlew.requestCachePolicy }
        set { curlew.requestCachePolicy = newValue }
    }

    /// The longest pause between two bytes in seconds, and the longest time for making a connection; 60 by default.
    /// `URLRequest.timeoutInterval` counts instead unless it is 60.
    open var timeoutIntervalForRequest: TimeInterval {
        get { curlew.timeoutIntervalForRequest }
        set {
            curlew.timeoutIntervalForRequest = newValue
            curlew.connectTimeout = curlew.idleTimeout
        }
    }

    /// The longest time for a task in seconds; 7 days by default.
    open var timeoutIntervalForResource: TimeInterval {
        get { curlew.timeoutIntervalForResource }
        set { curlew.timeoutIntervalForResource = newValue }
    }

    /// Header fields of requests without a field of the same name; `nil` by default.
    open var httpAdditionalHeaders: [AnyHashable: Any]? {
        get { additionalHeaders }
        set {
            additionalHeaders = newValue
            curlew.httpAdditionalHeaders = newValue
        }
    }

    /// Has no effect: the system is not informed of what uses the network.
    open var networkServiceType: URLRequest.NetworkServiceType = .default

    /// Whether cellular interfaces may be used; `true` by default.
    open var allowsCellularAccess: Bool {
        get { curlew.allowsCellularAccess }
        set { curlew.allowsCellularAccess = newValue }
    }

    /// Has no effect: Linux has no expensive networks.
    open var allowsExpensiveNetworkAccess = true

    /// Has no effect: Linux has no constrained networks.
    open var allowsConstrainedNetworkAccess = true

    /// Has no effect: the system's resolver decides.
    open var requiresDNSSECValidation = false

    /// Whether a task waits for a network, instead of failing at once where there is no route; `false` by default.
    open var waitsForConnectivity = false

    /// Has no effect.
    open var isDiscretionary = false

    /// Has no effect.
    open var sharedContainerIdentifier: String?

    /// Has no effect.
    open var sessionSendsLaunchEvents = false

    // MARK: Connections

    /// Proxies in CFNetwork's form (`HTTPEnable`, `HTTPProxy`, `HTTPPort`, the same for `HTTPS` and `SOCKS`, `ExceptionsList`); with `nil`,
    /// the default, those of the environment.
    open var connectionProxyDictionary: [AnyHashable: Any]? {
        get { proxyDictionary }
        set {
            proxyDictionary = newValue
            curlew.options.proxy = newValue.map { ProxyPolicy(connectionDictionary: $0) } ?? TransferOptions().proxy
        }
    }

    /// The oldest version of TLS; 1.2 by default.
    open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t {
        get { tls_protocol_version_t(curlew.tls.minimumVersion) }
        set { if let version = TLSOptions.Version(newValue) { curlew.tls.minimumVersion = version } }
    }

    /// The newest version of TLS; 1.3 by default.
    open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t {
        get { curlew.tls.maximumVersion.map { tls_protocol_version_t($0) } ?? .TLSv13 }
        set { if let version = TLSOptions.Version(newValue) { curlew.tls.maximumVersion = version } }
    }

    /// Has no effect: requests are not pipelined (RFC 9112, section 9.3.2).
    open var httpShouldUsePipelining = false

    /// The most connections to a host; 6 by default.
    open var httpMaximumConnectionsPerHost: Int {
        get { curlew.httpMaximumConnectionsPerHost }
        set { curlew.httpMaximumConnectionsPerHost = newValue }
    }

    /// Has no effect.
    open var shouldUseExtendedBackgroundIdleMode = false

    /// Has no effect.
    open var multipathServiceType = MultipathServiceType.none

    /// Has no effect.
    open var usesClassicLoadingMode = true

    /// Has no effect: no early data is sent (RFC 8446, section 2.3).
    open var enablesEarlyData = false

    /// Whether several paths of a network are used, which they never are.
    public enum MultipathServiceType: Int, Sendable {
        /// One path.
        case none = 0
        /// For handing a connection over.
        case handover = 1
        /// For interactive traffic.
        case interactive = 2
        /// For the sum of the paths.
        case aggregate = 3
    }

    // MARK: Storages

    /// Whether stored cookies are sent; `true` by default.
    open var httpShouldSetCookies: Bool {
        get { curlew.httpShouldSetCookies }
        set { curlew.httpShouldSetCookies = newValue }
    }

    /// Which cookies of responses are stored; by default those of the domain of the request's `mainDocumentURL`, or all without one.
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy {
        get { curlew.httpCookieAcceptPolicy }
        set { curlew.httpCookieAcceptPolicy = newValue }
    }

    /// Where cookies are; `nil` for none.
    open var httpCookieStorage: HTTPCookieStorage? {
        get { curlew.httpCookieStorage }
        set { curlew.httpCookieStorage = newValue }
    }

    /// Where credentials are found for challenges, and stored; `nil` for none.
    open var urlCredentialStorage: URLCredentialStorage? {
        get { curlew.urlCredentialStorage }
        set { curlew.urlCredentialStorage = newValue }
    }

    /// Where responses are stored (RFC 9111); `nil` for none.
    open var urlCache: URLCache? {
        get { curlew.urlCache }
        set { curlew.urlCache = newValue }
    }

    /// Subclasses of `URLProtocol` that load requests in place of the network, asked in their order. In ``default`` and ``ephemeral``, those
    /// registered with `registerClass`.
    open var protocolClasses: [AnyClass]? {
        get { classes }
        set { classes = newValue }
    }
}

// MARK: - For the session

extension URLSessionConfiguration {
    /// The settings of a session: with the default header fields, and the classes.
    var completed: SessionConfiguration {
        var result = curlew
        for header in Self.defaultHeaders where result.headers.value(for: header.name) == nil { result.headers.append(header) }
        result.protocolSource = ProtocolClasses((classes ?? []) + curlew.protocolClasses)
        return result
    }

    static let defaultHeaders = HTTPHeaders([HTTPHeader(name: "Accept", value: "*/*")] + SessionManager.makeDefaultHeaders())
}

extension tls_protocol_version_t {
    fileprivate init(_ version: TLSOptions.Version) {
        switch version {
        case .v1_0: self = .TLSv10
        case .v1_1: self = .TLSv11
        case .v1_2: self = .TLSv12
        case .v1_3: self = .TLSv13
        }
    }
}

extension TLSOptions.Version {
    /// `nil` for a version of DTLS.
    fileprivate init?(_ version: tls_protocol_version_t) {
        switch version {
        case .TLSv10: self = .v1_0
        case .TLSv11: self = .v1_1
        case .TLSv12: self = .v1_2
        case .TLSv13: self = .v1_3
        default: return nil
        }
    }
}

/// Writes to standard error, once in a process, that there are no background sessions.
private enum BackgroundNotice {
    private static let isGiven = Lock(false)

    static func give() {
        let isFirst = isGiven.withLock { isGiven in
            defer { isGiven = true }
            return !isGiven
        }
        guard isFirst else { return }
        let text = "URLSessionConfiguration.background: here the tasks of a background session run only while the process does.\n"
        FileHandle.standardError.write(Data(text.utf8))
    }
}
