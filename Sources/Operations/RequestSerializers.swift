// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// Creates requests with header fields, settings, and parameters encoded into the query or a form body.
///
/// Thread-safe; a request has the settings that were in effect when it was created.
open class HTTPRequestSerializer: @unchecked Sendable {  // the settings are behind a lock
    /// Encodes parameters as a percent-encoded query. Errors it throws become the request's error.
    public typealias QueryStringBlock = @Sendable (URLRequest, Any) throws -> String

    struct Settings: Sendable {
        var headers: HTTPHeaders
        var methodsInURI: Set<String> = ["GET", "HEAD", "DELETE"]
        var stringEncoding = String.Encoding.utf8
        var queryStringBlock: QueryStringBlock?
        var allowsCellularAccess: Bool?
        var cachePolicy: URLRequest.CachePolicy?
        var handlesCookies: Bool?
        var timeoutInterval: TimeInterval?
    }

    let settings: Lock<Settings>

    /// Creates a serializer with the header fields `Accept-Language` and `User-Agent` of ``SessionManager/defaultHTTPHeaders``.
    public init() {
        let names = ["Accept-Language", "User-Agent"]
        let headers = HTTPHeaders(SessionManager.defaultHTTPHeaders.filter { header in names.contains { header.isNamed($0) } })
        settings = Lock(Settings(headers: headers))
    }

    private func set<Value>(_ path: WritableKeyPath<Settings, Value>, _ value: Value) {
        settings.withLock { $0[keyPath: path] = value }
    }

    // MARK: Header fields

    /// The header fields added to requests that do not have fields of those names.
    public var headers: HTTPHeaders { settings.withLock { $0.headers } }

    /// Sets a header field; `nil` removes it.
    public func setValue(_ value: String?, forHTTPHeaderField field: String) {
        settings.withLock { settings in
            if let value { settings.headers.update(name: field, value: value) } else { settings.headers.remove(name: field) }
        }
    }

    /// The value of a header field; `nil` if there is none.
    public func value(forHTTPHeaderField field: String) -> String? { headers.value(for: field) }

    /// Sets `Authorization` to a user and a password: Basic (RFC 7617). Does nothing if the user contains a colon, or either a control
    /// character.
    public func setAuthorizationHeader(username: String, password: String) {
        guard let header = Request.authorizationHeader(user: username, password: password) else { return }
        setValue(header.value, forHTTPHeaderField: header.key)
    }

    /// Sets `Authorization` to `Token token="…"`, with quotation marks and backslashes of the token escaped. A request fails if the token
    /// has a line break or another control character than a tab.
    public func setAuthorizationHeader(token: String) {
        setValue("Token token=\(token.quotedString)", forHTTPHeaderField: "Authorization")
    }

    /// Removes `Authorization`.
    public func clearAuthorizationHeader() {
        setValue(nil, forHTTPHeaderField: "Authorization")
    }

    // MARK: Settings

    /// The methods whose parameters are encoded into the query; GET, HEAD and DELETE by default.
    public var httpMethodsEncodingParametersInURI: Set<String> {
        get { settings.withLock { $0.methodsInURI } }
        set { set(\.methodsInURI, newValue) }
    }

    /// The encoding of a form body written by ``setQueryStringSerialization(_:)``; UTF-8 by default. The default serialization gives ASCII.
    ///
    /// A body with other characters than the encoding's fails with ``OperationError/bodyNotEncodable(encoding:)``.
    public var stringEncoding: String.Encoding {
        get { settings.withLock { $0.stringEncoding } }
        set { set(\.stringEncoding, newValue) }
    }

    /// Sets the closure that encodes queries; `nil` for the default encoding.
    public func setQueryStringSerialization(_ block: QueryStringBlock?) { set(\.queryStringBlock, block) }

    /// Whether requests may use cellular interfaces; the request's own setting by default.
    public var allowsCellularAccess: Bool {
        get { settings.withLock { $0.allowsCellularAccess } ?? true }
        set { set(\.allowsCellularAccess, newValue) }
    }

    /// The cache policy; the request's own by default.
    public var cachePolicy: URLRequest.CachePolicy {
        get { settings.withLock { $0.cachePolicy } ?? .useProtocolCachePolicy }
        set { set(\.cachePolicy, newValue) }
    }

    /// Whether cookies are sent and stored; the request's own setting by default.
    public var httpShouldHandleCookies: Bool {
        get { settings.withLock { $0.handlesCookies } ?? true }
        set { set(\.handlesCookies, newValue) }
    }

    /// The idle timeout in seconds, the longest pause between two bytes; the request's own by default, which is 60.
    ///
    /// 60 leaves it to the session's `idleTimeout`, as Foundation's default can't be distinguished from one that was set;
    /// ``URLConnectionOperation/requestOptions`` can set that, too.
    public var timeoutInterval: TimeInterval {
        get { settings.withLock { $0.timeoutInterval } ?? 60 }
        set { set(\.timeoutInterval, newValue) }
    }

    // MARK: Requests

    /// Creates a request with parameters.
    ///
    /// - Throws: the error of encoding the parameters; `URLError.badURL` for an invalid method.
    public func request(method: String, url: URL, parameters: Any? = nil) throws -> URLRequest {
        guard HTTPMethod(rawValue: method) != nil else {
            throw CurlewError.urlRequestValidationFailed(reason: .invalidMethod(method))
        }
        var request = URLRequest(url: url)
        request.httpMethod = method
        applySettings(to: &request)
        return try self.request(bySerializing: parameters, into: request)
    }

    private func applySettings(to request: inout URLRequest) {
        let settings = settings.withLock { $0 }
        if let allows = settings.allowsCellularAccess { request.allowsCellularAccess = allows }
        if let policy = settings.cachePolicy { request.cachePolicy = policy }
        if let handles = settings.handlesCookies { request.httpShouldHandleCookies = handles }
        if let timeout = settings.timeoutInterval { request.timeoutInterval = timeout }
    }

    /// Returns the request with the parameters, and with the serializer's header fields that it does not have yet.
    ///
    /// A method whose parameters belong in the body gets a body even if there are no parameters.
    ///
    /// - Throws: the error of encoding the parameters.
    open func request(bySerializing parameters: Any?, into request: URLRequest) throws -> URLRequest {
        let settings = settings.withLock { $0 }
        var request = addingHeaders(to: request)
        guard encodesInURI(request) || request.httpBodyStream == nil else { return request }
        let query = try parameters.map { try settings.queryStringBlock?(request, $0) ?? QueryPairs.text(of: $0) } ?? ""
        guard !encodesInURI(request) else {
            try request.setPairs(query, .queryString)
            return request
        }
        try request.setPairs(query, .httpBody)
        if settings.queryStringBlock != nil, settings.stringEncoding != .utf8 {
            guard let body = query.data(using: settings.stringEncoding) else {
                throw OperationError.bodyNotEncodable(encoding: settings.stringEncoding)
            }
            request.httpBody = body
        }
        return request
    }

    /// Whether the parameters of a request are encoded into its query.
    func encodesInURI(_ request: URLRequest) -> Bool {
        httpMethodsEncodingParametersInURI.contains((request.httpMethod ?? "GET").uppercased())
    }

    func addingHeaders(to request: URLRequest) -> URLRequest {
        var request = request
        guard request.url != nil else { return request }
        for header in headers where request.value(forHTTPHeaderField: header.name) == nil {
            request.setField(header.name, header.value)
        }
        return request
    }

    // MARK: Multipart

    /// Creates a request whose body is a multipart form: the parameters as fields, then the parts that `block` appends.
    ///
    /// Files and streams are read before this returns; a form of more than 10 MB is kept in a temporary file until it has been sent. The
    /// body can be sent again. An empty form leaves the request without a body.
    ///
    /// - Throws: ``CurlewError/multipartEncodingFailed(reason:in:)`` for the first part that could not be read.
    public func multipartFormRequest(
        method: String = "POST", url: URL, parameters: [String: Any]? = nil,
        constructingBodyWith block: (StreamingMultipartFormData) throws -> Void
    ) throws -> URLRequest {
        guard let verb = HTTPMethod(rawValue: method), verb != .get, verb != .head else {
            throw CurlewError.urlRequestValidationFailed(reason: .invalidMethod(method))
        }
        var request = URLRequest(url: url)
        request.httpMethod = method
        applySettings(to: &request)
        request = addingHeaders(to: request)
        let form = StreamingMultipartFormData()
        for (name, value) in QueryPairs.pairs(of: parameters ?? [:]) { form.append(value, withName: name) }
        try block(form)
        guard let body = try form.bodyStream(directory: FileManager.default.temporaryDirectory) else { return request }
        request.httpBodyStream = body
        request.setValue(form.contentType, forHTTPHeaderField: "Content-Type")
        request.setValue("\(body.length)", forHTTPHeaderField: "Content-Length")
        return request
    }

    /// Writes a request's body stream to a file, to upload the file instead; `completion` receives an error if that failed.
    ///
    /// Returns at once; the stream is read on another thread, and `completion` is called on `queue`.
    ///
    /// - Returns: the request without the stream.
    public func request(
        withMultipartFormRequest request: URLRequest, writingStreamContentsToFile file: URL, queue: DispatchQueue = .main,
        completion: @escaping @Sendable ((any Error)?) -> Void
    ) -> URLRequest {
        var result = request
        if result.url != nil { result.httpBodyStream = nil }
        let copier = request.httpBodyStream.map { StreamCopier($0, to: file) }
        DispatchQueue.global(qos: .utility).async {
            let error = copier?.run() ?? (copier == nil ? URLError(.cannotOpenFile) : nil)
            queue.async { completion(error) }
        }
        return result
    }

    // MARK: Copies

    /// Returns a serializer of the same class with the same settings.
    open func copy() -> HTTPRequestSerializer {
        let copy = makeEmptyCopy()
        copy.settings.withLock { [settings = settings.withLock { $0 }] in $0 = settings }
        return copy
    }

    func makeEmptyCopy() -> HTTPRequestSerializer { HTTPRequestSerializer() }
}

/// Encodes parameters as JSON (RFC 8259) into the body, or into the query for methods without a body.
open class JSONRequestSerializer: HTTPRequestSerializer, @unchecked Sendable {  // immutable apart from its superclass
    /// Options of `JSONSerialization`; none by default.
    public let writingOptions: JSONSerialization.WritingOptions

    /// Creates a serializer.
    public init(writingOptions: JSONSerialization.WritingOptions = []) {
        self.writingOptions = writingOptions
        super.init()
    }

    /// Returns the request with the parameters as its body, with the content type `application/json` unless it has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:in:)`` for values that JSON can't represent.
    open override func request(bySerializing parameters: Any?, into request: URLRequest) throws -> URLRequest {
        guard !encodesInURI(request) else { return try super.request(bySerializing: parameters, into: request) }
        return try JSONEncoding(options: writingOptions).encode(addingHeaders(to: request), withJSONObject: parameters)
    }

    override func makeEmptyCopy() -> HTTPRequestSerializer { JSONRequestSerializer(writingOptions: writingOptions) }
}

/// Encodes parameters as a property list into the body, or into the query for methods without a body.
open class PropertyListRequestSerializer: HTTPRequestSerializer, @unchecked Sendable {  // immutable apart from its superclass
    /// The format; XML by default.
    public let format: PropertyListSerialization.PropertyListFormat

    /// Creates a serializer.
    public init(format: PropertyListSerialization.PropertyListFormat = .xml) {
        self.format = format
        super.init()
    }

    /// Returns the request with the parameters as its body, with the content type `application/x-plist` unless it has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:in:)`` for values that a property list can't represent,
    ///   ``OperationError/parametersNotSupported`` if the top level is not a dictionary.
    open override func request(bySerializing parameters: Any?, into request: URLRequest) throws -> URLRequest {
        guard !encodesInURI(request) else { return try super.request(bySerializing: parameters, into: request) }
        guard let parameters else { return addingHeaders(to: request) }
        guard let dictionary = parameters as? Parameters else { throw OperationError.parametersNotSupported }
        return try PropertyListEncoding(format: format).encode(addingHeaders(to: request), with: dictionary)
    }

    override func makeEmptyCopy() -> HTTPRequestSerializer { PropertyListRequestSerializer(format: format) }
}
