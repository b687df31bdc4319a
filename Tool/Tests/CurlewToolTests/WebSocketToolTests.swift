// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

/// `curlew ws`, against a server that knows no more of RFC 6455 than these tests need.
@Suite(.timeLimit(.minutes(1))) struct WebSocketToolTests {
    /// Accepts a handshake and sends frames.
    private static func server(_ frames: [[UInt8]]) throws -> LoopbackServer {
        try LoopbackServer { request, connection in
            guard let key = request.header("Sec-WebSocket-Key") else { return .status(400) }
            let accept = SHA1.hash(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
            try connection.send(
                raw: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Accept: \(Data(accept).base64EncodedString())\r\n\r\n")
            for frame in frames { try connection.send(raw: Data(frame)) }
            connection.close()
            return nil
        }
    }

    private static func text(_ text: String) -> [UInt8] { [0x81, UInt8(text.utf8.count)] + Array(text.utf8) }

    @Test("messages are printed, one a line, until the server closes") func messages() async throws {
        let server = try Self.server([Self.text("one"), Self.text("two"), [0x88, 2, 0x03, 0xE8]])
        let result = try await ToolRun.run("ws", "ws://127.0.0.1:\(server.port)/chat", "X-A:1")
        #expect(result.text == "one\ntwo\n")
        #expect(result.status == 0)
        #expect(server.requests.first?.header("X-A") == "1")
        #expect(server.requests.first?.path == "/chat")
    }

    @Test("a terminal gets neither controls nor bytes, whatever its width", arguments: [20, 80, 0]) func terminal(_ width: Int) async throws
    {
        let frames = [
            Self.text("a message of more than twenty columns"), Self.text("t\u{1B}[2J"), [0x82, 3, 0, 1, 2], [0x88, 2, 0x03, 0xE8],
        ]
        let server = try Self.server(frames)
        let words = ["ws", "ws://127.0.0.1:\(server.port)/"]
        let result = try await width == 0 ? ToolRun(words).result() : ToolRun.inTerminal(width, words)
        #expect(result.status == 0)
        if width == 0 {
            #expect(result.output == Data("a message of more than twenty columns\nt\u{1B}[2J\n\0\u{1}\u{2}".utf8))
            #expect(result.error == "")
        } else {
            #expect(result.text == "a message of more than twenty columns\r\nt\\u{1B}[2J\r\n(3 bytes)\r\n")
            #expect(result.error == "connected; Control-D closes\r\n")
        }
    }

    @Test("a line that is not UTF-8 is refused, and those before it are sent") func invalidLine() async throws {
        let isRefused = Gate()
        let server = try LoopbackServer { request, connection in
            guard let key = request.header("Sec-WebSocket-Key") else { return .status(400) }
            let accept = SHA1.hash(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
            try connection.send(
                raw: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Accept: \(Data(accept).base64EncodedString())\r\n\r\n")
            _ = connection.wait(until: isRefused)
            try connection.send(raw: Data([0x88, 2, 0x03, 0xE8]))
            connection.close()
            return nil
        }
        let run = try ToolRun(["ws", server.url("/")], hasInput: true)
        run.feed(Data("one\n".utf8) + [0xFF, 0x0A] + Data("two\n".utf8))
        let refusal = "curlew: line 2 of standard input is not UTF-8, and was not sent\n"
        #expect(await ToolRun.text(of: run.error, until: refusal) == refusal)
        isRefused.open()
        let result = await run.result()
        #expect(result.status == 10)
        #expect(result.error == "")
    }

    @Test("a closure for an error is one") func errors() async throws {
        let server = try Self.server([[0x88, 6, 0x03, 0xF3] + Array("oops".utf8)])
        let result = try await ToolRun.run("ws", server.url("/"))
        #expect(result.status == 9)
        #expect(result.error == "curlew: the server closed the WebSocket with 1011: oops\n")
    }

    @Test("a server that is none is an error") func refused() async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.run("ws", server.url("/status/404"))
        #expect(result.status == 4)
        #expect(result.error.hasPrefix("curlew: "))
    }
}

/// SHA-1 (RFC 3174), for the handshake of a WebSocket.
private enum SHA1 {
    static func hash(_ message: [UInt8]) -> [UInt8] {
        var bytes = message + [0x80]
        while bytes.count % 64 != 56 { bytes.append(0) }
        bytes += (0..<8).reversed().map { UInt8(truncatingIfNeeded: (message.count * 8) >> ($0 * 8)) }
        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        for block in stride(from: 0, to: bytes.count, by: 64) {
            var words = (0..<16).map { word in (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(bytes[block + word * 4 + $1]) } }
            for index in 16..<80 { words.append(rotate(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1)) }
            var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
            for (index, word) in words.enumerated() {
                let (mixed, constant): (UInt32, UInt32) =
                    switch index {
                    case ..<20: (b & c | ~b & d, 0x5A82_7999)
                    case ..<40: (b ^ c ^ d, 0x6ED9_EBA1)
                    case ..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
                    default: (b ^ c ^ d, 0xCA62_C1D6)
                    }
                (a, b, c, d, e) = (rotate(a, 5) &+ mixed &+ e &+ constant &+ word, a, rotate(b, 30), c, d)
            }
            for (index, value) in [a, b, c, d, e].enumerated() { state[index] &+= value }
        }
        return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - $0 * 8)) } }
    }

    private static func rotate(_ value: UInt32, _ count: UInt32) -> UInt32 { value << count | value >> (32 - count) }
}
