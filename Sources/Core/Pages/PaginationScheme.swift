// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// How an API's pages are linked: where the first is, and how each leads to the next.
///
/// ```swift
/// for try await user in manager.pages(of: [User].self, from: url, by: .link()).elements() { … }
/// ```
///
/// A page that leads to itself, or to one before it, ends the sequence with ``PaginationError/repeatedPage(_:)``.
public struct PaginationScheme<Value: Sendable>: Sendable {
    let first: PageLocation
    let next: @Sendable (ResponsePage<Value>) throws -> PageLocation?

    /// Whether a page may lead to another origin (scheme, host or port). `false`, the default, ends the sequence with
    /// ``PaginationError/otherOrigin(_:)``, because the server would choose who receives the request; from `http` to `https` of the same
    /// host, both at their usual ports, a page may always lead.
    public var followsOtherOrigins = false

    /// Whether a page of another origin than the first one's is requested with the credentials of that.
    ///
    /// `false`, the default, leaves out the fields that a redirect would not take there (``RedirectPolicy``), those of the session and of
    /// adapters too, the signature of an `ExchangeSigner`, and a client certificate that names no origins.
    public var sendsCredentialsToOtherOrigins = false

    /// The most pages; 10,000 by default. One more ends the sequence with ``PaginationError/tooManyPages(limit:)``: a loop, usually.
    public var maximumPages = 10_000

    /// Creates a scheme.
    ///
    /// - Parameters:
    ///   - first: where the first page is; by default at the request's own URL.
    ///   - next: where the page after the given one is; `nil` if it is the last. An error that it throws ends the sequence.
    public init(first: PageLocation = .query([:]), next: @escaping @Sendable (ResponsePage<Value>) throws -> PageLocation?) {
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
        isLast: @escaping @Sendable (ResponsePage<Value>) -> Bool
    ) -> PaginationScheme {
        PaginationScheme(first: .query(size + [name: start])) { page in
            isLast(page) ? nil : .query(size + [name: start + page.index + 1])
        }
    }

    /// Pages by a token that each page has for the next one.
    ///
    /// ```swift
    /// manager.pages(of: Users.self, from: url, by: .cursor("after", next: \.value.nextCursor))
    /// ```
    ///
    /// - Parameters:
    ///   - name: the query parameter for the token; `cursor` by default. The first page is requested without it.
    ///   - size: the query parameter for the maximum number of elements per page; none by default.
    ///   - next: the token for the page after the given one; `nil` or empty if it is the last.
    public static func cursor(
        _ name: String = "cursor", size: HTTPQuery = [:], next: @escaping @Sendable (ResponsePage<Value>) -> String?
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
            let link = page.headers.links.first { $0.hasRelation(relation) && $0.anchor == nil }
            guard let link else { return nil }
            return .url(try page.resolve(link.target))
        }
    }

    /// Pages by the URL that each page has for the next one.
    ///
    /// ```swift
    /// manager.pages(of: Users.self, from: url, by: .url { $0.value.next })
    /// ```
    ///
    /// - Parameter next: the URL of the page after the given one, or a reference relative to that of the page; `nil` or empty if it is the
    ///   last.
    public static func url(_ next: @escaping @Sendable (ResponsePage<Value>) -> String?) -> PaginationScheme {
        PaginationScheme { page in
            guard let reference = next(page), !reference.isEmpty else { return nil }
            return .url(try page.resolve(reference))
        }
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
