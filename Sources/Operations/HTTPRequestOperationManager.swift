// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// Makes HTTP operations for an API, and runs them on a queue of its own.
///
/// All members may be used from any thread; an operation has what was set when it was made.
open class HTTPRequestOperationManager: NSCopying, @unchecked Sendable {  // the settings are behind a lock
    /// Gets the operation and what the response serializer made.
    public typealias Success = @Sendable (HTTPRequestOperation, Any?) -> Void
    /// Gets the operation, which is `nil` if none could be made, and why it failed.
    public typealias Failure = @Sendable (HTTPRequestOperation?, any Error) -> Void

    private struct Settings: @unchecked Sendable {  // what of Foundation's is in it is immutable or made for many threads
        var session: OperationSession
        var requestSerializer = HTTPRequestSerializer()
        var responseSerializer: any ResponseSerialization = JSONResponseSerializer()
        var credential: URLCredential?
        var shouldUseCredentialStorage = true
        var securityPolicy = SecurityPolicy()
        var reachability: ReachabilityMonitor?
        var completionQueue: DispatchQueue?
        var completionGroup: DispatchGroup?
    }

    /// What the URLs of requests are relative to; `nil` for nothing. Its path ends in a slash.
    public let baseURL: URL?
    /// Runs the operations. Its `maxConcurrentOperationCount` says how many at a time.
    public let operationQueue = OperationQueue()
    private let settings: Lock<Settings>

    /// Makes a manager.
    ///
    /// - Parameters:
    ///   - baseURL: what the URLs of requests are relative to; a slash is added where its path has none at its end.
    ///   - session: the operations' session.
    public required init(baseURL: URL? = nil, session: OperationSession = .shared) {
        self.baseURL = baseURL.map { url in
            url.path.isEmpty || url.absoluteString.hasSuffix("/") || url.query != nil ? url : url.appendingPathComponent("")
        }
        settings = Lock(Settings(session: session))
    }

    private func setting<Value>(_ path: KeyPath<Settings, Value>) -> Value { settings.withLock { $0[keyPath: path] } }

    private func set<Value>(_ path: WritableKeyPath<Settings, Value>, _ value: Value) { settings.withLock { $0[keyPath: path] = value } }

    // MARK: Settings

    /// The operations' session.
    public var session: OperationSession { setting(\.session) }

    /// Makes requests; an ``HTTPRequestSerializer`` by default.
    public var requestSerializer: HTTPRequestSerializer {
        get { setting(\.requestSerializer) }
        set { set(\.requestSerializer, newValue) }
    }

    /// Makes values of responses; a ``JSONResponseSerializer`` by default.
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

    /// Watches the way to the base URL's host, or to the network; `nil` when the system does not tell. Not started.
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

    // MARK: Operations

    /// Makes an operation with the manager's settings, which is on no queue.
    open func httpRequestOperation(with request: URLRequest, success: Success? = nil, failure: Failure? = nil) -> HTTPRequestOperation {
        let operation = HTTPRequestOperation(request: request)
        configure(operation)
        operation.setCompletionBlock(success: success, failure: failure)
        return operation
    }

    /// Makes an operation of an archive with the manager's settings, which is on no queue. It has the serializer that is in the archive;
    /// the manager's where there is none.
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
    }

    /// Puts a GET on the queue. See ``operation(method:_:parameters:success:failure:)``.
    @discardableResult
    open func get(_ url: String, parameters: Any? = nil, success: Success? = nil, failure: Failure? = nil) -> HTTPRequestOperation? {
        operation(method: "GET", url, parameters: parameters, success: success, failure: failure)
    }

    /// Puts a HEAD on the queue; `success` gets no object.
    @discardableResult
    open func head(
        _ url: String, parameters: Any? = nil, success: (@Sendable (HTTPRequestOperation) -> Void)? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        operation(method: "HEAD", url, parameters: parameters, success: { operation, _ in success?(operation) }, failure: failure)
    }

    /// Puts a POST on the queue.
    @discardableResult
    open func post(_ url: String, parameters: Any? = nil, success: Success? = nil, failure: Failure? = nil) -> HTTPRequestOperation? {
        operation(method: "POST", url, parameters: parameters, success: success, failure: failure)
    }

    /// Puts a POST of a multipart form on the queue; files and streams are read here, for as long as that takes.
    @discardableResult
    open func post(
        _ url: String, parameters: [String: Any]? = nil, constructingBodyWith block: (StreamingMultipartFormData) throws -> Void,
        success: Success? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        enqueue(success, failure) {
            try requestSerializer.multipartFormRequest(
                method: "POST", url: try resolve(url), parameters: parameters, constructingBodyWith: block)
        }
    }

    /// Puts a PUT on the queue.
    @discardableResult
    open func put(_ url: String, parameters: Any? = nil, success: Success? = nil, failure: Failure? = nil) -> HTTPRequestOperation? {
        operation(method: "PUT", url, parameters: parameters, success: success, failure: failure)
    }

    /// Puts a PATCH on the queue.
    @discardableResult
    open func patch(_ url: String, parameters: Any? = nil, success: Success? = nil, failure: Failure? = nil) -> HTTPRequestOperation? {
        operation(method: "PATCH", url, parameters: parameters, success: success, failure: failure)
    }

    /// Puts a DELETE on the queue.
    @discardableResult
    open func delete(_ url: String, parameters: Any? = nil, success: Success? = nil, failure: Failure? = nil) -> HTTPRequestOperation? {
        operation(method: "DELETE", url, parameters: parameters, success: success, failure: failure)
    }

    /// Puts an operation with any method on the queue.
    ///
    /// - Parameters:
    ///   - method: any token (RFC 9110, section 9.1).
    ///   - url: relative to ``baseURL``, or whole.
    ///   - parameters: what the request serializer writes into the request.
    ///   - success: gets the object, on ``completionQueue``.
    ///   - failure: gets the error, on ``completionQueue``.
    /// - Returns: the operation; `nil` when no request could be made, which `failure` is told later.
    @discardableResult
    open func operation(
        method: String, _ url: String, parameters: Any? = nil, success: Success? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        enqueue(success, failure) { try requestSerializer.request(method: method, url: try resolve(url), parameters: parameters) }
    }

    private func enqueue(
        _ success: Success?, _ failure: Failure?, _ makeRequest: () throws -> URLRequest
    ) -> HTTPRequestOperation? {
        do {
            let operation = httpRequestOperation(with: try makeRequest(), success: success, failure: failure)
            operationQueue.addOperation(operation)
            return operation
        } catch {
            let queue = completionQueue ?? session.configuration.callbackQueue
            queue.async { failure?(nil, error) }
            return nil
        }
    }

    private func resolve(_ string: String) throws -> URL {
        guard let url = URL(string: string, relativeTo: baseURL)?.absoluteURL, url.scheme != nil else {
            throw OperationError.invalidURL(string)
        }
        return url
    }

    // MARK: - NSCopying

    /// A manager with the same settings, copies of the request serializer among them, and an empty queue.
    public func copy(with zone: NSZone? = nil) -> Any { duplicate() }

    /// ``copy(with:)``, by its type.
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
    /// What of a manager outlives its process: base URL, serializers, security policy, use of credentials, and how many operations run at a
    /// time.
    ///
    /// It holds all header fields of the request serializer, credentials among them: keep it as carefully as those.
    public struct Archive: Sendable, Codable {
        let baseURL: URL?
        let requestSerializer: RequestSerializerArchive?
        let responseSerializer: SerializerArchive?
        let securityPolicy: SecurityPolicy
        let shouldUseCredentialStorage: Bool
        let maxConcurrentOperationCount: Int
    }

    /// The manager as a value; without its operations, which have archives of their own, and without serializers that are not of this
    /// module or have a closure.
    public func archive() -> Archive {
        Archive(
            baseURL: baseURL, requestSerializer: RequestSerializerArchive(requestSerializer),
            responseSerializer: SerializerArchive(responseSerializer), securityPolicy: securityPolicy,
            shouldUseCredentialStorage: shouldUseCredentialStorage,
            maxConcurrentOperationCount: operationQueue.maxConcurrentOperationCount)
    }

    /// Makes a manager of an archive, with an empty queue; serializers that are not in it are to be set anew, and are the default ones.
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

extension HTTPRequestOperationManager.Archive: CustomStringConvertible, CustomReflectable {
    /// The base URL without its secrets (``/CurlewHTTP/Redaction``).
    public var description: String { (baseURL?.absoluteString ?? "no base URL").redactedURL }

    /// Nothing beyond the description.
    public var customMirror: Mirror { .redacted(self) }
}
