// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

/// `scripts/urlsession-imports` replaces imports of FoundationNetworking, and only these, and undoes it exactly.
@Suite(.timeLimit(.minutes(1)), .enabled(if: ChildProcess.path(of: "python3") != nil)) struct URLSessionImportsScriptTests {
    private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../scripts/urlsession-imports").standardizedFileURL.path
    private static let mark = "  // in place of FoundationNetworking"

    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func run(_ options: String..., folder: String? = nil) async throws -> (status: Int32, output: [String]) {
        let (status, output) = try await ChildProcess(Self.script, [folder ?? directory.url.path] + options).finish()
        // Without the folder, which has another name each time.
        return (status, output.map { $0.replacingOccurrences(of: "\(directory.url.path)/", with: "") })
    }

    private func text(_ name: String) throws -> String {
        try String(contentsOf: directory.file(name), encoding: .utf8)
    }

    /// Writes a file, and returns its text after the script, whose second run must change nothing, and after `--back` as before.
    private func changed(_ text: String) async throws -> String {
        try directory.write(Data(text.utf8), to: "a.swift")
        #expect(try await run().status == 0)
        let result = try self.text("a.swift")
        #expect(try await run().status == 0)
        #expect(try self.text("a.swift") == result)
        #expect(try await run("--back").status == 0)
        #expect(try Data(contentsOf: directory.file("a.swift")) == Data(text.utf8))
        return result
    }

    // U1.6
    @Test(
        arguments: [
            "import FoundationNetworking", "@preconcurrency import FoundationNetworking", "@_exported import FoundationNetworking",
            "public import FoundationNetworking", "@_spi(Some) internal import FoundationNetworking",
            "\t@testable import FoundationNetworking",
            "import Foundation; import FoundationNetworking", "import class FoundationNetworking.URLSession",
            "let session: FoundationNetworking.URLSession", "import FoundationNetworking // why",
            "import FoundationNetworking /* FoundationNetworking */", ##"let a = #"\"#, b = "\"//", c: FoundationNetworking.URLRequest"##,
        ]
    )
    func `an import becomes another, with a mark, and comes back`(line: String) async throws {
        let lines = try await changed("import Foundation\n\(line)\nlet end = 1\n").components(separatedBy: "\n")
        let result = line.components(separatedBy: "/*")
        let expected = ([result[0].replacingOccurrences(of: "FoundationNetworking", with: "CurlewURLSession")] + result.dropFirst())
            .joined(separator: "/*")
        #expect(lines == ["import Foundation", expected + Self.mark, "let end = 1", ""])
    }

    // U1.6
    @Test(
        arguments: [
            "// import FoundationNetworking", "/* import\nimport FoundationNetworking /* */\nimport FoundationNetworking */",
            "let text = \"\"\"\n\timport FoundationNetworking\n\t\"\"\"", "let name = \"FoundationNetworking\"",
            "let raw = #\"\"\"\n\"\"\"\nimport FoundationNetworking\n\"\"\"#", "import FoundationNetworkingAdditions",
            "let type: FoundationNetworking.URLSession = \"\"\"\n\"\"\"",
        ]
    )
    func `what is no import is left alone`(text: String) async throws {
        #expect(try await changed("\(text)\n") == "\(text)\n")
    }

    // U1.6
    @Test func `a condition around an import changes with it, and another one is listed`() async throws {
        let other = "#if canImport(FoundationNetworking)\nlet lines = 1\n#elseif os(Linux)\n#endif\n"
        let text = """
            #if !canImport(Combine)
            #if canImport( FoundationNetworking )
            import FoundationNetworking
            #endif
            #endif

            """
        let result = try await changed(text + other)
        #expect(
            result == """
                #if !canImport(Combine)
                #if canImport( CurlewURLSession )\(Self.mark)
                import CurlewURLSession\(Self.mark)
                #endif
                #endif

                """ + other)
        let output = try await run().output
        #expect(
            output == [
                "a.swift: 2 lines", "a.swift:6: may have become unnecessary: #if canImport(FoundationNetworking)",
                "a.swift:8: may have become unnecessary: #elseif os(Linux)", "2 lines in 1 files",
            ])
    }

    // U1.6
    @Test func `files that import both are left as they are, and listed`() async throws {
        let text = "#if canImport(CurlewURLSession)\nimport CurlewURLSession\n#else\nimport FoundationNetworking\n#endif\n"
        #expect(try await changed(text) == text)
        #expect(try await run().output == ["a.swift: imports both, and is left as it is", "0 lines in 0 files"])
        // One whose author has changed it stays changed.
        #expect(try await changed("import CurlewURLSession\n") == "import CurlewURLSession\n")
    }

    // U1.6
    @Test func `bytes that are no text, line ends and a missing last one are kept`() async throws {
        let text =
            Data("import FoundationNetworking\r\n// ".utf8) + [0xFF, 0xFE]
            + Data("\r\nlet a = \"\u{2028}\u{0B}\"\r\nimport FoundationNetworking".utf8)
        try directory.write(text, to: "a.swift")
        #expect(try await run().output.last == "2 lines in 1 files")
        let changed = try Data(contentsOf: directory.file("a.swift"))
        #expect(changed.starts(with: Data("import CurlewURLSession\(Self.mark)\r\n".utf8)))
        #expect(try await run("--back").status == 0)
        #expect(try Data(contentsOf: directory.file("a.swift")) == text)
    }

    // U1.6
    @Test func `folders are searched, but for hidden ones, links and other files`() async throws {
        let line = Data("import FoundationNetworking\n".utf8)
        for folder in ["Sources/App", ".build/checkouts"] {
            try FileManager.default.createDirectory(at: directory.url.appendingPathComponent(folder), withIntermediateDirectories: true)
        }
        for name in ["Sources/App/a.swift", ".build/checkouts/b.swift", "Sources/c.txt"] { try directory.write(line, to: name) }
        let outside = try TemporaryDirectory()
        try outside.write(line, to: "d.swift")
        try FileManager.default.createSymbolicLink(at: directory.file("Sources/d.swift"), withDestinationURL: outside.file("d.swift"))
        #expect(try await run().output == ["Sources/App/a.swift: 1 line", "1 lines in 1 files"])
        #expect(try Data(contentsOf: outside.file("d.swift")) == line)
    }

    // U1.2
    @Test func `aliases are written and removed, and no other file is`() async throws {
        #expect(try await run("--aliases").output == ["URLSessionAliases.swift: written"])
        let lines = try text("URLSessionAliases.swift").components(separatedBy: "\n")
        #expect(lines.contains("typealias URLSession = CurlewURLSession.URLSession"))
        #expect(lines.contains("let NSURLSessionDownloadTaskResumeData = CurlewURLSession.NSURLSessionDownloadTaskResumeData"))
        #expect(try await run("--aliases=public").status == 0)
        #expect(try text("URLSessionAliases.swift").contains("\npublic typealias URLSession = CurlewURLSession.URLSession\n"))
        #expect(try await run("--aliases", "--back").output == ["URLSessionAliases.swift: removed"])
        try directory.write(Data("enum Other {}\n".utf8), to: "URLSessionAliases.swift")
        #expect(try await run("--aliases").status == 1)
        #expect(try await run("--aliases", "--back").status == 1)
        #expect(try text("URLSessionAliases.swift") == "enum Other {}\n")
    }

    // U1.2
    @Test func `every type that Foundation has too is among the aliases`() async throws {
        #expect(try await run("--aliases").status == 0)
        let aliases = Set(try text("URLSessionAliases.swift").matches(of: /(?:typealias|let) (\w+) =/).map { String($0.output.1) })
        let own = try await SwiftCompiler.symbols(of: "CurlewURLSession").filter { $0.path.count == 1 }
        let foundations = Set(try await SwiftCompiler.symbols(of: "FoundationNetworking").filter { $0.path.count == 1 }.map { $0.path[0] })
        let common = Set(own.map { $0.path[0] }).intersection(foundations)
        #expect(common.count > 15)
        #expect(common.subtracting(aliases) == [])
    }

    // U1.6
    @Test func `wrong arguments are refused`() async throws {
        #expect(try await run("--forth").status == 64)
        #expect(try await run("--aliases", "--aliases=public").status == 64)
        #expect(try await run(folder: directory.file("missing").path).status == 1)
    }
}
