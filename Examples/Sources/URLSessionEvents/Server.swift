// SPDX-License-Identifier: Apache-2.0
import DemoServer

/// A server of events, in the same process, whose first connection is lost.
final class TideServer: Sendable {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer { request, connection in
            let pieces: [String]
            switch request.header("Last-Event-ID") {
            case nil: pieces = [": the tide\n\n", "id: 1\ndata: ebb\n\n", "id: 2\nevent: low\r\ndata: 14:20\r\n\r\n"]
            case "2": pieces = ["id: 3\ndata: flood\n\nid: 4\nevent: high\ndata: ", "20:35\n\n"]
            default: return .status(204)
            }
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for piece in pieces {
                try connection.send(raw: "\(String(piece.utf8.count, radix: 16))\r\n\(piece)\r\n")
                connection.pause(for: .milliseconds(50))
            }
            // Without the last chunk: the connection is lost.
            if request.header("Last-Event-ID") != nil { try connection.send(raw: "0\r\n\r\n") }
            connection.close()
            return nil
        }
    }

    var url: URL { server.url }

    func stop() { server.stop() }
}
