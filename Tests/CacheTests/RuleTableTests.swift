// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// The table of rules in the guide on caching names a test for each rule.
@Suite(.timeLimit(.minutes(1))) struct RuleTableTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The names in the last column of each row.
    private static func rows() throws -> [(rule: String, tests: [String])] {
        let guide = try String(contentsOf: root.appendingPathComponent("Sources/Curlew/Curlew.docc/Caching.md"), encoding: .utf8)
        let table = try #require(guide.components(separatedBy: "## The rules\n").last)
        return table.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst(2).map { line in
            let cells = line.components(separatedBy: " | ")
            // Code is between the odd and the even backticks.
            let parts = (cells.last ?? "").components(separatedBy: "`")
            return (String(line), parts.indices.filter { $0 % 2 == 1 }.map { parts[$0] })
        }
    }

    /// The names of the tests of each suite, which may be in several files.
    private static func tests() throws -> [String: Set<String>] {
        var tests: [String: Set<String>] = [:]
        let directory = root.appendingPathComponent("Tests")
        let paths = try #require(FileManager.default.enumerator(atPath: directory.path))
        for case let path as String in paths where path.hasSuffix("Tests.swift") {
            var suite = ""
            for line in try String(contentsOf: directory.appendingPathComponent(path), encoding: .utf8).split(separator: "\n") {
                if let name = line.firstMatch(of: /(?:struct|class|extension) ([A-Za-z0-9]+)/), !line.hasPrefix(" ") {
                    suite = String(name.1)
                }
                if let name = line.firstMatch(of: /func (?:`([^`]+)`|([A-Za-z0-9]+))/) {
                    tests[suite, default: []].insert(String(name.1 ?? name.2 ?? ""))
                }
            }
        }
        return tests
    }

    @Test func `Each rule names tests, and each of them exists`() throws {
        let (rows, tests) = (try Self.rows(), try Self.tests())
        #expect(rows.count > 60)
        for row in rows {
            #expect(!row.tests.isEmpty, "no test: \(row.rule)")
            for name in row.tests {
                let parts = name.split(separator: "/", maxSplits: 1).map(String.init)
                #expect(parts.count == 2 && tests[parts[0]]?.contains(parts[1]) ?? false, "no such test: \(name)")
            }
        }
    }
}
