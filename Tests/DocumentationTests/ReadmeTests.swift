// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Testing

/// The README's code is that of Snippets.swift and LayerSnippets.swift, which is compiled and run.
@Suite struct ReadmeTests {
    private static let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    private static let readme = here.appendingPathComponent("../../README.md")

    @Test("every block of the README is a snippet, and every snippet is in the README")
    func sameCode() throws {
        let sources = (Self.here.appendingPathComponent("Snippets.swift"), Self.here.appendingPathComponent("LayerSnippets.swift"))
        #expect(try DocumentedCode.differences(page: Self.readme, sources: sources.0, sources.1) == [])
    }

    @Test("every file that the README links to exists")
    func links() throws {
        let targets = try String(contentsOf: Self.readme, encoding: .utf8).matches(of: /\]\(([^)#:]+)\)/).map { $0.output.1 }
        #expect(!targets.isEmpty)
        for target in targets {
            #expect(FileManager.default.fileExists(atPath: Self.here.appendingPathComponent("../../\(target)").path), "\(target)")
        }
    }
}
