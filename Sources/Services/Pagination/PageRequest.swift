// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// A request for one page: the base request with other query items, another URL, or the parts of a `URLRequest`, and its own decoding.
/// Paginators make them, and hooks and retriers receive them.
public struct PageRequest<Base: ServiceRequest, Result: Sendable>: ServiceRequest {
    /// The request whose page this is.
    public let base: Base
    let location: PageLocation
    /// The URL of the first page, if this one is at another origin and is sent without the credentials of that.
    var foreignTo: String?
    let decodePage: @Sendable (Data) throws -> Result

    private var ownURL: URL? { location.ownURL }
    private var ownRequest: URLRequest? { if case .request(let request) = location { request } else { nil } }

    /// Whether the page's own URL is `https`; without one, the base's setting.
    public var usesSecureProtocol: Bool? {
        ownURL.map { $0.scheme?.lowercased() == "https" } ?? base.usesSecureProtocol
    }
    /// The page's own URL, or the base's.
    public var url: (any URLConvertible)? { ownURL ?? base.url }
    /// The base's routes; none if the page has its own URL, which is complete.
    public var routes: HTTPRoute { ownURL == nil ? base.routes : [] }
    /// The base's items with the page's; none if the page has its own URL, which is complete.
    public var query: HTTPQuery {
        if case .query(let items) = location { return base.query + items }
        return [:]
    }
    /// The base's header fields.
    public var header: HTTPHeaders { base.header }
    /// The base's priority.
    public var priority: RequestPriority { base.priority }
    /// The base's timeout.
    public var timeout: Duration? { base.timeout }
    /// The base's settings.
    public var requestOptions: RequestOptions? {
        foreignTo.map { (base.requestOptions ?? RequestOptions()).withoutCredentials(of: $0) } ?? base.requestOptions
    }
    /// The method of the page's own request, or the base's.
    public var method: HTTPMethod { ownRequest.flatMap { HTTPMethod(rawValue: $0.httpMethod ?? "GET") } ?? base.method }
    /// The base's body.
    public var body: any HTTPBody { base.body }
    /// Prepares the request as the base does, with the fields and the body of the page's own request.
    public func prepare(_ request: URLRequest) throws -> URLRequest {
        guard let ownRequest else { return try base.prepare(request) }
        var request = request
        for (name, value) in ownRequest.allHTTPHeaderFields ?? [:] { request.setField(name, value) }
        request.httpBody = ownRequest.httpBody
        return try base.prepare(request)
    }
    /// The base's accepted status codes.
    public var acceptedStatusCodes: ClosedRange<Int> { base.acceptedStatusCodes }
    /// Decodes the page.
    public func decode(_ data: Data) throws -> Result { try decodePage(data) }
}
