// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A request without a type of its own, whose result is the response's body.
public struct AnyServiceRequest: ServiceRequest {
    /// The response's body.
    public typealias Result = Data

    /// Whether to use TLS.
    public let usesSecureProtocol: Bool?
    /// The URL in place of the service's.
    public let url: (any URLConvertible)?
    /// The method.
    public let method: HTTPMethod
    /// The path behind the URL.
    public let routes: HTTPRoute
    /// Items for the URL's query.
    public let query: HTTPQuery
    /// Header fields.
    public let header: HTTPHeaders
    /// The body.
    public let body: any HTTPBody
    /// The statuses that are a success.
    public let acceptedStatusCodes: ClosedRange<Int>
    /// How urgent it is.
    public let priority: RequestPriority
    /// The longest time for an attempt.
    public let timeout: Duration?

    /// Makes a request of its parts; each has the default of ``ServiceRequest``.
    ///
    /// With a URL it can do without a service: ``schedule()``. Its scheme then counts, `https` if it has none.
    public init(
        _ method: HTTPMethod = .get, url: (any URLConvertible)? = nil, usesSecureProtocol: Bool? = nil, routes: HTTPRoute = [],
        query: HTTPQuery = [:], header: HTTPHeaders = [:], body: any HTTPBody = HTTPData.Empty(),
        acceptedStatusCodes: ClosedRange<Int> = 200...299, priority: RequestPriority = .userInitiated, timeout: Duration? = nil
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
    }

    /// The response without a service: of the request's URL, with nothing added, by ``SessionManager/default``.
    ///
    /// Fails with ``ServiceError/invalidURL`` if it has no URL.
    public func schedule() -> ServiceResponse<AnyServiceRequest, AnyHTTPService> {
        schedule(with: AnyHTTPService(at: url ?? "", usesSecureProtocol: nil))
    }
}

// MARK: - CustomReflectable

extension AnyServiceRequest: CustomReflectable {
    /// What the request is made of, redacted.
    public var customMirror: Mirror {
        .redacted(
            self,
            [
                "method": method, "url": url.map { "\($0)".redactedURL } ?? "the service's", "routes": routes, "query": query,
                "header": header, "body": body.description,
            ])
    }
}
