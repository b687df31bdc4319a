// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewWebSocket

// The code of WebSockets.md, region by region: the text between `// snippet: NAME` and `// end` is the same in both files, up to
// indentation. `GuideTests` checks that and runs the code.

// snippet: values
struct Move: Codable, Sendable {
    let piece: String
    let to: String
}
// end

enum GuideSnippets {
    static func open(_ manager: SessionManager, _ url: String, print: (String) -> Void) async throws {
        // snippet: open
        let socket = manager.webSocket(url, subprotocols: ["chat.v2", "chat.v1"], headers: ["Origin": "https://example.org"])
        try await socket.send("Hello")
        for try await message in socket.messages {
            switch message {
            case .text(let text): print(text)
            case .binary(let data): print("\(data.count) bytes")
            }
        }
        // end
    }

    static func typed(_ manager: SessionManager, _ url: String, print: (String) -> Void) async throws {
        // snippet: typed
        let game = manager.webSocket(url).typed(sending: Move.self, receiving: Move.self)
        try await game.send(Move(piece: "pawn", to: "e4"))
        for try await result in game.results {
            switch result {
            case .success(let move): print("\(move.piece) to \(move.to)")
            case .failure(let error): print("no move: \(error)")
            }
        }
        // end
    }

    static func coding(_ manager: SessionManager, _ url: String) -> TypedWebSocket<Int, Int> {
        // snippet: coding
        let bigEndian = WebSocketCoding<Int, Int> { value in
            withUnsafeBytes(of: value.bigEndian) { .binary(Data($0)) }
        } decode: { message in
            message.data.reduce(0) { $0 << 8 | Int($1) }
        }
        let numbers = manager.webSocket(url).typed(bigEndian)
        // end
        return numbers
    }

    static func close(_ socket: WebSocket, print: (String) -> Void) async throws {
        // snippet: close
        let roundTrip = try await socket.ping()
        let closure = try await socket.close(code: .normalClosure, reason: "done")
        print("\(roundTrip > .zero), then \(closure.code.rawValue)")
        // end
    }

    static func configuration() -> WebSocketConfiguration {
        // snippet: configuration
        var configuration = WebSocketConfiguration()
        configuration.pingInterval = .seconds(30)
        configuration.maximumMessageSize = 1 << 20
        configuration.reconnection = WebSocketReconnection(limit: 5)
        configuration.compression?.serverKeepsContext = false
        // end
        return configuration
    }

    static func errors(_ socket: WebSocket, print: (String) -> Void) async throws {
        // snippet: errors
        do {
            for try await message in socket.messages { print("\(message)") }
        } catch WebSocketError.handshakeRejected(let rejection) {
            print("refused with \(rejection.response.statusCode)")
        } catch WebSocketError.closed(let closure) {
            print("closed with \(closure.code.rawValue): \(closure.reason)")
        } catch CurlewError.transferFailed(let failure) {
            print("no connection: \(failure.message)")
        }
        // end
    }

    static func states(_ socket: WebSocket, print: (String) -> Void) async {
        // snippet: states
        for await state in socket.states {
            switch state {
            case .open: print("open")
            case .waiting(let delay, _): print("again in \(delay)")
            case .closed: print("over")
            default: break
            }
        }
        // end
    }
}
