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
    /// Invalid data throws ``EventStreamError/decodingFailed(data:error:)``; iteration may continue with the next event.
    ///
    /// - Parameters:
    ///   - value: the type of the data.
    ///   - eventType: the type of events to return; others are skipped. `nil`, the default, for all.
    ///   - decoder: must not be modified afterwards.
    public func typed<Value: Decodable & Sendable>(
        as value: Value.Type = Value.self, eventType: String? = nil, decoder: JSONDecoder = JSONDecoder()
    ) -> TypedEvents<Self, Value> {
        typed(eventType: eventType) { event in try decoder.value(in: Data(event.data.utf8)) }
    }

    /// Returns the events with their data decoded by a closure, whose errors the sequence throws.
    ///
    /// Needs `import CurlewEvents`.
    public func typed<Value: Sendable>(
        eventType: String? = nil, decode: @escaping @Sendable (ServerSentEvent) throws -> Value
    ) -> TypedEvents<Self, Value> {
        TypedEvents(events: self, eventType: eventType, decode: decode)
    }
}

/// Events with decoded data.
public struct TypedEvents<Events: AsyncSequence, Value: Sendable>: AsyncSequence where Events.Element == ServerSentEvent {
    /// An event with its decoded data.
    public typealias Element = TypedEvent<Value>

    let events: Events
    let eventType: String?
    let decode: @Sendable (ServerSentEvent) throws -> Value

    /// Iterates over the events.
    public struct Iterator: AsyncIteratorProtocol {
        var events: Events.AsyncIterator
        let eventType: String?
        let decode: @Sendable (ServerSentEvent) throws -> Value

        /// Returns the next event; `nil` at the end.
        public mutating func next() async throws -> TypedEvent<Value>? {
            while let event = try await events.next() {
                guard eventType == nil || event.type == eventType else { continue }
                return TypedEvent(event: event, value: try decode(event))
            }
            return nil
        }
    }

    /// Creates an iterator.
    public func makeAsyncIterator() -> Iterator {
        Iterator(events: events.makeAsyncIterator(), eventType: eventType, decode: decode)
    }
}
