// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Converts values to messages, and messages to values.
public struct WebSocketCoding<Sent, Received>: Sendable {
    /// Encodes a value as a message.
    public let encode: @Sendable (Sent) throws -> WebSocketMessage
    /// Decodes a value from a message.
    public let decode: @Sendable (WebSocketMessage) throws -> Received

    /// Makes a coding of two closures, which may be called on any thread.
    public init(
        encode: @escaping @Sendable (Sent) throws -> WebSocketMessage, decode: @escaping @Sendable (WebSocketMessage) throws -> Received
    ) {
        self.encode = encode
        self.decode = decode
    }

    /// Makes a coding for JSON: values are sent as text messages, and decoded from text and binary messages.
    ///
    /// The coders must not be changed afterwards.
    public static func json(
        encoder: JSONEncoder = JSONEncoder(), decoder: JSONDecoder = JSONDecoder()
    ) -> WebSocketCoding where Sent: Encodable & Sendable, Received: Decodable & Sendable {
        WebSocketCoding { value in
            .text(String(decoding: try encoder.encode(value), as: UTF8.self))
        } decode: { message in
            try decoder.decode(Received.self, from: message.data)
        }
    }
}

/// A WebSocket whose messages are typed values.
public struct TypedWebSocket<Sent, Received: Sendable>: Sendable {
    /// The underlying WebSocket.
    public let socket: WebSocket
    let coding: WebSocketCoding<Sent, Received>

    /// Sends a value; see ``WebSocket/send(_:)-(WebSocketMessage)``.
    ///
    /// - Throws: ``WebSocketError/encodingFailed(error:)``, and the errors of ``WebSocket/send(_:)-(WebSocketMessage)``.
    public func send(_ value: Sent) async throws {
        let message: WebSocketMessage
        do { message = try coding.encode(value) } catch { throw WebSocketError.encodingFailed(error: error) }
        try await socket.send(message)
    }

    /// Sends the values of a sequence, in order, to its end; see ``send(_:)``.
    ///
    /// - Throws: the error of the sequence, or of the first value that can't be sent.
    public func send<Values: AsyncSequence>(from values: Values) async throws where Values.Element == Sent {
        for try await value in values { try await send(value) }
    }

    /// The received values. A message that can't be decoded throws ``WebSocketError/decodingFailed(message:error:)``; the connection stays
    /// open, and a new iterator continues after that message.
    public var messages: Messages { Messages(results: results) }

    /// The received values; a message that can't be decoded yields its ``WebSocketError/decodingFailed(message:error:)``, and the sequence
    /// continues. It ends, or throws, as ``WebSocketMessages``.
    public var results: Results { Results(messages: socket.messages, coding: coding) }

    /// The values of a WebSocket, and the errors of those that can't be decoded.
    public struct Results: AsyncSequence, Sendable {
        /// A value, or the error of decoding its message.
        public typealias Element = Result<Received, WebSocketError>

        let messages: WebSocketMessages
        let coding: WebSocketCoding<Sent, Received>

        /// Reads the values.
        public struct Iterator: AsyncIteratorProtocol {
            var messages: WebSocketMessages.Iterator
            let coding: WebSocketCoding<Sent, Received>

            /// Returns the next value or decoding error; `nil` after a normal closure.
            public mutating func next() async throws -> Element? {
                guard let message = try await messages.next() else { return nil }
                do { return .success(try coding.decode(message)) } catch {
                    return .failure(.decodingFailed(message: message, error: error))
                }
            }
        }

        /// Makes an iterator. All iterators share the same messages, and each message goes to one of them.
        public func makeAsyncIterator() -> Iterator {
            Iterator(messages: messages.makeAsyncIterator(), coding: coding)
        }
    }

    /// The values of a WebSocket.
    public struct Messages: AsyncSequence, Sendable {
        /// A value.
        public typealias Element = Received

        let results: Results

        /// Reads the values.
        public struct Iterator: AsyncIteratorProtocol {
            var results: Results.Iterator

            /// Returns the next value; `nil` after a normal closure.
            public mutating func next() async throws -> Received? {
                try await results.next()?.get()
            }
        }

        /// Makes an iterator. All iterators share the same messages, and each message goes to one of them.
        public func makeAsyncIterator() -> Iterator {
            Iterator(results: results.makeAsyncIterator())
        }
    }
}

extension WebSocket {
    /// Returns the WebSocket with typed values for messages.
    public func typed<Sent, Received>(_ coding: WebSocketCoding<Sent, Received>) -> TypedWebSocket<Sent, Received> {
        TypedWebSocket(socket: self, coding: coding)
    }

    /// Returns the WebSocket with typed values for messages, in JSON; see ``WebSocketCoding/json(encoder:decoder:)``.
    public func typed<Sent: Encodable & Sendable, Received: Decodable & Sendable>(
        sending: Sent.Type, receiving: Received.Type, encoder: JSONEncoder = JSONEncoder(), decoder: JSONDecoder = JSONDecoder()
    ) -> TypedWebSocket<Sent, Received> {
        typed(.json(encoder: encoder, decoder: decoder))
    }
}
