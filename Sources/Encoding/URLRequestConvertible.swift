// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP

/// A value that can be converted to a `URLRequest`.
public protocol URLRequestConvertible {
    /// Returns the request.
    ///
    /// A request fails with any error thrown here.
    func asURLRequest() throws -> URLRequest
}

extension URLRequestConvertible {
    /// The request, or `nil` if ``asURLRequest()`` throws.
    public var urlRequest: URLRequest? { try? asURLRequest() }
}

extension URLRequest: URLRequestConvertible {
    /// Returns the request itself.
    public func asURLRequest() throws -> URLRequest { self }
}

extension URLRequest {
    /// Creates a request from a URL, a method and headers.
    ///
    /// A `URLRequest` holds one value per name: repeated fields are merged into one, under the first one's spelling, joined by `", "` (RFC
    /// 9110, section 5.3), or `"; "` for `Cookie` (RFC 6265, section 5.4). Foundation writes GET, HEAD, POST, PUT and DELETE in uppercase,
    /// regardless of the method's spelling; all other methods are unchanged.
    ///
    /// - Throws: ``CurlewError/invalidURL(url:in:)``, or another error thrown by `url`;
    ///   ``CurlewError/urlRequestValidationFailed(reason:in:)`` for a header with an invalid name or value.
    public init(url: any URLConvertible, method: HTTPMethod, headers: HTTPHeaders? = nil) throws {
        try self.init(convertible: url, method: method, headers: headers)
    }

    /// Same as ``init(url:method:headers:)``, under a name that no other module declares.
    package init(convertible url: any URLConvertible, method: HTTPMethod, headers: HTTPHeaders?) throws {
        try self.init(url: url.asURL())
        // GET is the default, and setting it is more expensive than creating the request.
        if method != .get { httpMethod = method.rawValue }
        guard let headers else { return }

        // Foundation on Linux silently drops an invalid field, and the request would be sent without it.
        if let invalid = headers.first(where: { !$0.isValid }) {
            throw CurlewError.urlRequestValidationFailed(reason: .invalidHeader(name: invalid.name))
        }
        // Joined here because addValue(_:forHTTPHeaderField:) joins with a bare ",", cookies too.
        for header in headers where value(forHTTPHeaderField: header.name) == nil {
            let separator = header.isNamed("Cookie") ? "; " : ", "
            setValue(headers.values(for: header.name).joined(separator: separator), forHTTPHeaderField: header.name)
        }
    }

    /// Sets a header field to a value that a program has given.
    ///
    /// `setValue(_:forHTTPHeaderField:)` of Foundation on Linux drops a field whose value has a line break or a NUL. Here such a field stays,
    /// so that the request fails when it is sent, with ``CurlewError/URLRequestValidationFailureReason/invalidHeader(name:)``. The request
    /// must have a URL.
    package mutating func setField(_ name: String, _ value: String) {
        setValue(value, forHTTPHeaderField: name)
        guard self.value(forHTTPHeaderField: name) != value else { return }
        allHTTPHeaderFields = (allHTTPHeaderFields ?? [:]).merging([name: value]) { $1 }
    }
}
