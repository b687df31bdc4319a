// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport

@testable import CurlewGraphQL
@testable import CurlewWebSocket

struct Count: Decodable, Sendable, Equatable {
    let count: Int
}

extension GraphQLRequest {
    static func count(_ name: String = "C") -> GraphQLRequest { GraphQLRequest("subscription \(name) { count }") }
}

extension GraphQLClient {
    convenience init(
        _ server: LoopbackServer, manager: SessionManager = makeManager(), _ change: (inout GraphQLConfiguration) -> Void = { _ in }
    ) {
        var configuration = GraphQLConfiguration()
        change(&configuration)
        self.init(server.url("/graphql"), manager: manager, configuration: configuration)
    }

    convenience init(
        _ server: WebSocketServer, manager: SessionManager = makeManager(), _ change: (inout GraphQLConfiguration) -> Void = { _ in }
    ) {
        var configuration = GraphQLConfiguration()
        change(&configuration)
        self.init(server.url("/graphql"), manager: manager, configuration: configuration)
    }
}

extension ServerResponse {
    /// A response of a GraphQL server.
    static func graphQL(_ body: String, status: Int = 200, type: String = "application/graphql-response+json") -> ServerResponse {
        ServerResponse(status: status, headers: [ServerField("Content-Type", type)], body: .data(Data(body.utf8)))
    }
}

extension ServerRequest {
    /// The parameters of a GraphQL request.
    var parameters: [String: JSONValue] { (try? JSONDecoder().decode([String: JSONValue].self, from: body)) ?? [:] }
}

/// The error of an operation; `nil` if it succeeds.
func error(of operation: () async throws -> some Any) async -> (any Error)? {
    do {
        _ = try await operation()
        return nil
    } catch {
        return error
    }
}

// MARK: - Subscriptions

/// The events of a subscription to its end.
func counts(_ client: GraphQLClient, _ request: GraphQLRequest = .count()) async throws -> [Int] {
    var counts: [Int] = []
    for try await event in client.subscribe(to: request, as: Count.self) { counts.append(try event.get().count) }
    return counts
}

/// A WebSocket server for `graphql-transport-ws`, by a script for each connection.
func makeSubscriptionServer(
    subprotocol: String? = "graphql-transport-ws", _ script: @escaping @Sendable (GraphQLPeer) throws -> Void
) throws -> WebSocketServer {
    try WebSocketServer(
        accept: { WebSocketHandshake.accept(for: $0) }, fields: { _ in subprotocol.map { ["Sec-WebSocket-Protocol: \($0)"] } ?? [] },
        script: { try script(GraphQLPeer(peer: $0)) })
}

/// A client's connection, for the thread of its script.
struct GraphQLPeer {
    struct Message: Decodable, Equatable {
        let type: String
        var id: String?
        var payload: JSONValue?
    }

    let peer: WebSocketPeer

    var number: Int { peer.number }

    /// The next message; `nil` when the client closes, which is answered.
    func receive() throws -> Message? {
        while let frame = try peer.receive() {
            switch frame.opcode {
            case .text: return try JSONDecoder().decode(Message.self, from: frame.payload)
            case .close:
                try peer.send(.close, frame.payload)
                return nil
            default: break
            }
        }
        return nil
    }

    func send(_ text: String) throws { try peer.send(.text, Data(text.utf8)) }

    /// Answers `connection_init`, and returns it.
    @discardableResult
    func acknowledge() throws -> Message? {
        let message = try receive()
        try send(#"{"type":"connection_ack"}"#)
        return message
    }

    /// Sends an event.
    func next(_ id: String?, _ count: Int) throws {
        try send(#"{"type":"next","id":"\#(id ?? "")","payload":{"data":{"count":\#(count)}}}"#)
    }

    func complete(_ id: String?) throws { try send(#"{"type":"complete","id":"\#(id ?? "")"}"#) }
}
