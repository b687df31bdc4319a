// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Changes the header fields of requests before they are sent, and nothing else: adds a token, an API key, a request's number.
///
/// ```swift
/// struct APIKey: HeaderAdapter {
///     func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) {
///         headers["X-API-Key"] = "…"
///     }
/// }
/// ```
///
/// Used like any other ``RequestAdapter``. It needs no `URLRequest`, which costs as much as half of a small request; one is made only where
/// another adapter of the same request wants it, or where parameters are encoded into it.
@preconcurrency public protocol HeaderAdapter: RequestAdapter {
    /// Changes the header fields of a request: those that it was given, without those of its session, which are added where they are
    /// missing. Called as ``RequestAdapter/adapt(_:)`` is, and what it throws ends the request in the same way.
    ///
    /// - Parameters:
    ///   - headers: the header fields, as they will go out.
    ///   - method: the request's method.
    ///   - url: the absolute URL that is asked for.
    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) throws
}

extension HeaderAdapter {
    /// Has ``adapt(_:of:to:)`` change the fields of a `URLRequest`.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest { try adaptFields(of: urlRequest) }

    fileprivate func adaptFields(of urlRequest: URLRequest) throws -> URLRequest {
        // Foundation on Linux traps when a copied request without a URL is changed; it fails later for that.
        guard let url = urlRequest.url else { return urlRequest }
        let fields = urlRequest.allHTTPHeaderFields ?? [:]
        var headers = HTTPHeaders(fields)
        try adapt(&headers, of: HTTPMethod(rawValue: urlRequest.httpMethod ?? "") ?? .get, to: url.absoluteString)
        var adapted = urlRequest
        for name in fields.keys where headers[name] == nil { adapted.setValue(nil, forHTTPHeaderField: name) }
        for header in headers {
            // Foundation on Linux drops an invalid field without a word.
            guard header.isValid else { throw CurlewError.urlRequestValidationFailed(reason: .invalidHeader(name: header.name)) }
            let value = headers[header.name]
            if adapted.value(forHTTPHeaderField: header.name) != value { adapted.setValue(value, forHTTPHeaderField: header.name) }
        }
        return adapted
    }

    /// Itself.
    public var headerAdapter: (any HeaderAdapter)? { self }
}

extension HeaderAdapter where Self: RequestInterceptor {
    /// Has ``HeaderAdapter/adapt(_:of:to:)`` change the fields of a `URLRequest`: an interceptor may be a header adapter, too.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest { try adaptFields(of: urlRequest) }
}

extension RequestAdapter {
    /// None: the adapter may want the whole request.
    public var headerAdapter: (any HeaderAdapter)? { nil }
}

/// Several header adapters, one after the other.
struct HeaderAdapters: HeaderAdapter {
    let adapters: [any HeaderAdapter]

    /// `nil` if one of them wants the whole request.
    init?(_ adapters: [any RequestAdapter]) {
        self.adapters = adapters.compactMap { $0.headerAdapter }
        guard self.adapters.count == adapters.count else { return nil }
    }

    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) throws {
        for adapter in adapters { try adapter.adapt(&headers, of: method, to: url) }
    }
}

/// What retriers are as adapters: nothing is changed.
struct NoAdapter: HeaderAdapter {
    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) {}
}

extension Retrier {
    /// One that changes nothing.
    public var headerAdapter: (any HeaderAdapter)? { NoAdapter() }
}

extension RetryPolicy {
    /// One that changes nothing.
    public var headerAdapter: (any HeaderAdapter)? { NoAdapter() }
}

extension Interceptor {
    /// All adapters as one, if none of them wants the whole request.
    public var headerAdapter: (any HeaderAdapter)? { HeaderAdapters(adapters) }
}

// MARK: - Credentials

/// Puts credentials into header fields, as most do; an ``AuthenticationInterceptor`` of such needs no `URLRequest`.
public protocol HeaderAuthenticator: Authenticator {
    /// Puts the credential into the header fields of a request, usually as `Authorization`.
    func apply(_ credential: Credential, to headers: inout HTTPHeaders)
}

extension HeaderAuthenticator {
    /// Puts the credential into the header fields of a `URLRequest`.
    public func apply(_ credential: Credential, to urlRequest: inout URLRequest) {
        var headers = HTTPHeaders(urlRequest.allHTTPHeaderFields ?? [:])
        apply(credential, to: &headers)
        for (name, value) in headers.dictionary where urlRequest.value(forHTTPHeaderField: name) != value {
            urlRequest.setValue(value, forHTTPHeaderField: name)
        }
    }
}
