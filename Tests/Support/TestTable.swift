// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A table of a document of the repository, whose last column names tests as `Suite/function`.
public struct TestTable {
    /// A line of the table, and the names of its tests.
    public struct Row {
        /// The line.
        public let text: String
        /// The names in its last column.
        public let tests: [String]
    }

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The lines, without the table's head.
    public let rows: [Row]

    /// Reads the table of a section.
    ///
    /// - Parameters:
    ///   - path: the document, from the repository's root.
    ///   - heading: the section's heading, of the second level.
    public init(of path: String, under heading: String) throws {
        let document = try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
        let parts = document.components(separatedBy: "\n## \(heading)\n")
        guard parts.count == 2 else { throw TestError("\(path) has no section \(heading)") }
        let section = parts[1].components(separatedBy: "\n## ")[0]
        rows = section.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst(2).map { line in
            let cells = line.components(separatedBy: " | ")
            // Code is between the odd and the even backticks.
            let parts = (cells.last ?? "").components(separatedBy: "`")
            return Row(text: String(line), tests: parts.indices.filter { $0 % 2 == 1 }.map { parts[$0] })
        }
    }

    /// What is wrong with the table: lines without tests, and tests that do not exist.
    public func problems() throws -> [String] {
        let tests = try Self.existingTests()
        return rows.flatMap { row in
            row.tests.isEmpty
                ? ["no test: \(row.text)"]
                : row.tests.filter { name in
                    let parts = name.split(separator: "/", maxSplits: 1).map(String.init)
                    return !(parts.count == 2 && tests[parts[0]]?.contains(parts[1]) ?? false)
                }.map { "no such test: \($0)" }
        }
    }

    /// The names of the tests of each suite, which may be in several files.
    private static func existingTests() throws -> [String: Set<String>] {
        var tests: [String: Set<String>] = [:]
        let directory = root.appendingPathComponent("Tests")
        guard let paths = FileManager.default.enumerator(atPath: directory.path) else { throw TestError("no tests") }
        for case let path as String in paths where path.hasSuffix("Tests.swift") {
            var suite = ""
            for line in try String(contentsOf: directory.appendingPathComponent(path), encoding: .utf8).split(separator: "\n") {
                // Regular expressions are slow: only for lines that may match.
                if line.utf8.first != UInt8(ascii: " "), let name = line.firstMatch(of: /(?:struct|class|extension) ([A-Za-z0-9]+)/) {
                    suite = String(name.1)
                }
                if line.contains("func "), let name = line.firstMatch(of: /func (?:`([^`]+)`|([A-Za-z0-9]+))/) {
                    tests[suite, default: []].insert(String(name.1 ?? name.2 ?? ""))
                }
            }
        }
        return tests
    }
}
