// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewWebSocket
import Foundation

/// What is sent in both directions, as JSON.
struct Line: Codable, Sendable {
    let from: String
    let text: String
}

/// A member of a chat. The connection is kept alive by pings, and replaced when it is lost.
struct Chat: Sendable {
    let name: String
    private let socket: TypedWebSocket<Line, Line>

    init(_ url: String, name: String, manager: SessionManager) {
        self.name = name
        var configuration = WebSocketConfiguration()
        configuration.pingInterval = .seconds(20)
        configuration.maximumMessageSize = 64 << 10
        configuration.reconnection = WebSocketReconnection(limit: 5)
        socket = manager.webSocket(url, subprotocols: ["chat.v1"], configuration: configuration).typed(
            sending: Line.self, receiving: Line.self)
    }

    func say(_ text: String) async throws {
        try await socket.send(Line(from: name, text: text))
    }

    /// The lines of all members, this one's too, until the chat is left.
    var lines: TypedWebSocket<Line, Line>.Messages { socket.messages }

    func leave() async throws {
        try await socket.socket.close()
    }
}
