// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// What is done with standard input that no option names.
@Suite(.timeLimit(.minutes(1))) struct StandardInputTests {
    @Test("a pipe is the body where a method or --json asks for one", arguments: [["POST"], ["PUT"], ["PURGE"], ["-j"]])
    func body(_ words: [String]) async throws {
        let server = try LoopbackServer.standard()
        let tool = try ToolRun(words + [server.url("/echo")], hasInput: true)
        tool.feed(Data("1".utf8))
        #expect(await tool.result().status == 0)
        #expect(server.requests.map(\.method) == [words == ["-j"] ? "POST" : words[0]])
        #expect(server.requests.first?.body == Data("1".utf8))
        let empty = try ToolRun(words + [server.url("/echo")], hasInput: true)
        empty.feed(Data())
        #expect(await empty.result().status == 0)
        #expect(server.requests.last?.body == Data())
    }

    @Test(
        "standard input is not waited for by a bare URL, methods without a body, with fields, or if it is to be ignored",
        arguments: [[], ["GET"], ["DELETE"], ["POST", "a=1"], ["-f"], ["-I", "POST"]])
    func ignored(_ words: [String]) async throws {
        let server = try LoopbackServer.standard()
        let url = server.url("/status/204")
        let tool = try ToolRun(words.last == "a=1" ? ["POST", url, "a=1"] : words + [url], hasInput: true)
        #expect(await tool.result().status == 0)
        tool.feed(Data())
    }

    @Test("a loop of a shell over lines sends a GET for each") func loop() async throws {
        let server = try LoopbackServer.standard()
        let directory = try TemporaryDirectory()
        let list = try directory.write(Data("\(server.url("/status/200"))\n\(server.url("/status/201"))\n".utf8), to: "list")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "while read -r u; do \"$0\" \"$u\"; done", try ToolRun.executable().path]
        process.standardInput = try FileHandle(forReadingFrom: list)
        process.standardOutput = FileHandle.nullDevice
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            process.terminationHandler = { _ in continuation.resume() }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        #expect(server.requests.map { "\($0.method) \($0.path)" } == ["GET /status/200", "GET /status/201"])
    }

    @Test("lines are read as bytes, also in pieces") func lines() throws {
        let directory = try TemporaryDirectory()
        let long = String(repeating: "x", count: 100_000)
        let file = try directory.write(Data("a\r\n\n\(long)\n".utf8) + [0xFF], to: "f")
        let descriptor = open(file.path, O_RDONLY)
        defer { close(descriptor) }
        var lines = InputLines(descriptor: descriptor)
        #expect(lines.next() == Array("a".utf8))
        #expect(lines.next() == [])
        #expect(lines.next() == Array(long.utf8))
        #expect(lines.next() == [0xFF])
        #expect(lines.next() == nil)
    }
}
