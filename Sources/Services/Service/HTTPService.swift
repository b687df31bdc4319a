// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// An API: where it is, and what all its requests have in common.
///
/// Only ``apiURL`` has no default. All members are asked for anew for each attempt of a request, ``sessionManager`` once for all attempts.
public protocol HTTPService: Sendable {
    /// The error that requests of this service fail with; ``ServiceError`` unless the service maps it.
    associatedtype RequestError: Error = ServiceError

    /// Where requests go that have no URL of their own, with or without a scheme: `"api.example.org/v2"`.
    var apiURL: any URLConvertible { get }

    /// Whether to use TLS, whatever scheme the URL has; `true` by default. `nil` leaves it to the URL: `https` where that has no scheme.
    var usesSecureProtocol: Bool? { get }

    /// Header fields of all requests; none by default.
    @HTTPHeadersBuilder var header: HTTPHeaders { get }

    /// Header fields of all requests which have to be waited for, such as a token; none by default. They go before those of ``header``,
    /// and a request's before both.
    ///
    /// Evaluated for each attempt, so that a retry has the token which a retrier has renewed. What it throws fails the attempt; other than
    /// a ``ServiceError``, it is the cause of ``ServiceError/unknown(_:)``.
    var asyncHeader: HTTPHeaders { get async throws }

    /// How the sessions of this service's requests work; `nil`, the default, for ``SessionManager/default``.
    ///
    /// Equal configurations share a session, which is kept for ever. Compared are values by what they are equal by, objects by their
    /// identity, and closures inside of values not at all. Telling that takes some microseconds a request: a service that makes many
    /// requests has a ``sessionManager``.
    var sessionConfiguration: SessionConfiguration? { get }

    /// What runs the requests; by default that of ``sessionConfiguration``. A service with one of its own keeps it.
    var sessionManager: SessionManager { get }

    /// Makes the retriers of requests; by default ones that try nothing again.
    var retrierFactory: any ServiceRetrierFactory { get }

    /// Sees requests and their ends; by default nothing does.
    var hook: any ServiceHook { get }

    /// Makes the service's own error of a request's.
    func mapError(_ error: ServiceError) -> RequestError
}

extension HTTPService {
    /// `true`.
    public var usesSecureProtocol: Bool? { true }
    /// None.
    public var header: HTTPHeaders { [:] }
    /// None.
    public var asyncHeader: HTTPHeaders { get async throws { [:] } }
    /// That of the default manager.
    public var sessionConfiguration: SessionConfiguration? { nil }
    /// The one for ``sessionConfiguration``.
    public var sessionManager: SessionManager { ServiceSessions.manager(for: sessionConfiguration) }
    /// Retriers that try nothing again.
    public var retrierFactory: any ServiceRetrierFactory { NilServiceRetrier.factory() }
    /// Nothing.
    public var hook: any ServiceHook { NilServiceHook() }
}

extension HTTPService where RequestError == ServiceError {
    /// The error as it is.
    public func mapError(_ error: ServiceError) -> ServiceError { error }
}

/// A service without a type of its own.
public struct AnyHTTPService: HTTPService {
    /// Where requests go that have no URL of their own.
    public let apiURL: any URLConvertible
    /// Whether to use TLS.
    public let usesSecureProtocol: Bool?
    /// Header fields.
    public let header: HTTPHeaders
    /// How the sessions work.
    public let sessionConfiguration: SessionConfiguration?
    /// Makes the retriers.
    public let retrierFactory: any ServiceRetrierFactory
    /// Sees requests and their ends.
    public let hook: any ServiceHook
    private let makeAsyncHeader: @Sendable () async throws -> HTTPHeaders

    /// Makes a service of its parts; each has the default of ``HTTPService``.
    public init(
        at apiURL: any URLConvertible, usesSecureProtocol: Bool? = true, header: HTTPHeaders = [:],
        asyncHeader: @escaping @Sendable () async throws -> HTTPHeaders = { [:] }, sessionConfiguration: SessionConfiguration? = nil,
        retrierFactory: any ServiceRetrierFactory = NilServiceRetrier.factory(), hook: any ServiceHook = NilServiceHook()
    ) {
        self.apiURL = apiURL
        self.usesSecureProtocol = usesSecureProtocol
        self.header = header
        makeAsyncHeader = asyncHeader
        self.sessionConfiguration = sessionConfiguration
        self.retrierFactory = retrierFactory
        self.hook = hook
    }

    /// Header fields which have to be waited for.
    public var asyncHeader: HTTPHeaders { get async throws { try await makeAsyncHeader() } }
}

// MARK: - CustomReflectable

extension AnyHTTPService: CustomReflectable {
    /// URL and header fields, redacted.
    public var customMirror: Mirror { .redacted(self, ["apiURL": "\(apiURL)".redactedURL, "header": header]) }
}
