// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import Dispatch

/// The response of a request from a service, shared by all its consumers.
///
/// ```swift
/// let response = UserRequest(id: 7).schedule(with: api)
/// let user = try await response.value
/// ```
///
/// The request is built and sent when its value or header is first consumed: by `await`, by iterating ``values``, by
/// ``sink(on:receiveCompletion:receiveValue:)``, or by a publisher. All consumers share one request; those that come after its completion
/// receive the same result. When every consumer has stopped before completion, the request is cancelled for good: schedule another one to
/// send it again.
///
/// A ``Deadline`` of the task that schedules the request bounds the request; one of a task that consumes it bounds that consumer's wait.
/// Thread-safe.
public final class ServiceResponse<Request: ServiceRequest, Service: HTTPService>: Sendable {
    /// The type that the response is decoded as.
    public typealias Value = Request.Result
    /// The error that the request fails with.
    public typealias Failure = Service.RequestError

    typealias Execution = ServiceExecution<Request, Service>
    typealias Outcome = Result<Execution.Success, Failure>

    let outcome: SharedOutcome<Outcome>
    private let service: Service

    init(request: Request, service: Service) {
        self.service = service
        // The one of the call that schedules the request is the request's own.
        let deadline = Deadline.current
        let expiry = SharedOutcome<Outcome>.Expiry(deadline: deadline) { deadline, body in
            service.sessionManager.session.atEnd(of: deadline, body)
        } outcome: {
            .failure(service.mapError(ServiceError(Deadline.failure(of: "", attempt: 1, during: .waiting))))
        }
        outcome = SharedOutcome(priority: { request.priority.taskPriority }, expiry: expiry) {
            await Deadline.$current.withValue(deadline) {
                await Execution(request: request, service: service).run().mapError { service.mapError($0) }
            }
        }
    }

    func success() async throws(Failure) -> Execution.Success {
        try await outcome.outcome(orWhenCancelled: .failure(service.mapError(.cancelled))).get()
    }

    /// The result.
    ///
    /// When the awaiting task is cancelled, throws the service's error for ``ServiceError/cancelled`` at once; the request is cancelled if
    /// it has no other consumers.
    public var value: Value {
        get async throws(Failure) { try await success().result }
    }

    /// The result, or the error.
    public var result: Result<Value, Failure> {
        get async { await outcome.outcome(orWhenCancelled: .failure(service.mapError(.cancelled))).map(\.result) }
    }

    /// The header fields of the response, available together with the result; empty if a hook supplied the result.
    public var header: HTTPHeaders {
        get async throws(Failure) { try await success().header }
    }

    /// The result as a sequence of one element, which throws the request's error.
    public var values: Values { Values(response: self) }

    /// The result of a response as a sequence.
    public struct Values: AsyncSequence, Sendable {
        /// The result.
        public typealias Element = Value

        let response: ServiceResponse

        /// Awaits the result, once.
        public struct AsyncIterator: AsyncIteratorProtocol {
            var response: ServiceResponse?

            /// Returns the result, then `nil`.
            public mutating func next() async throws -> Value? {
                guard let response else { return nil }
                self.response = nil
                return try await response.value
            }
        }

        /// Makes an iterator that starts at the result.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(response: response) }
    }

    /// Calls closures with the result and the completion.
    ///
    /// - Parameters:
    ///   - queue: the queue they are called on; `nil`, the default, for the session's `callbackQueue`, which is `.main` unless set.
    ///   - receiveCompletion: called once, last.
    ///   - receiveValue: called with the result, if there is one.
    /// - Returns: the subscription, which ends when it is released: retain it.
    public func sink(
        on queue: DispatchQueue? = nil, receiveCompletion: @escaping @Sendable (ServiceCompletion<Failure>) -> Void,
        receiveValue: @escaping @Sendable (Value) -> Void
    ) -> ServiceSubscription {
        sink(on: queue) { result in
            switch result {
            case .success(let value):
                receiveValue(value)
                receiveCompletion(.finished)
            case .failure(let error): receiveCompletion(.failure(error))
            }
        }
    }

    /// Calls a closure with the result or the error; for the parameters see ``sink(on:receiveCompletion:receiveValue:)``.
    public func sink(on queue: DispatchQueue? = nil, _ receiveResult: @escaping @Sendable (Result<Value, Failure>) -> Void)
        -> ServiceSubscription
    {
        let queue = queue ?? service.sessionManager.session.configuration.callbackQueue
        let handler = Lock<(@Sendable (Result<Value, Failure>) -> Void)?>(receiveResult)
        let take: @Sendable () -> (@Sendable (Result<Value, Failure>) -> Void)? = {
            handler.withLock { handler in
                defer { handler = nil }
                return handler
            }
        }
        let outcome = outcome
        let id = outcome.add { result in
            // Taken on the queue, so that a subscription cancelled there is never called afterwards.
            queue.async { take()?(result.map(\.result)) }
        }
        return ServiceSubscription {
            _ = take()
            outcome.remove(id)
        }
    }
}
