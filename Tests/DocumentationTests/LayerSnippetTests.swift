// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewRequests
import CurlewTestSupport
import CurlewWebSocket
import Dispatch
import Testing

/// Runs the articles' code about the other products, and that of guides, against servers in this process: one at a time, because both
/// change the shared configuration of requests.
@Suite(.serialized, .timeLimit(.minutes(1))) struct LayerSnippetTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer { request, _ in
            switch (request.method, request.path) {
            case ("POST", "/users"): try .json(["id": 7])
            case (_, "/users/7"): try .json(User(id: 7, name: "Ada"))
            case (_, "/events"): .ok("event: price\ndata: 12\n\n", type: "text/event-stream")
            case (_, "/index"): .ok("archive.tar")
            case (_, "/archive.tar"): ServerResponse(status: 200, body: .generated(length: 300_000))
            default: .status(404)
            }
        }
    }

    /// Redirects requests to hosts that do not exist to a loopback server.
    struct Detour: UrlFilter {
        let server: LoopbackServer

        func filterUrlRequest(_ urlRequest: inout URLRequest, with request: BaseRequest) throws {
            urlRequest.url = try URL(string: server.url(#require(urlRequest.url?.path)))
        }
    }

    @Test("request objects, one alone and two in a batch") func requests() async throws {
        let configuration = RequestsConfiguration.shared
        configuration.callbackQueue = DispatchQueue(label: "snippets")
        configuration.addUrlFilter(Detour(server: server))
        defer { configuration.clearUrlFilter() }
        let ended = try await LayerSnippets.requests()
        #expect(ended.map { ($0.responseJSONObject as? [String: Any])?["id"] as? Int } == [7, 7, 7])
        let bodies = server.requests.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(Set(bodies) == [#"{"name":"Ada"}"#, #"{"name":"Grace"}"#, #"{"name":"Edsger"}"#])
    }

    @Test("an operation that depends on another") func operations() async throws {
        let directory = try TemporaryDirectory()
        let urls = try (#require(URL(string: server.url("/index"))), #require(URL(string: server.url("/archive.tar"))))
        let index = try await LayerSnippets.operations(urls.0, urls.1, to: directory.url)
        #expect(index.responseData == Data("archive.tar".utf8))
        #expect(GeneratedBody().matches(try Data(contentsOf: directory.file("archive.tar"))))
        #expect(server.requests.first?.path == "/index")
    }

    private static func makeManager() -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        return SessionManager(configuration: configuration)
    }

    @Test("a request value, sent to a service") func services() async throws {
        #expect(try await LayerSnippets.services(Self.makeManager(), server.url("")).name == "Ada")
    }

    @Test("messages, events and JSON") func streams() async throws {
        let echo = try WebSocketServer(accept: { WebSocketHandshake.accept(for: $0) }) { try $0.echo() }
        let manager = Self.makeManager()
        var printed: [String] = []
        let user = try await LayerSnippets.streams(manager, echo.url(), server.url("/events"), server.url("/users/7")) {
            printed.append("\($0)")
        }
        #expect(printed.count == 2 && printed[0].contains("Hello") && printed[1] == "price: 12")
        #expect(user.name == "Ada")
    }
}
