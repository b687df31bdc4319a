// SPDX-License-Identifier: Apache-2.0

/// Observes the requests of a service, and can supply their results.
///
/// Called in the task that runs the request: in order for one request, concurrently for several. All members have a default that does
/// nothing. Pages of a paginator arrive as ``PageRequest``.
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
}

extension ServiceHook {
    /// Returns `nil`, so that the request is sent.
    public func onSchedule<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest) async -> Request.Result? { nil }
    /// Does nothing.
    public func onSuccess<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest, result: Request.Result) async {}
    /// Does nothing.
    public func onFailure<Request: NetworkServiceRequest>(_ request: Request, _ urlRequest: URLRequest?, error: ServiceError) async {}
}

/// A hook that does nothing.
public struct NilServiceHook: ServiceHook {
    /// Makes a hook that does nothing.
    public init() {}
}
