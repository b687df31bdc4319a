// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

/// How the argument of a request is put into it.
public enum RequestSerializerType: Int, Sendable, Hashable, CaseIterable {
    /// As the query of GET, HEAD and DELETE, as a form in the body of all other methods.
    case http
    /// As JSON in the body; GET, HEAD and DELETE have it in the query nevertheless.
    case json
}

/// What is made of a response's body.
public enum ResponseSerializerType: Int, Sendable, Hashable, CaseIterable {
    /// Nothing: the bytes themselves.
    case http
    /// What `JSONSerialization` makes of it.
    case json
    /// An `XMLParser` on it, which has not begun.
    case xmlParser
}

/// Which of the requests that wait for a connection to the same host go first.
public enum RequestPriority: Int, Sendable, Hashable, CaseIterable {
    /// Behind the others.
    case low = -4
    /// In the order in which they were started.
    case `default` = 0
    /// Before the others.
    case high = 4
}

/// The content types that each kind of serializer accepts; `nil` accepts any, also none at all.
///
/// Types may be ranges, such as `text/*` (RFC 9110, section 12.5.1). A response without a body is not asked for its type.
public struct AcceptableContentTypes: Sendable, Hashable {
    /// For ``ResponseSerializerType/http``; any by default.
    public var http: [String]?
    /// For ``ResponseSerializerType/json``: `application/json`, `text/json` and `text/javascript` by default.
    public var json: [String]? = ["application/json", "text/json", "text/javascript"]
    /// For ``ResponseSerializerType/xmlParser``: `application/xml` and `text/xml` by default.
    public var xmlParser: [String]? = ["application/xml", "text/xml"]

    /// Makes the defaults.
    public init() {}

    /// The types for a kind of serializer.
    public subscript(type: ResponseSerializerType) -> [String]? {
        switch type {
        case .http: http
        case .json: json
        case .xmlParser: xmlParser
        }
    }
}

/// How a start of a request came to its end.
public enum RequestEnding: Sendable, Hashable {
    /// With an answer that passed all checks, from the network or the cache.
    case succeeded
    /// With ``BaseRequest/error``.
    case failed
    /// By ``BaseRequest/stop()``, or by its agent: no callback has run.
    case stopped
}
