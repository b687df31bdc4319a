// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// Publishers: of Combine where the platform has it, of OpenCombine where the package's trait of that name is on. Both spell them alike.
#if canImport(Combine)
import Combine
#elseif OpenCombine
import OpenCombine
#endif

#if canImport(Combine) || OpenCombine
extension ServiceResponse {
    /// The result as a publisher: each subscription is an interest in it, and the demand for a first value starts the request.
    ///
    /// Subscribers are called in a task of the library's; `receive(on:)` takes them elsewhere.
    public var publisher: ServicePublisher<Request, Service> { ServicePublisher(response: self) }
}

/// Publishes the result of a response.
public struct ServicePublisher<Request: ServiceRequest, Service: HTTPService>: Publisher, Sendable {
    /// The result.
    public typealias Output = Request.Result
    /// The service's error.
    public typealias Failure = Service.RequestError

    let response: ServiceResponse<Request, Service>

    /// Gives the subscriber a subscription.
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
        subscriber.receive(subscription: ResponseSubscription(response, subscriber))
    }
}

/// A subscriber's interest in a response.
private final class ResponseSubscription<Request: ServiceRequest, Service: HTTPService, Target: Subscriber>: Subscription,
    @unchecked Sendable  // the state is behind a lock; a subscriber is called from one place at a time, as its rules want
where Target.Input == Request.Result, Target.Failure == Service.RequestError {
    private struct State {
        var target: Target?
        var isStarted = false
        var id: Int?
    }

    private let response: ServiceResponse<Request, Service>
    private let state: _Lock<State>

    init(_ response: ServiceResponse<Request, Service>, _ target: Target) {
        self.response = response
        state = _Lock(State(target: target))
    }

    func request(_ demand: Subscribers.Demand) {
        let isFirst = state.withLock { state in
            guard demand > .none, state.target != nil, !state.isStarted else { return false }
            state.isStarted = true
            return true
        }
        guard isFirst else { return }
        let id = response.outcome.add { self.deliver($0) }
        let isCancelled = state.withLock { state in
            state.id = id
            return state.target == nil
        }
        if isCancelled { response.outcome.remove(id) }
    }

    private func deliver(_ outcome: ServiceResponse<Request, Service>.Outcome) {
        guard let target = take() else { return }
        switch outcome {
        case .success(let success):
            _ = target.receive(success.result)
            target.receive(completion: .finished)
        case .failure(let error): target.receive(completion: .failure(error))
        }
    }

    func cancel() {
        _ = take()
        if let id = state.withLock({ $0.id }) { response.outcome.remove(id) }
    }

    private func take() -> Target? {
        state.withLock { state in
            defer { state.target = nil }
            return state.target
        }
    }
}
#endif
