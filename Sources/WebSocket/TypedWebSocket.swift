// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// How values become messages, and messages values.
public struct WebSocketCoding<Sent, Received>: Sendable {
    /// Makes a message of a value.
    public let encode: @Sendable (Sent) throws -> WebSocketMessage
    /// Makes a value of a message.
    public let decode: @Sendable (WebSocketMessage) throws -> Received

    /// Makes a coding of two closures, which are called on no certain thread.
    public init(
        encode: @escaping @Sendable (Sent) throws -> WebSocketMessage, decode: @escaping @Sendable (WebSocketMessage) throws -> Received
    ) {
        self.encode = encode
        self.decode = decode
    }

    /// JSON: values are sent as texts, and taken of texts and bytes.
    ///
    /// The coders must not be changed any more.
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

/// A WebSocket whose messages are values.
public struct TypedWebSocket<Sent, Received: Sendable>: Sendable {
    /// The WebSocket below.
    public let socket: WebSocket
    let coding: WebSocketCoding<Sent, Received>

    /// Sends a value; see ``WebSocket/send(_:)-(WebSocketMessage)``.
    ///
    /// - Throws: ``WebSocketError/encodingFailed(error:)``, and what that throws.
    public func send(_ value: Sent) async throws {
        let message: WebSocketMessage
        do { message = try coding.encode(value) } catch { throw WebSocketError.encodingFailed(error: error) }
        try await socket.send(message)
    }

    /// Sends values as they come, to the last; see ``send(_:)``.
    ///
    /// - Throws: what the sequence throws, and why a value will not be sent.
    public func send<Values: AsyncSequence>(from values: Values) async throws where Values.Element == Sent {
        for try await value in values { try await send(value) }
    }

    /// The values that come in. A message of which none can be made throws ``WebSocketError/decodingFailed(message:error:)``; the
    /// connection stands, and a new iterator reads on behind it.
    public var messages: Messages { Messages(results: results) }

    /// The values that come in; a message of which none can be made gives its ``WebSocketError/decodingFailed(message:error:)``, and the
    /// sequence goes on. It ends, or throws, as ``WebSocketMessages``.
    public var results: Results { Results(messages: socket.messages, coding: coding) }

    /// The values of a WebSocket, and the failures to make them.
    public struct Results: AsyncSequence, Sendable {
        /// A value, or why a message is none.
        public typealias Element = Result<Received, WebSocketError>

        let messages: WebSocketMessages
        let coding: WebSocketCoding<Sent, Received>

        /// Reads the values.
        public struct Iterator: AsyncIteratorProtocol {
            var messages: WebSocketMessages.Iterator
            let coding: WebSocketCoding<Sent, Received>

            /// The next value, or why a message is none; `nil` at a proper end.
            public mutating func next() async throws -> Element? {
                guard let message = try await messages.next() else { return nil }
                do { return .success(try coding.decode(message)) } catch {
                    return .failure(.decodingFailed(message: message, error: error))
                }
            }
        }

        /// An iterator; all of them read from the same messages.
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

            /// The next value; `nil` at a proper end.
            public mutating func next() async throws -> Received? {
                try await results.next()?.get()
            }
        }

        /// An iterator; all of them read from the same messages.
        public func makeAsyncIterator() -> Iterator {
            Iterator(results: results.makeAsyncIterator())
        }
    }
}

extension WebSocket {
    /// The WebSocket with values as its messages.
    public func typed<Sent, Received>(_ coding: WebSocketCoding<Sent, Received>) -> TypedWebSocket<Sent, Received> {
        TypedWebSocket(socket: self, coding: coding)
    }

    /// The WebSocket with values as its messages, in JSON; see ``WebSocketCoding/json(encoder:decoder:)``.
    public func typed<Sent: Encodable & Sendable, Received: Decodable & Sendable>(
        sending: Sent.Type, receiving: Received.Type, encoder: JSONEncoder = JSONEncoder(), decoder: JSONDecoder = JSONDecoder()
    ) -> TypedWebSocket<Sent, Received> {
        typed(.json(encoder: encoder, decoder: decoder))
    }
}
