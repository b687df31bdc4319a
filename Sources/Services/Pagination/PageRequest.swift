// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// A request for one page: the base request with other query items or another URL, and its own decoding. Paginators make them, and hooks
/// and retriers receive them.
public struct PageRequest<Base: ServiceRequest, Result: Sendable>: ServiceRequest {
    /// The request whose page this is.
    public let base: Base
    let location: PageLocation
    let decodePage: @Sendable (Data) throws -> Result

    private var ownURL: URL? {
        if case .url(let url) = location { url } else { nil }
    }

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
    public var requestOptions: RequestOptions? { base.requestOptions }
    /// The base's method.
    public var method: HTTPMethod { base.method }
    /// The base's body.
    public var body: any HTTPBody { base.body }
    /// Prepares the request as the base does.
    public func prepare(_ request: URLRequest) throws -> URLRequest { try base.prepare(request) }
    /// The base's accepted status codes.
    public var acceptedStatusCodes: ClosedRange<Int> { base.acceptedStatusCodes }
    /// Decodes the page.
    public func decode(_ data: Data) throws -> Result { try decodePage(data) }
}

/// Where a page is found.
public enum PageLocation: Sendable, Hashable {
    /// At the request's URL, with these items replacing items of the same name in its query.
    case query(HTTPQuery)
    /// At its own URL.
    case url(URL)
}

// MARK: - Descriptions

extension PageLocation: CustomStringConvertible, CustomReflectable {
    /// The query or the URL, redacted (``/CurlewHTTP/Redaction``).
    public var description: String {
        switch self {
        case .query(let query): query.description
        case .url(let url): url.absoluteString.redactedURL
        }
    }

    /// Empty, so that reflection shows no more than the description does.
    public var customMirror: Mirror { .redacted(self) }
}
