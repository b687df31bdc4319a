// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewWebSocket

// Publishers: Combine's where the platform has it, OpenCombine's with the package trait of that name. Both have the same API.
#if canImport(Combine)
import Combine
#elseif OpenCombine
import OpenCombine
#endif

#if canImport(Combine) || OpenCombine
extension ServiceResponse {
    /// A publisher of the result. The first demand of a subscriber starts the request.
    ///
    /// Subscribers are called in a task of the library; use `receive(on:)` to move them elsewhere.
    public var publisher: ServicePublisher<Value, Failure> { makePublisher { $0.result } }

    /// A publisher of the response's header fields; see ``publisher``.
    public var headerPublisher: ServicePublisher<HTTPHeaders, Failure> { makePublisher { $0.header } }

    private func makePublisher<Output: Sendable>(_ part: @escaping @Sendable (Execution.Success) -> Output) -> ServicePublisher<
        Output, Failure
    > {
        let outcome = outcome
        return ServicePublisher { receive in
            outcome.add { receive($0.map(part)) }
        } unsubscribe: { number in
            outcome.remove(number)
        }
    }
}

extension ServiceStream {
    /// A publisher of the results, received on demand; see ``results``. It never finishes, it only fails.
    ///
    /// Subscribers are called in a task of the library; use `receive(on:)` to move them elsewhere.
    public var publisher: ServiceSequencePublisher<Results, Failure> {
        // The sequence throws only `Failure`; the conversion covers the error that its untyped `next()` can't rule out.
        ServiceSequencePublisher(sequence: results) { [service] in $0 as? Failure ?? service.mapError(ServiceError($0)) }
    }
}

extension PaginatorConnection {
    /// A publisher of the pages; see ``PaginatorConnection``.
    public var publisher: ServiceSequencePublisher<PaginatorConnection<Page>, any Error> {
        ServiceSequencePublisher(sequence: self) { $0 }
    }
}

extension Publisher {
    /// Publishes the values, and finishes instead of failing.
    ///
    /// Needs `import CurlewServices`.
    public func ignoreError() -> Publishers.Catch<Self, Empty<Output, Never>> {
        self.catch { _ in Empty() }
    }

    /// Publishes the values of the successful results; the publisher's own failure is kept.
    ///
    /// Needs `import CurlewServices`.
    public func ignoreResultErrors<Value, ResultFailure: Error>() -> Publishers.CompactMap<Self, Value>
    where Output == Result<Value, ResultFailure> {
        compactMap { try? $0.get() }
    }
}

/// Publishes a part of a response.
public struct ServicePublisher<Output: Sendable, Failure: Error>: Publisher, Sendable {
    let subscribe: @Sendable (@escaping @Sendable (Result<Output, Failure>) -> Void) -> Int
    let unsubscribe: @Sendable (Int) -> Void

    /// Attaches the subscriber.
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
        subscriber.receive(subscription: ResponseSubscription(self, Target(subscriber)))
    }
}

/// A type-erased subscriber.
private struct Target<Input, Failure: Error>: @unchecked Sendable {  // a subscriber is called serially, as Combine's rules require
    let receive: (Input) -> Subscribers.Demand
    let complete: (Subscribers.Completion<Failure>) -> Void

    init<S: Subscriber>(_ subscriber: S) where S.Input == Input, S.Failure == Failure {
        receive = { subscriber.receive($0) }
        complete = { subscriber.receive(completion: $0) }
    }
}

/// A subscription to a response.
private final class ResponseSubscription<Input: Sendable, Failure: Error>: Subscription, Sendable {
    private struct State {
        var target: Target<Input, Failure>?
        var isStarted = false
        var number: Int?
    }

    private let publisher: ServicePublisher<Input, Failure>
    private let state: Lock<State>

    init(_ publisher: ServicePublisher<Input, Failure>, _ target: Target<Input, Failure>) {
        self.publisher = publisher
        state = Lock(State(target: target))
    }

    func request(_ demand: Subscribers.Demand) {
        let isFirst = state.withLock { state in
            guard demand > .none, state.target != nil, !state.isStarted else { return false }
            state.isStarted = true
            return true
        }
        guard isFirst else { return }
        let number = publisher.subscribe { self.deliver($0) }
        let isCancelled = state.withLock { state in
            state.number = number
            return state.target == nil
        }
        if isCancelled { publisher.unsubscribe(number) }
    }

    private func deliver(_ outcome: Result<Input, Failure>) {
        guard let target = take() else { return }
        switch outcome {
        case .success(let value):
            _ = target.receive(value)
            target.complete(.finished)
        case .failure(let error): target.complete(.failure(error))
        }
    }

    func cancel() {
        _ = take()
        if let number = state.withLock({ $0.number }) { publisher.unsubscribe(number) }
    }

    private func take() -> Target<Input, Failure>? {
        state.withLock { state in
            defer { state.target = nil }
            return state.target
        }
    }
}

/// Publishes the elements of a sequence, no more than are demanded.
public struct ServiceSequencePublisher<Base: AsyncSequence & Sendable, Failure: Error>: Publisher, Sendable where Base.Element: Sendable {
    /// An element.
    public typealias Output = Base.Element

    let sequence: Base
    let mapError: @Sendable (any Error) -> Failure

    /// Attaches the subscriber.
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
        subscriber.receive(subscription: SequenceSubscription(self, Target(subscriber)))
    }
}

/// A subscription to a sequence, which is iterated from the first demand and released on completion.
private final class SequenceSubscription<Base: AsyncSequence & Sendable, Failure: Error>: Subscription, Sendable
where Base.Element: Sendable {
    private typealias Publisher = ServiceSequencePublisher<Base, Failure>

    private struct State {
        let publisher: Publisher
        let target: Target<Base.Element, Failure>
        var task: Task<Void, Never>?
    }

    /// `nil` once completed or cancelled.
    private let state: Lock<State?>
    /// The outstanding demand, in elements; `Int.max` if unlimited.
    private let demand = Watched(0)

    init(_ publisher: ServiceSequencePublisher<Base, Failure>, _ target: Target<Base.Element, Failure>) {
        state = Lock(State(publisher: publisher, target: target))
    }

    func request(_ demand: Subscribers.Demand) {
        self.demand.update { $0 = Self.sum($0, demand) }
        guard demand > .none else { return }
        state.withLock { state in
            guard let publisher = state?.publisher, state?.task == nil else { return }
            state?.task = Task { await self.run(publisher) }
        }
    }

    private static func sum(_ count: Int, _ demand: Subscribers.Demand) -> Int {
        guard let more = demand.max else { return .max }
        let (sum, overflows) = count.addingReportingOverflow(more)
        return overflows ? .max : sum
    }

    private func run(_ publisher: Publisher) async {
        var elements = publisher.sequence.makeAsyncIterator()
        do {
            while true {
                try await demand.wait { count -> Void? in
                    guard count > 0 else { return nil }
                    if count < .max { count -= 1 }
                    return ()
                }
                guard let element = try await elements.next() else {
                    take()?.target.complete(.finished)
                    return
                }
                guard let target = state.withLock({ $0?.target }) else { return }
                let more = target.receive(element)
                demand.update { $0 = Self.sum($0, more) }
            }
        } catch {
            take()?.target.complete(.failure(publisher.mapError(error)))
        }
    }

    func cancel() {
        take()?.task?.cancel()
    }

    private func take() -> State? {
        state.withLock { state in
            defer { state = nil }
            return state
        }
    }
}
#endif
