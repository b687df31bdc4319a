// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Takes part in all requests of a configuration: changes where they go, what is sent, and judges what comes back.
///
/// All methods have defaults that leave things as they are; as to those that nearly have the signature of one, see ``RequestDelegate``.
public protocol UrlFilter: Sendable {
    /// Returns another URL in place of ``BaseRequest/requestUrl()``, before the base URL is put in front. Optional.
    ///
    /// Not asked where that has a scheme and a host. Called on the thread that starts the request; for a retry on the agent's queue.
    func filterUrl(_ originUrl: String, with request: BaseRequest) -> String
    /// Changes what is going to be sent, behind the request's own ``BaseRequest/filterUrlRequest(_:)``, for each attempt anew.
    /// Optional.
    ///
    /// - Throws: what the request is to fail with.
    func filterUrlRequest(_ urlRequest: inout URLRequest, with request: BaseRequest) throws
    /// Judges a success, behind the request's own ``BaseRequest/filterResponse()``; on the agent's queue. Optional.
    ///
    /// - Throws: what the request is to fail with.
    func filterResponse(with request: BaseRequest) throws
}

/// Gives every URL the same arguments: a version, a device.
public struct UrlArgumentsFilter: UrlFilter {
    /// The arguments by name; not encoded yet.
    public let arguments: [String: String]

    /// Makes a filter of arguments by name.
    public init(arguments: [String: String]) {
        self.arguments = arguments
    }

    /// The URL with the arguments at the end of its query, by name; a fragment stays behind them.
    public func filterUrl(_ originUrl: String, with request: BaseRequest) -> String {
        guard !arguments.isEmpty else { return originUrl }
        let encoding = URLEncoding.queryString
        let query = arguments.sorted { $0.key < $1.key }.map { "\(encoding.escape($0))=\(encoding.escape($1))" }.joined(separator: "&")
        let parts = originUrl.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let separator = !parts[0].contains("?") ? "?" : parts[0].hasSuffix("?") || parts[0].hasSuffix("&") ? "" : "&"
        return parts[0] + separator + query + (parts.count > 1 ? "#" + parts[1] : "")
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

/// Chooses the directory in which the answers of requests are cached.
public protocol CacheDirPathFilter: Sendable {
    /// Another path in place of that which the filters before have left; called when a request reads or writes its cache, on any thread.
    func filterCacheDirPath(_ originPath: String, with request: BaseRequest) -> String
}
