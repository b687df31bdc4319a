// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// What an attempt sends.
struct BuiltRequest {
    var urlRequest: URLRequest
    /// In place of the request's own body: a form that is too large for the memory, in a directory of its own.
    var bodyFile: URL?
    /// Where a download goes.
    var target: URL?

    /// The method, as the filters have left it.
    var method: HTTPMethod? { HTTPMethod(rawValue: urlRequest.httpMethod ?? HTTPMethod.get.rawValue) }

    /// Leaves a form out of a request that has become a GET or HEAD, which have none; what else a filter has put into it stays.
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
    /// Whether the request is built on the agent's queue, as its body may be read from files.
    var isBuiltOnQueue: Bool { constructingBodyBlock != nil }
}

extension RequestAgent {
    // MARK: URL

    /// The URL that a request goes to: filtered, and resolved against the base URL.
    ///
    /// - Throws: ``CurlewError/invalidURL(url:)`` when there is none.
    public func buildRequestUrl(_ request: BaseRequest) throws -> URL {
        var path = request.requestUrl()
        if let url = URL(string: path), url.scheme != nil, url.host != nil { return url }
        for filter in configuration.urlFilters { path = filter.filterUrl(path, with: request) }
        let base = baseUrl(of: request)
        // Characters that no URL can hold are percent-encoded by Foundation.
        guard !base.isEmpty else {
            guard let url = URL(string: path), url.host != nil else { throw CurlewError.invalidURL(url: path) }
            return url
        }
        guard let baseURL = URL(string: base.hasSuffix("/") ? base : base + "/"), baseURL.host != nil else {
            throw CurlewError.invalidURL(url: base)
        }
        if path.isEmpty { return baseURL }
        guard let url = URL(string: path, relativeTo: baseURL)?.absoluteURL else { throw CurlewError.invalidURL(url: path) }
        return url
    }

    /// What stands in front of a request's URL: its own base or CDN URL, else that of the configuration.
    func baseUrl(of request: BaseRequest) -> String {
        let own = request.useCDN() ? request.cdnUrl() : request.baseUrl()
        guard own.isEmpty else { return own }
        return request.useCDN() ? configuration.cdnUrl : configuration.baseUrl
    }

    // MARK: Request

    /// What an attempt of a run sends, from what the request says now.
    func build(_ run: RequestRun) throws -> BuiltRequest {
        let request = run.request
        if let custom = request.buildCustomUrlRequest() { return BuiltRequest(urlRequest: custom) }
        var urlRequest = URLRequest(url: try buildRequestUrl(request))
        urlRequest.httpMethod = request.requestMethod().rawValue
        urlRequest.timeoutInterval = request.requestTimeoutInterval()
        urlRequest.allowsCellularAccess = request.allowsCellularAccess()
        if let policy = request.requestCachePolicy() { urlRequest.cachePolicy = policy }
        setHeaders(of: request, &urlRequest)
        var built = BuiltRequest(urlRequest: urlRequest)
        var form: URLRequest?
        if let block = request.constructingBodyBlock, !Self.isWithoutBody(request.requestMethod(), counting: [.get, .head]) {
            try buildForm(block, run, &built)
            form = built.urlRequest
        } else {
            try setArgument(of: request, &built.urlRequest)
        }
        try filter(&built.urlRequest, for: request)
        // A filter's body takes the place of a form in a file, which it can't see.
        if built.urlRequest.hasBody { built.bodyFile = nil }
        if let form { built.dropForm(form) }
        built.target = target(of: request, built)
        return built
    }

    private func setHeaders(of request: BaseRequest, _ urlRequest: inout URLRequest) {
        if let credentials = request.requestAuthorizationHeaderFieldArray(), let user = credentials.first, let password = credentials.last {
            let token = Data("\(user):\(password)".utf8).base64EncodedString()
            urlRequest.setValue("Basic \(token)", forHTTPHeaderField: "Authorization")
        }
        for (name, value) in request.requestHeaderFieldValueDictionary() ?? [:] {
            urlRequest.setValue(value, forHTTPHeaderField: name)
        }
        // RFC 9218, section 4.1; the transport lets those wait longer that are less urgent, and so may the server.
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
            throw CurlewError.parameterEncodingFailed(reason: .formEncodingFailed(error: ArgumentError.noDictionary))
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
        try form.writeEncodedData(to: file)
        built.bodyFile = file
    }

    /// The pairs that a value gives, as in a form's body but not encoded.
    private static func parts(_ name: String, _ value: Any) -> [(String, String)] {
        URLEncoding.default.queryComponents(fromKey: name, value: value).map {
            ($0.removingPercentEncoding ?? $0, $1.removingPercentEncoding ?? $1)
        }
    }

    /// A place for a form, in a directory into which nobody else can see.
    private func makeBodyFile() throws -> URL {
        let directory = currentManager().session.configuration.temporaryDirectory
            .appendingPathComponent("curlew-form-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return directory.appendingPathComponent("body", isDirectory: false)
    }

    // MARK: Download

    /// Where a download goes; `nil` for a request that is none, also one of which a filter has made another method's.
    private func target(of request: BaseRequest, _ built: BuiltRequest) -> URL? {
        guard let path = request.resumableDownloadPath, built.method == .get else { return nil }
        var isDirectory: ObjCBool = false
        let target = URL(fileURLWithPath: path)
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), isDirectory.boolValue else { return target }
        let name = built.urlRequest.url?.lastPathComponent ?? ""
        // What the URL does not name, or names as nothing that a file could be, has a name of ours.
        let isName = !name.isEmpty && name != "/" && name != "." && name != ".." && !name.contains("/")
        return target.appendingPathComponent(isName ? name : "download", isDirectory: false)
    }
}

/// What is wrong with an argument.
enum ArgumentError: RequestError, LocalizedError {
    case noDictionary

    var errorDescription: String? { "The argument is no dictionary, and a query or a form holds nothing else." }
}
