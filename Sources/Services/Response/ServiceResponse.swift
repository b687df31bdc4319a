// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Dispatch

/// The response of a request from a service, for as many as want it.
///
/// ```swift
/// let response = UserRequest(id: 7).schedule(with: api)
/// let user = try await response.value
/// ```
///
/// The request is built and sent when the first of them wants the value or the header: by `await`, by iterating ``values``, by
/// ``sink(on:receiveCompletion:receiveValue:)``, or by a publisher. There is one request however many they are, and who comes when it is
/// over gets what it brought. When all have gone before the end, the request is cancelled, which is then its end: schedule another one for
/// another attempt. All members may be used from any thread.
public final class ServiceResponse<Request: ServiceRequest, Service: HTTPService>: Sendable {
    /// What the response becomes.
    public typealias Value = Request.Result
    /// What it fails with.
    public typealias Failure = Service.RequestError

    typealias Execution = ServiceExecution<Request, Service>
    typealias Outcome = Result<Execution.Success, Failure>

    let outcome: SharedOutcome<Outcome>
    private let service: Service

    init(request: Request, service: Service) {
        self.service = service
        outcome = SharedOutcome(priority: { request.priority.taskPriority }) {
            await Execution(request: request, service: service).run().mapError { service.mapError($0) }
        }
    }

    func success() async throws(Failure) -> Execution.Success {
        try await outcome.outcome(orWhenCancelled: .failure(service.mapError(.cancelled))).get()
    }

    /// The result.
    ///
    /// Cancelling the task that waits ends its interest at once, with the service's error for ``ServiceError/cancelled``.
    public var value: Value {
        get async throws(Failure) { try await success().result }
    }

    /// The result, or why there is none.
    public var result: Result<Value, Failure> {
        get async { await outcome.outcome(orWhenCancelled: .failure(service.mapError(.cancelled))).map(\.result) }
    }

    /// The header fields of the response, as soon as there is a result; empty when a hook has answered.
    public var header: HTTPHeaders {
        get async throws(Failure) { try await success().header }
    }

    /// The result as a sequence of one element, which throws what the request fails with.
    public var values: Values { Values(response: self) }

    /// The result of a response as a sequence.
    public struct Values: AsyncSequence, Sendable {
        /// The result.
        public typealias Element = Value

        let response: ServiceResponse

        /// Waits for the result once.
        public struct AsyncIterator: AsyncIteratorProtocol {
            var response: ServiceResponse?

            /// The result, then the end.
            public mutating func next() async throws -> Value? {
                guard let response else { return nil }
                self.response = nil
                return try await response.value
            }
        }

        /// Starts at the result.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(response: response) }
    }

    /// Has closures called with the result and the end.
    ///
    /// - Parameters:
    ///   - queue: where they are called; `nil`, the default, for the session's `callbackQueue`, which is `.main` unless set.
    ///   - receiveCompletion: called once, last.
    ///   - receiveValue: called with the result, if there is one.
    /// - Returns: the interest; keep it as long as that lasts.
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

    /// Has a closure called with the result, or why there is none; parameters as those of
    /// ``sink(on:receiveCompletion:receiveValue:)``.
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
            // Taken on the queue only: who has cancelled there is not called any more.
            queue.async { take()?(result.map(\.result)) }
        }
        return ServiceSubscription {
            _ = take()
            outcome.remove(id)
        }
    }
}
