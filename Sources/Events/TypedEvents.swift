// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// An event with its decoded data.
public struct TypedEvent<Value: Sendable>: Sendable {
    /// The event.
    public let event: ServerSentEvent
    /// The decoded data.
    public let value: Value
}

extension TypedEvent: Equatable where Value: Equatable {}

extension AsyncSequence where Element == ServerSentEvent {
    /// Returns the events with their data decoded from JSON.
    ///
    /// Needs `import CurlewEvents`.
    ///
    /// ```swift
    /// for try await token in manager.eventStream(request).typed(as: Token.self, until: "[DONE]") { … }
    /// ```
    ///
    /// - Parameters:
    ///   - value: the type of the data.
    ///   - eventType: the type of events to return; others are skipped. `nil`, the default, for all.
    ///   - end: the data of the event, of any type, that ends the sequence: it is not decoded, and the iterator releases the events, which
    ///     cancels their request. `nil`, the default, for none.
    ///   - policy: what is done about invalid data. By default, ``EventStreamError/decodingFailed(data:error:)`` is thrown, and iteration
    ///     may continue with the next event.
    ///   - decoder: must not be modified afterwards.
    public func typed<Value: Decodable & Sendable>(
        as value: Value.Type = Value.self, eventType: String? = nil, until end: String? = nil,
        onDecodingError policy: DecodingErrorPolicy = .throw, decoder: JSONDecoder = JSONDecoder()
    ) -> TypedEvents<Self, Value> {
        typed(eventType: eventType, until: end, onDecodingError: policy) { event in try decoder.value(in: Data(event.data.utf8)) }
    }

    /// Returns the events with their data decoded by a closure, whose errors the sequence throws, unless they are skipped.
    ///
    /// Needs `import CurlewEvents`. Parameters as in ``typed(as:eventType:until:onDecodingError:decoder:)``.
    public func typed<Value: Sendable>(
        eventType: String? = nil, until end: String? = nil, onDecodingError policy: DecodingErrorPolicy = .throw,
        decode: @escaping @Sendable (ServerSentEvent) throws -> Value
    ) -> TypedEvents<Self, Value> {
        TypedEvents(events: self, eventType: eventType, end: end, policy: policy, decode: decode)
    }
}

/// Events with decoded data.
public struct TypedEvents<Events: AsyncSequence, Value: Sendable>: AsyncSequence where Events.Element == ServerSentEvent {
    /// An event with its decoded data.
    public typealias Element = TypedEvent<Value>

    let events: Events
    let eventType: String?
    let end: String?
    let policy: DecodingErrorPolicy
    let decode: @Sendable (ServerSentEvent) throws -> Value

    /// Iterates over the events.
    public struct Iterator: AsyncIteratorProtocol {
        /// `nil` after the event that ends the sequence.
        var events: Events.AsyncIterator?
        let eventType: String?
        let end: String?
        let policy: DecodingErrorPolicy
        let decode: @Sendable (ServerSentEvent) throws -> Value

        /// Returns the next event; `nil` at the end.
        public mutating func next() async throws -> TypedEvent<Value>? {
            while let event = try await events?.next() {
                if let end, event.data.hasSameBytes(as: end) {
                    events = nil
                } else if eventType == nil || event.type == eventType, let value = try policy.value({ try decode(event) }) {
                    return TypedEvent(event: event, value: value)
                }
            }
            return nil
        }
    }

    /// Creates an iterator.
    public func makeAsyncIterator() -> Iterator {
        Iterator(events: events.makeAsyncIterator(), eventType: eventType, end: end, policy: policy, decode: decode)
    }
}
