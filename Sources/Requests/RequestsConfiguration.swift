// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// The settings shared by the requests of an agent: hosts, filters, policies.
///
/// Everything is read when it is needed, so it can be changed at any time, from any thread: a new ``baseUrl`` applies to the next request
/// that is started.
public final class RequestsConfiguration: Sendable {
    struct Values: Sendable {
        var baseUrl = ""
        var cdnUrl = ""
        var urlFilters: [any UrlFilter] = []
        var cacheDirPathFilters: [any CacheDirPathFilter] = []
        var acceptableContentTypes = AcceptableContentTypes()
        var removeNullValues = false
        var callbackQueue = DispatchQueue.main
        var sessionConfiguration: SessionConfiguration?
        var securityPolicy: ServerTrustPolicyManager?
        /// Counts changes to the settings from which a session is made.
        var sessionVersion = 0
        var tokenRefresher: TokenRefresher?
        var appVersion: String? = RequestsConfiguration.bundleVersion
        var debugLogEnabled = false
        var debugMockEnabled = false
        var logHandler: @Sendable (String) -> Void = RequestsConfiguration.writeToStandardError
        var collectingMetricsBlock: (@Sendable (BaseRequest, TaskMetrics) -> Void)?
        /// The protocol defaults that have been logged.
        var loggedDefaults: Set<String> = []
    }

    /// The configuration of ``RequestAgent/shared``.
    public static let shared = RequestsConfiguration()

    private let values = Lock(Values())

    /// Creates a configuration with the defaults.
    public init() {}

    // MARK: URLs

    /// The base of relative request URLs whose request has no base URL of its own, such as `https://api.example.org/v1/`; empty by default.
    public var baseUrl: String {
        get { values.withLock { $0.baseUrl } }
        set { values.withLock { $0.baseUrl = newValue } }
    }

    /// The base of relative URLs of requests that use the CDN; empty by default.
    public var cdnUrl: String {
        get { values.withLock { $0.cdnUrl } }
        set { values.withLock { $0.cdnUrl = newValue } }
    }

    /// The filters, in the order in which they are applied.
    public var urlFilters: [any UrlFilter] { values.withLock { $0.urlFilters } }

    /// Appends a filter.
    public func addUrlFilter(_ filter: any UrlFilter) {
        values.withLock { $0.urlFilters.append(filter) }
    }

    /// Removes all filters.
    public func clearUrlFilter() {
        values.withLock { $0.urlFilters = [] }
    }

    // MARK: Session

    /// The configuration of the agent's session; `nil`, the default, for ``defaultSessionConfiguration``.
    ///
    /// A configuration set here has no cookies and no default header fields except its own: to change a detail, change a copy of the
    /// default. After a change the next request gets a new session; requests in flight keep theirs.
    public var sessionConfiguration: SessionConfiguration? {
        get { values.withLock { $0.sessionConfiguration } }
        set {
            values.withLock {
                $0.sessionConfiguration = newValue
                $0.sessionVersion += 1
            }
        }
    }

    /// The session configuration used where ``sessionConfiguration`` is `nil`: the defaults, with ``SessionManager/defaultHTTPHeaders`` and
    /// with cookies in `HTTPCookieStorage.shared`, as in Foundation's sessions.
    ///
    /// Without cookies:
    ///
    /// ```swift
    /// var session = RequestsConfiguration.defaultSessionConfiguration
    /// session.cookieStorage = nil
    /// RequestsConfiguration.shared.sessionConfiguration = session
    /// ```
    public static var defaultSessionConfiguration: SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.headers = SessionManager.defaultHTTPHeaders
        configuration.cookieStorage = .shared
        return configuration
    }

    /// The server trust policies by host, evaluated before a request is sent; `nil`, the default, for the system's trust evaluation.
    ///
    /// After a change the next request gets a new session; requests in flight keep theirs.
    public var securityPolicy: ServerTrustPolicyManager? {
        get { values.withLock { $0.securityPolicy } }
        set {
            values.withLock {
                $0.securityPolicy = newValue
                $0.sessionVersion += 1
            }
        }
    }

    /// Refreshes credentials once for all requests rejected without valid ones, which are then sent again; `nil` by default.
    public var tokenRefresher: TokenRefresher? {
        get { values.withLock { $0.tokenRefresher } }
        set { values.withLock { $0.tokenRefresher = newValue } }
    }

    /// The queue for callbacks, accessories and completion filters; `.main` by default. Must be serial, otherwise the order of the calls is
    /// lost.
    ///
    /// On Linux the main queue runs only under `RunLoop.main`, `dispatchMain()` or an asynchronous `@main`: a program without one of those
    /// must set another queue here.
    public var callbackQueue: DispatchQueue {
        get { values.withLock { $0.callbackQueue } }
        set { values.withLock { $0.callbackQueue = newValue } }
    }

    // MARK: Responses

    /// The content types that responses may have, unless a request overrides them.
    public var acceptableContentTypes: AcceptableContentTypes {
        get { values.withLock { $0.acceptableContentTypes } }
        set { values.withLock { $0.acceptableContentTypes = newValue } }
    }

    /// Whether `null` members of JSON objects are removed, at all depths; `false` by default.
    ///
    /// ``BaseRequest/jsonValidator()`` then treats such a member as missing, which fails, whereas `null` passes.
    public var removeNullValues: Bool {
        get { values.withLock { $0.removeNullValues } }
        set { values.withLock { $0.removeNullValues = newValue } }
    }

    // MARK: Caches

    /// The filters of the cache directory, in the order in which they are applied.
    public var cacheDirPathFilters: [any CacheDirPathFilter] { values.withLock { $0.cacheDirPathFilters } }

    /// Appends a filter of the cache directory.
    public func addCacheDirPathFilter(_ filter: any CacheDirPathFilter) {
        values.withLock { $0.cacheDirPathFilters.append(filter) }
    }

    /// Removes all filters of the cache directory.
    public func clearCacheDirPathFilter() {
        values.withLock { $0.cacheDirPathFilters = [] }
    }

    /// The program's version: responses cached by another version are not used. By default the main bundle's `CFBundleShortVersionString`,
    /// `nil` where there is none, as on Linux.
    public var appVersion: String? {
        get { values.withLock { $0.appVersion } }
        set { values.withLock { $0.appVersion = newValue } }
    }

    private static var bundleVersion: String? { Bundle.main.infoDictionary?["CFBundleShortVersionString"] as? String }

    // MARK: Logging, mocking, metrics

    /// Whether a line is logged for each start, retry and end, and for each delegate, accessory or filter type that uses a method's
    /// default; `false` by default. Credentials in URLs are redacted.
    public var debugLogEnabled: Bool {
        get { values.withLock { $0.debugLogEnabled } }
        set { values.withLock { $0.debugLogEnabled = newValue } }
    }

    /// Receives the lines of the log; by default writes them to standard error. Called on any thread.
    public var logHandler: @Sendable (String) -> Void {
        get { values.withLock { $0.logHandler } }
        set { values.withLock { $0.logHandler = newValue } }
    }

    /// Whether failed requests may be mocked by ``BaseRequest/responseMockProcessor()``; `false` by default.
    ///
    /// Has no effect except in debug builds and builds with the condition `CURLEW_MOCK`.
    public var debugMockEnabled: Bool {
        get { values.withLock { $0.debugMockEnabled } }
        set { values.withLock { $0.debugMockEnabled = newValue } }
    }

    /// Receives the metrics of each attempt when it completes, on the agent's queue; `nil` by default.
    public var collectingMetricsBlock: (@Sendable (BaseRequest, TaskMetrics) -> Void)? {
        get { values.withLock { $0.collectingMetricsBlock } }
        set { values.withLock { $0.collectingMetricsBlock = newValue } }
    }

    // MARK: Used by the agent

    #if DEBUG || CURLEW_MOCK
    static let canMock = true
    #else
    static let canMock = false
    #endif

    /// The settings from which a session is made, and the number of changes to them.
    var session: (configuration: SessionConfiguration?, policy: ServerTrustPolicyManager?, version: Int) {
        values.withLock { ($0.sessionConfiguration, $0.securityPolicy, $0.sessionVersion) }
    }

    func log(_ message: @autoclosure () -> String) {
        guard debugLogEnabled else { return }
        logHandler(message())
    }

    /// Logs, once per type and method, that a type uses the method's default.
    func logDefault(_ requirement: String, of type: Any.Type) {
        guard debugLogEnabled else { return }
        let text = "\(type) does not implement \(requirement); if it should, check the method's signature"
        if values.withLock({ $0.loggedDefaults.insert(text).inserted }) { logHandler(text) }
    }

    private static func writeToStandardError(_ line: String) {
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }
}

// MARK: - CustomStringConvertible

extension RequestsConfiguration: CustomStringConvertible {
    /// The base URL and the CDN URL, redacted (``/CurlewHTTP/Redaction``).
    public var description: String { "{ baseURL: \(baseUrl.redactedURL) } { cdnURL: \(cdnUrl.redactedURL) }" }
}
