// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A request without a type of its own, whose result is the response's body.
public struct AnyServiceRequest: ServiceRequest {
    /// The response's body.
    public typealias Result = Data

    public let usesSecureProtocol: Bool?
    public let url: (any URLConvertible)?
    public let method: HTTPMethod
    public let routes: HTTPRoute
    public let query: HTTPQuery
    public let header: HTTPHeaders
    public let body: any HTTPBody
    public let acceptedStatusCodes: ClosedRange<Int>
    public let priority: RequestPriority
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
