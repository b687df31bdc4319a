// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// How an API's pages are linked: where the first is, and how each leads to the next.
///
/// ```swift
/// for try await user in UsersRequest().pages(from: api, by: .link()).elements() { … }
/// ```
public struct PaginationScheme<Value: Sendable>: Sendable {
    let first: PageLocation
    let next: @Sendable (ServicePage<Value>) throws -> PageLocation?

    /// Whether a page may lead to another origin (scheme, host or port). `false`, the default, ends the sequence with
    /// ``ServiceError/invalidResponse``, because the server would choose who receives the request's header fields, credentials included; from
    /// `http` to `https` of the same host, both at their usual ports, a page may always lead.
    public var followsOtherOrigins = false

    /// Makes a scheme.
    ///
    /// - Parameters:
    ///   - first: where the first page is; by default at the request's own URL.
    ///   - next: where the page after the given one is; `nil` if it is the last. An error that it throws ends the sequence.
    public init(first: PageLocation = .query([:]), next: @escaping @Sendable (ServicePage<Value>) throws -> PageLocation?) {
        self.first = first
        self.next = next
    }

    /// Pages by number.
    ///
    /// - Parameters:
    ///   - name: the query parameter for the page number; `page` by default.
    ///   - start: the first page's number; 1 by default.
    ///   - size: the query parameter for the maximum number of elements per page; by default none, so that the server chooses.
    ///   - isLast: whether the given page is the last.
    public static func pageNumber(
        _ name: String = "page", startingAt start: Int = 1, size: HTTPQuery = [:],
        isLast: @escaping @Sendable (ServicePage<Value>) -> Bool
    ) -> PaginationScheme {
        PaginationScheme(first: .query(size + [name: start])) { page in
            isLast(page) ? nil : .query(size + [name: start + page.index + 1])
        }
    }

    /// Pages by a token that each page has for the next one.
    ///
    /// - Parameters:
    ///   - name: the query parameter for the token; `cursor` by default. The first page is requested without it.
    ///   - size: the query parameter for the maximum number of elements per page; none by default.
    ///   - next: the token for the page after the given one; `nil` or empty if it is the last.
    public static func cursor(
        _ name: String = "cursor", size: HTTPQuery = [:], next: @escaping @Sendable (ServicePage<Value>) -> String?
    ) -> PaginationScheme {
        PaginationScheme(first: .query(size)) { page in
            guard let token = next(page), !token.isEmpty else { return nil }
            return .query(size + [name: token])
        }
    }

    /// Pages by the `Link` header field of each response (RFC 8288).
    ///
    /// A link to another origin ends the sequence unless ``followsOtherOrigins`` is set.
    ///
    /// - Parameter relation: the relation type of the link to follow; `next` by default.
    public static func link(_ relation: String = "next") -> PaginationScheme {
        PaginationScheme { page in
            let link = page.header.links.first { $0.hasRelation(relation) && $0.anchor == nil }
            guard let link else { return nil }
            guard let from = page.url, let url = link.url(relativeTo: from) else { throw ServiceError.invalidResponse }
            return .url(url)
        }
    }

    /// Returns where the page after the given one is, if it may be there.
    func location(after page: ServicePage<Value>) throws -> PageLocation? {
        let location = try next(page)
        guard case .url(let url)? = location, !followsOtherOrigins else { return location }
        guard let from = page.requestURL ?? page.url, let origin = HTTPOrigin(url: url.absoluteString),
            let own = HTTPOrigin(url: from.absoluteString), origin == own || origin == own.secured
        else { throw ServiceError.invalidResponse }
        return location
    }
}

extension PaginationScheme where Value: Collection {
    /// Pages by number, of which the last is empty or, if `size` is given, has fewer elements than that.
    ///
    /// - Parameters:
    ///   - name: the query parameter for the page number; `page` by default.
    ///   - start: the first page's number; 1 by default.
    ///   - sizeName: the query parameter for the page size; `per_page` by default.
    ///   - size: the maximum number of elements per page, which the server must honour; by default `nil`, so that the server chooses.
    public static func pageNumber(
        _ name: String = "page", startingAt start: Int = 1, sizeName: String = "per_page", size: Int? = nil
    ) -> PaginationScheme {
        pageNumber(name, startingAt: start, size: size.map { [sizeName: $0] } ?? [:]) { page in
            page.value.isEmpty || size.map { page.value.count < $0 } ?? false
        }
    }

    /// Pages by offset, of which the last has fewer elements than `limit`.
    ///
    /// - Parameters:
    ///   - name: the query parameter for the offset, the number of elements before the page; `offset` by default.
    ///   - limitName: the query parameter for the page size; `limit` by default.
    ///   - limit: the maximum number of elements per page, which the server must honour.
    public static func offset(_ name: String = "offset", limitName: String = "limit", limit: Int) -> PaginationScheme {
        let size: HTTPQuery = [limitName: limit]
        return PaginationScheme(first: .query(size + [name: 0])) { page in
            let isLast = page.value.isEmpty || page.value.count < limit
            return isLast ? nil : .query(size + [name: page.elementsBefore + page.value.count])
        }
    }
}

extension HTTPOrigin {
    /// The origin of the same host over TLS, if both have their usual ports: a server behind a proxy that ends TLS.
    fileprivate var secured: HTTPOrigin? { scheme == "http" && port == 80 ? HTTPOrigin(scheme: "https", host: host, port: 443) : nil }
}

/// A page of a request: its result, and the details of its response.
public struct ServicePage<Value: Sendable>: Sendable {
    /// The result of the page's request.
    public let value: Value
    /// The header fields of the response.
    public let header: HTTPHeaders
    /// The URL that the page came from, after redirects.
    public let url: URL?
    /// The number of pages before it.
    public let index: Int
    let requestURL: URL?
    let elementsBefore: Int
}

extension ServiceRequest {
    /// Returns the pages of this request from a service, linked by a scheme, each fetched on demand.
    ///
    /// A page that leads to itself ends the sequence with ``ServiceError/invalidResponse``.
    public func pages<Service: HTTPService>(from service: Service, by scheme: PaginationScheme<Result>) -> PageSequence<ServicePage<Result>>
    {
        PageSequence {
            let position = Lock(PagePosition<Result>(location: scheme.first))
            return {
                let current = position.withLock { $0 }
                let request = PageRequest(base: self, location: current.location) { try decode($0) }
                let success = try await request.schedule(with: service).success()
                let page = ServicePage(
                    value: success.result, header: success.header, url: success.responseURL ?? success.requestURL, index: current.index,
                    requestURL: success.requestURL, elementsBefore: current.elements)
                let next: PageLocation?
                do {
                    next = try scheme.location(after: page)
                    if next == current.location { throw ServiceError.invalidResponse }
                } catch {
                    throw service.mapError(ServiceError(error))
                }
                if let next { position.withLock { $0.advance(to: next, after: page) } }
                return (page, next == nil)
            }
        }
    }
}

/// The position of an iteration over pages.
private struct PagePosition<Value: Sendable> {
    var location: PageLocation
    var index = 0
    var elements = 0

    mutating func advance(to location: PageLocation, after page: ServicePage<Value>) {
        self.location = location
        index += 1
        elements += (page.value as? any Collection)?.count ?? 0
    }
}

extension PageSequence {
    /// Returns the elements of all pages; a page is fetched when those before it are exhausted.
    public func elements<Elements: Sequence>() -> PageElements<Page, Elements>
    where Page == ServicePage<Elements>, Elements.Element: Sendable {
        elements { $0.value }
    }
}

// MARK: - CustomReflectable

extension ServicePage: CustomReflectable {
    /// The page's parts, the URL redacted.
    public var customMirror: Mirror {
        .redacted(self, ["value": value, "header": header, "url": url?.absoluteString.redactedURL ?? "none", "index": index])
    }
}
