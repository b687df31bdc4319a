// SPDX-License-Identifier: Apache-2.0

/// Decides whether a failed request is tried again. One belongs to one request, and so may count.
public protocol ServiceRetrier: Sendable {
    /// Whether it is asked about failures of retries too; `false`, the default, makes the failure of the first retry final.
    var allowsMultipleRetries: Bool { get }

    /// Whether the request is sent again, at once. Who wants a pause waits here; the wait ends when the request is cancelled, if it is one
    /// that cancellation ends.
    ///
    /// Asked about every failure but a cancellation: be it the network's, a status, or what ``ServiceRequest/decode(_:)`` threw. Streams
    /// are not retried.
    func retry<Request: ServiceRequest>(_ request: Request, failingWith error: ServiceError) async -> Bool
}

extension ServiceRetrier {
    /// `false`.
    public var allowsMultipleRetries: Bool { false }
}

/// Makes the retriers of a service's requests.
public protocol ServiceRetrierFactory: Sendable {
    /// The retrier of a request. Called once a request, when it fails for the first time.
    func create<Request: ServiceRequest>(for request: Request) -> any ServiceRetrier
}

/// A factory out of a closure.
public struct AnyServiceRetrierFactory: ServiceRetrierFactory {
    private let make: @Sendable (any ServiceRequest) -> any ServiceRetrier

    /// Makes a factory of a closure, which may run on several threads at once.
    public init(_ make: @escaping @Sendable (any ServiceRequest) -> any ServiceRetrier) {
        self.make = make
    }

    /// Calls the closure.
    public func create<Request: ServiceRequest>(for request: Request) -> any ServiceRetrier { make(request) }
}

/// Tries nothing again.
public struct NilServiceRetrier: ServiceRetrier {
    /// Makes a retrier that always refuses.
    public init() {}

    /// A factory of such retriers.
    public static func factory() -> any ServiceRetrierFactory { AnyServiceRetrierFactory { _ in NilServiceRetrier() } }

    /// `false`.
    public func retry<Request: ServiceRequest>(_ request: Request, failingWith error: ServiceError) async -> Bool { false }
}
