// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

/// How a request's argument is encoded.
public enum RequestSerializerType: Int, Sendable, Hashable, CaseIterable {
    /// In the query for GET, HEAD and DELETE, as a form in the body for all other methods.
    case http
    /// As JSON in the body; for GET, HEAD and DELETE still in the query.
    case json
}

/// What is made of a response's body.
public enum ResponseSerializerType: Int, Sendable, Hashable, CaseIterable {
    /// The bytes, unchanged.
    case http
    /// The object parsed by `JSONSerialization`.
    case json
    /// An `XMLParser` for the body, not started yet.
    case xmlParser
}

extension BaseRequest {
    /// The order of requests that wait for a connection to the same host.
    public enum Priority: Int, Sendable, Hashable, CaseIterable {
        /// After the others.
        case low = -4
        /// In the order in which they were started.
        case `default` = 0
        /// Before the others.
        case high = 4
    }
}

/// The accepted content types for each kind of serializer; `nil` accepts any, and a missing one.
///
/// Types may be ranges, such as `text/*` (RFC 9110, section 12.5.1). The content type of a response without a body is not checked.
public struct AcceptableContentTypes: Sendable, Hashable {
    /// For ``ResponseSerializerType/http``; any by default.
    public var http: [String]?
    /// For ``ResponseSerializerType/json``: `application/json`, `text/json` and `text/javascript` by default.
    public var json: [String]? = ["application/json", "text/json", "text/javascript"]
    /// For ``ResponseSerializerType/xmlParser``: `application/xml` and `text/xml` by default.
    public var xmlParser: [String]? = ["application/xml", "text/xml"]

    /// Creates the defaults.
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

/// The outcome of a request's start.
public enum RequestEnding: Sendable, Hashable {
    /// A response, from the network or the cache, has passed all checks.
    case succeeded
    /// The request has failed with ``BaseRequest/error``.
    case failed
    /// Stopped by ``BaseRequest/stop()`` or by its agent; no callback began after the stop.
    case stopped
}
