// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// An API: its URL, and what all its requests have in common.
///
/// Only ``apiURL`` has no default: a member of another name or type than a requirement's is a different one and is never used. All members
/// are read again for each attempt of a request, except ``sessionManager`` and ``retrierFactory``, which are read once per request.
public protocol HTTPService: Sendable {
    /// The error that requests of this service fail with; ``ServiceError`` unless the service maps it.
    associatedtype RequestError: Error = ServiceError

    /// The URL of requests that have none of their own, with or without a scheme: `"api.example.org/v2"`.
    var apiURL: any URLConvertible { get }

    /// Whether to use TLS, regardless of the URL's scheme; `true` by default. `nil` follows the URL, with `https` if it has no scheme: what a
    /// service on `http://localhost:8080` needs.
    var usesSecureProtocol: Bool? { get }

    /// Header fields of all requests; none by default.
    @HTTPHeadersBuilder var header: HTTPHeaders { get }

    /// Header fields of all requests that are obtained asynchronously, such as a token; none by default. They replace those of ``header``,
    /// and a request's own replace both.
    ///
    /// Evaluated for each attempt, so that a retry uses a token that the retrier has renewed. An error thrown here fails the attempt; other
    /// than a ``ServiceError``, it becomes the cause of ``ServiceError/unknown(_:)``.
    var asyncHeader: HTTPHeaders { get async throws }

    /// The configuration of the session that runs this service's requests; `nil`, the default, for ``SessionManager/default``.
    ///
    /// Equal configurations share a session, which is retained for the lifetime of the process. Hashable values are compared by equality,
    /// objects by identity, and closures by their type only. The comparison takes some microseconds per request: a service that makes many
    /// requests should store its own ``sessionManager``.
    var sessionConfiguration: SessionConfiguration? { get }

    /// The manager that runs the requests; by default that of ``sessionConfiguration``. A service that makes its own must retain it.
    var sessionManager: SessionManager { get }

    /// The settings of this service's requests and streams, such as timeouts, a deadline for each, or an interceptor; `nil`, the default, for
    /// the session's. Those of a request take precedence (``NetworkServiceRequest/requestOptions``).
    ///
    /// An interceptor's retrier, such as a ``/CurlewCore/RetryPolicy`` or an ``/CurlewCore/AuthenticationInterceptor``, is asked about
    /// failures of the transfer and about each status that the request does not accept (``ServiceRequest/acceptedStatusCodes``). What is
    /// still a failure then is that of the attempt, which the retrier of the service is asked about.
    var requestOptions: RequestOptions? { get }

    /// The type as which the body of a response is decoded whose status a request does not accept, up to 1 MiB; `nil`, the default, for none.
    ///
    /// ``ServiceError/decodedBody(as:)`` is the value. A body that is not of this type leaves the error without one.
    var errorBodyType: (any (Decodable & Sendable).Type)? { get }

    /// The decoder for ``errorBodyType``; by default a `JSONDecoder` that converts keys in snake case to camel case.
    var errorBodyDecoder: any DataDecoder { get }

    /// Makes the retriers of requests; by default, requests are not retried.
    var retrierFactory: any ServiceRetrierFactory { get }

    /// Observes requests and their completion; by default, does nothing.
    var hook: any ServiceHook { get }

    /// Converts a request's error to the service's own.
    func mapError(_ error: ServiceError) -> RequestError
}

extension HTTPService {
    /// `true`: requests use TLS.
    public var usesSecureProtocol: Bool? { true }
    /// No header fields.
    public var header: HTTPHeaders { [:] }
    /// No header fields.
    public var asyncHeader: HTTPHeaders { get async throws { [:] } }
    /// `nil`: the default manager's.
    public var sessionConfiguration: SessionConfiguration? { nil }
    /// The manager for ``sessionConfiguration``.
    public var sessionManager: SessionManager { ServiceSessions.manager(for: sessionConfiguration) }
    /// `nil`: the session's.
    public var requestOptions: RequestOptions? { nil }
    /// `nil`: the body is not decoded.
    public var errorBodyType: (any (Decodable & Sendable).Type)? { nil }
    /// A `JSONDecoder` that converts keys in snake case to camel case.
    public var errorBodyDecoder: any DataDecoder { JSONDecoder.forServices(fromSnakeCase: true) }
    /// Retriers that never retry.
    public var retrierFactory: any ServiceRetrierFactory { NilServiceRetrier.factory() }
    /// A hook that does nothing.
    public var hook: any ServiceHook { NilServiceHook() }
}

extension HTTPService where RequestError == ServiceError {
    /// Returns the error unchanged.
    public func mapError(_ error: ServiceError) -> ServiceError { error }
}

/// A service without its own type.
public struct AnyHTTPService: HTTPService {
    /// The URL of requests that have none of their own.
    public let apiURL: any URLConvertible
    /// Whether to use TLS.
    public let usesSecureProtocol: Bool?
    /// Header fields.
    public let header: HTTPHeaders
    /// The configuration of the session.
    public let sessionConfiguration: SessionConfiguration?
    /// The settings of requests and streams.
    public let requestOptions: RequestOptions?
    /// The type as which the body of a response is decoded whose status is not accepted.
    public let errorBodyType: (any (Decodable & Sendable).Type)?
    /// Makes the retriers.
    public let retrierFactory: any ServiceRetrierFactory
    /// Observes requests and their completion.
    public let hook: any ServiceHook
    private let makeAsyncHeader: @Sendable () async throws -> HTTPHeaders

    /// Makes a service from its parts; each has the default of ``HTTPService``.
    public init(
        at apiURL: any URLConvertible, usesSecureProtocol: Bool? = true, header: HTTPHeaders = [:],
        asyncHeader: @escaping @Sendable () async throws -> HTTPHeaders = { [:] }, sessionConfiguration: SessionConfiguration? = nil,
        requestOptions: RequestOptions? = nil, errorBodyType: (any (Decodable & Sendable).Type)? = nil,
        retrierFactory: any ServiceRetrierFactory = NilServiceRetrier.factory(), hook: any ServiceHook = NilServiceHook()
    ) {
        self.apiURL = apiURL
        self.usesSecureProtocol = usesSecureProtocol
        self.header = header
        makeAsyncHeader = asyncHeader
        self.sessionConfiguration = sessionConfiguration
        self.requestOptions = requestOptions
        self.errorBodyType = errorBodyType
        self.retrierFactory = retrierFactory
        self.hook = hook
    }

    /// Header fields that are obtained asynchronously.
    public var asyncHeader: HTTPHeaders { get async throws { try await makeAsyncHeader() } }
}

// MARK: - CustomReflectable

extension AnyHTTPService: CustomReflectable {
    /// The URL and the header fields, redacted.
    public var customMirror: Mirror { .redacted(self, ["apiURL": "\(apiURL)".redactedURL, "header": header]) }
}
