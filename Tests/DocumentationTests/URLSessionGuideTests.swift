// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import CurlewURLSession
import Testing

/// The code of «Coming from URLSession» is compiled, and runs as it says; its manifests are valid.
@Suite(.timeLimit(.minutes(2))) struct URLSessionGuideTests {
    private static let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    private static let page = here.appendingPathComponent("../../Sources/Curlew/Curlew.docc/ComingFromURLSession.md")

    @Test func `every block of the guide is compiled, and all code compiled for it is in it`() throws {
        let sources = ["URLSessionGuideSnippets.swift", "URLSessionDeclarationSnippets.swift"].map { Self.here.appendingPathComponent($0) }
        let page = Self.here.appendingPathComponent("../../Sources/Curlew/Curlew.docc/ComingFromURLSession.md")
        #expect(try DocumentedCode.differences(page: page, sources: sources) == [])
    }

    // U1.6
    @Test func `a client written for Apple's systems loads from a server`() async throws {
        let server = try LoopbackServer { request, _ in
            request.path == "/names" ? .ok(#"["Ada", "Grace"]"#, type: "application/json") : .status(404)
        }
        defer { server.stop() }
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        let catalog = Catalog(session: session)
        #expect(try await catalog.names(at: #require(URL(string: server.url("/names")))) == ["Ada", "Grace"])
        await #expect(throws: URLError(.badServerResponse)) { try await catalog.names(at: #require(URL(string: server.url("/none")))) }
        #expect(Uploader(session: session).isCurlews)
    }

    // U1.6
    @Test func `options of Curlew apply to the tasks of a session`() async throws {
        let server = try LoopbackServer { request, _ in .ok(request.header("Authorization") ?? "none") }
        defer { server.stop() }
        let url = try #require(URL(string: server.url("/")))
        let written = Log<String>()
        let configuration = URLSessionGuideSnippets.configuration { written.append($0) }
        #expect(configuration.curlew.idleTimeout == .seconds(10))
        let guarded = URLSession(configuration: configuration)
        await #expect(throws: URLError.self) { try await guarded.data(from: url) }
        #expect(server.requestCount == 0)
        await written.wait(for: 1)
        guarded.invalidateAndCancel()

        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        #expect(await URLSessionGuideSnippets.session(session) == 0)
        #expect(try await session.data(from: url).0 == Data("Bearer 7f3a9c".utf8))
        #expect(URLSessionGuideSnippets.task(session, url)?.contains("curl") == true)
    }

    @Test func `Curlew's own API has the same result`() async throws {
        let manager = SessionManager(mock: MockTransport(.text("text")))
        #expect(try await URLSessionGuideSnippets.own(manager, #require(URL(string: "https://a.example/"))).0 == Data("text".utf8))
    }

    /// The fields of a manifest that the guide is about.
    private struct Manifest: Decodable {
        struct Platform: Decodable {
            let platformName: String
            let version: String
        }

        let platforms: [Platform]
    }

    // U1.4
    @Test(.enabled(if: SwiftCompiler.isInstalled)) func `each manifest of the guide is valid, and Linux alone depends on Curlew`()
        async throws
    {
        let blocks = try String(contentsOf: Self.page, encoding: .utf8).components(separatedBy: "```").filter {
            $0.contains("swift-tools-version")
        }
        #expect(blocks.count == 2)
        for block in blocks {
            let text = String(block.drop { $0 != "/" })
            let directory = try TemporaryDirectory()
            try directory.write(Data(text.utf8), to: "Package.swift")
            let cache = directory.file("cache").path
            let arguments = ["package", "--package-path", directory.url.path, "--cache-path", cache, "--disable-sandbox", "dump-package"]
            let (status, output) = try await ChildProcess("swift", arguments).finish()
            #expect(status == 0)
            let json = output.joined(separator: "\n")
            let manifest = try JSONDecoder().decode(Manifest.self, from: Data(json.utf8))
            // An SDK's own, below those of Curlew.
            #expect(manifest.platforms.map { "\($0.platformName) \($0.version)" } == ["ios 15.0", "macos 12.0"])
            #expect(json.contains(#""CurlewURLSession""#))
            #expect(json.contains(#""linux""#) || text.contains("\n#if os(Linux)\npackage.dependencies"))
        }
    }
}
