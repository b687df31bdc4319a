// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewCaching
import CurlewTestSupport
import Foundation
import Testing

/// Runs the guide's code and checks that it behaves as the guide says.
@Suite(.timeLimit(.minutes(1))) struct CachingGuideTests {
    @Test("every block of the guide is compiled, and all code compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Curlew/Curlew.docc/Caching.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("CachingGuideSnippets.swift")) == [])
    }

    @Test("the tests that the table of rules names exist") func namedTests() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = try String(contentsOf: here.appendingPathComponent("../../Sources/Curlew/Curlew.docc/Caching.md"), encoding: .utf8)
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| ") && $0.contains("Tests/") }
        #expect(rows.count > 40)
        let tests = here.appendingPathComponent("..")
        var sources: [String: String] = [:]
        for folder in ["CacheTests", "CachingTests", "CoreTests/Cache"] {
            for name in try FileManager.default.contentsOfDirectory(atPath: tests.appendingPathComponent(folder).path) {
                let file = tests.appendingPathComponent("\(folder)/\(name)")
                sources[file.deletingPathExtension().lastPathComponent] = try String(contentsOf: file, encoding: .utf8)
            }
        }
        for row in rows {
            for span in row.split(separator: "`") where span.contains("Tests/") {
                let parts = span.split(separator: "/", maxSplits: 1).map(String.init)
                let source = sources[parts[0]] ?? ""
                #expect(source.contains("func \(parts[1])(") || source.contains("func `\(parts[1])`("), "\(span) does not exist")
            }
        }
    }

    private func makeServer() throws -> LoopbackServer {
        try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Cache-Control", "max-age=60")], body: .data(Data("x".utf8)))
        }
    }

    @Test("the second response comes from memory") func memory() async throws {
        let server = try makeServer()
        defer { server.stop() }
        let manager = CachingGuideSnippets.memory()
        var printed: [String] = []
        for _ in 0..<2 { await CachingGuideSnippets.metrics(manager, server.url("/")) { printed.append("\($0) \($1)") } }
        #expect(printed == ["miss not-stored", "hit fresh"] && server.requestCount == 1)
        manager.session.invalidateAndCancel()
    }

    @Test("another session finds the response on disk") func disk() async throws {
        let server = try makeServer()
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        var printed: [String] = []
        for _ in 0..<2 {
            var configuration = SessionConfiguration()
            CachingGuideSnippets.disk(&configuration, directory.url)
            let manager = SessionManager(configuration: configuration)
            await CachingGuideSnippets.metrics(manager, server.url("/")) { printed.append("\($0) \($1)") }
            manager.session.invalidateAndCancel()
        }
        #expect(printed == ["miss not-stored", "hit fresh"])
    }

    @Test("an empty cache removes and lists nothing") func removing() throws {
        try CachingGuideSnippets.removing { url, _ in Issue.record("\(url) is stored") }
    }
}
