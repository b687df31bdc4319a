// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

// Curlew's functions, their errors translated.

extension String {
    /// The string as a URL.
    ///
    /// Strict (RFC 3986): a string with characters that a URL can't hold is refused, not repaired. Percent-encode them first.
    ///
    /// - Throws: ``AFError/invalidURL(url:)``.
    public func asURL() throws -> URL {
        try AFError.translating { try (self as any URLConvertible).asURL() }
    }
}

extension URLComponents {
    /// The URL of these components.
    ///
    /// - Throws: ``AFError/invalidURL(url:)`` when they give none.
    public func asURL() throws -> URL {
        try AFError.translating { try (self as any URLConvertible).asURL() }
    }
}

extension URLRequest {
    /// Makes a request of a URL, a method and headers.
    ///
    /// - Throws: ``AFError/invalidURL(url:)``, or what else `url` throws; `URLError.badURL` for a header with an invalid name or value.
    public init(url: any URLConvertible, method: HTTPMethod, headers: CurlewHTTP.HTTPHeaders? = nil) throws {
        self = try AFError.translating { try URLRequest(convertible: url, method: method, headers: headers) }
    }

    /// Makes a request of a URL, a method and headers in a dictionary.
    ///
    /// - Throws: ``AFError/invalidURL(url:)``, or what else `url` throws; `URLError.badURL` for a header with an invalid name or value.
    @_disfavoredOverload
    public init(url: any URLConvertible, method: HTTPMethod, headers: HTTPHeaders?) throws {
        try self.init(url: url, method: method, headers: headers.map { CurlewHTTP.HTTPHeaders($0) })
    }
}

extension URLEncoding {
    /// The request with the parameters in its query or its body.
    ///
    /// - Throws: ``AFError/parameterEncodingFailed(reason:)``; what `urlRequest` throws.
    public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        try AFError.translating { try (self as any ParameterEncoding).encode(urlRequest, with: parameters) }
    }
}

extension JSONEncoding {
    /// The request with the parameters as a JSON object in its body.
    ///
    /// - Throws: ``AFError/parameterEncodingFailed(reason:)`` when the parameters hold what JSON can't; what `urlRequest` throws.
    public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        try AFError.translating { try (self as any ParameterEncoding).encode(urlRequest, with: parameters) }
    }

    /// The request with a JSON text in its body, whose top level may be an array; `nil` leaves the request as it is.
    ///
    /// - Throws: ``AFError/parameterEncodingFailed(reason:)`` when the object holds what JSON can't; what `urlRequest` throws.
    public func encode(_ urlRequest: any URLRequestConvertible, withJSONObject jsonObject: Any? = nil) throws -> URLRequest {
        try AFError.translating { try encoded(urlRequest, jsonObject) }
    }
}

extension PropertyListEncoding {
    /// The request with the parameters as a property list in its body.
    ///
    /// - Throws: ``AFError/parameterEncodingFailed(reason:)`` when the parameters hold what a property list can't; what `urlRequest` throws.
    public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        try AFError.translating { try (self as any ParameterEncoding).encode(urlRequest, with: parameters) }
    }
}
