// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// What each subcommand prints, to the byte, in terminals of several widths and in a pipe.
@Suite(.timeLimit(.minutes(2))) struct GoldenTests {
    private static let body = #"{"a":[1,true,"x"]}"#

    /// Responds with the same head each time.
    private static func server(_ type: String = "application/json", _ body: String = body) throws -> LoopbackServer {
        try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            return nil
        }
    }

    /// The lines of a terminal.
    private static func lines(_ text: String) -> [String] {
        #expect(text.isEmpty || text.hasSuffix("\r\n"))
        return Array(text.components(separatedBy: "\r\n").dropLast())
    }

    /// Numbers as `#`, and spaces as one.
    private static func shape(_ line: String) -> String {
        var shape = ""
        for character in line {
            let next: Character = character.isNumber || (character == "." && shape.last == "#") ? "#" : character
            if next == "#" && shape.last == "#" || next == " " && shape.last == " " || next == "█" && shape.last == "█" { continue }
            shape.append(next)
        }
        return shape
    }

    // MARK: Requests

    @Test("-v formats the bodies of both, on a terminal of any width and on request", arguments: [20, 80, 200])
    func verbose(_ width: Int) async throws {
        let server = try Self.server()
        let words = ["-v", server.url("/x"), "b:={\"c\":[1]}", "a=1"]
        let head = """
            POST /x HTTP/1.1
            Host: 127.0.0.1:\(server.port)
            User-Agent: curlew/\(CurlewInfo.version)
            Accept: application/json, */*;q=0.5
            Accept-Encoding: gzip, deflate, br, zstd
            Content-Type: application/json
            Content-Length: 23


            """
        let response = "\n\nHTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: 18\n\n"
        let formatted = (
            "{\n  \"b\": {\n    \"c\": [\n      1\n    ]\n  },\n  \"a\": \"1\"\n}", "{\n  \"a\": [\n    1,\n    true,\n    \"x\"\n  ]\n}\n"
        )
        let whole = head + formatted.0 + response + formatted.1
        let terminal = try await ToolRun.inTerminal(width, words)
        #expect(terminal.text == whole.replacingOccurrences(of: "\n", with: "\r\n"))
        #expect(terminal.error == "")
        #expect(try await ToolRun(["--pretty", "format"] + words).result().text == whole)
        #expect(try await ToolRun(words).result().text == head + #"{"b":{"c":[1]},"a":"1"}"# + response + Self.body)
        let offline = try await ToolRun.inTerminal(width, ["--offline"] + words.dropFirst())
        #expect(offline.text == (head + formatted.0 + "\n\n").replacingOccurrences(of: "\n", with: "\r\n"))
    }

    @Test("-v shows a file that is sent, but no binary one on a terminal") func files() async throws {
        let server = try Self.server()
        let directory = try TemporaryDirectory()
        let text = try directory.write(Data("[1]".utf8), to: "a.json").path
        let binary = try directory.write(Data([1, 0, 2]), to: "b").path
        #expect(try await ToolRun(["-p", "B", server.url("/"), "--body", text]).result().text == "[1]\n\n")
        #expect(try await ToolRun.inTerminal(80, ["-p", "B", server.url("/"), "--body", text]).text == "[\r\n  1\r\n]\r\n\r\n")
        #expect(try await ToolRun.inTerminal(80, ["-p", "B", server.url("/"), "--body", binary]).text == "(3 bytes)\r\n\r\n")
        #expect(
            try await ToolRun(["--offline", server.url("/"), "--body", text]).result().text.hasSuffix("\nContent-Length: 3\n\n[1]\n\n"))
    }

    @Test("-v shows a form of parts as it is sent, and --offline the same") func parts() async throws {
        let server = try LoopbackServer.standard()
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("text".utf8), to: "a.txt").path
        let words = ["--multipart", "POST", server.url("/body"), "a=b", "f@\(file)"]
        let sent = try await ToolRun(["-v"] + words).result().text
        // The server returns what it has received, as the last part of what is printed.
        let bodies = sent.components(separatedBy: "\n\nHTTP/1.1 200 OK\n").compactMap { exchange in
            exchange.firstRange(of: "\n\n").map { String(exchange[$0.upperBound...]) }
        }
        try #require(bodies.count == 2)
        let received = bodies[1]
        #expect(received.contains("name=\"a\"\r\n\r\nb\r\n") && received.contains("text"))
        #expect(bodies[0] == received)
        let offline = try await ToolRun(["--offline"] + words).result().text
        #expect(offline.contains("\nContent-Length: \(received.utf8.count)\n\n--curlew.boundary."))
        #expect(offline.contains("\nContent-Type: multipart/form-data; boundary=curlew.boundary."))
    }

    @Test("-v shows what was read from standard input, with the first exchange only") func standardInput() async throws {
        let server = try LoopbackServer { request, _ in
            request.path == "/" ? ServerResponse(status: 303, headers: [ServerField("Location", "/other")]) : .ok("x")
        }
        let run = try ToolRun(["-p", "HB", "POST", server.url("/"), "--body", "-"], hasInput: true)
        run.feed(Data("piped".utf8))
        let text = await run.result().text
        #expect(text.hasPrefix("POST / HTTP/1.1\n"))
        #expect(text.contains("\nTransfer-Encoding: chunked\n\npiped\n\nGET /other HTTP/1.1\n"))
        #expect(text.components(separatedBy: "piped").count == 2)
        let offline = try ToolRun(["--offline", "POST", server.url("/"), "--body", "-"], hasInput: true)
        offline.feed(Data("piped".utf8))
        #expect(await offline.result().text.hasSuffix("\nTransfer-Encoding: chunked\n\npiped\n\n"))
    }

    @Test("the help of bench has no option that bench refuses, and none twice") func supportedOptions() async throws {
        let server = try Self.server()
        let help = try await ToolRun(["help", "bench"]).result().text
        #expect(help.contains("  --raw ") && help.contains("--requests"))
        // Those that need no value; each is either in the help or refused.
        for name in ["--verbose", "--headers", "--body-only", "--meta", "--show-secrets", "--offline", "--curl", "--netrc", "--multipart"] {
            #expect(!help.contains("\(name) "))
            #expect(try await ToolRun(["bench", name, server.url("/")]).result().error.contains("\(name) has no meaning for bench"))
        }
        #expect(help.components(separatedBy: "  --help ").count == 2)
        let run = try ToolRun(["bench", "-n", "1", "POST", server.url("/"), "--body", "-"], hasInput: true)
        run.feed(Data("piped".utf8))
        #expect(await run.result().text.contains("statuses    200: 1\n"))
    }

    @Test("a password is asked for on the terminal, and not shown") func passwordPrompt() async throws {
        let server = try LoopbackServer.standard()
        let run = try ToolRun(["-b", "-u", "name", server.url("/echo")], hasInput: true, hasTerminal: true)
        let asked = await ToolRun.text(of: run.output, until: "password of name: ")
        #expect(asked == "password of name: ")
        // Typed wrong, and erased by the two keys for that.
        run.feed(Data("x\u{15}s\u{E9}y\u{7F}\u{7F}\u{7F}secret\n".utf8))
        let text = await run.result().text
        #expect(text.contains("Basic " + Data("name:secret".utf8).base64EncodedString()))
        #expect(!text.contains("secret\r\n"))
    }

    @Test("Ctrl-C at the prompt ends the program, and the terminal shows again what is typed") func interruptedPrompt() async throws {
        let run = try ToolRun(["-u", "name", "http://127.0.0.1:1/"], hasInput: true, hasTerminal: true)
        _ = await ToolRun.text(of: run.output, until: "password of name: ")
        run.feed(Data([3]))
        let result = await run.result()
        #expect(result.status == ExitStatus.interrupted.rawValue)
        #expect(result.text == "\r\n")
    }

    @Test("SIGTERM at the prompt leaves a terminal that shows what is typed", .enabled(if: access("/proc/self", F_OK) == 0))
    func terminatedPrompt() async throws {
        let words = ["-c", "echo $$; \"$0\" -u name http://127.0.0.1:1/; stty -a", try ToolRun.executable().path]
        let run = try ToolRun(words, hasInput: true, hasTerminal: true, program: URL(fileURLWithPath: "/bin/sh"))
        let asked = await ToolRun.text(of: run.output, until: "password of name: ")
        let shell = try #require(Int32(asked.prefix { $0.isNumber }))
        let children = try String(contentsOfFile: "/proc/\(shell)/task/\(shell)/children", encoding: .utf8)
        kill(try #require(Int32(children.prefix { $0.isNumber })), SIGTERM)
        let text = await run.result().text
        #expect(text.contains(" echo ") && text.contains(" icanon ") && !text.contains("-echo "), "\(text)")
    }

    @Test("a form on a terminal is not coloured as JSON") func form() async throws {
        let server = try Self.server()
        let result = try await ToolRun(["-f", "-p", "B", server.url("/"), "a=1"], outputIsTerminal: true).result()
        #expect(result.text == "a=1\r\n\r\n")
    }

    @Test("the bars of --meta fill the width", arguments: [20, 40, 80, 132, 0]) func meta(_ width: Int) async throws {
        let server = try Self.server()
        // 0 is a pipe, whose lines are those of 80 columns.
        let result = try await width == 0 ? ToolRun(["-m", server.url("/")]).result() : ToolRun.inTerminal(width, ["-m", server.url("/")])
        let lines = width == 0 ? result.text.split(separator: "\n").map(String.init) : Self.lines(result.text)
        #expect(
            lines.map { Self.shape($0).replacingOccurrences(of: " █", with: "") } == [
                "queue # ms", "dns # ms", "connect # ms", "first byte # ms", "body # ms", "total # ms",
                "connection: #:#, from #:#, new", "protocol: HTTP/#", "sent: # bytes of head, # of body",
                "received: # bytes of head, # of body",
            ])
        let columns = width == 0 ? 80 : width
        for line in lines.prefix(6) { #expect(line.count <= max(columns, 22)) }
        let bar = max(columns - 24, 0)
        #expect(lines[5].hasSuffix(bar > 0 ? "ms  " + String(repeating: "█", count: bar) : "ms"))
    }

    @Test("an error is one line, whatever the width", arguments: [20, 80]) func errors(_ width: Int) async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.inTerminal(width, ["-b", server.url("/status/503")])
        #expect(result.text == "503\r\n")
        #expect(result.error == "curlew: the server responded with 503 Service Unavailable\r\n")
        let usage = try await ToolRun.inTerminal(width, ["--verbos", "x"])
        #expect(usage.error == "curlew: unknown option '--verbos'. Did you mean '--verbose'?; see curlew --help\r\n")
        #expect(usage.status == 2)
    }

    // MARK: Help

    @Test("help has the same words in any width, in lines that fit", arguments: ["", "download", "ws", "sse", "bench"], [40, 60, 80, 120])
    func help(_ name: String, _ width: Int) async throws {
        let words = name.isEmpty ? ["--help"] : ["help", name]
        let pipe = try await ToolRun(words).result().text
        let terminal = try await ToolRun.inTerminal(width, words)
        #expect(terminal.status == 0)
        #expect(
            terminal.text.split { $0.isWhitespace }.map(String.init) == pipe.split { $0.isWhitespace }.map(String.init))
        for line in Self.lines(terminal.text) { #expect(line.count <= width, "\(line)") }
        if width == 120, name.isEmpty { #expect(terminal.text == pipe.replacingOccurrences(of: "\n", with: "\r\n")) }
    }

    @Test("a line of the help is broken below its text") func wrapping() {
        #expect(
            Help.wrapped("  -j, --json              send the fields as JSON, the default", width: 60) == [
                "  -j, --json              send the fields as JSON, the", "                          default",
            ])
        #expect(Help.wrapped("          continued text of an option", width: 24) == ["          continued text", "          of an option"])
        #expect(Help.wrapped("A first word", width: 8) == ["A first", "word"])
        #expect(Help.wrapped("short", width: 8) == ["short"])
    }

    // MARK: Streams

    @Test("sse prints events as they are, and without controls on a terminal", arguments: [20, 80, 0]) func events(_ width: Int)
        async throws
    {
        let text = "data: one\n\nevent: x\ndata: t\u{1B}[2Jwo, and more than twenty columns\ndata: three\n\n"
        let server = try Self.server("text/event-stream", text)
        let words = ["sse", "--once", server.url("/")]
        let result = try await width == 0 ? ToolRun(words).result() : ToolRun.inTerminal(width, words)
        #expect(result.status == 0)
        #expect(
            result.text
                == (width == 0
                    ? "one\nx: t\u{1B}[2Jwo, and more than twenty columns\nthree\n"
                    : "one\r\nx: t\\u{1B}[2Jwo, and more than twenty columns\r\nthree\r\n"))
    }

    // MARK: Benchmarks

    @Test("the report of bench fits the width", arguments: [30, 40, 80, 120, 0]) func bench(_ width: Int) async throws {
        let server = try Self.server()
        let words = ["bench", "-n", "40", "-c", "4", server.url("/")]
        let result = try await width == 0 ? ToolRun(words).result() : ToolRun.inTerminal(width, words)
        #expect(result.status == 0)
        #expect(result.error == "")
        let lines = width == 0 ? Array(result.text.components(separatedBy: "\n").dropLast()) : Self.lines(result.text)
        let shapes = lines.map(Self.shape)
        #expect(
            shapes.prefix(12) == [
                "requests # in # s, # a second", "received # bytes of bodies", "statuses #: #", "", "# % # ms", "# % # ms", "# % # ms",
                "# % # ms",
                "# % # ms", "# % # ms", "slowest # ms", "",
            ])
        #expect(shapes.count == 22)
        #expect(shapes.dropFirst(12).allSatisfy { [" # ms # █", " # ms #"].contains($0) }, "\(shapes)")
        for line in lines.dropFirst(12) { #expect(line.count < (width == 0 ? 80 : width)) }
    }

    @Test("a run that is interrupted is reported, without what it has cut off") func interrupted() async throws {
        let gate = Gate()
        let count = Lock(0)
        let server = try LoopbackServer { _, connection in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number > 10 { connection.wait(until: gate) }
            return .ok("x")
        }
        defer { gate.open() }
        let tool = try ToolRun(["bench", "-n", "1000", "-c", "4", server.url("/")])
        #expect(await server.waitForRequests(14))
        tool.signal(SIGINT)
        let result = await tool.result()
        #expect(result.status == 130)
        #expect(result.text.contains("\nstatuses    200: 10\n"), "\(result.text)")
        #expect(!result.text.contains("failed"))
    }

    @Test(
        "the histogram's bars fill the width",
        arguments: [
            (20, ["     1.00 ms  1 █", "     2.00 ms  1 █", "    10.00 ms  3 ██"]),
            (24, ["     1.00 ms  1 ██", "     2.00 ms  1 ██", "    10.00 ms  3 ██████"]),
        ] as [(Int, [String])])
    func histogram(_ width: Int, _ expected: [String]) {
        let lines = BenchRun.histogram([0, 1.5, 9, 9.5, 10], width: width)
        #expect(lines.count == 10)
        #expect([lines[0], lines[1], lines[9]] == expected)
        #expect(lines[4] == "     5.00 ms  0")
        for line in lines { #expect(line.count < width) }
    }

    // MARK: Downloads

    /// Sends half of a file, and no more before the gate is opened.
    private static func stallingServer(_ gate: Gate) throws -> LoopbackServer {
        try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(count: 500_000))
            connection.wait(until: gate)
            connection.close()
            return nil
        }
    }

    /// The lines that were drawn, without the sequences that go back to draw one again, which depends on how fast the download is.
    private static func drawnLines(_ text: String) -> [String] {
        ["\u{1B}[1A", "\u{1B}[J"].reduce(text) { $0.replacingOccurrences(of: $1, with: "") }
            .components(separatedBy: CharacterSet(charactersIn: "\r\n")).filter { !$0.isEmpty }
    }

    @Test("the line of a download fits the width while it runs", arguments: [24, 40, 80, 120]) func download(_ width: Int) async throws {
        let gate = Gate()
        let server = try Self.stallingServer(gate)
        defer { gate.open() }
        let directory = try TemporaryDirectory()
        let tool = try ToolRun(
            ["dl", "-s", "1", "-d", directory.file("new/folder").path, server.url("/a-file-with-a-rather-long-name.bin")],
            environment: ["NO_COLOR": "1"], errorIsTerminal: true, columns: width)
        let text = await ToolRun.text(of: tool.error, until: "50%")
        tool.signal(SIGINT)
        #expect(await tool.status() == 130)
        close(tool.output)
        close(tool.error)
        let drawn = Self.drawnLines(text).filter { $0.contains("%") }
        #expect(drawn.contains { $0.contains("50%") })
        for line in drawn { #expect(line.count < width, "\(line)") }
        if width >= 80 { #expect(drawn.contains { $0.contains("488.2 KiB of 976.5 KiB") }) }
        if width == 24 { #expect(drawn.contains { $0.contains("…  50%") }) }
    }

    @Test(
        "the progress of --download fits the width",
        arguments: [
            (120, ["[", "]", "%", " of 976.5 KiB", "/s"]), (52, ["[", "]", "%", " of 976.5 KiB"]), (40, ["[", "]", "%"]), (12, ["%"]),
        ])
    func progress(_ width: Int, _ parts: [String]) async throws {
        let gate = Gate()
        let server = try Self.stallingServer(gate)
        defer { gate.open() }
        let directory = try TemporaryDirectory()
        let tool = try ToolRun([server.url("/"), "--download", directory.file("f").path], errorIsTerminal: true, columns: width)
        let text = await ToolRun.text(of: tool.error, until: "%")
        tool.signal(SIGINT)
        #expect(await tool.status() == 130)
        let rest = await ToolRun.bytes(of: tool.error)
        close(tool.output)
        let lines = (text + String(decoding: rest, as: UTF8.self)).components(separatedBy: CharacterSet(charactersIn: "\r\n"))
        let drawn = lines.filter { $0.contains("%") }.map { $0.replacingOccurrences(of: "\u{1B}[K", with: "") }
        #expect(!drawn.isEmpty)
        for line in drawn {
            #expect(line.count < width, "\(line)")
            for part in ["[", "]", "%", " of 976.5 KiB", "/s"] { #expect(line.contains(part) == parts.contains(part), "\(line)") }
        }
    }

    @Test("a download has one line in a log, and a terminal the same at its end", arguments: [40, 80, 0]) func downloaded(_ width: Int)
        async throws
    {
        let server = try Self.server()
        let directory = try TemporaryDirectory()
        let words = ["dl", "-d", directory.url.path, server.url("/file.json")]
        let result = try await width == 0 ? ToolRun(words).result() : ToolRun.inTerminal(width, words)
        #expect(result.status == 0, "\(result.error)")
        #expect(result.text == "")
        let last = try #require(Self.drawnLines(result.error).last)
        #expect(last.hasPrefix("file.json: 18 B at ") && last.hasSuffix("/s"))
        if width == 0 { #expect(result.error.split(separator: "\n").count == 1) }
        let list = try directory.write(Data("\(server.url("/a"))\n\(server.url("/b"))\n".utf8), to: "list")
        let two = try await ToolRun(["dl", "-i", list.path, "-d", directory.url.path]).result()
        #expect(
            two.error.split(separator: "\n").map { Self.shape(String($0)).replacingOccurrences(of: "KiB/s", with: "B/s") }.sorted()
                == ["# of # files, # B received", "a: # B at # B/s", "b: # B at # B/s"])
    }
}

/// What a shell's `<(command)` gives.
@Suite(.timeLimit(.minutes(1))) struct PipedFileTests {
    @Test("a pipe may be named wherever a file may") func pipes() async throws {
        let server = try LoopbackServer.standard()
        let directory = try TemporaryDirectory()
        func run(_ words: [String]) async throws -> ToolRun.Result {
            let pipe = directory.file("pipe-\(server.requestCount)")
            try #require(mkfifo(pipe.path, 0o600) == 0)
            let tool = try ToolRun(words.map { $0.replacingOccurrences(of: "PIPE", with: pipe.path) })
            Thread.detachNewThread {
                let descriptor = open(pipe.path, O_WRONLY)
                _ = "text".withCString { write(descriptor, $0, 4) }
                close(descriptor)
            }
            return await tool.result()
        }
        let url = server.url("/echo")
        #expect(try await run(["--body", "PIPE", url]).status == 0)
        #expect(server.requests.last?.body == Data("text".utf8))
        #expect(try await run([url, "a=@PIPE"]).status == 0)
        #expect(server.requests.last?.body == Data(#"{"a":"text"}"#.utf8))
        #expect(try await run(["--multipart", url, "f@PIPE;filename=x"]).status == 0)
        let body = String(decoding: server.requests.last?.body ?? Data(), as: UTF8.self)
        #expect(body.contains("filename=\"x\"\r\nContent-Type: application/octet-stream\r\n\r\ntext\r\n"))
        let missing = try await ToolRun.run("--multipart", url, "f@/nowhere")
        #expect(missing.status == 10)
        #expect(missing.error == "curlew: /nowhere: No such file or directory\n")
    }
}
