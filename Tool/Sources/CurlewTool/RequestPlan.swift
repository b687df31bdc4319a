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
    }

    let method: HTTPMethod
    let url: String
    let headers: HTTPHeaders
    let body: Body

    /// Creates the plan.
    ///
    /// - Parameter environment: may contain `CURLEW_TOKEN`.
    init(_ arguments: Arguments, environment: [String: String]) throws(UsageError) {
        body = Self.body(of: arguments)
        guard let method = HTTPMethod(rawValue: arguments.method ?? (body == .none ? "GET" : "POST")) else {
            throw UsageError("\((arguments.method ?? "").quoted) is not a valid method")
        }
        self.method = method
        url = try RequestURL.make(arguments.url, items: arguments.items)
        headers = Self.headers(of: arguments, body: body, token: environment["CURLEW_TOKEN"], hasUserInfo: RequestURL.hasUserInfo(url))
    }

    // MARK: Body

    private static func body(of arguments: Arguments) -> Body {
        switch arguments.body {
        case .file(let path): return .file(path)
        case .standardInput: return .standardInput
        case nil: break
        }
        let fields = arguments.items.filter(\.isField)
        guard !fields.isEmpty || arguments.isForm else { return .none }
        return .bytes(Data((arguments.isForm ? form(of: fields) : json(of: fields)).utf8))
    }

    /// Written by hand, because the library's encodings take dictionaries, which lose the order.
    private static func json(of fields: [RequestItem]) -> String {
        let members = fields.compactMap { item -> String? in
            switch item {
            case .field(let name, let value): "\(quoted(name)):\(quoted(value))"
            case .json(let name, let text): "\(quoted(name)):\(text)"
            default: nil
            }
        }
        return "{\(members.joined(separator: ","))}"
    }

    /// Returns a JSON string (RFC 8259, section 7).
    private static func quoted(_ string: String) -> String {
        var result = "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    private static func form(of fields: [RequestItem]) -> String {
        fields.compactMap { item in
            guard case .field(let name, let value) = item else { return nil }
            return "\(RequestURL.escaped(name))=\(RequestURL.escaped(value))"
        }.joined(separator: "&")
    }

    // MARK: Headers

    private static func headers(of arguments: Arguments, body: Body, token: String?, hasUserInfo: Bool) -> HTTPHeaders {
        var headers = defaults(of: arguments, body: body)
        if let user = arguments.user {
            headers.append(.authorization("Basic " + Data(user.utf8).base64EncodedString()))
        } else if let token = arguments.token ?? (hasUserInfo ? nil : token), !token.isEmpty {
            headers.append(.authorization(bearerToken: token))
        }
        for item in arguments.items {
            switch item {
            case .header(let name, _), .removedHeader(let name): headers.remove(name: name)
            default: break
            }
        }
        for case .header(let name, let value) in arguments.items {
            headers.append(name: name, value: value.trimmingCharacters(in: .whitespaces))
        }
        return headers
    }

    private static func defaults(of arguments: Arguments, body: Body) -> HTTPHeaders {
        var isJSON = false
        if case .bytes = body { isJSON = !arguments.isForm }
        var headers: HTTPHeaders = [.userAgent("curlew/\(CurlewInfo.version)")]
        headers.append(.accept(isJSON ? "application/json, */*;q=0.5" : "*/*"))
        if arguments.decodes { headers.append(.acceptEncoding("gzip, deflate")) }
        switch body {
        case .bytes: headers.append(.contentType(isJSON ? "application/json" : "application/x-www-form-urlencoded"))
        case .file(let path) where path.lowercased().hasSuffix(".json"): headers.append(.contentType("application/json"))
        case .none, .file, .standardInput: break
        }
        return headers
    }
}
