// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewWebSocket
import Testing

/// Runs the code of the guide, and checks that it does what the guide says.
@Suite(.timeLimit(.minutes(1))) struct GuideTests {
    private let manager = makeManager()
    private let printed = Log<String>()

    @Test("the guide's code blocks are the compiled snippets") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Curlew/Curlew.docc/WebSockets.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("GuideSnippets.swift")) == [])
    }

    /// Makes a server that echoes one message, sends `bytes`, and closes.
    private func answeringServer(_ reply: String? = nil) throws -> WebSocketServer {
        try makeServer { peer in
            guard let frame = try peer.receive() else { return }
            try peer.send(.text, frame.payload)
            if let reply { try peer.send(.text, Data(reply.utf8)) }
            try peer.send(.binary, Data(count: 3))
            try peer.sendClose(1000)
            try peer.answerClose()
        }
    }

    @Test("messages are sent and received") func open() async throws {
        let server = try answeringServer()
        try await GuideSnippets.open(manager, server.url()) { printed.append($0) }
        #expect(printed.elements == ["Hello", "3 bytes"])
        #expect(server.requests.first?.header("Origin") == "https://example.org")
    }

    @Test("values are sent and received") func typed() async throws {
        let server = try answeringServer("{}")
        try await GuideSnippets.typed(manager, server.url()) { printed.append("\($0.prefix(12))") }
        #expect(printed.elements == ["pawn to e4", "no move: The", "no move: The"])
    }

    @Test("a custom coding") func coding() async throws {
        let server = try makeEchoServer()
        let numbers = GuideSnippets.coding(manager, server.url())
        try await numbers.send(1_000_000)
        for try await number in numbers.messages {
            #expect(number == 1_000_000)
            break
        }
    }

    @Test("ping and close") func close() async throws {
        let server = try makeEchoServer()
        try await GuideSnippets.close(manager.webSocket(server.url())) { printed.append($0) }
        #expect(printed.elements == ["true, then 1000"])
    }

    @Test("the configuration") func configuration() async throws {
        let configuration = GuideSnippets.configuration()
        #expect(configuration.pingInterval == .seconds(30))
        #expect(configuration.reconnection.limit == 5)
        let server = try makeDeflateServer("; server_no_context_takeover")
        try await manager.webSocket(server.url(), configuration: configuration).open()
    }

    @Test("errors are distinguished") func errors() async throws {
        let refusing = try makeServer(answer: { _ in "HTTP/1.1 403 Forbidden\r\n\r\n" }) { _ in }
        let closing = try makeServer { peer in
            try peer.sendClose(1008, "no")
            try peer.answerClose()
        }
        let closedServer = try makeEchoServer()
        let url = closedServer.url()
        closedServer.stop()
        for url in [refusing.url(), closing.url(), url] {
            try await GuideSnippets.errors(manager.webSocket(url)) { printed.append("\($0.prefix(20))") }
        }
        #expect(printed.elements == ["refused with 403", "closed with 1008: no", "no connection: Faile"])
    }

    @Test("the states") func states() async throws {
        let server = try makeEchoServer()
        let socket = manager.webSocket(server.url())
        try await socket.open()
        async let watching: Void = GuideSnippets.states(socket) { printed.append($0) }
        await printed.wait(for: 1)
        try await socket.close()
        await watching
        #expect(printed.elements == ["open", "over"])
    }
}
