// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What requests and streams of a service have in common: where they go, and what they carry.
///
/// All members have a default. They are asked for anew for each attempt.
public protocol NetworkServiceRequest: Sendable {
    /// Whether to use TLS: the URL's scheme becomes `https` or `http`, for streams `wss` or `ws`. `nil`, the default, leaves it to the
    /// service.
    var usesSecureProtocol: Bool? { get }

    /// The URL in place of the service's; `nil`, the default, for that.
    var url: (any URLConvertible)? { get }

    /// The path behind the URL; none by default.
    @HTTPRouteBuilder var routes: HTTPRoute { get }

    /// Items for the URL's query, behind those that the URL has, and in place of those of the same name; none by default.
    @HTTPQueryBuilder var query: HTTPQuery { get }

    /// Header fields, in place of the service's of the same name; none by default.
    @HTTPHeadersBuilder var header: HTTPHeaders { get }

    /// How urgent it is; ``RequestPriority/userInitiated`` by default.
    var priority: RequestPriority { get }

    /// The longest time for an attempt, from its start until the whole response is there; `nil`, the default, for none beyond those of the
    /// session.
    ///
    /// Ends the attempt with ``ServiceError/timeout``. Of a stream, it is the time until it is connected.
    var timeout: Duration? { get }
}

extension NetworkServiceRequest {
    /// As the service has it.
    public var usesSecureProtocol: Bool? { nil }
    /// The service's.
    public var url: (any URLConvertible)? { nil }
    /// None.
    public var routes: HTTPRoute { [] }
    /// None.
    public var query: HTTPQuery { [:] }
    /// None.
    public var header: HTTPHeaders { [:] }
    /// Somebody waits for it.
    public var priority: RequestPriority { .userInitiated }
    /// None.
    public var timeout: Duration? { nil }
}

/// How urgent a request is: the priority of the task in which it is built, decoded and retried. The network knows no priorities.
public enum RequestPriority: Sendable, Hashable {
    /// Nobody waits for it.
    case utility
    /// As others.
    case `default`
    /// Somebody waits for it.
    case userInitiated

    var taskPriority: TaskPriority {
        switch self {
        case .utility: .utility
        case .default: .medium
        case .userInitiated: .userInitiated
        }
    }
}
