// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// What requests and streams of a service have in common: URL, header fields, priority and timeout.
///
/// All members have a default: one of another name or type than a requirement's is a different member and is never used. They are read again
/// for each attempt.
public protocol NetworkServiceRequest: Sendable {
    /// Whether to use TLS: sets the URL's scheme to `https` or `http`, for streams `wss` or `ws`. `nil`, the default, uses the service's
    /// setting.
    var usesSecureProtocol: Bool? { get }

    /// The URL that replaces the service's; `nil`, the default, uses the service's.
    var url: (any URLConvertible)? { get }

    /// The path, appended to that of the URL; none by default.
    @HTTPRouteBuilder var routes: HTTPRoute { get }

    /// Items appended to the URL's query, replacing items of the same name; none by default.
    @HTTPQueryBuilder var query: HTTPQuery { get }

    /// Header fields that replace the service's of the same name; none by default.
    @HTTPHeadersBuilder var header: HTTPHeaders { get }

    /// The priority; ``RequestPriority/userInitiated`` by default.
    var priority: RequestPriority { get }

    /// The timeout of an attempt, from its start to the complete response; `nil`, the default, for the session's timeouts only.
    ///
    /// It ends the attempt with ``ServiceError/timeout``. For a stream, it limits the time until it is connected.
    var timeout: Duration? { get }

    /// The settings of this request, such as its idle timeout or its interceptor; `nil`, the default, and what is not set, for those of the
    /// service (``HTTPService/requestOptions``).
    ///
    /// The deadline counts from the first use of the response to its completion: with all attempts, the delays of retriers, and the
    /// service's own asynchronous code. That of ``withDeadline(_:isolation:_:)-(Duration,_,_)`` around the call that schedules the request
    /// bounds it as well, for all its consumers; around a use of the response, it bounds the wait of that consumer. The request then ends
    /// with ``ServiceError/timeout``, and no retrier is asked. A stream has a deadline, of its options or around its first use, only until it
    /// is open for the first time. The interceptor adapts a request after its `prepare`, and decides about retries of an attempt before the
    /// retrier of the service: after failures of the transfer, and a status that is not accepted.
    var requestOptions: RequestOptions? { get }
}

extension NetworkServiceRequest {
    /// `nil`: the service's setting.
    public var usesSecureProtocol: Bool? { nil }
    /// `nil`: the service's URL.
    public var url: (any URLConvertible)? { nil }
    /// No path.
    public var routes: HTTPRoute { [] }
    /// No items.
    public var query: HTTPQuery { [:] }
    /// No header fields.
    public var header: HTTPHeaders { [:] }
    /// ``RequestPriority/userInitiated``.
    public var priority: RequestPriority { .userInitiated }
    /// `nil`: no timeout beyond the session's.
    public var timeout: Duration? { nil }
    /// `nil`: the service's.
    public var requestOptions: RequestOptions? { nil }
}

extension NetworkServiceRequest {
    /// The request's settings with the service's where it has none.
    func effectiveOptions(for service: some HTTPService) -> RequestOptions? {
        let common = service.requestOptions
        guard let own = requestOptions else { return common }
        var options = own.filled(from: common)
        options.deadline = own.deadline ?? common?.deadline
        return options
    }
}

/// The priority of a request: that of the task in which it is built, decoded and retried. It has no effect on the network.
public enum RequestPriority: Sendable, Hashable {
    /// For work that no user is waiting for.
    case utility
    /// For work without a particular priority.
    case `default`
    /// For work that a user is waiting for.
    case userInitiated

    var taskPriority: TaskPriority {
        switch self {
        case .utility: .utility
        case .default: .medium
        case .userInitiated: .userInitiated
        }
    }
}
