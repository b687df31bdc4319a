// SPDX-License-Identifier: Apache-2.0
import Curlew
import Testing

/// The README's code is that of Snippets.swift, which is compiled and run.
@Suite struct ReadmeTests {
    private static let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    @Test("every block of the README is a snippet, and every snippet is in the README")
    func sameCode() throws {
        let readme = try Self.lines(of: "../../README.md")
        let blocks = Self.regions(in: readme, from: { $0 == "```swift" }, to: { $0 == "```" })
        let snippets = Self.regions(
            in: try Self.lines(of: "Snippets.swift"), from: { $0.hasPrefix("// snippet: ") }, to: { $0 == "// end" })
        #expect(!blocks.isEmpty)
        for block in blocks {
            #expect(snippets.contains { $0.code == block.code }, "README.md:\(block.line) stands not in Snippets.swift")
        }
        for snippet in snippets {
            #expect(blocks.contains { $0.code == snippet.code }, "Snippets.swift:\(snippet.line) stands not in README.md")
        }
    }

    @Test("every file that the README links to is there")
    func links() throws {
        let targets = try Self.lines(of: "../../README.md").joined(separator: "\n").matches(of: /\]\(([^)#:]+)\)/).map { $0.output.1 }
        #expect(!targets.isEmpty)
        for target in targets {
            #expect(FileManager.default.fileExists(atPath: Self.here.appendingPathComponent("../../\(target)").path), "\(target)")
        }
    }

    private struct Region {
        /// Where it begins, counted from 1.
        let line: Int
        var code: [String] = []
    }

    private static func lines(of path: String) throws -> [String] {
        try String(contentsOf: here.appendingPathComponent(path), encoding: .utf8).components(separatedBy: "\n")
    }

    /// The lines between marks, without the indentation that they have in common.
    private static func regions(in lines: [String], from isStart: (String) -> Bool, to isEnd: (String) -> Bool) -> [Region] {
        var regions: [Region] = []
        var current: Region?
        for (number, line) in lines.enumerated() {
            let trimmed = line.trimmingCharacters(in: .whitespaces)
            if isStart(trimmed) {
                current = Region(line: number + 1)
            } else if isEnd(trimmed), let region = current {
                regions.append(Region(line: region.line, code: outdented(region.code)))
                current = nil
            } else {
                current?.code.append(line)
            }
        }
        return regions
    }

    private static func outdented(_ code: [String]) -> [String] {
        let indentation = code.filter { !$0.isEmpty }.map { $0.prefix { $0 == " " }.count }.min() ?? 0
        return code.map { String($0.dropFirst(indentation)) }
    }
}
