// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Takes part in all requests of a configuration: rewrites their URLs, changes what is sent, and validates what is received.
///
/// All methods have defaults that change nothing. A method that only nearly matches a requirement's signature is a different method and is
/// never called; see ``RequestDelegate``.
public protocol UrlFilter: Sendable {
    /// Returns a replacement for ``BaseRequest/requestUrl()``, before it is resolved against the base URL. Optional.
    ///
    /// Not called for URLs with a scheme and a host. Called on the thread that starts the request; for a retry on the agent's queue.
    func filterUrl(_ originUrl: String, with request: BaseRequest) -> String
    /// Changes the request to be sent, after the request's own ``BaseRequest/filterUrlRequest(_:)``. Called for each attempt. Optional.
    ///
    /// `setValue(_:forHTTPHeaderField:)` of Foundation on Linux drops a field whose value has a line break, without an error.
    ///
    /// - Throws: the error the request fails with.
    func filterUrlRequest(_ urlRequest: inout URLRequest, with request: BaseRequest) throws
    /// Validates a successful response, after the request's own ``BaseRequest/filterResponse()``; called on the agent's queue. Optional.
    ///
    /// - Throws: the error the request fails with.
    func filterResponse(with request: BaseRequest) throws
    /// ``filterResponse(with:)`` with the signature of FWFramework's Objective-C protocol. Optional; not called if the other is implemented.
    func filterResponse(_ request: BaseRequest) throws
}

/// Adds the same arguments to every URL, such as a version or a device.
public struct UrlArgumentsFilter: UrlFilter {
    /// The arguments by name, unencoded.
    public let arguments: [String: String]

    /// Creates a filter from arguments by name.
    public init(arguments: [String: String]) {
        self.arguments = arguments
    }

    /// Returns the URL with the arguments appended to its query, sorted by name; a fragment stays at the end.
    public func filterUrl(_ originUrl: String, with request: BaseRequest) -> String {
        guard !arguments.isEmpty else { return originUrl }
        let encoding = URLEncoding.queryString
        let query = arguments.sorted { $0.key < $1.key }.map { "\(encoding.escape($0))=\(encoding.escape($1))" }.joined(separator: "&")
        let parts = originUrl.splitScalars(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let separator = !parts[0].unicodeScalars.contains("?") ? "?" : parts[0].hasByteSuffix("?") || parts[0].hasByteSuffix("&") ? "" : "&"
        let fragment = parts.count > 1 ? "#\(parts[1])" : ""
        return "\(parts[0])\(separator)\(query)\(fragment)"
    }

    /// Changes nothing.
    public func filterUrlRequest(_ urlRequest: inout URLRequest, with request: BaseRequest) {}
    /// Accepts everything.
    public func filterResponse(with request: BaseRequest) {}
}

extension UrlArgumentsFilter: CustomReflectable {
    /// The arguments, redacted.
    public var customMirror: Mirror { .redacted(self, ["arguments": Redaction.current.object(arguments)]) }
}

/// Chooses the directory in which responses are cached.
public protocol CacheDirPathFilter: Sendable {
    /// Returns a replacement for the path left by the preceding filters; called on any thread when a request reads or writes its cache.
    func filterCacheDirPath(_ originPath: String, with request: BaseRequest) -> String
}
