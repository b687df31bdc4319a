// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Dispatch
import Testing

/// Runs code of the articles against servers in this process.
@Suite(.timeLimit(.minutes(1))) struct SnippetTests {
    private let server: LoopbackServer
    private let manager: SessionManager

    init() throws {
        server = try LoopbackServer(bodies: ServerRoutes.bodies, route: Self.route)
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        configuration.callbackQueue = DispatchQueue(label: "snippets")
        manager = SessionManager(configuration: configuration, transport: LoopbackTransport(to: server))
    }

    /// The responses of the articles' hosts.
    private static var route: LoopbackServer.Route {
        let standard = ServerRoutes.standard
        let reports = Gate()
        return { request, connection in
            switch (request.method, request.path) {
            case (_, "/users/7"): return try .json(User(id: 7, name: "Ada"))
            case (_, "/users"): return try .json(Received(request))
            case (_, "/report") where !reports.isOpen:
                reports.open()
                return .status(503)
            case (_, "/report"): return .ok(request.header("Authorization") ?? "")
            case (_, "/me") where request.header("Authorization") == nil:
                return ServerResponse(status: 401, headers: [ServerField("WWW-Authenticate", "Basic realm=\"users\"")])
            case (_, "/me"): return .ok("hello")
            case ("GET", "/archive.tar"): return ServerResponse(status: 200, body: .generated(length: 3_000_000))
            case ("PUT", "/archive.tar"): return .ok("\(request.bodyLength)")
            default: return try standard(request, connection)
            }
        }
    }

    @Test("a value is awaited")
    func value() async throws {
        #expect(try await Snippets.value(manager) == "Ada")
    }

    @Test("a handler receives the response")
    func handler() async {
        let printed: String = await withTrackedContinuation { continuation in
            Snippets.handler(manager) { continuation.resume(returning: "\($0)") }
        }
        #expect(printed == #"["Ada", 200]"#)
    }

    @Test("a manager has its own callback queue")
    func ownManager() {
        #expect(Snippets.manager().session.configuration.callbackQueue.label == "org.example.callbacks")
    }

    @Test("parameters are encoded as the comments say")
    func parameters() async throws {
        var received: [Received] = []
        for request in Snippets.parameters(manager) {
            received.append(try await request.validate().serializingDecodable(Received.self).value)
        }
        let query = "?name=Ada&roles%5B%5D=admin&roles%5B%5D=author"
        #expect(
            received == [
                Received(method: "GET", target: "/users\(query)", type: nil, body: "", key: nil),
                Received(
                    method: "POST", target: "/users", type: "application/x-www-form-urlencoded; charset=utf-8", body: "name=Ada", key: nil),
                Received(method: "POST", target: "/users", type: "application/json", body: #"{"name":"Ada"}"#, key: "5b3f"),
            ])
    }

    @Test("the adapter adds the token, and the retrier repeats the request")
    func retry() async throws {
        #expect(try await Snippets.retry(manager) == "Bearer 7f3a9c")
        #expect(server.requestCount == 2)
    }

    @Test("a download is complete, and is uploaded")
    func files() async throws {
        let directory = try TemporaryDirectory()
        let file = try await Snippets.download(manager, to: directory.url)
        #expect(GeneratedBody().matches(try Data(contentsOf: file)))
        #expect(try await Snippets.upload(manager, file) == Data("3000000".utf8))
    }

    @Test("a body is read in pieces")
    func bodyStream() async throws {
        #expect(try await Snippets.bodyStream(manager) == 3_000_000)
    }

    @Test("a response is opened at its head")
    func open() async throws {
        let printed = Lines()
        try await Snippets.open(manager) { printed.append("\($0)") }
        #expect(printed.all == [#"["-", 0, 3000000]"#])
    }

    @Test("a raw stream sends and receives")
    func stream() async throws {
        let echo = try TCPEchoServer()
        #expect(try await Snippets.stream(manager, host: "127.0.0.1", port: echo.port) == Data("Hello\n".utf8))
    }

    @Test("a connection is upgraded")
    func upgrade() async throws {
        let directory = try TemporaryDirectory()
        let socket = directory.file("daemon").path
        let daemon = try LoopbackServer(unixSocketPath: socket) { request, connection in
            try connection.send(raw: "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n\(request.path)")
            connection.waitUntilClosed()
            return nil
        }
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        let manager = SessionManager(configuration: configuration)
        #expect(try await Snippets.upgrade(manager, socket: socket) == Data("/exec/7f3a/start".utf8))
        withExtendedLifetime(daemon) {}
    }

    @Test("each exchange has metrics")
    func metrics() async {
        let metrics = await Snippets.metrics(manager)
        #expect(metrics.last?.remoteAddress == "127.0.0.1")
        #expect(metrics.last?.httpVersion == .http1_1)
    }

    @Test(
        "each error is caught where it should be",
        arguments: [
            ("https://api.example.org/users/7", #"[DocumentationTests.User(id: 7, name: "Ada")]"#),
            ("https://api.example.org/status/404", #"["refused with status 404"]"#),
            ("https://api.example.org/cut-head", "networkConnectionLost"),
            ("https://api.example.org/%no", "badURL"),
        ])
    func errors(url: String, expected: String) async throws {
        let printed = Lines()
        try await Snippets.errors(manager, url) { printed.append("\($0)") }
        let text = printed.all.joined()
        #expect(text == expected || text.contains(expected), "\(text)")
    }

    @Test("a timeout is reported as such")
    func timeout() async throws {
        var configuration = Snippets.configuration()
        configuration.proxy = .none
        configuration.idleTimeout = .seconds(1)
        let impatient = SessionManager(configuration: configuration, transport: LoopbackTransport(to: server))
        let printed = Lines()
        try await Snippets.errors(impatient, "https://api.example.org/silent") { printed.append("\($0)") }
        #expect(printed.all == [#"["no answer in time, while waiting"]"#])
    }

    @Test("credentials are sent after a challenge")
    func authentication() async throws {
        #expect(try await Snippets.authentication(manager) == "hello")
        #expect(server.requestCount == 2)
    }

    @Test("a policy repeats the request")
    func retryPolicy() async throws {
        #expect(try await Snippets.retryPolicy(manager) == "")
        #expect(server.requestCount == 2)
    }

    @Test("a form is received")
    func multipart() async throws {
        let directory = try TemporaryDirectory()
        let photo = try directory.write(Data("pixels".utf8), to: "photo.png")
        let printed: String = await withTrackedContinuation { continuation in
            Snippets.multipart(manager, photo: photo) { continuation.resume(returning: "\($0)") }
        }
        #expect(printed.contains("success"), "\(printed)")
        let body = try String(decoding: #require(server.requests.last).body, as: UTF8.self)
        for part in [#"name="name""#, "Ada", #"filename="photo.png""#, "image/png", "pixels"] { #expect(body.contains(part), "\(body)") }
    }

    @Test("a download resumes where the last one stopped")
    func resume() async throws {
        let directory = try TemporaryDirectory()
        let file = try await Snippets.resume(manager, to: directory.url)
        #expect(GeneratedBody().matches(try Data(contentsOf: file)))
    }

    @Test("a trust policy applies to its host")
    func trust() throws {
        let directory = try TemporaryDirectory()
        let policies = Snippets.trust(pinsIn: directory.url).session.serverTrustPolicyManager
        #expect(policies?.serverTrustPolicy(forHost: "api.example.org") != nil)
        #expect(policies?.serverTrustPolicy(forHost: "example.org") == nil)
    }

    @Test("a mock responds, and a retry gets its second response")
    func canned() async throws {
        #expect(try await Snippets.canned().name == "Ada")
    }
}

/// A request as received by the server.
private struct Received: Codable, Equatable, Sendable {
    let method: String
    let target: String
    let type: String?
    let body: String
    let key: String?
}

extension Received {
    init(_ request: ServerRequest) {
        method = request.method
        target = request.target
        type = request.header("Content-Type")
        body = String(decoding: request.body, as: UTF8.self)
        key = request.header("Idempotency-Key")
    }
}

/// The lines printed by a snippet.
private final class Lines {
    private(set) var all: [String] = []

    func append(_ line: String) {
        all.append(line)
    }
}
