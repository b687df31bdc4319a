// SPDX-License-Identifier: Apache-2.0

/// Sees the requests of a service, and may answer them.
///
/// Called in the task that runs the request, for one request at a time in order, for several at once. All members have a default that
/// does nothing. A page of a paginator is a ``PageRequest``.
public protocol ServiceHook: Sendable {
    /// A request is about to be sent for the first time; retries are not told.
    ///
    /// A result fulfils it: nothing is sent, and ``onSuccess(_:_:result:)`` is not called.
    ///
    /// - Parameters:
    ///   - request: the request as the user made it.
    ///   - urlRequest: the same as it would go out.
    func onSchedule<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest) async -> Request.Result?

    /// A request has succeeded.
    func onSuccess<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest, result: Request.Result) async

    /// A request or a stream has failed for good, be it that it was cancelled. `urlRequest` is `nil` if none could be made.
    func onFailure<Request: NetworkServiceRequest>(_ request: Request, _ urlRequest: URLRequest?, error: ServiceError) async
}

extension ServiceHook {
    /// Does not answer.
    public func onSchedule<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest) async -> Request.Result? { nil }
    /// Does nothing.
    public func onSuccess<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest, result: Request.Result) async {}
    /// Does nothing.
    public func onFailure<Request: NetworkServiceRequest>(_ request: Request, _ urlRequest: URLRequest?, error: ServiceError) async {}
}

/// Sees nothing.
public struct NilServiceHook: ServiceHook {
    /// Makes a hook that does nothing.
    public init() {}
}
