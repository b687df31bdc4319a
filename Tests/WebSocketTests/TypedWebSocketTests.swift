// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewWebSocket
import Testing

@Suite(.timeLimit(.minutes(1))) struct TypedWebSocketTests {
    private struct Move: Codable, Sendable, Hashable {
        let x: Int
    }

    private let manager = makeManager()

    @Test("values are sent and received as JSON") func json() async throws {
        let server = try makeEchoServer()
        let socket = manager.webSocket(server.url()).typed(sending: Move.self, receiving: Move.self)
        try await socket.send(Move(x: 1))
        try await socket.send(Move(x: 2))
        var moves = socket.messages.makeAsyncIterator()
        #expect(try await moves.next() == Move(x: 1))
        #expect(try await moves.next() == Move(x: 2))
        try await socket.socket.close()
        #expect(try await moves.next() == nil)
    }

    @Test("an undecodable message yields an error, and the next one is read") func decodingFailed() async throws {
        let server = try makeServer { peer in
            try peer.send(.text, Data("{}".utf8))
            try peer.send(.binary, Data(#"{"x":7}"#.utf8))
            try peer.sendClose(1000)
            try peer.answerClose()
        }
        let socket = manager.webSocket(server.url()).typed(sending: Move.self, receiving: Move.self)
        var results: [Result<Move, WebSocketError>] = []
        for try await result in socket.results { results.append(result) }
        #expect(results.count == 2)
        guard case .failure(.decodingFailed(.text("{}"), _)) = results[0] else { return #expect(Bool(false), "\(results)") }
        #expect(try results[1].get() == Move(x: 7))
    }

    @Test("messages throws for an undecodable one, and can be read further") func throwing() async throws {
        let server = try makeServer { peer in
            try peer.send(.text, Data("{}".utf8))
            try peer.send(.text, Data(#"{"x":7}"#.utf8))
            try peer.answerClose()
        }
        let socket = manager.webSocket(server.url()).typed(sending: Move.self, receiving: Move.self)
        #expect(await failure { for try await _ in socket.messages {} } is WebSocketError)
        for try await move in socket.messages {
            #expect(move == Move(x: 7))
            break
        }
    }

    @Test("closures encode and decode") func custom() async throws {
        struct Negative: Error {}
        let coding = WebSocketCoding<Int, String> { value in
            guard value >= 0 else { throw Negative() }
            return .text("\(value)")
        } decode: { message in
            "<\(String(decoding: message.data, as: UTF8.self))>"
        }
        let server = try makeEchoServer()
        let socket = manager.webSocket(server.url()).typed(coding)
        guard case WebSocketError.encodingFailed(let error)? = await failure(of: { try await socket.send(-1) }) else {
            return #expect(Bool(false))
        }
        #expect(error is Negative)
        try await socket.send(5)
        var messages = socket.messages.makeAsyncIterator()
        #expect(try await messages.next() == "<5>")
    }
}
