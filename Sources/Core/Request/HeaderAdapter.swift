// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Changes only the header fields of requests before they are sent: adds a token, an API key or a request ID.
///
/// ```swift
/// struct APIKey: HeaderAdapter {
///     func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) {
///         headers["X-API-Key"] = "…"
///     }
/// }
/// ```
///
/// Used like any other ``RequestAdapter``, but needs no `URLRequest`, which takes half the time of a small request. One is created only if
/// another adapter of the same request needs it, or parameters are encoded into it.
@preconcurrency public protocol HeaderAdapter: RequestAdapter {
    /// Changes the header fields of a request, without those of the session, which are added afterwards if missing.
    ///
    /// Called when ``RequestAdapter/adapt(_:)`` would be; an error that it throws fails the request in the same way.
    ///
    /// - Parameters:
    ///   - headers: the request's header fields.
    ///   - method: the request's method.
    ///   - url: the request's absolute URL.
    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) throws
}

extension HeaderAdapter {
    /// Applies ``adapt(_:of:to:)`` to the fields of a `URLRequest`.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest { try adaptFields(of: urlRequest) }

    fileprivate func adaptFields(of urlRequest: URLRequest) throws -> URLRequest {
        // Foundation on Linux traps when a copied request without a URL is changed. Such a request fails later, when it is sent.
        guard let url = urlRequest.url else { return urlRequest }
        var headers = HTTPHeaders(urlRequest.allHTTPHeaderFields ?? [:])
        try adapt(&headers, of: HTTPMethod(rawValue: urlRequest.httpMethod ?? "") ?? .get, to: url.absoluteString)
        return try urlRequest.replacingFields(with: headers)
    }

    /// `self`.
    public var headerAdapter: (any HeaderAdapter)? { self }
}

extension URLRequest {
    /// Returns the request with these header fields instead of its own. It must have a URL.
    func replacingFields(with headers: HTTPHeaders) throws -> URLRequest {
        var adapted = self
        for name in (allHTTPHeaderFields ?? [:]).keys where headers[name] == nil { adapted.setValue(nil, forHTTPHeaderField: name) }
        for header in headers {
            // Foundation on Linux silently drops an invalid field.
            guard header.isValid else { throw CurlewError.urlRequestValidationFailed(reason: .invalidHeader(name: header.name)) }
            let value = headers[header.name]
            if adapted.value(forHTTPHeaderField: header.name) != value { adapted.setValue(value, forHTTPHeaderField: header.name) }
        }
        return adapted
    }
}

extension HeaderAdapter where Self: RequestInterceptor {
    /// Applies ``HeaderAdapter/adapt(_:of:to:)`` to the fields of a `URLRequest`, in an interceptor that is also a header adapter.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest { try adaptFields(of: urlRequest) }
}

extension RequestAdapter {
    /// `nil`, as the adapter may need the whole request.
    public var headerAdapter: (any HeaderAdapter)? { nil }
}

/// Header adapters that are applied in order.
struct HeaderAdapters: HeaderAdapter {
    let adapters: [any HeaderAdapter]

    /// `nil` if one of the adapters needs the whole request.
    init?(_ adapters: [any RequestAdapter]) {
        self.adapters = adapters.compactMap { $0.headerAdapter }
        guard self.adapters.count == adapters.count else { return nil }
    }

    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) throws {
        for adapter in adapters { try adapter.adapt(&headers, of: method, to: url) }
    }
}

/// The adapter of interceptors that only retry: changes nothing.
struct NoAdapter: HeaderAdapter {
    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) {}
}

extension Retrier {
    /// An adapter that changes nothing.
    public var headerAdapter: (any HeaderAdapter)? { NoAdapter() }
}

extension Interceptor {
    /// All adapters as one; `nil` if one of them needs the whole request.
    public var headerAdapter: (any HeaderAdapter)? { HeaderAdapters(adapters) }
}
