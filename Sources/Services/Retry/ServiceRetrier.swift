// SPDX-License-Identifier: Apache-2.0

/// Decides whether a failed request is retried. Each request has its own retrier, so one can count attempts.
public protocol ServiceRetrier: Sendable {
    /// Whether it is asked about failures of retries too; `false`, the default, makes the failure of the first retry final.
    var allowsMultipleRetries: Bool { get }

    /// Returns whether to send the request again, immediately. To delay the retry, sleep here: cancelling the request cancels the calling
    /// task, which ends a sleep that responds to cancellation.
    ///
    /// Called for every failure except cancellation: network errors, rejected status codes, and errors of ``ServiceRequest/decode(_:)``.
    /// Streams are not retried.
    func retry<Request: ServiceRequest>(_ request: Request, failingWith error: ServiceError) async -> Bool
}

extension ServiceRetrier {
    /// `false`: the failure of the first retry is final.
    public var allowsMultipleRetries: Bool { false }
}

/// Makes retriers for a service's requests.
public protocol ServiceRetrierFactory: Sendable {
    /// Returns a retrier for a request. Called once per request, on its first failure.
    func create<Request: ServiceRequest>(for request: Request) -> any ServiceRetrier
}

/// A factory made of a closure.
public struct AnyServiceRetrierFactory: ServiceRetrierFactory {
    private let make: @Sendable (any ServiceRequest) -> any ServiceRetrier

    /// Makes a factory of a closure, which may run on several threads at once.
    public init(_ make: @escaping @Sendable (any ServiceRequest) -> any ServiceRetrier) {
        self.make = make
    }

    /// Calls the closure.
    public func create<Request: ServiceRequest>(for request: Request) -> any ServiceRetrier { make(request) }
}

/// A retrier that never retries.
public struct NilServiceRetrier: ServiceRetrier {
    /// Makes a retrier that never retries.
    public init() {}

    /// Returns a factory of such retriers.
    public static func factory() -> any ServiceRetrierFactory { AnyServiceRetrierFactory { _ in NilServiceRetrier() } }

    /// Returns `false`.
    public func retry<Request: ServiceRequest>(_ request: Request, failingWith error: ServiceError) async -> Bool { false }
}
