// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// Makes requests: with header fields, settings, and parameters in the query or in a form body.
///
/// May be used from any thread; a request has what was set when it was made.
open class HTTPRequestSerializer: @unchecked Sendable {  // the settings are behind a lock
    /// Writes parameters as text of a query, percent-encoded as it likes. What it throws is the error of the request.
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

    /// Makes a serializer with the header fields `Accept-Language` and `User-Agent` of ``SessionManager/defaultHTTPHeaders``.
    public init() {
        let names = ["Accept-Language", "User-Agent"]
        let headers = HTTPHeaders(SessionManager.defaultHTTPHeaders.filter { header in names.contains { header.isNamed($0) } })
        settings = Lock(Settings(headers: headers))
    }

    private func set<Value>(_ path: WritableKeyPath<Settings, Value>, _ value: Value) {
        settings.withLock { $0[keyPath: path] = value }
    }

    // MARK: Header fields

    /// The header fields that requests get, unless they have fields of those names.
    public var headers: HTTPHeaders { settings.withLock { $0.headers } }

    /// Sets a header field; `nil` removes it.
    public func setValue(_ value: String?, forHTTPHeaderField field: String) {
        settings.withLock { settings in
            if let value { settings.headers.update(name: field, value: value) } else { settings.headers.remove(name: field) }
        }
    }

    /// A header field's value; `nil` for none.
    public func value(forHTTPHeaderField field: String) -> String? { headers.value(for: field) }

    /// Sets `Authorization` to a name and a password: Basic (RFC 7617). A name with a colon, or a control character in either, sets nothing.
    public func setAuthorizationHeader(username: String, password: String) {
        guard let header = Request.authorizationHeader(user: username, password: password) else { return }
        setValue(header.value, forHTTPHeaderField: header.key)
    }

    /// Sets `Authorization` to `Token token="…"`.
    public func setAuthorizationHeader(token: String) {
        setValue("Token token=\"\(token)\"", forHTTPHeaderField: "Authorization")
    }

    /// Removes `Authorization`.
    public func clearAuthorizationHeader() {
        setValue(nil, forHTTPHeaderField: "Authorization")
    }

    // MARK: Settings

    /// The methods whose parameters go into the query; GET, HEAD and DELETE by default.
    public var httpMethodsEncodingParametersInURI: Set<String> {
        get { settings.withLock { $0.methodsInURI } }
        set { set(\.methodsInURI, newValue) }
    }

    /// The encoding of a form body that a ``setQueryStringSerialization(_:)`` has written; UTF-8 by default. Our own is ASCII.
    public var stringEncoding: String.Encoding {
        get { settings.withLock { $0.stringEncoding } }
        set { set(\.stringEncoding, newValue) }
    }

    /// Has a closure write queries; `nil` for the default.
    public func setQueryStringSerialization(_ block: QueryStringBlock?) { set(\.queryStringBlock, block) }

    /// Whether requests may go over cellular interfaces; as the request says by default.
    public var allowsCellularAccess: Bool {
        get { settings.withLock { $0.allowsCellularAccess } ?? true }
        set { set(\.allowsCellularAccess, newValue) }
    }

    /// How the cache takes part; as the request says by default.
    public var cachePolicy: URLRequest.CachePolicy {
        get { settings.withLock { $0.cachePolicy } ?? .useProtocolCachePolicy }
        set { set(\.cachePolicy, newValue) }
    }

    /// Whether cookies are sent and kept; as the request says by default.
    public var httpShouldHandleCookies: Bool {
        get { settings.withLock { $0.handlesCookies } ?? true }
        set { set(\.handlesCookies, newValue) }
    }

    /// The longest pause between two bytes, in seconds; as the request says by default, which is 60.
    public var timeoutInterval: TimeInterval {
        get { settings.withLock { $0.timeoutInterval } ?? 60 }
        set { set(\.timeoutInterval, newValue) }
    }

    // MARK: Requests

    /// Makes a request with parameters.
    ///
    /// - Throws: what the writing of the parameters throws; `URLError.badURL` for a method that is none.
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

    /// The request with the serializer's header fields, where it has none of that name, and with parameters.
    ///
    /// A method whose parameters go into the body gets one in any case, be it empty.
    ///
    /// - Throws: what the writing of the parameters throws.
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
            request.httpBody = query.data(using: settings.stringEncoding)
        }
        return request
    }

    /// Whether the parameters of a request go into its query.
    func encodesInURI(_ request: URLRequest) -> Bool {
        httpMethodsEncodingParametersInURI.contains((request.httpMethod ?? "GET").uppercased())
    }

    func addingHeaders(to request: URLRequest) -> URLRequest {
        var request = request
        guard request.url != nil else { return request }
        for header in headers where request.value(forHTTPHeaderField: header.name) == nil {
            request.setValue(header.value, forHTTPHeaderField: header.name)
        }
        return request
    }

    // MARK: Multipart

    /// Makes a request whose body is a form: of the parameters as fields, and of what `block` appends.
    ///
    /// Files and streams are read here, for as long as that takes; a form of more than 10 MB lies in a temporary file until it was sent.
    /// The body can be sent again. A form to which nothing was appended leaves the request without one.
    ///
    /// - Throws: ``CurlewError/multipartEncodingFailed(reason:)``: what was wrong with the first part that could not be had.
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

    /// Writes a request's body, which is a stream, to a file, for an upload of the file; `completion` gets an error if that failed.
    ///
    /// Returns at once; the stream is read on another thread, and `completion` called on `queue`.
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

    /// Another serializer of the same class with the same settings.
    open func copy() -> HTTPRequestSerializer {
        let copy = makeEmptyCopy()
        copy.settings.withLock { [settings = settings.withLock { $0 }] in $0 = settings }
        return copy
    }

    func makeEmptyCopy() -> HTTPRequestSerializer { HTTPRequestSerializer() }
}

/// Writes parameters as JSON (RFC 8259) into the body; into the query for the methods that have none.
open class JSONRequestSerializer: HTTPRequestSerializer, @unchecked Sendable {  // immutable beside its superclass
    /// Options of `JSONSerialization`; none by default.
    public let writingOptions: JSONSerialization.WritingOptions

    /// Makes a serializer.
    public init(writingOptions: JSONSerialization.WritingOptions = []) {
        self.writingOptions = writingOptions
        super.init()
    }

    /// The request with the parameters as its body, of the type `application/json` unless it has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:)`` for what JSON can't hold.
    open override func request(bySerializing parameters: Any?, into request: URLRequest) throws -> URLRequest {
        guard !encodesInURI(request) else { return try super.request(bySerializing: parameters, into: request) }
        return try JSONEncoding(options: writingOptions).encode(addingHeaders(to: request), withJSONObject: parameters)
    }

    override func makeEmptyCopy() -> HTTPRequestSerializer { JSONRequestSerializer(writingOptions: writingOptions) }
}

/// Writes parameters as a property list into the body; into the query for the methods that have none.
open class PropertyListRequestSerializer: HTTPRequestSerializer, @unchecked Sendable {  // immutable beside its superclass
    /// The format; XML by default.
    public let format: PropertyListSerialization.PropertyListFormat

    /// Makes a serializer.
    public init(format: PropertyListSerialization.PropertyListFormat = .xml) {
        self.format = format
        super.init()
    }

    /// The request with the parameters as its body, of the type `application/x-plist` unless it has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:)`` for what a property list can't hold,
    ///   ``OperationError/parametersNotSupported`` for a top level that is no dictionary.
    open override func request(bySerializing parameters: Any?, into request: URLRequest) throws -> URLRequest {
        guard !encodesInURI(request) else { return try super.request(bySerializing: parameters, into: request) }
        guard let parameters else { return addingHeaders(to: request) }
        guard let dictionary = parameters as? Parameters else { throw OperationError.parametersNotSupported }
        return try PropertyListEncoding(format: format).encode(addingHeaders(to: request), with: dictionary)
    }

    override func makeEmptyCopy() -> HTTPRequestSerializer { PropertyListRequestSerializer(format: format) }
}
