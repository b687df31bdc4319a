// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Pages, each fetched on demand. Each iteration starts at the first page and makes its own requests.
///
/// Ends after the last page; throws the error of a failed page request, and then ends. Cancelling the iterating task cancels the request in
/// flight.
public struct PageSequence<Page: Sendable>: AsyncSequence, Sendable {
    /// A page.
    public typealias Element = Page

    /// Fetches the next page, and returns whether it is the last one.
    package typealias Fetch = @Sendable () async throws -> (page: Page, isLast: Bool)

    /// Starts an iteration: returns a closure that fetches one page per call, from the first.
    package let begin: @Sendable () -> Fetch

    package init(_ begin: @escaping @Sendable () -> Fetch) { self.begin = begin }

    /// Fetches one page at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var fetch: Fetch?

        /// Returns the next page; `nil` after the last one.
        public mutating func next() async throws -> Page? {
            guard let fetch else { return nil }
            self.fetch = nil
            let (page, isLast) = try await fetch()
            if !isLast { self.fetch = fetch }
            return page
        }
    }

    /// Makes an iterator that starts at the first page.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(fetch: begin()) }

    /// Returns the elements of all pages, in order.
    public func elements<Elements: Sequence>(_ elements: @escaping @Sendable (Page) -> Elements) -> PageElements<Page, Elements>
    where Elements.Element: Sendable {
        PageElements(pages: self, elements: elements)
    }
}

/// The elements of all pages; a page is fetched when those before it are exhausted.
public struct PageElements<Page: Sendable, Elements: Sequence>: AsyncSequence, Sendable {
    /// An element of a page.
    public typealias Element = Elements.Element

    let pages: PageSequence<Page>
    let elements: @Sendable (Page) -> Elements

    /// Iterates over the elements, page by page.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var pages: PageSequence<Page>.AsyncIterator
        let elements: @Sendable (Page) -> Elements
        var rest: Elements.Iterator?

        /// Returns the next element; `nil` after the last element of the last page.
        public mutating func next() async throws -> Elements.Element? {
            while true {
                if let element = rest?.next() { return element }
                guard let page = try await pages.next() else { return nil }
                rest = elements(page).makeIterator()
            }
        }
    }

    /// Makes an iterator that starts at the first page.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(pages: pages.makeAsyncIterator(), elements: elements)
    }
}

extension PageSequence {
    /// Returns the elements of all pages; a page is fetched when those before it are exhausted.
    public func elements<Elements: Sequence>() -> PageElements<Page, Elements>
    where Page == ResponsePage<Elements>, Elements.Element: Sendable {
        elements { $0.value }
    }
}
