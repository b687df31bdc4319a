// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// An event whose data is a value.
public struct TypedEvent<Value: Sendable>: Sendable {
    /// The event.
    public let event: ServerSentEvent
    /// What its data says.
    public let value: Value
}

extension TypedEvent: Equatable where Value: Equatable {}

extension AsyncSequence where Element == ServerSentEvent {
    /// The events with their data as values, decoded from JSON.
    ///
    /// Data that is none throws ``EventStreamError/decodingFailed(data:error:)``; the iterator can then be asked for the next.
    ///
    /// - Parameters:
    ///   - value: what the data is.
    ///   - eventType: the type of the events that are wanted; others are passed over. `nil`, the default, for all.
    ///   - decoder: must not be changed any more.
    public func typed<Value: Decodable & Sendable>(
        as value: Value.Type = Value.self, eventType: String? = nil, decoder: JSONDecoder = JSONDecoder()
    ) -> TypedEvents<Self, Value> {
        typed(eventType: eventType) { event in try decoder.value(in: Data(event.data.utf8)) }
    }

    /// The events with their data as values, by a closure; what it throws, the sequence throws.
    public func typed<Value: Sendable>(
        eventType: String? = nil, decode: @escaping @Sendable (ServerSentEvent) throws -> Value
    ) -> TypedEvents<Self, Value> {
        TypedEvents(events: self, eventType: eventType, decode: decode)
    }
}

/// Events with their data as values.
public struct TypedEvents<Events: AsyncSequence, Value: Sendable>: AsyncSequence where Events.Element == ServerSentEvent {
    /// An event with its value.
    public typealias Element = TypedEvent<Value>

    let events: Events
    let eventType: String?
    let decode: @Sendable (ServerSentEvent) throws -> Value

    /// Reads the events.
    public struct Iterator: AsyncIteratorProtocol {
        var events: Events.AsyncIterator
        let eventType: String?
        let decode: @Sendable (ServerSentEvent) throws -> Value

        /// The next event; `nil` at the end.
        public mutating func next() async throws -> TypedEvent<Value>? {
            while let event = try await events.next() {
                guard eventType == nil || event.type == eventType else { continue }
                return TypedEvent(event: event, value: try decode(event))
            }
            return nil
        }
    }

    /// An iterator.
    public func makeAsyncIterator() -> Iterator {
        Iterator(events: events.makeAsyncIterator(), eventType: eventType, decode: decode)
    }
}
