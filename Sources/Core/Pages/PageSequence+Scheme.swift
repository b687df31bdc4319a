// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

// Follows a scheme; the schemes themselves are in `PaginationScheme`.

/// A page as it was loaded.
package struct LoadedPage<Value: Sendable>: Sendable {
    let value: Value
    let headers: HTTPHeaders
    let requestURL: URL?
    /// The URL after redirects.
    let responseURL: URL?

    package init(value: Value, headers: HTTPHeaders, requestURL: URL?, responseURL: URL?) {
        self.value = value
        self.headers = headers
        self.requestURL = requestURL
        self.responseURL = responseURL
    }
}

extension PageSequence {
    /// Loads the page at a location. With a URL, that of the first page, the page is at another origin and is requested without the
    /// credentials of that.
    package typealias Load<Value: Sendable> = @Sendable (PageLocation, _ foreignTo: String?) async throws -> LoadedPage<Value>

    /// Pages that a scheme links, each loaded by a closure.
    ///
    /// - Parameter fail: converts a ``PaginationError``, and what the scheme's closure throws.
    package init<Value>(
        by scheme: PaginationScheme<Value>, load: @escaping Load<Value>, fail: @escaping @Sendable (any Error) -> any Error = { $0 }
    ) where Page == ResponsePage<Value> {
        self.init {
            let position = Lock(PagePosition(scheme))
            // What a page leads to is an error of the next one: the page is there.
            let failure = Lock<(any Error)?>(nil)
            return {
                if let failure = failure.withLock({ $0 }) { throw fail(failure) }
                let current = position.withLock { $0 }
                let loaded = try await load(current.location, current.foreignTo)
                let page = ResponsePage(
                    value: loaded.value, headers: loaded.headers, url: loaded.responseURL ?? loaded.requestURL, index: current.index,
                    elementsBefore: current.elements)
                do {
                    let next = try scheme.next(page)
                    if let next { try position.withLock { try $0.advance(to: next, after: loaded) } }
                    return (page, next == nil)
                } catch {
                    failure.withLock { $0 = error }
                    return (page, false)
                }
            }
        }
    }
}

/// The position of an iteration over pages.
private struct PagePosition<Value: Sendable> {
    /// What distinguishes the request of a page.
    private struct Key: Hashable {
        var query: HTTPQuery?
        var url: String?
        var method: String?
        var body: Data?

        init(_ location: PageLocation) {
            switch location {
            case .query(let query): self.query = query
            case .url(let url): self.url = url.absoluteString
            case .request(let request): (url, method, body) = (request.url?.absoluteString, request.httpMethod, request.httpBody)
            }
        }
    }

    private let scheme: PaginationScheme<Value>
    private(set) var location: PageLocation
    private(set) var index = 0
    private(set) var elements = 0
    /// The first page's URL, if this page is at another origin and may not have the credentials of that.
    private(set) var foreignTo: String?
    private var firstURL: URL?
    private var requested: Set<Key>

    init(_ scheme: PaginationScheme<Value>) {
        self.scheme = scheme
        location = scheme.first
        requested = [Key(scheme.first)]
    }

    mutating func advance(to next: PageLocation, after page: LoadedPage<Value>) throws(PaginationError) {
        let url = page.requestURL ?? page.responseURL
        if index == 0 {
            firstURL = url
            // A link may lead to the first page by its URL.
            if let url { requested.insert(Key(.url(url))) }
        }
        if let own = next.ownURL, !scheme.followsOtherOrigins, !own.isAtOrigin(of: url) { throw .otherOrigin(own) }
        guard requested.insert(Key(next)).inserted else { throw .repeatedPage(next) }
        guard index + 1 < scheme.maximumPages else { throw .tooManyPages(limit: scheme.maximumPages) }
        let isForeign = next.ownURL.map { !$0.isAtOrigin(of: firstURL) } ?? false
        foreignTo = isForeign && !scheme.sendsCredentialsToOtherOrigins ? firstURL?.absoluteString ?? "" : nil
        index += 1
        elements += (page.value as? any Collection)?.count ?? 0
        location = next
    }
}

extension URL {
    /// Whether the URL has another one's origin, or that of the same host over TLS, if both have their usual ports: a server behind a proxy
    /// that ends TLS.
    fileprivate func isAtOrigin(of other: URL?) -> Bool {
        guard let own = HTTPOrigin(self), let other = other.flatMap({ HTTPOrigin($0) }) else {
            return false
        }
        let isPlain = other.scheme == "http" && other.port == 80
        return own == other || isPlain && own == HTTPOrigin(scheme: "https", host: other.host, port: 443)
    }
}
