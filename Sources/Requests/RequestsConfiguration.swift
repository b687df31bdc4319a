// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// What the requests of an agent have in common: hosts, filters, policies.
///
/// Everything is read when it is needed, so that it can be changed at any time, from any thread: a new ``baseUrl`` holds for the next
/// request that is started.
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
        /// Counts changes of what a session is made of.
        var sessionVersion = 0
        var tokenRefresher: TokenRefresher?
        var appVersion: String? = RequestsConfiguration.bundleVersion
        var debugLogEnabled = false
        var debugMockEnabled = false
        var logHandler: @Sendable (String) -> Void = RequestsConfiguration.writeToStandardError
        var collectingMetricsBlock: (@Sendable (BaseRequest, TaskMetrics) -> Void)?
        /// The defaults of protocols that the log has told of.
        var notedDefaults: Set<String> = []
    }

    /// The configuration of ``RequestAgent/shared``.
    public static let shared = RequestsConfiguration()

    private let values = Lock(Values())

    /// Makes a configuration with the defaults.
    public init() {}

    // MARK: Where requests go

    /// What stands in front of the URLs of requests that have no base URL of their own, such as `https://api.example.org/v1/`; empty by
    /// default.
    public var baseUrl: String {
        get { values.withLock { $0.baseUrl } }
        set { values.withLock { $0.baseUrl = newValue } }
    }

    /// The same for requests that use the CDN; empty by default.
    public var cdnUrl: String {
        get { values.withLock { $0.cdnUrl } }
        set { values.withLock { $0.cdnUrl = newValue } }
    }

    /// The filters, in the order in which they are asked.
    public var urlFilters: [any UrlFilter] { values.withLock { $0.urlFilters } }

    /// Adds a filter behind the others.
    public func addUrlFilter(_ filter: any UrlFilter) {
        values.withLock { $0.urlFilters.append(filter) }
    }

    /// Removes all filters.
    public func clearUrlFilter() {
        values.withLock { $0.urlFilters = [] }
    }

    // MARK: How they travel

    /// How the session of the agent works; `nil`, the default, for ``defaultSessionConfiguration``.
    ///
    /// One of the user's has no cookies and no default header fields but its own: to change a detail, change a copy of the default. After a
    /// change the next request gets a new session; those on their way keep theirs.
    public var sessionConfiguration: SessionConfiguration? {
        get { values.withLock { $0.sessionConfiguration } }
        set {
            values.withLock {
                $0.sessionConfiguration = newValue
                $0.sessionVersion += 1
            }
        }
    }

    /// What sessions are made of where ``sessionConfiguration`` is `nil`: the defaults, with ``SessionManager/defaultHTTPHeaders`` and with
    /// cookies in `HTTPCookieStorage.shared`, as Foundation's sessions have them.
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

    /// Knows what hosts have to show before anything is sent to them; `nil`, the default, asks for what the system trusts.
    ///
    /// After a change the next request gets a new session; those on their way keep theirs.
    public var securityPolicy: ServerTrustPolicyManager? {
        get { values.withLock { $0.securityPolicy } }
        set {
            values.withLock {
                $0.securityPolicy = newValue
                $0.sessionVersion += 1
            }
        }
    }

    /// Gets new credentials once for all requests that were refused for want of them, which then are sent again; `nil` by default.
    public var tokenRefresher: TokenRefresher? {
        get { values.withLock { $0.tokenRefresher } }
        set { values.withLock { $0.tokenRefresher = newValue } }
    }

    /// Where callbacks, accessories and filters of ends run; `.main` by default. A serial queue, or the order of calls is lost.
    ///
    /// On Linux the main queue runs only under `RunLoop.main`, `dispatchMain()` or an asynchronous `@main`: a program without one of
    /// those sets a queue of its own here.
    public var callbackQueue: DispatchQueue {
        get { values.withLock { $0.callbackQueue } }
        set { values.withLock { $0.callbackQueue = newValue } }
    }

    // MARK: What comes back

    /// Which content types answers may have, unless a request says otherwise.
    public var acceptableContentTypes: AcceptableContentTypes {
        get { values.withLock { $0.acceptableContentTypes } }
        set { values.withLock { $0.acceptableContentTypes = newValue } }
    }

    /// Whether members of JSON objects that are `null` are left out, at all depths; `false` by default.
    ///
    /// To ``BaseRequest/jsonValidator()`` such a member is missing then, which fails, while `null` passes.
    public var removeNullValues: Bool {
        get { values.withLock { $0.removeNullValues } }
        set { values.withLock { $0.removeNullValues = newValue } }
    }

    // MARK: Caches

    /// The filters of the cache's directory, in the order in which they are asked.
    public var cacheDirPathFilters: [any CacheDirPathFilter] { values.withLock { $0.cacheDirPathFilters } }

    /// Adds a filter behind the others.
    public func addCacheDirPathFilter(_ filter: any CacheDirPathFilter) {
        values.withLock { $0.cacheDirPathFilters.append(filter) }
    }

    /// Removes all filters of the cache's directory.
    public func clearCacheDirPathFilter() {
        values.withLock { $0.cacheDirPathFilters = [] }
    }

    /// The program's version: what another one has cached is not used. By default the main bundle's `CFBundleShortVersionString`, `nil`
    /// where there is none, as on Linux.
    public var appVersion: String? {
        get { values.withLock { $0.appVersion } }
        set { values.withLock { $0.appVersion = newValue } }
    }

    private static var bundleVersion: String? { Bundle.main.infoDictionary?["CFBundleShortVersionString"] as? String }

    // MARK: Watching

    /// Whether a line is logged for each start, retry and end, and for each type of delegate, accessory or filter that leaves a method to
    /// its default; `false` by default. Credentials in URLs are left out.
    public var debugLogEnabled: Bool {
        get { values.withLock { $0.debugLogEnabled } }
        set { values.withLock { $0.debugLogEnabled = newValue } }
    }

    /// Takes the lines of the log; by default writes them to standard error. Called on any thread.
    public var logHandler: @Sendable (String) -> Void {
        get { values.withLock { $0.logHandler } }
        set { values.withLock { $0.logHandler = newValue } }
    }

    /// Whether failed requests may be mocked by ``BaseRequest/responseMockProcessor()``; `false` by default.
    ///
    /// Only in debug builds, and those with the condition `CURLEW_MOCK`: elsewhere it has no effect.
    public var debugMockEnabled: Bool {
        get { values.withLock { $0.debugMockEnabled } }
        set { values.withLock { $0.debugMockEnabled = newValue } }
    }

    /// Is given what was measured of each attempt, when it is over, on the agent's queue; `nil` by default.
    public var collectingMetricsBlock: (@Sendable (BaseRequest, TaskMetrics) -> Void)? {
        get { values.withLock { $0.collectingMetricsBlock } }
        set { values.withLock { $0.collectingMetricsBlock = newValue } }
    }

    // MARK: For the agent

    #if DEBUG || CURLEW_MOCK
    static let canMock = true
    #else
    static let canMock = false
    #endif

    /// What a session is made of, and the number of changes of it.
    var session: (configuration: SessionConfiguration?, policy: ServerTrustPolicyManager?, version: Int) {
        values.withLock { ($0.sessionConfiguration, $0.securityPolicy, $0.sessionVersion) }
    }

    func log(_ message: @autoclosure () -> String) {
        guard debugLogEnabled else { return }
        logHandler(message())
    }

    /// Logs, once for each type, that it leaves a method to its default.
    func noteDefault(_ requirement: String, of type: Any.Type) {
        guard debugLogEnabled else { return }
        let text = "\(type) does not implement \(requirement): if it is meant to, its signature is another"
        if values.withLock({ $0.notedDefaults.insert(text).inserted }) { logHandler(text) }
    }

    private static func writeToStandardError(_ line: String) {
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }
}

// MARK: - CustomStringConvertible

extension RequestsConfiguration: CustomStringConvertible {
    /// The base URL and the CDN's, redacted (``/CurlewHTTP/Redaction``).
    public var description: String { "{ baseURL: \(baseUrl.redactedURL) } { cdnURL: \(cdnUrl.redactedURL) }" }
}
