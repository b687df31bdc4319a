// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

/// «URLSession, member by member» says of each member what the modules' symbols say.
@Suite(.timeLimit(.minutes(2)), .enabled(if: SwiftCompiler.isInstalled)) struct URLSessionMembersTests {
    /// A row of a table: members with the name of their type, and the word that begins the second cell.
    private struct Row {
        let members: [String]
        let verdict: String
        let text: String
    }

    private static let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Sources/URLSession/CurlewURLSession.docc/URLSessionMembers.md")

    private static func rows() throws -> [Row] {
        var type = ""
        return try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n").compactMap { line in
            if line.hasPrefix("### ") {
                let heading = line.dropFirst(4)
                // Others name each member with its type, or are of constants.
                type = heading.contains(" ") || heading == "Constants" ? "" : "\(heading)."
            }
            let cells = line.components(separatedBy: " | ")
            guard line.hasPrefix("| `"), cells.count == 2 else { return nil }
            let members = cells[0].matches(of: /`([^`]+)`/).map { type + $0.output.1 }
            return Row(members: members, verdict: String(cells[1].prefix { $0.isLetter }), text: line)
        }
    }

    /// The members that a program has after `import CurlewURLSession`, with the names of their types.
    private static func known() async throws -> Set<String> {
        let own = try await SwiftCompiler.symbols(of: "CurlewURLSession")
        let types = Set(own.filter { $0.path.count == 1 }.map { $0.path[0] })
        let aliases = own.filter { $0.kind == "swift.typealias" }.map { $0.path.joined(separator: ".") }
        let foundations = try await SwiftCompiler.symbols(of: "FoundationNetworking").filter { symbol in
            let name = symbol.path.joined(separator: ".")
            // Foundation's types but those that are replaced, and what the aliases stand for.
            return !types.contains(symbol.path[0]) || aliases.contains { name.hasPrefix("\($0).") }
        }
        // Core adds members to Foundation's types, and the module exports its constants.
        let core = try await SwiftCompiler.symbols(of: "CurlewCore").filter {
            [
                "URLProtectionSpace", "URLCredential", "IdentityCredential", "NSURLAuthenticationMethodServerTrust",
                "NSURLAuthenticationMethodClientCertificate",
            ].contains($0.path[0])
        }
        // The protocol is that of one class.
        return Set(
            (own + foundations + core).map {
                $0.path.joined(separator: ".").replacingOccurrences(of: "IdentityCredential.", with: "URLCredential.")
            })
    }

    // U1.6
    @Test func `a member is there if the table says so, and not if it is absent`() async throws {
        let (rows, known) = (try Self.rows(), try await Self.known())
        #expect(rows.count > 100 && rows.flatMap(\.members).count > 280)
        for row in rows {
            #expect(["same", "differs", "absent", "more"].contains(row.verdict), "\(row.text)")
            for member in row.members { #expect(known.contains(member) == (row.verdict != "absent"), "\(member)") }
        }
    }

    // U1.6
    @Test func `the table says how a member differs, and names each once`() throws {
        let rows = try Self.rows()
        for row in rows where row.verdict != "same" { #expect(row.text.contains("| \(row.verdict): "), "\(row.text)") }
        let members = rows.flatMap(\.members)
        #expect(Dictionary(grouping: members) { $0 }.filter { $0.value.count > 1 }.keys.sorted() == [])
    }

    // U1.6
    @Test func `every public member of the module and of Foundation's session is in the table`() async throws {
        let listed = Set(try Self.rows().flatMap(\.members))
        let own = try await SwiftCompiler.symbols(of: "CurlewURLSession")
        let foundations = try await SwiftCompiler.symbols(of: "FoundationNetworking").filter { symbol in
            symbol.path[0].hasPrefix("URLSession") && symbol.path[0] != "URLSessionDownloadTaskResumeData"
                || symbol.path[0].hasPrefix("URLProtocol")
        }
        // The types are the headings; what every enum and every object has is not listed, nor are sequences that are no part of a session.
        let everywhere: Set = ["init(rawValue:)", "rawValue", "description"]
        let members = (own + foundations).filter {
            $0.path.count > 1 && !everywhere.contains($0.path.last ?? "") && !$0.path[0].hasPrefix("Async")
        }
        let missing = Set(members.map { $0.path.joined(separator: ".") }).subtracting(listed).filter { name in
            // A kind of task overrides what the table has for all of them.
            guard let type = name.split(separator: ".").first, type.hasSuffix("Task") else { return true }
            return !listed.contains("URLSessionTask\(name.dropFirst(type.count))")
        }
        let headings = Set(try String(contentsOf: Self.page, encoding: .utf8).components(separatedBy: "\n").filter { $0.hasPrefix("### ") })
        #expect(missing.filter { !headings.contains("### \($0)") }.sorted() == [])
        #expect(own.count > 200)
    }
}
