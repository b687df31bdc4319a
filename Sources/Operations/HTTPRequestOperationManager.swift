// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// Creates HTTP operations for an API and runs them on its own queue.
///
/// All members are thread-safe; an operation has the settings that were in effect when it was created.
open class HTTPRequestOperationManager: NSCopying, @unchecked Sendable {  // the settings are behind a lock
    /// Receives the operation and the response serializer's object.
    public typealias Success = @Sendable (HTTPRequestOperation, Any?) -> Void
    /// Receives the operation, `nil` if none could be created, and the error.
    public typealias Failure = @Sendable (HTTPRequestOperation?, any Error) -> Void

    private struct Settings: @unchecked Sendable {  // its Foundation objects are immutable or thread-safe
        var session: OperationSession
        var requestSerializer = HTTPRequestSerializer()
        var responseSerializer: any ResponseSerialization = JSONResponseSerializer()
        var credential: URLCredential?
        var shouldUseCredentialStorage = true
        var securityPolicy = SecurityPolicy()
        var reachability: ReachabilityMonitor?
        var completionQueue: DispatchQueue?
        var completionGroup: DispatchGroup?
        var requestOptions: RequestOptions?
    }

    /// The base of relative URLs; `nil` for none. Its path ends in a slash.
    public let baseURL: URL?
    /// The queue that runs the operations. Its `maxConcurrentOperationCount` limits how many run at a time.
    public let operationQueue = OperationQueue()
    private let settings: Lock<Settings>

    /// Creates a manager.
    ///
    /// - Parameters:
    ///   - baseURL: the base of relative URLs; a slash is appended if its path does not end in one.
    ///   - session: the session of the operations.
    public required init(baseURL: URL? = nil, session: OperationSession = .shared) {
        self.baseURL = baseURL.map { url in
            url.path.isEmpty || url.absoluteString.hasByteSuffix("/") || url.query != nil ? url : url.appendingPathComponent("")
        }
        settings = Lock(Settings(session: session))
    }

    private func setting<Value>(_ path: KeyPath<Settings, Value>) -> Value { settings.withLock { $0[keyPath: path] } }

    private func set<Value>(_ path: WritableKeyPath<Settings, Value>, _ value: Value) { settings.withLock { $0[keyPath: path] = value } }

    // MARK: Settings

    /// The session of the operations.
    public var session: OperationSession { setting(\.session) }

    /// Creates the requests; an ``HTTPRequestSerializer`` by default.
    public var requestSerializer: HTTPRequestSerializer {
        get { setting(\.requestSerializer) }
        set { set(\.requestSerializer, newValue) }
    }

    /// Serializes the responses; a ``JSONResponseSerializer`` by default.
    public var responseSerializer: any ResponseSerialization {
        get { setting(\.responseSerializer) }
        set { set(\.responseSerializer, newValue) }
    }

    /// See ``URLConnectionOperation/credential``.
    public var credential: URLCredential? {
        get { setting(\.credential) }
        set { set(\.credential, newValue) }
    }

    /// See ``URLConnectionOperation/shouldUseCredentialStorage``.
    public var shouldUseCredentialStorage: Bool {
        get { setting(\.shouldUseCredentialStorage) }
        set { set(\.shouldUseCredentialStorage, newValue) }
    }

    /// See ``URLConnectionOperation/securityPolicy``.
    public var securityPolicy: SecurityPolicy {
        get { setting(\.securityPolicy) }
        set { set(\.securityPolicy, newValue) }
    }

    /// Monitors whether the base URL's host, or without one the network, is reachable; `nil` if the system does not report paths. Not
    /// started.
    public var reachability: ReachabilityMonitor? {
        get {
            settings.withLock { settings in
                if settings.reachability == nil {
                    settings.reachability = baseURL?.host.map { ReachabilityMonitor(domain: $0) } ?? ReachabilityMonitor()
                }
                return settings.reachability
            }
        }
        set { set(\.reachability, newValue) }
    }

    /// See ``URLConnectionOperation/completionQueue``.
    public var completionQueue: DispatchQueue? {
        get { setting(\.completionQueue) }
        set { set(\.completionQueue, newValue) }
    }

    /// See ``URLConnectionOperation/completionGroup``.
    public var completionGroup: DispatchGroup? {
        get { setting(\.completionGroup) }
        set { set(\.completionGroup, newValue) }
    }

    /// See ``URLConnectionOperation/requestOptions``. Those given to a maker take precedence, and have these where they have none.
    public var requestOptions: RequestOptions? {
        get { setting(\.requestOptions) }
        set { set(\.requestOptions, newValue) }
    }

    // MARK: Operations

    /// Creates an operation with the manager's settings, without adding it to a queue.
    open func httpRequestOperation(with request: URLRequest, success: Success? = nil, failure: Failure? = nil) -> HTTPRequestOperation {
        let operation = HTTPRequestOperation(request: request)
        configure(operation)
        operation.setCompletionBlock(success: success, failure: failure)
        return operation
    }

    /// Creates an operation from an archive with the manager's settings, without adding it to a queue. It has the archived serializer, or
    /// the manager's if the archive has none.
    ///
    /// - Throws: ``OperationError/unsupportedArchive(version:)``.
    open func httpRequestOperation(
        from archive: OperationArchive, success: Success? = nil, failure: Failure? = nil
    ) throws -> HTTPRequestOperation {
        let operation = try HTTPRequestOperation(archive: archive)
        configure(operation, setsSerializer: archive.serializer == nil)
        operation.setCompletionBlock(success: success, failure: failure)
        return operation
    }

    private func configure(_ operation: HTTPRequestOperation, setsSerializer: Bool = true) {
        let settings = settings.withLock { $0 }
        operation.session = settings.session
        if setsSerializer { operation.responseSerializer = settings.responseSerializer }
        operation.credential = settings.credential
        operation.shouldUseCredentialStorage = settings.shouldUseCredentialStorage
        operation.securityPolicy = settings.securityPolicy
        operation.completionQueue = settings.completionQueue
        operation.completionGroup = settings.completionGroup
        operation.requestOptions = settings.requestOptions
    }

    /// Enqueues a GET. See ``operation(method:_:parameters:success:failure:)``.
    @discardableResult
    open func get(_ url: String, parameters: Any? = nil, success: Success? = nil, failure: Failure? = nil) -> HTTPRequestOperation? {
        operation(method: "GET", url, parameters: parameters, success: success, failure: failure)
    }

    /// Enqueues a HEAD; `success` receives no object.
    @discardableResult
    open func head(
        _ url: String, parameters: Any? = nil, success: (@Sendable (HTTPRequestOperation) -> Void)? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        operation(method: "HEAD", url, parameters: parameters, success: { operation, _ in success?(operation) }, failure: failure)
    }

    /// Enqueues a POST.
    @discardableResult
    open func post(_ url: String, parameters: Any? = nil, success: Success? = nil, failure: Failure? = nil) -> HTTPRequestOperation? {
        operation(method: "POST", url, parameters: parameters, success: success, failure: failure)
    }

    /// Enqueues a POST of a multipart form. Files and streams are read before this returns.
    @discardableResult
    open func post(
        _ url: String, parameters: [String: Any]? = nil, constructingBodyWith block: (StreamingMultipartFormData) throws -> Void,
        success: Success? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        enqueue(nil, success, failure) {
            try requestSerializer.multipartFormRequest(
                method: "POST", url: try resolve(url), parameters: parameters, constructingBodyWith: block)
        }
    }

    /// Enqueues a PUT.
    @discardableResult
    open func put(_ url: String, parameters: Any? = nil, success: Success? = nil, failure: Failure? = nil) -> HTTPRequestOperation? {
        operation(method: "PUT", url, parameters: parameters, success: success, failure: failure)
    }

    /// Enqueues a PATCH.
    @discardableResult
    open func patch(_ url: String, parameters: Any? = nil, success: Success? = nil, failure: Failure? = nil) -> HTTPRequestOperation? {
        operation(method: "PATCH", url, parameters: parameters, success: success, failure: failure)
    }

    /// Enqueues a DELETE.
    @discardableResult
    open func delete(_ url: String, parameters: Any? = nil, success: Success? = nil, failure: Failure? = nil) -> HTTPRequestOperation? {
        operation(method: "DELETE", url, parameters: parameters, success: success, failure: failure)
    }

    /// Enqueues an operation with any method.
    ///
    /// - Parameters:
    ///   - method: any token (RFC 9110, section 9.1).
    ///   - url: relative to ``baseURL``, or absolute.
    ///   - parameters: what the request serializer encodes into the request.
    ///   - success: receives the object, on ``completionQueue``.
    ///   - failure: receives the error, on ``completionQueue``.
    /// - Returns: the operation; `nil` if no request could be created, in which case `failure` is called later.
    @discardableResult
    open func operation(
        method: String, _ url: String, parameters: Any? = nil, success: Success? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        enqueue(nil, success, failure) { try requestSerializer.request(method: method, url: try resolve(url), parameters: parameters) }
    }

    func enqueue(
        _ options: RequestOptions? = nil, _ success: Success?, _ failure: Failure?, _ makeRequest: () throws -> URLRequest
    ) -> HTTPRequestOperation? {
        do {
            let operation = httpRequestOperation(with: try makeRequest(), success: success, failure: failure)
            if let options {
                operation.requestOptions = options.filled(from: operation.requestOptions).with(
                    deadline: options.deadline ?? operation.requestOptions?.deadline)
            }
            operationQueue.addOperation(operation)
            return operation
        } catch {
            let queue = completionQueue ?? session.configuration.callbackQueue
            queue.async { failure?(nil, error) }
            return nil
        }
    }

    func resolve(_ string: String) throws -> URL {
        guard let url = URL(string: string.encodingInvalidCharacters, relativeTo: baseURL)?.absoluteURL, url.scheme != nil else {
            throw OperationError.invalidURL(string)
        }
        return url
    }

    // MARK: - NSCopying

    /// Returns a manager with the same settings, a copy of the request serializer, and an empty queue.
    public func copy(with zone: NSZone? = nil) -> Any { duplicate() }

    /// ``copy(with:)``, typed.
    public func duplicate() -> Self {
        let copy = Self(baseURL: baseURL, session: session)
        var settings = settings.withLock { $0 }
        settings.requestSerializer = settings.requestSerializer.copy()
        settings.reachability = nil
        copy.settings.withLock { [settings] in $0 = settings }
        copy.operationQueue.maxConcurrentOperationCount = operationQueue.maxConcurrentOperationCount
        return copy
    }
}

// MARK: - Archive

extension HTTPRequestOperationManager {
    /// The archivable settings of a manager: base URL, serializers, security policy, use of the credential storage, and the number of
    /// concurrent operations.
    ///
    /// It contains all header fields of the request serializer, including credentials: protect it as you protect them.
    public struct Archive: Sendable, Codable {
        let baseURL: URL?
        let requestSerializer: RequestSerializerArchive?
        let responseSerializer: ResponseSerializerArchive?
        let securityPolicy: SecurityPolicy
        let shouldUseCredentialStorage: Bool
        let maxConcurrentOperationCount: Int
    }

    /// Returns the manager's settings as a value. Not included are its operations, which have archives of their own, serializers of other
    /// modules, and request serializers with a closure.
    public func archive() -> Archive {
        Archive(
            baseURL: baseURL, requestSerializer: RequestSerializerArchive(requestSerializer),
            responseSerializer: ResponseSerializerArchive(responseSerializer), securityPolicy: securityPolicy,
            shouldUseCredentialStorage: shouldUseCredentialStorage,
            maxConcurrentOperationCount: operationQueue.maxConcurrentOperationCount)
    }

    /// Creates a manager from an archive, with an empty queue and the default serializers in place of those that are not in the archive.
    public convenience init(archive: Archive, session: OperationSession = .shared) {
        self.init(baseURL: archive.baseURL, session: session)
        if let serializer = archive.requestSerializer?.serializer { requestSerializer = serializer }
        if let serializer = archive.responseSerializer?.serializer { responseSerializer = serializer }
        securityPolicy = archive.securityPolicy
        shouldUseCredentialStorage = archive.shouldUseCredentialStorage
        operationQueue.maxConcurrentOperationCount = archive.maxConcurrentOperationCount
    }
}

// MARK: - Descriptions

extension HTTPRequestOperationManager: CustomReflectable {
    /// The base URL, redacted.
    public var customMirror: Mirror { .redacted(self, ["baseURL": (baseURL?.absoluteString ?? "none").redactedURL]) }
}

extension HTTPRequestOperationManager.Archive: CustomStringConvertible, RedactedReflectable {
    /// The redacted base URL (``/CurlewHTTP/Redaction``).
    public var description: String { (baseURL?.absoluteString ?? "no base URL").redactedURL }
}
