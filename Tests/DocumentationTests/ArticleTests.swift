// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import Testing

/// What the articles count with.
final class Meter: Sendable {
    private let sum = Monitor(0)

    var count: Int { sum.read { $0 } }

    func add(_ count: Int) { sum.update { $0 += count } }
}

/// The articles' code is compiled, and runs as they say. Articles with tests of their own are in `Self.others`.
@Suite(.timeLimit(.minutes(1))) struct ArticleTests {
    private static let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    private static let sources = [
        "ArticleSnippets.swift", "ArticleSnippets+Bodies.swift", "LayerSnippets.swift", "ReadmeSnippets.swift", "Snippets.swift",
    ]
    /// Pages whose code another test compares, and that test's file.
    private static let others = [
        "Caching.md": "DocumentationTests/CachingGuideTests.swift",
        "ComingFromAFNetworking2.md": "DocumentationTests/LayerSnippetTests+Guides.swift",
        "ComingFromSquid.md": "ServicesTests/GuideTests.swift",
        "ComingFromURLSession.md": "DocumentationTests/URLSessionGuideTests.swift",
        "ComingFromYTKNetwork.md": "DocumentationTests/LayerSnippetTests+Guides.swift",
        "CookiesAndHSTS.md": "DocumentationTests/CookiesGuideTests.swift",
        "CurlewDownloads.md": "DownloadsTests/GuideTests.swift",
        "CurlewHAR.md": "HARTests/HARGuideTests.swift",
        "CurlewOnTheServer.md": "DocumentationTests/ServerGuideTests.swift",
        "CurlewRedis.md": "RedisTests/GuideTests.swift",
        "CurlewResilience.md": "ResilienceTests/GuideTests.swift",
        "CurlewSigning.md": "SigningTests/GuideTests.swift",
        "ErrorsOfAPIs.md": "DocumentationTests/ErrorsGuideTests.swift",
        "Gateway.md": "DocumentationTests/GatewayGuideTests.swift",
        "ObservingASession.md": "ObservabilityTests/ObservabilityGuideTests.swift",
        "DeliverWithoutLosing.md": "WebhooksTests/GuideTests.swift",
        "Reach.md": "DocumentationTests/ReachGuideTests.swift",
        "RequestsAsValues.md": "ServicesTests/ValuesGuideTests.swift",
        "ServerSentEvents.md": "EventsTests/GuideTests.swift",
        "SigningIn.md": "AuthTests/GuideTests.swift",
        "SigningRequests.md": "SigningTests/GuideTests.swift",
        "TestingWithCurlew.md": "TestingTests/GuideTests.swift",
        "UploadsThatResume.md": "UploadsTests/GuideTests.swift",
        "UsingGraphQL.md": "GraphQLTests/GuideTests.swift",
        "WebSockets.md": "WebSocketTests/GuideTests.swift",
        "WhichAPI.md": "DocumentationTests/WhichAPITests.swift",
    ]

    /// The articles of all products that have code.
    private static func pagesWithCode() throws -> [URL] {
        let sources = here.appendingPathComponent("../../Sources")
        let files = FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)?.compactMap { $0 as? URL } ?? []
        return try files.filter { $0.pathExtension == "md" && $0.path.contains(".docc/") }
            .filter { try String(contentsOf: $0, encoding: .utf8).contains("```swift\n") }
            .sorted { $0.path < $1.path }
    }

    @Test("every block of the articles is compiled, and all code compiled for them is in them") func sameCode() throws {
        let pages = try Self.pagesWithCode().filter { Self.others[$0.lastPathComponent] == nil }
        #expect(pages.count >= 12)
        let differences = try DocumentedCode.differences(
            pages: pages, sources: Self.sources.map { Self.here.appendingPathComponent($0) })
        #expect(differences == [])
    }

    @Test("each other article with code is one that its test compares", arguments: others.sorted { $0.key < $1.key })
    func comparedElsewhere(page: String, test: String) throws {
        #expect(try Self.pagesWithCode().contains { $0.lastPathComponent == page })
        let code = try String(contentsOf: Self.here.appendingPathComponent("..").appendingPathComponent(test), encoding: .utf8)
            .components(separatedBy: "\n").filter { !$0.trimmingCharacters(in: .whitespaces).hasPrefix("//") }
        #expect(code.contains { $0.contains("/\(page)\"") || $0.contains("\"\(page)\"") })
        #expect(code.contains { $0.contains("DocumentedCode.differences(page:") })
    }

    // MARK: Clients and interceptors

    @Test("a client has the values of its API, within a deadline") func client() async throws {
        let mock = MockTransport()
        mock.stub(.get, "/users/{id}") { request in .json(User(id: Int(request.parameters["id"] ?? "") ?? 0, name: "Ada")) }
        let client = UsersClient(api: "https://api.example.org", manager: SessionManager(mock: mock))
        #expect(try await ArticleSnippets.front(client.manager).name == "Ada")
        #expect(try await ArticleSnippets.deadline(client).map(\.id) == [7, 8])
        await ArticleSnippets.shutdown(client.manager)
        await #expect(throws: CurlewError.self) { try await client.user(7) }
        #expect(ArticleSnippets.server().manager.session.configuration.maximumConnectionsPerHost == 50)
    }

    @Test("a transport in front of another one hears its transfers") func transport() async throws {
        let metered = MeteredTransport(MockTransport(.text("eight bytes"), .status(204)))
        let manager = SessionManager(configuration: SessionConfiguration(), transport: metered)
        #expect(try await manager.request("https://api.example.org/a").serializingString().value == "eight bytes")
        _ = await manager.request("https://api.example.org/b").serializingData().response
        #expect(metered.meter.count == 11)
        await manager.shutdown(gracePeriod: .seconds(1))
    }

    @Test("interceptors of all forms take part") func interceptors() async throws {
        let mock = MockTransport()
        mock.stub(.get, "/a", respond: .status(503), .text("a"))
        let manager = SessionManager(mock: mock)
        let request = ArticleSnippets.asyncClosures(manager, "https://api.example.org/a") { "t" }
        #expect(try await request.validate().serializingString().value == "a")
        #expect(mock.requests.map { $0.headers["Authorization"] } == ["Bearer t", "Bearer t"])
        mock.stub(.get, "/b", respond: .text("b"))
        let keyed = KeyForPathAdapter { "key of \($0)" }
        _ = try await manager.request("https://api.example.org/b", interceptor: keyed).serializingString().value
        #expect(mock.requests.last?.headers["X-API-Key"] == "key of /b")
        mock.stub(.get, "/orders/7", respond: .text("order"))
        #expect(try await ArticleSnippets.signed(manager) { "code of \($0)" } == "order")
        let signature = try #require(mock.requests.last?.headers["X-Signature"])
        #expect(signature.hasPrefix("code of GET https://api.example.org/orders/7 "))
        #expect(ArticleSnippets.interceptors(key: "k").interceptor != nil)
    }

    // A5.1
    @Test("a status of a provider is retried, after the time that it asks for") func providers() async throws {
        let clock = VirtualClock(.automatic)
        let mock = MockTransport(.status(529).header("Retry-After", "75"), .text("42"), clock: clock)
        #expect(try await Snippets.providers(SessionManager(mock: mock)) == "42")
        #expect(clock.elapsed == .seconds(75))
    }

    @Test("pages are followed, and printed as a table") func pages() async throws {
        let mock = MockTransport()
        mock.stub(.get, "/users") { request in
            guard request.url.hasSuffix("?page=2") else {
                return .json([User(id: 7, name: "Ada")]).header("X-Next-Page", "https://api.example.org/users?page=2")
            }
            return .json([User(id: 42, name: "Grace")])
        }
        let users = try await ArticleSnippets.pages("https://api.example.org/users", SessionManager(mock: mock))
        var lines: [String] = []
        ArticleSnippets.table(users) { lines.append($0) }
        #expect(lines == ["     7  Ada", "    42  Grace"])
    }

    @Test("a tool downloads a file, and says why it can't") func tool() async throws {
        let server = try LoopbackServer { request, _ in request.path == "/a" ? .ok("12345") : .status(404) }
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        let manager = Self.makeManager()
        let printed = Log<String>()
        #expect(await ArticleSnippets.tool(manager, server.url("/a"), directory.file("a")) { printed.append($0) } == 0)
        #expect(try Data(contentsOf: directory.file("a")) == Data("12345".utf8))
        #expect(await ArticleSnippets.tool(manager, server.url("/b"), directory.file("b")) { printed.append($0) } == 1)
        #expect(printed.elements.contains { $0.hasPrefix("error: GET ") && $0.contains("404") })
    }

    @Test("a monitor is told of retries and failures") func monitor() async throws {
        let written = Log<String>()
        let configuration = ArticleSnippets.monitor { written.append($0) }
        let mock = MockTransport()
        mock.stub(.get, "/", respond: .status(503))
        let manager = SessionManager(
            configuration: configuration, interceptor: RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0), transport: mock)
        await #expect(throws: CurlewError.self) { try await manager.request("https://a.example/").validate().serializingData().value }
        await manager.shutdown(gracePeriod: .seconds(10))
        #expect(written.count == 2 && written.elements[0].hasPrefix("again in ") && written.elements[1].contains("503"))
    }

    // MARK: Bodies

    @Test("values, forms and sequences are sent") func uploads() async throws {
        let server = try LoopbackServer { request, _ in
            switch request.path {
            case "/users": .ok(String(decoding: request.body, as: UTF8.self), type: "application/json")
            default: .ok(request.header("Content-Encoding") ?? "\(request.bodyLength)")
            }
        }
        defer { server.stop() }
        let (manager, directory) = (Self.makeManager(), try TemporaryDirectory())
        let photo = try directory.write(Data("pixels".utf8), to: "photo.png")
        #expect(try await ArticleSnippets.encodable(manager, server.url("/users")).name == "Ada")
        #expect(try await Int(ArticleSnippets.form(manager, server.url("/form"), photo)) ?? 0 > 100)
        #expect(try await ArticleSnippets.sequence(manager, server.url("/sequence")) == "3893")
        let compressed = ArticleSnippets.compression(manager, server.url("/gzip"), Data(count: 10_000))
        #expect(try await compressed.serializingString().value == "gzip")
    }

    @Test("a download resumes with the data of a failed one") func resumeData() async throws {
        let length = 100_000
        let body = GeneratedBody().data(count: length)
        let server = try LoopbackServer { request, connection in
            let offset = request.header("Range") == nil ? 0 : length / 2
            let status = offset == 0 ? "200 OK" : "206 Partial Content\r\nContent-Range: bytes \(offset)-\(length - 1)/\(length)"
            try connection.send(raw: "HTTP/1.1 \(status)\r\nContent-Length: \(length - offset)\r\nETag: \"1\"\r\n\r\n")
            try connection.send(raw: Data(body.dropFirst(offset).prefix(length / 2)))
            connection.close()
            return nil
        }
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        let file = try await ArticleSnippets.resumeData(Self.makeManager(), server.url("/"), directory.file("a"))
        #expect(try Data(contentsOf: file) == body)
    }

    @Test("the sum of bodies, and the lines of another") func streams() async throws {
        let mock = MockTransport(.text("{\"id\": 7, \"name\": \"Ada\"}\n{\"id\": 8, \"name\": \"Grace\"}\n"))
        let manager = SessionManager(mock: mock)
        var names: [String] = []
        try await ArticleSnippets.lines(manager, "https://a.example/") { names.append($0) }
        #expect(names == ["Ada", "Grace"])
        #expect(try await ArticleSnippets.executor(manager, ["https://a.example/"]) == 52)
        #expect(try await ArticleSnippets.asyncHTTPClient(manager, "https://a.example/").0 == 200)
    }

    // MARK: Security

    @Test("addresses of this machine are refused, unless they are allowed") func addresses() async throws {
        let server = try LoopbackServer { _, _ in .ok("secret") }
        defer { server.stop() }
        var printed: [String] = []
        try await ArticleSnippets.refused(ArticleSnippets.fetcher(), server.url("/")) { printed.append($0) }
        #expect(printed.count == 1 && printed[0].hasPrefix("refused: "))
        #expect(server.requestCount == 0)
        var configuration = SessionConfiguration()
        ArticleSnippets.exceptions(&configuration)
        #expect(configuration.addresses != .publicOnly && configuration.addresses != .any)
    }

    @Test("an authority and a proxy of one's own, and marked secrets") func settings() throws {
        let directory = try TemporaryDirectory()
        let pem = try directory.write(Data("pem".utf8), to: "authority.pem")
        #expect(try ArticleSnippets.authority(pem).session.configuration.tls.certificateAuthorities == Data("pem".utf8))
        var configuration = SessionConfiguration()
        ArticleSnippets.redaction(&configuration)
        #expect(configuration.redaction.queryItems.contains("code"))
    }

    private static func makeManager() -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        return SessionManager(configuration: configuration)
    }
}

/// The code of each step of the tutorial compiles.
@Suite(.timeLimit(.minutes(2)), .enabled(if: SwiftCompiler.isInstalled)) struct TutorialTests {
    private static let resources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Sources/Curlew/Curlew.docc/Resources")

    private static func code(_ name: String) throws -> String {
        try String(contentsOf: resources.appendingPathComponent(name), encoding: .utf8)
    }

    @Test(arguments: 1...5) func `a step of the program compiles`(number: Int) async throws {
        // A file that is compiled alone is a script, in which @main is an error.
        let program = try Self.code("first-program-\(number).swift").replacingOccurrences(of: "@main struct", with: "struct")
        #expect(try await SwiftCompiler.errors(in: program) == [])
    }

    @Test func `the program's test compiles with the program`() async throws {
        let program = try Self.code("first-program-5.swift").replacingOccurrences(of: "@main struct", with: "struct")
        let test = try Self.code("first-program-tests.swift").components(separatedBy: "\n")
            .filter { !$0.hasPrefix("@testable") && !$0.hasPrefix("import Testing") }.joined(separator: "\n")
            .replacingOccurrences(of: "@Test ", with: "").replacingOccurrences(of: "#expect(", with: "precondition(")
            .replacingOccurrences(of: "precondition(try await users", with: "_ = (try await users")
        #expect(try await SwiftCompiler.errors(in: program + test) == [])
    }

    @Test(arguments: 1...4) func `a step of the SDK compiles`(number: Int) async throws {
        #expect(try await SwiftCompiler.errors(in: Self.code("port-sdk-\(number).swift")) == [])
    }

    @Test func `the SDK's test compiles with the SDK`() async throws {
        let test = try Self.code("port-sdk-tests.swift").components(separatedBy: "\n")
            .filter { !$0.hasPrefix("@testable") && !$0.hasPrefix("import Testing") }.joined(separator: "\n")
            .replacingOccurrences(of: "@Test ", with: "").replacingOccurrences(of: "#expect(", with: "precondition(")
        #expect(
            try await SwiftCompiler.errors(in: ["client.swift": Self.code("port-sdk-4.swift"), "test.swift": test], flags: ["-wmo"]) == [])
    }

    @Test(arguments: 1...4) func `a step of the service's client compiles`(number: Int) async throws {
        #expect(try await SwiftCompiler.errors(in: Self.code("call-service-\(number).swift")) == [])
    }

    @Test func `the service's client and its tests are those that run here`() throws {
        for (code, file) in [("call-service-4.swift", "Prices.swift"), ("call-service-tests.swift", "PricesTests.swift")] {
            let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("ServiceTutorial/\(file)")
            let lines = try [Self.code(code), String(contentsOf: here, encoding: .utf8)].map { text in
                text.components(separatedBy: "\n").filter { !$0.contains("import ") && !$0.hasPrefix("//") && !$0.isEmpty }
            }
            #expect(lines[0] == lines[1])
        }
    }

    @Test func `every file of code is in a step`() throws {
        let tutorial = try ["FirstProgram", "CallAService", "PortAnSDK"].map { try Self.code("../Tutorials/\($0).tutorial") }.joined()
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.resources.path).filter { $0.hasSuffix(".swift") }
        #expect(files.count == 19)
        for file in files { #expect(tutorial.contains(file), "\(file)") }
    }
}
