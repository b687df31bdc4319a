// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

// Curlew's functions, with translated errors.

extension String {
    /// Returns the string as a URL.
    ///
    /// Characters that a URL can't contain are percent-encoded after the host, and rejected before; see ``/CurlewHTTP/URLConvertible``.
    ///
    /// - Throws: ``AFError/invalidURL(url:)``.
    public func asURL() throws -> URL {
        try AFError.translating { try (self as any URLConvertible).asURL() }
    }
}

extension URLComponents {
    /// Returns the URL of these components.
    ///
    /// - Throws: ``AFError/invalidURL(url:)`` if they do not form one.
    public func asURL() throws -> URL {
        try AFError.translating { try (self as any URLConvertible).asURL() }
    }
}

extension URLRequest {
    /// Creates a request from a URL, a method and header fields.
    ///
    /// - Throws: ``AFError/invalidURL(url:)``, or another error of `url`; `URLError.badURL` for a header field with an invalid name or
    ///   value.
    public init(url: any URLConvertible, method: HTTPMethod, headers: CurlewHTTP.HTTPHeaders? = nil) throws {
        self = try AFError.translating { try URLRequest(convertible: url, method: method, headers: headers) }
    }

    /// Creates a request from a URL, a method and header fields in a dictionary.
    ///
    /// - Throws: ``AFError/invalidURL(url:)``, or another error of `url`; `URLError.badURL` for a header field with an invalid name or
    ///   value.
    @_disfavoredOverload
    public init(url: any URLConvertible, method: HTTPMethod, headers: HTTPHeaders?) throws {
        try self.init(url: url, method: method, headers: headers.map { CurlewHTTP.HTTPHeaders($0) })
    }
}

extension URLEncoding {
    /// Returns the request with the parameters encoded into its query or its body.
    ///
    /// - Throws: ``AFError/parameterEncodingFailed(reason:)``; the errors of `urlRequest`.
    public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        try AFError.translating { try (self as any ParameterEncoding).encode(urlRequest, with: parameters) }
    }
}

extension JSONEncoding {
    /// Returns the request with the parameters as a JSON object in its body.
    ///
    /// - Throws: ``AFError/parameterEncodingFailed(reason:)`` for values that JSON can't represent; the errors of `urlRequest`.
    public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        try AFError.translating { try (self as any ParameterEncoding).encode(urlRequest, with: parameters) }
    }

    /// Returns the request with a JSON text in its body, whose top level may be an array; `nil` leaves the request unchanged.
    ///
    /// - Throws: ``AFError/parameterEncodingFailed(reason:)`` for values that JSON can't represent; the errors of `urlRequest`.
    public func encode(_ urlRequest: any URLRequestConvertible, withJSONObject jsonObject: Any? = nil) throws -> URLRequest {
        try AFError.translating { try encoded(urlRequest, jsonObject) }
    }
}

extension PropertyListEncoding {
    /// Returns the request with the parameters as a property list in its body.
    ///
    /// - Throws: ``AFError/parameterEncodingFailed(reason:)`` for values that a property list can't represent; the errors of `urlRequest`.
    public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        try AFError.translating { try (self as any ParameterEncoding).encode(urlRequest, with: parameters) }
    }
}
