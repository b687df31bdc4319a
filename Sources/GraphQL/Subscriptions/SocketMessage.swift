// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewWebSocket

/// A message of a server (`graphql-transport-ws`, "Message types").
enum ServerMessage {
    case acknowledged
    case ping(payload: JSONValue?)
    case pong
    /// An event, with the whole message.
    case next(id: String, Data)
    case error(id: String, [GraphQLError])
    case complete(id: String)

    private struct Head: Decodable {
        let type: String
        let id: String?
    }

    private struct Content<Payload: Decodable>: Decodable {
        let payload: Payload
    }

    /// - Throws: ``GraphQLClientError/invalidMessage(reason:)``.
    init(_ message: WebSocketMessage) throws(GraphQLClientError) {
        guard case .text(let text) = message else { throw .invalidMessage(reason: "a binary message") }
        let data = Data(text.utf8)
        guard let head = try? JSONDecoder().decode(Head.self, from: data) else {
            throw .invalidMessage(reason: "a message that is not a JSON object with a type")
        }
        switch (head.type, head.id) {
        case ("connection_ack", _): self = .acknowledged
        case ("ping", _): self = .ping(payload: Self.payload(of: data))
        case ("pong", _): self = .pong
        case ("next", let id?): self = .next(id: id, data)
        case ("complete", let id?): self = .complete(id: id)
        case ("error", let id?):
            guard let errors: [GraphQLError] = Self.payload(of: data) else {
                throw .invalidMessage(reason: "a message of type \"error\" whose payload is not a list of errors")
            }
            self = .error(id: id, errors)
        case ("next", nil), ("complete", nil), ("error", nil):
            throw .invalidMessage(reason: "a message of type \"\(head.type)\" without an id")
        default: throw .invalidMessage(reason: "a message of the unknown type \"\(head.type.prefix(40))\"")
        }
    }

    private static func payload<Payload: Decodable>(of data: Data) -> Payload? {
        try? JSONDecoder().decode(Content<Payload>.self, from: data).payload
    }
}

/// A message of the client.
struct ClientMessage: Encodable {
    let type: String
    var id: String?
    var payload: JSONValue?

    /// The request of an operation; its payload is encoded already.
    static func subscribe(id: String, _ payload: Data) -> WebSocketMessage {
        .text("{\"id\":\"\(id)\",\"type\":\"subscribe\",\"payload\":\(String(decoding: payload, as: UTF8.self))}")
    }

    static func complete(id: String) -> WebSocketMessage { .text("{\"id\":\"\(id)\",\"type\":\"complete\"}") }

    func encoded() throws -> WebSocketMessage { .text(String(decoding: try GraphQLParameters.encode(self), as: UTF8.self)) }
}
