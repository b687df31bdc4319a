// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP

/// A value that stands for a request.
public protocol URLRequestConvertible {
    /// The request.
    ///
    /// What it throws ends the request with that error.
    func asURLRequest() throws -> URLRequest
}

extension URLRequestConvertible {
    /// The request, or `nil` when there is none; ``asURLRequest()`` says why.
    public var urlRequest: URLRequest? { try? asURLRequest() }
}

extension URLRequest: URLRequestConvertible {
    /// The request itself.
    public func asURLRequest() throws -> URLRequest { self }
}

extension URLRequest {
    /// Makes a request of a URL, a method and headers.
    ///
    /// A `URLRequest` holds one value a name: repeated fields become one, under the first one's spelling, joined with `", "` (RFC 9110,
    /// section 5.3), those of `Cookie` with `"; "` (RFC 6265, section 5.4). Foundation writes GET, HEAD, POST, PUT and DELETE in
    /// capitals, however the method spells them; all other methods stay as they are.
    ///
    /// - Throws: ``CurlewError/invalidURL(url:)``, or what else `url` throws; ``CurlewError/urlRequestValidationFailed(reason:)`` for a
    ///   header with an invalid name or value.
    public init(url: any URLConvertible, method: HTTPMethod, headers: HTTPHeaders? = nil) throws {
        try self.init(convertible: url, method: method, headers: headers)
    }

    /// The same by a name that no other module uses.
    package init(convertible url: any URLConvertible, method: HTTPMethod, headers: HTTPHeaders?) throws {
        try self.init(url: url.asURL())
        // What it is by itself; setting it costs more than making the request.
        if method != .get { httpMethod = method.rawValue }
        guard let headers else { return }

        // Foundation on Linux drops an invalid field without a word; the request would go out without it.
        if let invalid = headers.first(where: { !$0.isValid }) {
            throw CurlewError.urlRequestValidationFailed(reason: .invalidHeader(name: invalid.name))
        }
        // Joined here: addValue(_:forHTTPHeaderField:) joins with a bare ",", cookies too.
        for header in headers where value(forHTTPHeaderField: header.name) == nil {
            let separator = header.isNamed("Cookie") ? "; " : ", "
            setValue(headers.values(for: header.name).joined(separator: separator), forHTTPHeaderField: header.name)
        }
    }
}
