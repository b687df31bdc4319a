// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Testing

/// The guide «Curlew on the server» shows the programs of Examples/Server, and tests that exist. `ServerProgramTests` runs those programs that
/// need Curlew only, `scripts/server-examples` all of them.
@Suite struct ServerGuideTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized
    private static let page = root.appendingPathComponent("Sources/Curlew/Curlew.docc/CurlewOnTheServer.md")
    /// How many rows each section of the contract has.
    private static let sections = ["S1": 6, "S2": 4, "S3": 4, "S4": 6, "S5": 4, "S6": 4, "S7": 5]

    @Test("every block of the guide is code of the programs, and every marked part of a program is in the guide") func sameCode() throws {
        let programs = Self.root.appendingPathComponent("Examples/Server/Sources")
        // The gateway is in an article of its own.
        let others = ["/LoopbackServer/", "/Gateway/"]
        let sources = try Self.swiftFiles(in: programs).filter { file in !others.contains { file.path.contains($0) } }
        #expect(sources.count >= 12)
        #expect(try DocumentedCode.differences(page: Self.page, sources: sources) == [])
    }

    @Test("every row of the contract is in the table, once and in order") func rows() throws {
        let expected = Self.sections.sorted { $0.key < $1.key }.flatMap { section, count in (1...count).map { "\(section).\($0)" } }
        #expect(try Self.table().map(\.id) == expected)
    }

    @Test("every row names tests or a script, and all of them exist") func tests() throws {
        let known = try Self.tests()
        #expect(known.count > 1000)
        for row in try Self.table() {
            #expect(!row.names.isEmpty, "\(row.id)")
            for name in row.names where !known.contains(name) {
                let script = Self.root.appendingPathComponent(name).path
                #expect(name.hasPrefix("scripts/") && FileManager.default.isExecutableFile(atPath: script), "\(row.id): \(name)")
            }
        }
    }

    @Test("suites that the text names exist") func suites() throws {
        let suites = Set(try Self.tests().compactMap { $0.split(separator: "/").first.map { String($0) } })
        let text = try String(contentsOf: Self.page, encoding: .utf8)
        let named = text.matches(of: /`(\w+Tests)`/).map { String($0.output.1) }
        #expect(named.count == 4)
        for name in named { #expect(suites.contains(name), "\(name)") }
    }

    // MARK: Reading

    /// The rows of the contract: their ids, and what the last of their four cells names.
    private static func table() throws -> [(id: String, names: [String])] {
        try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n").filter { $0.starts(with: /\| S\d/) }.map { line in
            let cells = line.components(separatedBy: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 6, !cells[1...4].contains("") else { throw TestError("The row has no four cells: \(line)") }
            return (cells[1], cells[4].matches(of: /`([^`]+)`/).map { String($0.output.1) })
        }
    }

    private static func swiftFiles(in folder: URL) throws -> [URL] {
        let paths = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil, options: [.skipsHiddenFiles])
        return (paths?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "swift" }.sorted { $0.path < $1.path }
    }

    /// The tests of the sources, as `Suite/function`.
    private static func tests() throws -> Set<String> {
        var tests: Set<String> = []
        for file in try swiftFiles(in: root.appendingPathComponent("Tests")) {
            var suite: Substring = ""
            var isTest = false
            for line in try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n") {
                // Searching for text first takes a tenth of the time.
                if line.contains("Tests"), let match = line.firstMatch(of: /\b(?:struct|class|actor|extension) (\w+Tests)\b/) {
                    suite = match.output.1
                }
                isTest = isTest || line.contains("@Test")
                guard isTest, line.contains("func "), let match = line.firstMatch(of: /\bfunc (?:`([^`]+)`|(\w+))/) else { continue }
                tests.insert("\(suite)/\(match.output.1 ?? match.output.2 ?? "")")
                isTest = false
            }
        }
        return tests
    }
}
