// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// The pages of a request from a service that numbers them: each is the request with `page` and `chunk` in its query.
///
/// Everything else is as in the base request; hooks and retriers apply as to any other request. Iterate over ``pages`` or ``elements``, or
/// fetch a page for each tick with ``connect(with:)``.
public struct Paginator<Base: ServiceRequest, Page: PaginatedData, Service: HTTPService>: Sendable {
    let base: Base
    let service: Service
    let chunk: Int
    let zeroBasedPageIndex: Bool
    let decode: @Sendable (Data, Base) throws -> Page

    /// The pages, in order, each fetched on demand.
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
    /// The first page is fetched when the first iterator of the connection is made, and another for each tick; ticks that arrive while a
    /// page is being fetched are dropped. Each connection makes its own requests.
    public func connect<Ticks: AsyncSequence & Sendable>(with ticks: Ticks) -> PaginatorConnection<Page> {
        PaginatorConnection(pages, ticks)
    }

    private func request(for page: Int) -> PageRequest<Base, Page> {
        let (base, decode) = (base, decode)
        return PageRequest(base: base, location: .query(["page": page, "chunk": chunk])) { try decode($0, base) }
    }
}

extension Paginator where Page.DataType: Sequence, Page.DataType.Element: Sendable {
    /// The elements of all pages; a page is fetched when those before it are exhausted.
    public var elements: PageElements<Page, Page.DataType> { pages.elements { $0.data } }
}

extension ServiceRequest {
    /// Returns the pages of this request from a service.
    ///
    /// - Parameters:
    ///   - service: the service.
    ///   - chunk: the maximum number of elements per page.
    ///   - zeroBasedPageIndex: whether pages are numbered from 0; `false` by default, for 1.
    ///   - decode: makes a page from a response's body and this request; its errors are handled as those of ``decode(_:)``.
    public func schedule<Page: PaginatedData, Service: HTTPService>(
        forPaginationWith service: Service, chunk: Int, zeroBasedPageIndex: Bool = false,
        decode: @escaping @Sendable (Data, Self) throws -> Page
    ) -> Paginator<Self, Page, Service> where Page.DataType == Result {
        Paginator(base: self, service: service, chunk: chunk, zeroBasedPageIndex: zeroBasedPageIndex, decode: decode)
    }
}

extension JSONServiceRequest {
    /// Returns the pages of this request from a service, each decoded as `paginatedType` by this request's ``decoder``.
    public func schedule<Page: PaginatedData & Decodable, Service: HTTPService>(
        forPaginationWith service: Service, chunk: Int, zeroBasedPageIndex: Bool = false, paginatedType: Page.Type
    ) -> Paginator<Self, Page, Service> where Page.DataType == Result {
        schedule(forPaginationWith: service, chunk: chunk, zeroBasedPageIndex: zeroBasedPageIndex) { data, request in
            try request.decoder.decode(Page.self, from: data)
        }
    }
}
