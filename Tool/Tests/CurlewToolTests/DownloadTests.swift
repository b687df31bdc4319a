// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewDownloads
import CurlewTesting
import Testing

@testable import CurlewTool

@Suite(.timeLimit(.minutes(2))) struct DownloadTests {
    private static let size: Int64 = 3 << 20
    private let directory: TemporaryDirectory
    private var file: URL { directory.file("file") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func makeServer() throws -> LoopbackServer {
        try LoopbackServer { request, _ in
            guard request.path != "/none" else { return .status(404) }
            var response = ServerResponse.generated(length: Self.size, for: request)
            response.headers.append(ServerField("Content-Disposition", "attachment; filename=\"../../evil.bin\""))
            return response
        }
    }

    private func isComplete(_ name: String) throws -> Bool {
        let data = try Data(contentsOf: directory.file(name))
        return Int64(data.count) == Self.size && GeneratedBody().matches(data)
    }

    @Test("a file is downloaded over several connections, and not again") func complete() async throws {
        let server = try makeServer()
        let first = try await ToolRun.run("download", "-s", "8", "-d", directory.url.path, server.url("/file"))
        #expect(first.status == 0)
        #expect(first.output.isEmpty)
        #expect(first.error.hasPrefix("file: 3.0 MiB at "))
        #expect(try isComplete("file"))
        let again = try await ToolRun.run("dl", "-d", directory.url.path, server.url("/file"))
        #expect(again.status == 0)
        #expect(again.error == "file: 3.0 MiB, already complete\n")
    }

    @Test("a server's name for the file is safe") func contentDisposition() async throws {
        let server = try makeServer()
        #expect(try await ToolRun.run("dl", "-J", "-d", directory.url.path, server.url("/x")).status == 0)
        #expect(try isComplete("evil.bin"))
    }

    @Test("files of a list are downloaded, with mirrors, and a failure among them is told") func list() async throws {
        let server = try LoopbackServer { request, _ in
            request.path.hasPrefix("/gone/") ? .status(404) : .generated(length: Self.size, for: request)
        }
        let lines = ["# files", "\(server.url("/gone/a"))\t\(server.url("/a"))", "", server.url("/b"), server.url("/gone/d")]
        let list = try directory.write(Data(lines.joined(separator: "\n").utf8), to: "list")
        let result = try await ToolRun.run("dl", "-j", "2", "-i", list.path, "-d", directory.url.path, server.url("/c"))
        #expect(result.status == 4)
        #expect(result.error.contains("d: failed: "))
        #expect(result.error.hasSuffix("3 of 4 files, 9.0 MiB received\ncurlew: 1 of 4 downloads failed\n"))
        for name in ["a", "b", "c"] { #expect(try isComplete(name)) }
    }

    @Test("a digest is verified before the file has its name") func digest() async throws {
        let server = try makeServer()
        let wrong = try await ToolRun.run(
            "dl", "--sha256", String(repeating: "0", count: 64), "-o", file.path, server.url("/file"))
        #expect(wrong.status == 9)
        #expect(wrong.error.contains("sha-256"))
        #expect(!FileManager.default.fileExists(atPath: file.path))
    }

    @Test(
        "exit statuses",
        arguments: [
            (["dl"], 2), (["dl", "--segments", "0", "http://localhost/"], 2), (["dl", "--sha256", "x", "http://localhost/"], 2),
            (["dl", "-o", "a", "http://localhost/a", "http://localhost/b"], 2), (["dl", "http://localhost/a", "http://localhost/a"], 2),
            (["dl", "--limit-rate", "fast", "http://localhost/a"], 2), (["dl", "-o", "a", "-J", "http://localhost/a"], 2),
        ]) func usage(_ words: [String], _ status: Int) async throws
    {
        #expect(try await ToolRun(words).result().status == Int32(status))
    }

    @Test("a status, an existing file and no connection have their exit statuses") func statuses() async throws {
        let server = try makeServer()
        #expect(try await ToolRun.run("dl", "-o", file.path, server.url("/none")).status == 4)
        try directory.write(Data("mine".utf8), to: "file")
        let existing = try await ToolRun.run("dl", "-o", file.path, server.url("/file"))
        #expect(existing.status == 10)
        #expect(existing.error.hasSuffix("file exists; use --force to replace it\n"))
        #expect(try await ToolRun.run("dl", "--force", "-o", file.path, server.url("/file")).status == 0)
        #expect(try isComplete("file"))
        let url = server.url("/x")
        server.stop()
        let refused = try await ToolRun.run("dl", "--retry", "0", "-o", directory.file("x").path, url)
        #expect(refused.status == 6)
    }

    @Test("a killed download is resumed") func killed() async throws {
        let isOpen = Gate()
        let server = try LoopbackServer { request, connection in
            let response = ServerResponse.generated(length: Self.size, for: request)
            guard !isOpen.isOpen, request.header("Range") != "bytes=0-1048575" else { return response }
            isOpen.arrive()
            connection.waitUntilClosed()
            return nil
        }
        let run = try ToolRun(["dl", "-o", file.path, server.url("/file")])
        let record = directory.file(".file.segments.state")
        let start = ContinuousClock.now
        while (try? String(contentsOf: record, encoding: .utf8))?.contains("1048576\n") != true, ContinuousClock.now - start < .seconds(20)
        {
            await Task.yield()
        }
        run.signal(SIGKILL)
        #expect(await run.status() == -SIGKILL)
        isOpen.open()
        let result = try await ToolRun.run("dl", "-o", file.path, server.url("/file"))
        #expect(result.status == 0)
        #expect(result.error.contains(", 1.0 MiB of them resumed"))
        #expect(try isComplete("file"))
    }

    // MARK: Lines

    private func entry(_ name: String, _ completed: Int64, _ total: Int64?, connections: Int = 4) -> DownloadBoard.Entry {
        var entry = DownloadBoard.Entry(name: name)
        entry.progress = .init(completed: completed, total: total, connections: connections)
        entry.resumed = 0
        return entry
    }

    @Test(
        "a line of progress fits the width, and keeps the percentage",
        arguments: [
            (80, "debian.iso  50%  512.0 MiB of 1.0 GiB  51.2 MiB/s  0:10 left  4 connections"),
            (60, "debian.iso  50%  512.0 MiB of 1.0 GiB  51.2 MiB/s"),
            (40, "debian.iso  50%  512.0 MiB of 1.0 GiB"), (20, "debian.iso  50%"), (12, "debia…  50%"),
        ]) func line(_ width: Int, _ text: String)
    {
        #expect(DownloadBoard.line(entry("debian.iso", 512 << 20, 1 << 30), width: width, elapsed: .seconds(10)) == text)
    }

    @Test("characters of two columns count as such", arguments: [24, 30, 60]) func wide(_ width: Int) {
        let line = DownloadBoard.line(entry("日本語のとても長い名前🎉.iso", 512 << 20, 1 << 30), width: width, elapsed: .seconds(10))
        #expect(SafeText.columns(of: line) < width)
        #expect(line.contains("50%"))
        #expect(SafeText.columns(of: "aé日🎉") == 6)
        #expect(SafeText.fitted("日本", columns: 4) == "日本")
        #expect(SafeText.fitted("日本", columns: 3) == "日…")
        #expect(SafeText.fitted("日本", columns: 2) == "…")
    }

    @Test("an unknown length has no percentage, and names are escaped") func odd() {
        let line = DownloadBoard.line(entry("a\u{1B}b", 2048, nil, connections: 1), width: 80, elapsed: .seconds(2))
        #expect(line.hasSuffix("  2.0 KiB  1.0 KiB/s"))
        #expect(!line.contains("\u{1B}"))
    }

    @Test("rates have units", arguments: [("100", 100), ("1k", 1024), ("1.5M", 1_572_864), ("2G", 2 << 30)])
    func rate(_ text: String, _ bytes: Int64) {
        #expect(ByteRate(argument: text)?.bytesPerSecond == bytes)
        #expect(ByteRate(argument: "-" + text) == nil)
    }

    // MARK: Connections

    @Test("--resolve connects to the address in place of the name") func resolve() async throws {
        let server = try makeServer()
        let result = try await ToolRun.run(
            "--resolve", "example.test:\(server.port):127.0.0.1", "--headers", "http://example.test:\(server.port)/none")
        #expect(result.status == 4)
        #expect(server.requests.first?.header("Host") == "example.test:\(server.port)")
        #expect(try await ToolRun.run("--resolve", "example.test", "http://example.test/").status == 2)
    }

    @Test("--unix-socket connects to a socket, and says which does not exist") func unixSocket() async throws {
        let result = try await ToolRun.run("--unix-socket", directory.file("none").path, "http://localhost/")
        #expect(result.status == 6)
    }

    @Test("--http 3 is refused where libcurl has none") func http3() async throws {
        guard !CurlInfo.current.supportsHTTP3 else { return }
        let result = try await ToolRun.run("--http", "3", "https://localhost/")
        #expect(result.status == 2)
        #expect(result.error.contains("without HTTP/3"))
    }

    @Test("--cache responds from the disk") func cache() async throws {
        let server = try LoopbackServer { _, _ in
            var response = ServerResponse.ok("cached")
            response.headers.append(ServerField("Cache-Control", "max-age=600"))
            return response
        }
        let environment = ["HOME": directory.url.path, "XDG_CACHE_HOME": directory.url.path]
        for _ in 0..<2 { #expect(try await ToolRun.run("--cache", server.url("/"), environment: environment).text == "cached") }
        #expect(server.requestCount == 1)
    }
}
