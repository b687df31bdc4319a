// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The request described by a command line.
struct RequestPlan {
    /// The request's body.
    enum Body: Equatable {
        case none
        case bytes(Data)
        case file(String)
        case standardInput
        /// A pipe or device, which has no size and can be read once.
        case stream(String)
        /// The fields of a multipart form.
        case parts([RequestItem])
    }

    let method: HTTPMethod
    let url: String
    let headers: HTTPHeaders
    private(set) var body: Body

    /// Creates the plan.
    ///
    /// - Parameter environment: may contain `CURLEW_TOKEN`.
    init(_ arguments: Arguments, environment: [String: String]) throws(UsageError) {
        body = try Self.body(of: arguments)
        guard let method = HTTPMethod(rawValue: arguments.method ?? (body == .none ? "GET" : "POST")) else {
            throw UsageError("\((arguments.method ?? "").quoted) is not a valid method")
        }
        self.method = method
        url = try RequestURL.make(arguments.url, items: arguments.items)
        headers = Self.headers(of: arguments, body: body, token: environment["CURLEW_TOKEN"], hasUserInfo: RequestURL.hasUserInfo(url))
    }

    /// Whether a request without a body says so by `Content-Length: 0` (RFC 9110, section 8.6).
    var sendsLength: Bool {
        switch body {
        case .none: [.post, .put, .patch].contains(method)
        default: true
        }
    }

    /// Reads a body that can be read only once, to be compared as well as sent.
    mutating func readBody() throws {
        let path: String
        switch body {
        case .standardInput: path = "-"
        case .stream(let name): path = name
        case .none, .bytes, .file, .parts: return
        }
        guard let data = InputFile.contents(path) else { throw FileFailure(path: path, code: errno) }
        body = .bytes(data)
    }

    var isMultipart: Bool {
        if case .parts = body { true } else { false }
    }

    // MARK: Body

    private static func body(of arguments: Arguments) throws(UsageError) -> Body {
        switch arguments.body {
        case .file(let path): return InputFile.isStream(path) ? .stream(path) : .file(path)
        case .standardInput: return .standardInput
        case .text(let text): return .bytes(Data(text.utf8))
        case .bytes(let bytes): return .bytes(bytes)
        case nil: break
        }
        let fields = arguments.items.filter(\.isField)
        if arguments.multipart { return .parts(fields) }
        guard !fields.isEmpty || arguments.isForm else { return .none }
        return .bytes(Data((arguments.isForm ? form(of: fields) : try NestedJSON.body(of: fields)).utf8))
    }

    private static func form(of fields: [RequestItem]) -> String {
        fields.compactMap { item in
            guard case .field(let name, let value) = item else { return nil }
            return "\(RequestURL.escaped(name))=\(RequestURL.escaped(value))"
        }.joined(separator: "&")
    }

    private static func looksLikeJSON(_ body: Body) -> Bool {
        guard case .bytes(let data) = body else { return false }
        return JSONReindenter.isValid(data)
    }

    // MARK: Headers

    private static func headers(of arguments: Arguments, body: Body, token: String?, hasUserInfo: Bool) -> HTTPHeaders {
        var headers = defaults(of: arguments, body: body)
        if arguments.curl?.signature != nil {
            // The user's name and password are a key that signs.
        } else if let user = arguments.user, arguments.authType == .basic {
            headers.append(.authorization("Basic " + Data(user.utf8).base64EncodedString()))
        } else if let token = arguments.token ?? (hasUserInfo || arguments.user != nil ? nil : token), !token.isEmpty {
            headers.append(.authorization(bearerToken: token))
        }
        for item in arguments.items {
            switch item {
            case .header(let name, _), .removedHeader(let name): headers.remove(name: name)
            default: break
            }
        }
        for case .header(let name, let value) in arguments.items {
            let value = value.trimmingCharacters(in: .whitespaces)
            let isReduced = arguments.decodes && name.lowercased() == "accept-encoding"
            headers.append(name: name, value: isReduced ? ContentCodings.reduced(value) : value)
        }
        // libcurl sends it where there is no other.
        if headers["Accept"] == nil { headers.append(.accept("*/*")) }
        return headers
    }

    private static func defaults(of arguments: Arguments, body: Body) -> HTTPHeaders {
        var isJSON = arguments.json
        if case .bytes = body { isJSON = isJSON || !arguments.isForm && arguments.body == nil }
        var headers: HTTPHeaders = [.userAgent("curlew/\(CurlewInfo.version)")]
        headers.append(.accept(isJSON ? "application/json, */*;q=0.5" : "*/*"))
        if arguments.decodes { headers.append(.acceptEncoding(ContentCodings.known.joined(separator: ", "))) }
        switch body {
        case .bytes where arguments.body != nil:
            headers.append(.contentType(isJSON || Self.looksLikeJSON(body) ? "application/json" : "text/plain; charset=utf-8"))
        case .bytes: headers.append(.contentType(isJSON ? "application/json" : "application/x-www-form-urlencoded"))
        case .file where isJSON, .standardInput where isJSON, .stream where isJSON: headers.append(.contentType("application/json"))
        case .file(let path) where path.lowercased().hasByteSuffix(".json"): headers.append(.contentType("application/json"))
        case .none, .file, .standardInput, .stream, .parts: break
        }
        return headers
    }
}
