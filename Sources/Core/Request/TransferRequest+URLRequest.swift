// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension TransferRequest {
    /// Creates a transfer from a request, and validates it: nothing is sent that violates the protocol.
    ///
    /// - Parameters:
    ///   - urlRequest: the adapted request.
    ///   - given: the header fields as the user gave them, in their order.
    ///   - body: the body if it is not the request's own.
    ///   - session: its configuration adds header fields and policies.
    init(_ urlRequest: URLRequest, given: GivenHeaders?, body: (any BodySource)?, in session: Session) throws {
        guard let url = urlRequest.url else { throw CurlewError.urlRequestValidationFailed(reason: .missingURL) }
        guard let method = HTTPMethod(rawValue: urlRequest.httpMethod ?? "GET") else {
            throw CurlewError.urlRequestValidationFailed(reason: .invalidMethod(urlRequest.httpMethod ?? ""))
        }
        let policy = urlRequest.cachePolicy == .useProtocolCachePolicy ? nil : CachePolicy(urlRequest.cachePolicy)
        try self.init(
            url, method: method, headers: urlRequest.orderedHeaders(like: given), body: try body ?? urlRequest.bodySource,
            cachePolicy: policy, in: session)
        // 60 seconds is Foundation's default, which can't be distinguished from a set value; 0 or less is no timeout.
        let timeout = urlRequest.timeoutInterval
        if timeout != 60, timeout > 0 { setTimeouts(idle: .seconds(min(timeout, 1e9))) }
        handlesCookies = urlRequest.httpShouldHandleCookies
        mainDocumentURL = urlRequest.mainDocumentURL?.absoluteString
        if !urlRequest.allowsCellularAccess { try avoidCellular(session.configuration.interfaces) }
    }

    /// Creates a transfer from a request's parts, and validates it; without a cache policy it has the session's.
    init(
        _ url: URL, method: HTTPMethod, headers: HTTPHeaders, body: (any BodySource)?, cachePolicy: CachePolicy? = nil, in session: Session
    ) throws(CurlewError) {
        let string = url.absoluteString
        let checked = PlainURL.isPlain(string) || session.loadsByClasses(string) ? string : try Self.validated(url, string)
        try self.init(plain: checked, method: method, headers: headers, body: body, cachePolicy: cachePolicy, in: session)
    }

    /// Creates a transfer for a URL that is known to be valid, and validates header fields and body.
    init(
        plain url: String, method: HTTPMethod, headers: HTTPHeaders, body: (any BodySource)?, cachePolicy: CachePolicy? = nil,
        in session: Session
    ) throws(CurlewError) {
        self.init(url: url, method: method, headers: headers, body: body, prepared: session.options)
        // Most requests have no fields of their own: then those of the session need not be looked at for each.
        if headers.isEmpty, let prepared = session.preparedHeaders {
            self.headers = prepared
        } else {
            self.headers.addMissing(from: session.configuration.headers)
            try validateHeaders()
        }
        try validateBody()
        try applyPolicies(of: session, cachePolicy: cachePolicy ?? session.configuration.cachePolicy)
    }

    /// Applies the cache policy, and the session's policy for cellular access, if they differ from the defaults.
    private mutating func applyPolicies(of session: Session, cachePolicy: CachePolicy) throws(CurlewError) {
        if cachePolicy != .useProtocolCachePolicy { try setCachePolicy(cachePolicy, session.configuration) }
        if !session.configuration.allowsCellularAccess { try avoidCellular(session.configuration.interfaces) }
    }

    mutating func setCachePolicy(_ policy: CachePolicy, _ configuration: SessionConfiguration) throws(CurlewError) {
        cachePolicy = policy
        // Checked here, because a session without a cache has no CachingTransport.
        if policy == .returnCacheDataDontLoad, !configuration.hasCache { throw .notInCache(self) }
        if policy == .reloadIgnoringLocalAndRemoteCacheData {
            headers.addMissing(from: ["Cache-Control": "no-cache", "Pragma": "no-cache"])
        }
    }

    /// The transfer as a `URLRequest`, without the body of a file or stream; `nil` if Foundation can't parse the URL.
    var urlRequest: URLRequest? {
        guard let url = URL(string: url) else { return nil }
        var request = URLRequest(url: url)
        request.httpMethod = method.rawValue
        request.allHTTPHeaderFields = headers.dictionary
        request.httpBody = (body as? DataBody)?.data
        if cachePolicy != .useProtocolCachePolicy { request.cachePolicy = cachePolicy.foundation }
        if !handlesCookies { request.httpShouldHandleCookies = false }
        if !allowsCellularAccess { request.allowsCellularAccess = false }
        if let mainDocumentURL { request.mainDocumentURL = URL(string: mainDocumentURL) }
        return request
    }
}

extension URLRequest {
    /// Whether the request has a body in memory or as a stream.
    package var hasBody: Bool { httpBody != nil || httpBodyStream != nil }

    fileprivate var bodySource: (any BodySource)? {
        get throws {
            if let stream = httpBodyStream { return StreamBody(stream) }
            return httpBody.map { DataBody($0) }
        }
    }
}

extension HTTPHeaders {
    /// What a request without fields gets of these; `nil` if one is not valid.
    var prepared: HTTPHeaders? {
        var result = HTTPHeaders()
        result.addMissing(from: self)
        return result.contains { !$0.isValid } ? nil : result
    }

    fileprivate mutating func addMissing(from others: HTTPHeaders) {
        for header in others where !contains(where: { $0.isNamed(header.name) }) {
            // The transport chooses codings for a part.
            if header.isNamed("Accept-Encoding"), contains(where: { $0.isNamed("Range") }) { continue }
            append(header)
        }
    }
}
