// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A request for a page: another request, with items for the query or another URL, and a decoding of its own. Made by paginators; hooks and
/// retriers see it.
public struct PageRequest<Base: ServiceRequest, Result: Sendable>: ServiceRequest {
    /// The request of which it is a page.
    public let base: Base
    let location: PageLocation
    let decodePage: @Sendable (Data) throws -> Result

    private var ownURL: URL? {
        if case .url(let url) = location { url } else { nil }
    }

    /// The base's, or that of the page's own URL.
    public var usesSecureProtocol: Bool? {
        ownURL.map { $0.scheme?.lowercased() == "https" } ?? base.usesSecureProtocol
    }
    /// The page's own URL, else the base's.
    public var url: (any URLConvertible)? { ownURL ?? base.url }
    /// The base's; none behind the page's own URL, which is whole.
    public var routes: HTTPRoute { ownURL == nil ? base.routes : [] }
    /// The base's and the page's items; none behind the page's own URL.
    public var query: HTTPQuery {
        if case .query(let items) = location { return base.query + items }
        return [:]
    }
    /// The base's.
    public var header: HTTPHeaders { base.header }
    /// The base's.
    public var priority: RequestPriority { base.priority }
    /// The base's.
    public var timeout: Duration? { base.timeout }
    /// The base's.
    public var method: HTTPMethod { base.method }
    /// The base's.
    public var body: any HTTPBody { base.body }
    /// As the base does it.
    public func prepare(_ request: URLRequest) throws -> URLRequest { try base.prepare(request) }
    /// The base's.
    public var acceptedStatusCodes: ClosedRange<Int> { base.acceptedStatusCodes }
    /// Decodes the page.
    public func decode(_ data: Data) throws -> Result { try decodePage(data) }
}

/// Where a page is.
public enum PageLocation: Sendable, Hashable {
    /// At the request's URL with these items in its query, in place of those of the same name.
    case query(HTTPQuery)
    /// At a URL of its own.
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

    /// Nothing beyond the description.
    public var customMirror: Mirror { .redacted(self) }
}
