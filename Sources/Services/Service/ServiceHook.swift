// SPDX-License-Identifier: Apache-2.0

/// Observes the requests of a service, and can supply their results.
///
/// Called in the task that runs the request: in order for one request, concurrently for several. Pages of a paginator arrive as
/// ``PageRequest``.
///
/// All methods have a default that does nothing. A method that only nearly matches a requirement's signature, by a label or a type, is a
/// different method and is never called. Methods that are not `async` match.
public protocol ServiceHook: Sendable {
    /// Called before a request is sent for the first time; not called for retries.
    ///
    /// Returning a result completes the request: nothing is sent, and ``onSuccess(_:_:result:)`` is not called.
    ///
    /// - Parameters:
    ///   - request: the request as the user made it.
    ///   - urlRequest: the same as it would be sent.
    func onSchedule<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest) async -> Request.Result?

    /// Called when a request has succeeded.
    func onSuccess<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest, result: Request.Result) async

    /// Called when a request or a stream has finally failed, including by cancellation. `urlRequest` is `nil` if it could not be built.
    func onFailure<Request: NetworkServiceRequest>(_ request: Request, _ urlRequest: URLRequest?, error: ServiceError) async

    /// ``onFailure(_:_:error:)`` with Squid's signature; not called if the other is implemented.
    func onFailure(_ error: ServiceError) async
}

extension ServiceHook {
    /// Returns `nil`, so that the request is sent.
    public func onSchedule<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest) async -> Request.Result? { nil }
    /// Does nothing.
    public func onSuccess<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest, result: Request.Result) async {}
    /// Calls ``onFailure(_:)``.
    public func onFailure<Request: NetworkServiceRequest>(_ request: Request, _ urlRequest: URLRequest?, error: ServiceError) async {
        await onFailure(error)
    }
    /// Does nothing.
    public func onFailure(_ error: ServiceError) async {}
}

/// A hook that does nothing.
public struct NilServiceHook: ServiceHook {
    /// Makes a hook that does nothing.
    public init() {}
}
