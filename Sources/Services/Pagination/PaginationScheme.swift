// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// How one page of an API leads to the next.
///
/// ```swift
/// for try await user in UsersRequest().pages(from: api, by: .link()).elements() { … }
/// ```
public struct PaginationScheme<Value: Sendable>: Sendable {
    let first: PageLocation
    let next: @Sendable (ServicePage<Value>) throws -> PageLocation?

    /// Makes a scheme.
    ///
    /// - Parameters:
    ///   - first: where the first page is; by default at the request's own URL.
    ///   - next: where the page behind a page is; `nil` behind the last. What it throws ends the pages.
    public init(first: PageLocation = .query([:]), next: @escaping @Sendable (ServicePage<Value>) throws -> PageLocation?) {
        self.first = first
        self.next = next
    }

    /// Pages by number.
    ///
    /// - Parameters:
    ///   - name: of the query's item for the number; `page` by default.
    ///   - start: the first number; 1 by default.
    ///   - size: a name and a value for the most elements of a page; `nil`, the default, leaves that to the server.
    ///   - isLast: whether no page follows one.
    public static func pageNumber(
        _ name: String = "page", startingAt start: Int = 1, size: HTTPQuery = [:],
        isLast: @escaping @Sendable (ServicePage<Value>) -> Bool
    ) -> PaginationScheme {
        PaginationScheme(first: .query(size + [name: start])) { page in
            isLast(page) ? nil : .query(size + [name: start + page.index + 1])
        }
    }

    /// Pages by the token that each has for the next one.
    ///
    /// - Parameters:
    ///   - name: of the query's item for the token; `cursor` by default. The first page is asked for without.
    ///   - size: a name and a value for the most elements of a page; none by default.
    ///   - next: the token for the page behind one; `nil`, or an empty one, behind the last.
    public static func cursor(
        _ name: String = "cursor", size: HTTPQuery = [:], next: @escaping @Sendable (ServicePage<Value>) -> String?
    ) -> PaginationScheme {
        PaginationScheme(first: .query(size)) { page in
            guard let token = next(page), !token.isEmpty else { return nil }
            return .query(size + [name: token])
        }
    }

    /// Pages by the `Link` header field of each (RFC 8288).
    ///
    /// A link that leads to another origin than its page (scheme, host or port), ends the pages with ``ServiceError/invalidResponse``,
    /// as the request's header fields would go there too.
    ///
    /// - Parameter relation: of the link to follow; `next` by default.
    public static func link(_ relation: String = "next") -> PaginationScheme {
        PaginationScheme { page in
            let link = page.header.links.first { $0.hasRelation(relation) && $0.anchor == nil }
            guard let link else { return nil }
            guard let from = page.url, let url = link.url(relativeTo: from), Self.isSameOrigin(url, page.requestURL ?? from) else {
                throw ServiceError.invalidResponse
            }
            return .url(url)
        }
    }

    private static func isSameOrigin(_ lhs: URL, _ rhs: URL) -> Bool {
        func origin(_ url: URL) -> [String?] {
            let scheme = url.scheme?.lowercased()
            let port = url.port ?? (scheme == "https" ? 443 : 80)
            return [scheme, url.host?.lowercased(), String(port)]
        }
        return origin(lhs) == origin(rhs)
    }
}

extension PaginationScheme where Value: Collection {
    /// Pages by number, of which the last is empty or, where `size` is known, has fewer elements.
    ///
    /// - Parameters:
    ///   - name: of the query's item for the number; `page` by default.
    ///   - start: the first number; 1 by default.
    ///   - sizeName: of the query's item for the size; `per_page` by default.
    ///   - size: the most elements of a page, which the server has to obey; `nil`, the default, leaves that to the server.
    public static func pageNumber(
        _ name: String = "page", startingAt start: Int = 1, sizeName: String = "per_page", size: Int? = nil
    ) -> PaginationScheme {
        pageNumber(name, startingAt: start, size: size.map { [sizeName: $0] } ?? [:]) { page in
            page.value.isEmpty || size.map { page.value.count < $0 } ?? false
        }
    }

    /// Pages by the number of elements before them, of which the last has fewer elements than a page may.
    ///
    /// - Parameters:
    ///   - name: of the query's item for the number of elements before; `offset` by default.
    ///   - limitName: of the query's item for the size; `limit` by default.
    ///   - limit: the most elements of a page, which the server has to obey.
    public static func offset(_ name: String = "offset", limitName: String = "limit", limit: Int) -> PaginationScheme {
        let size: HTTPQuery = [limitName: limit]
        return PaginationScheme(first: .query(size + [name: 0])) { page in
            let isLast = page.value.isEmpty || page.value.count < limit
            return isLast ? nil : .query(size + [name: page.elementsBefore + page.value.count])
        }
    }
}

/// A page of a request: its result, and what else came with it.
public struct ServicePage<Value: Sendable>: Sendable {
    /// The result of the page's request.
    public let value: Value
    /// The header fields of the response.
    public let header: HTTPHeaders
    /// Where the page came from, after redirects.
    public let url: URL?
    /// How many pages came before it.
    public let index: Int
    let requestURL: URL?
    let elementsBefore: Int
}

extension ServiceRequest {
    /// The pages of this request from a service, as a scheme has them, each fetched when it is asked for.
    ///
    /// A scheme that leads to the page from which it leads ends them with ``ServiceError/invalidResponse``.
    public func pages<Service: HTTPService>(from service: Service, by scheme: PaginationScheme<Result>) -> PageSequence<ServicePage<Result>>
    {
        PageSequence {
            let walk = Lock(PageWalk<Result>(location: scheme.first))
            return {
                let at = walk.withLock { $0 }
                let request = PageRequest(base: self, location: at.location) { try decode($0) }
                let success = try await request.schedule(with: service).success()
                let page = ServicePage(
                    value: success.result, header: success.header, url: success.responseURL ?? success.requestURL, index: at.index,
                    requestURL: success.requestURL, elementsBefore: at.elements)
                let next: PageLocation?
                do {
                    next = try scheme.next(page)
                    if next == at.location { throw ServiceError.invalidResponse }
                } catch {
                    throw service.mapError(ServiceError(error))
                }
                if let next { walk.withLock { $0.advance(to: next, behind: page) } }
                return (page, next == nil)
            }
        }
    }
}

/// Where somebody is who goes through pages.
private struct PageWalk<Value: Sendable> {
    var location: PageLocation
    var index = 0
    var elements = 0

    mutating func advance(to location: PageLocation, behind page: ServicePage<Value>) {
        self.location = location
        index += 1
        elements += (page.value as? any Collection)?.count ?? 0
    }
}

extension PageSequence {
    /// The elements of all pages; a page is fetched when those before it are used up.
    public func elements<Elements: Sequence>() -> PageElements<Page, Elements>
    where Page == ServicePage<Elements>, Elements.Element: Sendable {
        elements { $0.value }
    }
}
