// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A page: its decoded body, and the details of its response.
public struct ResponsePage<Value: Sendable>: Sendable {
    /// The decoded body.
    public let value: Value
    /// The header fields of the response.
    public let headers: HTTPHeaders
    /// The URL that the page came from, after redirects.
    public let url: URL?
    /// The number of pages before it.
    public let index: Int
    /// The number of elements before it, of pages that are collections.
    let elementsBefore: Int

    /// Returns the URL of a reference in the page.
    func resolve(_ reference: String) throws(PaginationError) -> URL {
        guard let url, let next = reference.resolved(against: url) else { throw .invalidLink(reference) }
        return next
    }
}

/// Where a page is found. Later versions may add cases, so a `switch` needs a `default`.
public enum PageLocation: Sendable, Hashable {
    /// At the request's URL, with these items replacing items of the same name in its query.
    case query(HTTPQuery)
    /// At its own URL, with the request's method, header fields and body.
    case url(URL)
    /// By a request of its own, such as one with a cursor in its body.
    case request(URLRequest)

    /// The page's own URL, which is complete.
    package var ownURL: URL? {
        switch self {
        case .query: nil
        case .url(let url): url
        case .request(let request): request.url
        }
    }
}

/// Why a page leads to no page that is requested. Later versions may add cases, so a `switch` needs a `default`.
public enum PaginationError: Error, Sendable, Hashable {
    /// The link or reference to the next page is not a URL.
    case invalidLink(String)
    /// The next page is at another origin, and ``PaginationScheme/followsOtherOrigins`` is not set.
    case otherOrigin(URL?)
    /// The next page is the page itself, or one before it.
    case repeatedPage(PageLocation)
    /// There are more pages than ``PaginationScheme/maximumPages``.
    case tooManyPages(limit: Int)
}

// MARK: - Descriptions

extension ResponsePage: RedactedReflectable {
    /// The page's parts, the URL redacted.
    package var shownParts: KeyValuePairs<String, Any> {
        ["value": value, "headers": headers, "url": url?.absoluteString.redactedURL ?? "none", "index": index]
    }
}

extension PageLocation: LineConvertible, RedactedReflectable {
    /// The query or the URL, redacted (``/CurlewHTTP/Redaction``).
    package var line: String {
        if case .query(let query) = self { query.description } else { ownURL?.absoluteString.redactedURL ?? "" }
    }
}

extension PaginationError: LocalizedError, LineConvertible, RedactedReflectable {
    /// The reason in a sentence, with URLs redacted.
    package var line: String {
        switch self {
        case .invalidLink(let text): Redaction.escaped("The link to the next page is not a URL: \(Redaction.current.url(text))")
        case .otherOrigin(let url):
            "The next page is at another origin, which followsOtherOrigins would allow: \(url?.absoluteString.redactedURL ?? "")"
        case .repeatedPage(let location): "The next page was requested before: \(location)"
        case .tooManyPages(let limit): "There are more than \(limit) pages, the limit of maximumPages."
        }
    }

    /// The description.
    public var errorDescription: String? { description }
}
