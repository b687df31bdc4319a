// SPDX-License-Identifier: Apache-2.0

/// Pages, each fetched when it is asked for. Each iteration begins at the first page and makes requests of its own.
///
/// Ends behind the last page, throws what the request of a page fails with, and ends then. Cancelling the task that iterates cancels the
/// request on its way.
public struct PageSequence<Page: Sendable>: AsyncSequence, Sendable {
    /// A page.
    public typealias Element = Page

    /// A page and whether it is the last one.
    typealias Fetch = @Sendable () async throws -> (page: Page, isLast: Bool)

    /// Gives what fetches one page after the other, from the first.
    let begin: @Sendable () -> Fetch

    /// Fetches a page at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var fetch: Fetch?

        /// The next page; `nil` behind the last one.
        public mutating func next() async throws -> Page? {
            guard let fetch else { return nil }
            self.fetch = nil
            let (page, isLast) = try await fetch()
            if !isLast { self.fetch = fetch }
            return page
        }
    }

    /// Starts at the first page.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(fetch: begin()) }

    /// The elements of all pages, one after the other.
    public func elements<Elements: Sequence>(_ elements: @escaping @Sendable (Page) -> Elements) -> PageElements<Page, Elements>
    where Elements.Element: Sendable {
        PageElements(pages: self, elements: elements)
    }
}

/// The elements of pages; a page is fetched when those before it are used up.
public struct PageElements<Page: Sendable, Elements: Sequence>: AsyncSequence, Sendable {
    /// An element of a page.
    public typealias Element = Elements.Element

    let pages: PageSequence<Page>
    let elements: @Sendable (Page) -> Elements

    /// Goes through page after page.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var pages: PageSequence<Page>.AsyncIterator
        let elements: @Sendable (Page) -> Elements
        var rest: Elements.Iterator?

        /// The next element; `nil` behind the last one of the last page.
        public mutating func next() async throws -> Elements.Element? {
            while true {
                if let element = rest?.next() { return element }
                guard let page = try await pages.next() else { return nil }
                rest = elements(page).makeIterator()
            }
        }
    }

    /// Starts at the first page.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(pages: pages.makeAsyncIterator(), elements: elements)
    }
}
