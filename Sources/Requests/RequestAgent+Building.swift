// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// What an attempt sends.
struct BuiltRequest {
    var urlRequest: URLRequest
    /// Replaces the request's own body: a form above the memory threshold, in a directory of its own.
    var bodyFile: URL?
    /// The destination of a download.
    var target: URL?

    /// The method after filtering.
    var method: HTTPMethod? { HTTPMethod(rawValue: urlRequest.httpMethod ?? HTTPMethod.get.rawValue) }

    /// Removes the form from a request that a filter has turned into a GET or HEAD, which have no form; a body or content type set by a
    /// filter stays.
    mutating func dropForm(_ form: URLRequest) {
        guard method == .get || method == .head else { return }
        bodyFile = nil
        if urlRequest.httpBody == form.httpBody { urlRequest.httpBody = nil }
        let name = "Content-Type"
        if urlRequest.value(forHTTPHeaderField: name) == form.value(forHTTPHeaderField: name) {
            urlRequest.setValue(nil, forHTTPHeaderField: name)
        }
    }
}

extension BaseRequest {
    /// Whether the request is built on the agent's queue, because its body may be read from files.
    var isBuiltOnQueue: Bool { constructingBodyBlock != nil }
}

extension RequestAgent {
    // MARK: URL

    /// Returns the URL of a request, filtered and resolved against the base URL.
    ///
    /// - Throws: ``CurlewError/invalidURL(url:in:)`` if the result is not a URL with a host.
    public func buildRequestUrl(_ request: BaseRequest) throws -> URL {
        var path = request.requestUrl()
        if let url = URL(string: path.encodingInvalidCharacters), url.scheme != nil, url.host != nil { return url }
        for filter in configuration.urlFilters { path = filter.filterUrl(path, with: request) }
        let base = baseUrl(of: request)
        guard !base.isEmpty else {
            guard let url = URL(string: path.encodingInvalidCharacters), url.host != nil else { throw CurlewError.invalidURL(url: path) }
            return url
        }
        guard let baseURL = URL(string: base.hasByteSuffix("/") ? base : base + "/"), baseURL.host != nil else {
            throw CurlewError.invalidURL(url: base)
        }
        if path.isEmpty { return baseURL }
        guard let url = URL(string: path.encodingInvalidCharacters, relativeTo: baseURL)?.absoluteURL else {
            throw CurlewError.invalidURL(url: path)
        }
        return url
    }

    /// The base of a request's URL: its own base or CDN URL, otherwise that of the configuration.
    func baseUrl(of request: BaseRequest) -> String {
        let own = request.useCDN() ? request.cdnUrl() : request.baseUrl()
        guard own.isEmpty else { return own }
        return request.useCDN() ? configuration.cdnUrl : configuration.baseUrl
    }

    // MARK: Request

    /// Builds an attempt from the request's current description.
    func build(_ run: RequestRun) throws -> BuiltRequest {
        let request = run.request
        if let custom = request.buildCustomUrlRequest() { return BuiltRequest(urlRequest: custom) }
        var urlRequest = URLRequest(url: try buildRequestUrl(request))
        urlRequest.httpMethod = request.requestMethod().rawValue
        urlRequest.timeoutInterval = request.requestTimeoutInterval()
        urlRequest.allowsCellularAccess = request.allowsCellularAccess()
        if let policy = request.requestCachePolicy() { urlRequest.cachePolicy = policy }
        try setHeaders(of: request, &urlRequest)
        var built = BuiltRequest(urlRequest: urlRequest)
        var form: URLRequest?
        if let block = request.constructingBodyBlock, !Self.isWithoutBody(request.requestMethod(), counting: [.get, .head]) {
            try buildForm(block, run, &built)
            form = built.urlRequest
        } else {
            try setArgument(of: request, &built.urlRequest)
        }
        try filter(&built.urlRequest, for: request)
        // A body set by a filter replaces a form in a file, which the filter cannot see.
        if built.urlRequest.hasBody { built.bodyFile = nil }
        if let form { built.dropForm(form) }
        built.target = target(of: request, built)
        return built
    }

    private func setHeaders(of request: BaseRequest, _ urlRequest: inout URLRequest) throws {
        if let credentials = request.requestAuthorizationHeaderFieldArray(), let user = credentials.first, let password = credentials.last {
            guard let field = Request.authorizationHeader(user: user, password: password) else { throw ArgumentError.invalidCredentials }
            urlRequest.setField(field.key, field.value)
        }
        for (name, value) in request.requestHeaderFieldValueDictionary() ?? [:] { urlRequest.setField(name, value) }
        // RFC 9218, section 4.1. The transport queues less urgent requests for longer, and so may the server.
        if request.requestPriority != .default, urlRequest.value(forHTTPHeaderField: "Priority") == nil {
            urlRequest.setValue(request.requestPriority == .high ? "u=1" : "u=5", forHTTPHeaderField: "Priority")
        }
    }

    private func filter(_ urlRequest: inout URLRequest, for request: BaseRequest) throws {
        try request.filterUrlRequest(&urlRequest)
        for filter in configuration.urlFilters { try filter.filterUrlRequest(&urlRequest, with: request) }
    }

    // MARK: Argument

    private static func isWithoutBody(_ method: HTTPMethod, counting methods: Set<HTTPMethod>) -> Bool {
        methods.contains(method)
    }

    private func setArgument(of request: BaseRequest, _ urlRequest: inout URLRequest) throws {
        guard let argument = request.requestArgument() else { return }
        let isInQuery = Self.isWithoutBody(request.requestMethod(), counting: [.get, .head, .delete])
        if request.requestSerializerType() == .json, !isInQuery {
            urlRequest = try Self.jsonEncoded(urlRequest, argument)
        } else {
            let encoding = isInQuery ? URLEncoding.queryString : URLEncoding.httpBody
            urlRequest = try encoding.encode(urlRequest, with: try Self.pairs(of: argument))
        }
    }

    private static func jsonEncoded(_ urlRequest: URLRequest, _ argument: Any) throws -> URLRequest {
        guard !(argument is [String: Any]), !(argument is [Any]), let encodable = argument as? any Encodable else {
            return try JSONEncoding.default.encode(urlRequest, withJSONObject: argument)
        }
        do {
            var result = urlRequest
            result.httpBody = try JSONEncoder().encode(encodable)
            if result.value(forHTTPHeaderField: "Content-Type") == nil {
                result.setValue("application/json", forHTTPHeaderField: "Content-Type")
            }
            return result
        } catch {
            throw CurlewError.parameterEncodingFailed(reason: .jsonEncodingFailed(error: error))
        }
    }

    /// The argument as the members of a form.
    private static func pairs(of argument: Any) throws -> Parameters {
        if let parameters = argument as? Parameters { return parameters }
        guard let others = argument as? [AnyHashable: Any] else {
            throw CurlewError.parameterEncodingFailed(reason: .formEncodingFailed(error: ArgumentError.notADictionary))
        }
        return Dictionary(others.map { ("\($0.key.base)", $0.value) }) { first, _ in first }
    }

    // MARK: Form

    private func buildForm(_ block: BaseRequest.ConstructingBlock, _ run: RequestRun, _ built: inout BuiltRequest) throws {
        let form = MultipartFormData()
        if let argument = run.request.requestArgument() {
            let pairs = try Self.pairs(of: argument)
            for (name, value) in pairs.sorted(by: { $0.key < $1.key }) {
                for (part, text) in Self.parts(name, value) { form.append(Data(text.utf8), withName: part) }
            }
        }
        block(form)
        built.urlRequest.setValue(form.contentType, forHTTPHeaderField: "Content-Type")
        guard form.contentLength >= SessionManager.multipartFormDataEncodingMemoryThreshold else {
            built.urlRequest.httpBody = try form.encode()
            return
        }
        let file = try makeBodyFile()
        run.keep(bodyFile: file)
        try form.writeEncodedData(to: file, permissions: 0o600)
        built.bodyFile = file
    }

    /// The name-value pairs for a value, as in a form-encoded body but unencoded.
    private static func parts(_ name: String, _ value: Any) -> [(String, String)] {
        URLEncoding.default.queryComponents(fromKey: name, value: value).map {
            ($0.removingPercentEncoding ?? $0, $1.removingPercentEncoding ?? $1)
        }
    }

    /// Creates a directory for a form's file with access for the owner only.
    private func makeBodyFile() throws -> URL {
        let directory = currentManager().session.configuration.temporaryDirectory
            .appendingPathComponent("curlew-form-\(UUID().uuidString)", isDirectory: true)
        try PrivateFile.makeDirectory(directory.path)
        return directory.appendingPathComponent("body", isDirectory: false)
    }

    // MARK: Download

    /// The destination of a download; `nil` for other requests, including those whose method a filter has changed from GET.
    private func target(of request: BaseRequest, _ built: BuiltRequest) -> URL? {
        guard let path = request.resumableDownloadPath, built.method == .get else { return nil }
        var isDirectory: ObjCBool = false
        let target = URL(fileURLWithPath: path)
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), isDirectory.boolValue else { return target }
        // The URL may come from elsewhere: it must not name a hidden file, such as the record of another download.
        return target.appendingPathComponent(built.urlRequest.url.map { SuggestedFileName.name(url: $0) } ?? "download", isDirectory: false)
    }
}

/// An argument that cannot be encoded.
enum ArgumentError: RequestError, LocalizedError {
    case notADictionary
    case invalidCredentials

    var errorDescription: String? {
        switch self {
        case .notADictionary: "The request's argument is not a dictionary: a query or form cannot encode it. Use a JSON body."
        case .invalidCredentials:
            "requestAuthorizationHeaderFieldArray() has a colon in the user name, or a control character: Basic (RFC 7617) cannot send it."
        }
    }
}
