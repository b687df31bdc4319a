// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Foundation
import Testing

/// The tests that documents name for their promises exist, in this package or in that of the program.
@Suite(.timeLimit(.minutes(1))) struct NamedTestsTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        .standardizedFileURL

    /// The names of the tests of each suite: those of their functions, and those that they show.
    ///
    /// A test belongs to the type or extension at the top level of its file that is above it.
    private static let tests = Result { try findTests() }

    private static func findTests() throws -> [String: Set<String>] {
        var found: [String: Set<String>] = [:]
        for folder in ["Tests", "Tool/Tests"] {
            let files = FileManager.default.enumerator(at: root.appendingPathComponent(folder), includingPropertiesForKeys: nil)
            for case let file as URL in files ?? FileManager.DirectoryEnumerator() where file.pathExtension == "swift" {
                var suite = ""
                var isOpen = false
                for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                    if !line.hasPrefix(" "), let type = line.firstMatch(of: /\b(?:struct|class|actor|enum|extension) (\w+)/) {
                        suite = String(type.output.1)
                        found[suite, default: []].formUnion([])
                    }
                    guard isOpen || line.contains("func ") || line.contains("@Test(") else { continue }
                    let names = line.matches(of: /func (?:`([^`]+)`|(\w+))/).compactMap { $0.output.1 ?? $0.output.2 }
                    // What a test shows may be on the line after its attribute.
                    let shown = isOpen ? line : line.firstMatch(of: /@Test\(/).map { line[$0.range.upperBound...] }
                    let title = shown?.firstMatch(of: /^\s*"((?:[^"\\]|\\.)+)"/)?.output.1
                    isOpen = line.hasSuffix("@Test(")
                    found[suite, default: []].formUnion((names + (title.map { [$0] } ?? [])).map { String($0) })
                }
            }
        }
        return found
    }

    @Test(arguments: [("SECURITY.md", 110), ("RELIABILITY.md", 40), ("SCALE.md", 140)])
    func `each test that is named exists`(document: String, atLeast count: Int) throws {
        let text = try String(contentsOf: Self.root.appendingPathComponent(document), encoding: .utf8)
        let names = text.matches(of: /`(\w+Tests)(?:\/([^`]+))?`/).map { ($0.output.1, $0.output.2) }
        #expect(names.count >= count)
        let tests = try Self.tests.get()
        for (suite, name) in names {
            let known = tests[String(suite)]
            #expect(known != nil, "\(document) names the suite \(suite)")
            if let name { #expect(known?.contains(String(name)) != false, "\(document) names \(suite)/\(name)") }
        }
    }

    @Test func `each promise against an attack names a test`() throws {
        let text = try String(contentsOf: Self.root.appendingPathComponent("SECURITY.md"), encoding: .utf8)
        let table = try #require(text.components(separatedBy: "| Attack | Promise | Test |").last?.components(separatedBy: "\n\n").first)
        let rows = table.split(separator: "\n").filter { $0.hasPrefix("| ") && !$0.hasPrefix("| ---") }
        #expect(rows.count >= 70)
        for row in rows { #expect(row.split(separator: "|").last { $0 != " " }?.contains(/`\w+Tests\/[^`]+`/) == true, "\(row)") }
    }
}
