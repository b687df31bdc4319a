// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewEvents
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Runs the guide's code and checks that it behaves as the guide says.
@Suite(.timeLimit(.minutes(1))) struct EventsGuideTests {
    private let manager = makeManager()

    @Test("every block of the guide is compiled, and all code compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Curlew/Curlew.docc/ServerSentEvents.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("GuideSnippets.swift")) == [])
    }

    /// A server whose stream ends for good with the second request.
    private func makeServer() throws -> LoopbackServer {
        try LoopbackServer { request, _ in
            guard request.header("Last-Event-ID") == nil else { return .status(204) }
            let price = #"{"symbol": "CRLW", "cents": 700}"#
            guard request.path == "/events" else { return .ok(price + "\n" + price) }
            let stream = "retry: 0\nid: 1\nevent: price\ndata: \(price)\n\nid: 2\ndata: x\n\n"
            return .ok(stream, type: "text/event-stream")
        }
    }

    @Test("events are read, with type and ID") func events() async throws {
        let server = try makeServer()
        defer { server.stop() }
        var printed: [String] = []
        try await GuideSnippets.events(manager, server.url("/events")) { printed.append($0) }
        #expect(printed == [#"price 1: {"symbol": "CRLW", "cents": 700}"#, "message 2: x"])
    }

    @Test("a POST of JSON is answered with events, up to the final one") func post() async throws {
        let server = try LoopbackServer { request, _ in
            let question = try JSONSerialization.jsonObject(with: request.body) as? [String: Any]
            let isAsked = question?["prompt"] as? String == "What does a curlew eat?" && question?["stream"] as? Bool == true
            guard request.method == "POST", isAsked else { return .status(400) }
            let events = [#"{"text": "Worms"}"#, #"{"text": "and crabs"}"#, "[DONE]", "no JSON"]
            return .ok(events.map { "data: \($0)\n\n" }.joined(), type: "text/event-stream")
        }
        defer { server.stop() }
        var printed: [String] = []
        try await GuideSnippets.post(manager, server.url("/chat"), token: "7f3a9c") { printed.append($0) }
        #expect(printed == ["Worms", "and crabs"])
        #expect(server.requestCount == 1)
        let request = try #require(server.requests.first)
        #expect(request.header("Content-Type") == "application/json" && request.header("Authorization") == "Bearer 7f3a9c")
        #expect(request.header("Accept") == "text/event-stream")
    }

    @Test("events of a type are values") func typed() async throws {
        let server = try makeServer()
        defer { server.stop() }
        var printed: [String] = []
        try await GuideSnippets.typed(manager, server.url("/events")) { printed.append($0) }
        #expect(printed == ["CRLW: 700"])
    }

    @Test("a stream resumes where another ended") func resumed() async throws {
        let server = try makeServer()
        defer { server.stop() }
        for try await _ in manager.eventStream(server.url("/events"), configuration: GuideSnippets.resumed("2")) { #expect(Bool(false)) }
        #expect(server.requests.map { $0.header("Last-Event-ID") } == ["2"])
    }

    @Test("lines are values") func lines() async throws {
        let server = try makeServer()
        defer { server.stop() }
        var printed: [String] = []
        try await GuideSnippets.lines(manager, server.url("/lines")) { printed.append($0) }
        #expect(printed == ["CRLW: 700", "CRLW: 700"])
    }
}
