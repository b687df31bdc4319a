// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// A request without its own type, whose result is the response's body.
public struct AnyServiceRequest: ServiceRequest {
    /// The response's body.
    public typealias Result = Data

    /// Whether to use TLS.
    public let usesSecureProtocol: Bool?
    /// The URL that replaces the service's.
    public let url: (any URLConvertible)?
    /// The method.
    public let method: HTTPMethod
    /// The path after the URL's.
    public let routes: HTTPRoute
    /// Items for the URL's query.
    public let query: HTTPQuery
    /// Header fields.
    public let header: HTTPHeaders
    /// The body.
    public let body: any HTTPBody
    /// The status codes that count as success.
    public let acceptedStatusCodes: ClosedRange<Int>
    /// The request's priority.
    public let priority: RequestPriority
    /// The timeout of an attempt.
    public let timeout: Duration?
    /// The request's own settings.
    public let requestOptions: RequestOptions?

    /// Makes a request from its parts; each has the default of ``ServiceRequest``.
    ///
    /// A request with a URL needs no service: see ``schedule()``. The URL's scheme then applies, `https` if it has none.
    public init(
        _ method: HTTPMethod = .get, url: (any URLConvertible)? = nil, usesSecureProtocol: Bool? = nil, routes: HTTPRoute = [],
        query: HTTPQuery = [:], header: HTTPHeaders = [:], body: any HTTPBody = HTTPData.Empty(),
        acceptedStatusCodes: ClosedRange<Int> = 200...299, priority: RequestPriority = .userInitiated, timeout: Duration? = nil,
        requestOptions: RequestOptions? = nil
    ) {
        self.usesSecureProtocol = usesSecureProtocol
        self.url = url
        self.method = method
        self.routes = routes
        self.query = query
        self.header = header
        self.body = body
        self.acceptedStatusCodes = acceptedStatusCodes
        self.priority = priority
        self.timeout = timeout
        self.requestOptions = requestOptions
    }

    /// Returns the response without a service: of the request's URL, with nothing added, by ``SessionManager/default``.
    ///
    /// Fails with ``ServiceError/invalidURL`` if the request has no URL.
    public func schedule() -> ServiceResponse<AnyServiceRequest, AnyHTTPService> {
        schedule(with: AnyHTTPService(at: url ?? "", usesSecureProtocol: nil))
    }
}

// MARK: - CustomReflectable

extension AnyServiceRequest: RedactedReflectable {
    /// The request's parts, redacted.
    package var shownParts: KeyValuePairs<String, Any> {
        [
            "method": method, "url": url.map { "\($0)".redactedURL } ?? "the service's", "routes": routes, "query": query,
            "header": header, "body": body.description,
        ]
    }
}
