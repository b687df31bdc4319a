// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

extension SessionConfiguration {
    /// The default of `httpMaximumConnectionsPerHost` in Foundation, which does not report whether it was set.
    private static let foundationsConnectionsPerHost = 6

    /// Creates a configuration from one of Foundation.
    ///
    /// Used are: additional headers, both timeouts, cache and cache policy, cookie storage with its policies, credential storage, cellular
    /// access, connections per host (6, Foundation's default, counts as unset), proxies, protocol classes.
    ///
    /// Ignored, as they have no equivalent: the identifier (there are no background sessions), the network service type, `isDiscretionary`,
    /// pipelining and the extended idle mode. On Linux Foundation's type has no TLS versions: set ``TLSOptions/minimumVersion``.
    public init(_ configuration: URLSessionConfiguration) {
        self.init()
        notifiesLayerMonitor = true
        headers = HTTPHeaders(stringifying: configuration.httpAdditionalHeaders ?? [:])
        timeoutIntervalForRequest = configuration.timeoutIntervalForRequest
        timeoutIntervalForResource = configuration.timeoutIntervalForResource
        urlCache = configuration.urlCache
        cachePolicy = CachePolicy(configuration.requestCachePolicy)
        cookieStorage = configuration.httpCookieStorage
        cookieAcceptPolicy = configuration.httpCookieAcceptPolicy
        sendsCookies = configuration.httpShouldSetCookies
        credentialStorage = configuration.urlCredentialStorage
        allowsCellularAccess = configuration.allowsCellularAccess
        let connectionsPerHost = configuration.httpMaximumConnectionsPerHost
        if connectionsPerHost != Self.foundationsConnectionsPerHost, connectionsPerHost > 0 {
            connections.maximumConnectionsPerHost = connectionsPerHost
        }
        if let dictionary = configuration.connectionProxyDictionary { options.proxy = ProxyPolicy(connectionDictionary: dictionary) }
        protocolClasses = (configuration.protocolClasses ?? []).compactMap { $0 as? URLProtocol.Type }.filter { !$0.isFoundations }
    }
}

// MARK: - Foundation's names

extension SessionConfiguration {
    /// ``headers`` as a dictionary, in which repeated fields are joined.
    public var httpAdditionalHeaders: [AnyHashable: Any]? {
        get { headers.isEmpty ? nil : headers.dictionary }
        set { headers = HTTPHeaders(stringifying: newValue ?? [:]) }
    }

    /// ``TransferOptions/idleTimeout`` in seconds, infinity for none: the longest pause between two bytes, not the time of a request. Setting 0
    /// or less does nothing.
    public var timeoutIntervalForRequest: TimeInterval {
        get { options.idleTimeout.map(\.seconds) ?? .infinity }
        set { if newValue > 0 { options.idleTimeout = Duration(limit: newValue) } }
    }

    /// ``TransferOptions/totalTimeout`` in seconds, infinity for none; setting 0 or less does nothing.
    public var timeoutIntervalForResource: TimeInterval {
        get { options.totalTimeout.map(\.seconds) ?? .infinity }
        set { if newValue > 0 { options.totalTimeout = Duration(limit: newValue) } }
    }

    /// ``cachePolicy`` as Foundation's type.
    public var requestCachePolicy: URLRequest.CachePolicy {
        get { cachePolicy.foundation }
        set { cachePolicy = CachePolicy(newValue) }
    }

    /// ``cookieStorage``.
    public var httpCookieStorage: HTTPCookieStorage? {
        get { cookieStorage }
        set { cookieStorage = newValue }
    }

    /// ``cookieAcceptPolicy``.
    public var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy {
        get { cookieAcceptPolicy }
        set { cookieAcceptPolicy = newValue }
    }

    /// ``sendsCookies``.
    public var httpShouldSetCookies: Bool {
        get { sendsCookies }
        set { sendsCookies = newValue }
    }

    /// ``credentialStorage``.
    public var urlCredentialStorage: URLCredentialStorage? {
        get { credentialStorage }
        set { credentialStorage = newValue }
    }

    /// ``TransportConfiguration/maximumConnectionsPerHost``; `Int.max` for no limit.
    public var httpMaximumConnectionsPerHost: Int {
        get { connections.maximumConnectionsPerHost ?? .max }
        set { connections.maximumConnectionsPerHost = newValue == .max ? nil : max(newValue, 1) }
    }
}

extension CachePolicy {
    /// Converts Foundation's policy. Compared by case, because raw values differ between Darwin and Linux.
    init(_ policy: URLRequest.CachePolicy) {
        self = Self.allCases.first { $0.foundation == policy } ?? .useProtocolCachePolicy
    }

    var foundation: URLRequest.CachePolicy {
        switch self {
        case .useProtocolCachePolicy: .useProtocolCachePolicy
        case .reloadIgnoringLocalCacheData: .reloadIgnoringLocalCacheData
        case .returnCacheDataElseLoad: .returnCacheDataElseLoad
        case .returnCacheDataDontLoad: .returnCacheDataDontLoad
        case .reloadIgnoringLocalAndRemoteCacheData: .reloadIgnoringLocalAndRemoteCacheData
        case .reloadRevalidatingCacheData: .reloadRevalidatingCacheData
        }
    }
}

extension Duration {
    /// Converts a timeout in seconds; `nil`, no timeout, from a billion (31 years) on, so that infinity does not overflow.
    fileprivate init?(limit seconds: TimeInterval) {
        guard seconds < 1e9 else { return nil }
        self = .seconds(seconds)
    }
}

extension HTTPHeaders {
    /// The entries of an untyped dictionary as header fields, sorted by name.
    fileprivate init(stringifying dictionary: [AnyHashable: Any]) {
        self.init(Dictionary(dictionary.map { ("\($0.base)", "\($1)") }) { first, _ in first })
    }
}

extension URLProtocol {
    /// Whether the class is one of Foundation's own, which Curlew's transport replaces.
    fileprivate static var isFoundations: Bool {
        let name = String(reflecting: self)
        return name.hasPrefix("FoundationNetworking.") || name.hasPrefix("_NS") || name.hasPrefix("NS") || name.hasPrefix("Foundation.")
    }
}

// MARK: - Proxies

extension ProxyPolicy {
    /// Converts a dictionary in CFNetwork's form: `HTTPEnable`, `HTTPProxy`, `HTTPPort`, the same for `HTTPS` and `SOCKS`,
    /// `ExceptionsList`, user and password. `ExcludeSimpleHostnames` and proxy auto-configuration are ignored.
    ///
    /// Keys may also be the names of CFNetwork's constants, such as `kCFNetworkProxiesHTTPEnable`. A dictionary that enables no proxy
    /// disables those of the environment, too.
    package init(connectionDictionary dictionary: [AnyHashable: Any]) {
        let entries = ProxyEntries(dictionary)
        let socks = entries.url(of: "SOCKS", scheme: "socks5h")
        let (http, https) = (entries.url(of: "HTTP", scheme: "http") ?? socks, entries.url(of: "HTTPS", scheme: "http") ?? socks)
        self = http == nil && https == nil ? .none : .schemes(http: http, https: https, except: entries.exceptions)
    }
}

private struct ProxyEntries {
    private var entries: [String: Any] = [:]

    init(_ dictionary: [AnyHashable: Any]) {
        for (key, value) in dictionary {
            var name = "\(key.base)"
            for prefix in ["kCFNetworkProxies", "kCFStreamProperty", "kCFProxy"] where name.hasPrefix(prefix) {
                name.removeFirst(prefix.count)
                // kCFProxyUsernameKey, and kCFStreamPropertyHTTPProxyHost, whose value is HTTPProxy.
                if name.hasSuffix("Key") { name.removeLast(3) }
                if name.hasSuffix("ProxyHost") { name.removeLast(4) }
                name = name.replacing("ProxyPort", with: "Port")
            }
            entries[name] = value
        }
    }

    /// Hosts connected to without a proxy.
    var exceptions: [String] { (entries["ExceptionsList"] as? [Any] ?? []).map { "\($0)" } }

    func url(of kind: String, scheme: String) -> String? {
        guard isOn(entries[kind + "Enable"]), let host = entries[kind + "Proxy"].map({ "\($0)" }), !host.isEmpty else { return nil }
        let port = entries[kind + "Port"].map { ":\($0)" } ?? ""
        return "\(scheme)://\(userInfo)\(host.bracketed)\(port)"
    }

    private var userInfo: String {
        guard let user = entries["Username"].map({ "\($0)" }), !user.isEmpty else { return "" }
        let password = entries["Password"].map { ":" + Self.escaped("\($0)") } ?? ""
        return "\(Self.escaped(user))\(password)@"
    }

    private static func escaped(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics.intersection(CharacterSet(charactersIn: "\0"..."\u{7F}"))) ?? ""
    }

    /// Whether an `Enable` value of any type is 1 or true. `true` without one, as stream properties have no such key.
    private func isOn(_ value: Any?) -> Bool {
        guard let value else { return true }
        if let flag = value as? Bool { return flag }
        if let number = value as? NSNumber { return number.intValue != 0 }
        return (value as? Int).map { $0 != 0 } ?? (["1", "true", "yes"].contains("\(value)".lowercased()))
    }
}
