// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The pages of a request from a service that counts its pages: each is the request with `page` and `chunk` in its query.
///
/// Everything else is the base request's, hooks and retriers as for any other request. Take ``pages`` or ``elements`` to go through them,
/// or ``connect(with:)`` to have a page for each tick.
public struct Paginator<Base: ServiceRequest, Page: PaginatedData, Service: HTTPService>: Sendable {
    let base: Base
    let service: Service
    let chunk: Int
    let zeroBasedPageIndex: Bool
    let decode: @Sendable (Data, Base) throws -> Page

    /// The pages, one by one, each fetched when it is asked for.
    public var pages: PageSequence<Page> {
        PageSequence {
            let number = Lock(zeroBasedPageIndex ? 0 : 1)
            return {
                let current = number.withLock { number in
                    defer { number += 1 }
                    return number
                }
                let page = try await request(for: current).schedule(with: service).value
                return (page, page.isLastPage)
            }
        }
    }

    /// Fetches a page for each tick.
    ///
    /// The first page is fetched when somebody begins to iterate the connection, and one more for each tick; ticks that come while a page
    /// is on its way count for nothing. Each connection makes requests of its own.
    public func connect<Ticks: AsyncSequence & Sendable>(with ticks: Ticks) -> PaginatorConnection<Page> {
        PaginatorConnection(pages, ticks)
    }

    private func request(for page: Int) -> PageRequest<Base, Page> {
        let (base, decode) = (base, decode)
        return PageRequest(base: base, location: .query(["page": page, "chunk": chunk])) { try decode($0, base) }
    }
}

extension Paginator where Page.DataType: Sequence, Page.DataType.Element: Sendable {
    /// The elements of all pages; a page is fetched when those before it are used up.
    public var elements: PageElements<Page, Page.DataType> { pages.elements { $0.data } }
}

extension ServiceRequest {
    /// The pages of this request from a service.
    ///
    /// - Parameters:
    ///   - service: the service.
    ///   - chunk: how many elements a page has at the most.
    ///   - zeroBasedPageIndex: whether the first page is number 0; `false` by default, for 1.
    ///   - decode: makes a page of a response's body and this request; what it throws counts as what ``decode(_:)`` throws.
    public func schedule<Page: PaginatedData, Service: HTTPService>(
        forPaginationWith service: Service, chunk: Int, zeroBasedPageIndex: Bool = false,
        decode: @escaping @Sendable (Data, Self) throws -> Page
    ) -> Paginator<Self, Page, Service> where Page.DataType == Result {
        Paginator(base: self, service: service, chunk: chunk, zeroBasedPageIndex: zeroBasedPageIndex, decode: decode)
    }
}

extension JSONServiceRequest {
    /// The pages of this request from a service, each decoded as `paginatedType` by this request's ``decoder``.
    public func schedule<Page: PaginatedData & Decodable, Service: HTTPService>(
        forPaginationWith service: Service, chunk: Int, zeroBasedPageIndex: Bool = false, paginatedType: Page.Type
    ) -> Paginator<Self, Page, Service> where Page.DataType == Result {
        schedule(forPaginationWith: service, chunk: chunk, zeroBasedPageIndex: zeroBasedPageIndex) { data, request in
            try request.decoder.decode(Page.self, from: data)
        }
    }
}
