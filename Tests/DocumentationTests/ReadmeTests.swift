// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Testing

/// The README's code is that of ReadmeSnippets.swift, which is compiled and run.
@Suite(.timeLimit(.minutes(1))) struct ReadmeTests {
    private static let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    private static let readme = here.appendingPathComponent("../../README.md")

    @Test("every block of the README is a snippet, and every snippet is in the README")
    func sameCode() throws {
        let source = Self.here.appendingPathComponent("ReadmeSnippets.swift")
        #expect(try DocumentedCode.differences(page: Self.readme, sources: source) == [])
    }

    @Test("the program prints what the server has")
    func program() async throws {
        let server = try LoopbackServer { request, _ in
            guard request.path == "/repos/swiftlang/swift", request.header("User-Agent") == "hello" else { return .status(403) }
            return .ok(#"{"name": "swift", "description": "The Swift Programming Language"}"#, type: "application/json")
        }
        defer { server.stop() }
        var printed: [String] = []
        try await ReadmeSnippets.$transport.withValue(LoopbackTransport(to: server)) {
            try await ReadmeSnippets.program { printed.append($0) }
        }
        #expect(printed == ["swift: The Swift Programming Language"])
    }

    @Test("the README has at most 160 lines, and the import in place of URLSession's is on its first screen")
    func length() throws {
        let lines = try String(contentsOf: Self.readme, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count <= 161)
        #expect(lines.prefix(40).contains("+import CurlewURLSession"))
    }

    @Test("every file that the README links to exists")
    func links() throws {
        let text = try String(contentsOf: Self.readme, encoding: .utf8)
        let links = text.matches(of: /\]\(([^)#:]+)\)/).map { $0.output.1 }
        let pictures = text.matches(of: /(?:src|srcset)="([^":]+)"/).map { $0.output.1 }
        #expect(!links.isEmpty && !pictures.isEmpty)
        for target in links + pictures {
            #expect(FileManager.default.fileExists(atPath: Self.here.appendingPathComponent("../../\(target)").path), "\(target)")
        }
    }
}
