// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// What is printed, to the byte, in a pseudo-terminal and in a pipe.
@Suite(.timeLimit(.minutes(2))) struct OutputTests {
    /// Responds with the same head each time.
    private static func server(_ type: String = "application/json", _ body: String = #"{"a":[1,true,"x"]}"#) throws -> LoopbackServer {
        try LoopbackServer { _, connection in
            try connection.send(
                raw: "HTTP/1.1 200 OK\r\nB: 2\r\nContent-Type: \(type)\r\nA: 1\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            return nil
        }
    }

    @Test("a terminal gets head and body in colours, unless NO_COLOR is set") func terminal() async throws {
        let server = try Self.server()
        let colours = try await ToolRun.run(server.url("/"), outputIsTerminal: true)
        let head =
            "HTTP/1.1 \u{1B}[32m200 OK\u{1B}[0m\r\n\u{1B}[36mB\u{1B}[0m: 2\r\n\u{1B}[36mContent-Type\u{1B}[0m: application/json\r\n"
            + "\u{1B}[36mA\u{1B}[0m: 1\r\n\u{1B}[36mContent-Length\u{1B}[0m: 18\r\n\r\n"
        let body =
            "{\r\n  \u{1B}[34m\"a\"\u{1B}[0m: [\r\n    \u{1B}[35m1\u{1B}[0m,\r\n    \u{1B}[35mtrue\u{1B}[0m,\r\n    \u{1B}[32m\"x\"\u{1B}[0m"
            + "\r\n  ]\r\n}\r\n"
        #expect(colours.text == head + body)
        let plain = try await ToolRun.run(server.url("/"), environment: ["NO_COLOR": "1"], outputIsTerminal: true)
        #expect(
            plain.text == "HTTP/1.1 200 OK\r\nB: 2\r\nContent-Type: application/json\r\nA: 1\r\nContent-Length: 18\r\n\r\n"
                + "{\r\n  \"a\": [\r\n    1,\r\n    true,\r\n    \"x\"\r\n  ]\r\n}\r\n")
        let pipe = try await ToolRun.run("--pretty", "all", server.url("/"))
        #expect(pipe.text == body.replacingOccurrences(of: "\r\n", with: "\n"))
    }

    @Test("lines of JSON and events come as they are sent", arguments: ["application/x-ndjson", "text/event-stream"])
    func streams(_ type: String) async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\n\r\n[1]\n")
            connection.wait(until: gate)
            connection.close()
            return nil
        }
        let tool = try ToolRun(["-b", server.url("/")], outputIsTerminal: true)
        let first = await ToolRun.text(of: tool.output, until: "\n")
        #expect(first == (type == "text/event-stream" ? "[1]\r\n" : "[\u{1B}[35m1\u{1B}[0m]\r\n"))
        gate.open()
        #expect(await tool.result().status == 0)
    }

    @Test("the waterfall of --meta fits the width", arguments: [20, 40, 80, 200]) func widths(_ width: Int) {
        var metrics = TransferMetrics()
        metrics.queueDuration = .milliseconds(1)
        metrics.nameLookupEnd = .milliseconds(3)
        metrics.connectEnd = .milliseconds(6)
        metrics.responseStart = .milliseconds(16)
        metrics.total = .milliseconds(20)
        let lines = MetaText(style: Style(isOn: false), width: width).lines(TaskMetrics(transactionMetrics: [metrics]))
        #expect(
            MetaText.phases(metrics).map(\.name) == ["queue", "dns", "connect", "first byte", "body", "total"])
        for line in lines where line.contains("█") { #expect(line.count <= width) }
        if width == 40 {
            #expect(
                Array(lines.prefix(6)) == [
                    "queue          1.00 ms  █", "dns            2.00 ms  ██", "connect        3.00 ms    ██",
                    "first byte    10.00 ms      ████████",
                    "body           4.00 ms              ███", "total         20.00 ms  ████████████████",
                ])
        }
    }

    @Test("--meta names connection and sizes") func meta() async throws {
        let server = try Self.server()
        let result = try await ToolRun.run("--meta", server.url("/"))
        #expect(result.text.contains("connection: 127.0.0.1:\(server.port), from 127.0.0.1:"))
        #expect(result.text.contains(", new\nprotocol: HTTP/1.1\nsent: "))
        #expect(result.text.contains("bytes of head, 18 of body\n"))
    }

    @Test("--har, --waterfall, --record and --replay") func files() async throws {
        let server = try Self.server()
        let directory = try TemporaryDirectory()
        let names = ["a.har", "a.svg", "tape"].map { directory.file($0).path }
        let result = try await ToolRun.run("--har", names[0], "--waterfall", names[1], "--record", names[2], server.url("/x"))
        #expect(result.status == 0, "\(result.error)")
        #expect(try String(contentsOfFile: names[0], encoding: .utf8).contains("\"\(server.url("/x"))\""))
        #expect(try String(contentsOfFile: names[1], encoding: .utf8).hasPrefix("<svg "))
        server.stop()
        #expect(try await ToolRun.run("--replay", names[2], server.url("/x")).text == result.text)
        #expect(try await ToolRun.run("--replay", names[2], server.url("/y")).status == 1)
    }

    @Test(
        "a file that can't be used is named with the reason",
        arguments: [
            (["--har", "/nowhere/a"], "/nowhere/a: No such file or directory"),
            (["--replay", "/nowhere"], "/nowhere: No such file or directory"),
            (["--waterfall", "/nowhere/a"], "/nowhere/a: No such file or directory"),
            (["--record", "/dev/null/a"], "/dev/null/a: Not a directory"),
        ])
    func unusableFiles(_ words: [String], _ reason: String) async throws {
        let server = try Self.server()
        let result = try await ToolRun([server.url("/")] + words).result()
        #expect(result.status == 10)
        #expect(result.error == "curlew: \(reason)\n")
    }

    @Test("times begin on a line of their own behind a body without an end of line") func metaBehindBody() async throws {
        let server = try Self.server()
        #expect(try await ToolRun.run("-p", "bm", server.url("/")).text.hasPrefix("{\"a\":[1,true,\"x\"]}\nqueue "))
        #expect(try await ToolRun.run("-p", "m", server.url("/")).text.hasPrefix("queue "))
    }

    @Test("the table of exit statuses is that of the program") func exitStatuses() throws {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../README.md").standardized
        let sections = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n## ")
        let statuses = try #require(sections.first { $0.hasPrefix("Exit status") })
        let rows = statuses.split(separator: "\n").filter { $0.hasPrefix("| ") && $0.dropFirst(2).first?.isNumber == true }
        #expect(rows.map(String.init) == ExitStatus.allCases.map { "| \($0.rawValue) | \($0.summary) |" })
    }

    @Test("--curl prints a command that sends the same request") func curlCommand() async throws {
        let result = try await ToolRun.run("--curl", ":3000/x", "a=it's", "q==1")
        #expect(
            result.text == """
                curl -L --max-redirs 20 --compressed -H 'User-Agent: curlew/\(CurlewInfo.version)' \
                -H 'Accept: application/json, */*;q=0.5' -H 'Accept-Encoding: gzip, deflate, br, zstd' -H 'Content-Type: application/json' --data-binary '{"a":"it'\\''s"}' 'http://localhost:3000/x?q=1'

                """)
    }
}

@Suite(.timeLimit(.minutes(2))) struct RequestTests {
    @Test("fields and files become a multipart form") func multipart() async throws {
        let server = try LoopbackServer.standard()
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("text".utf8), to: "a.csv")
        let result = try await ToolRun.run("--multipart", server.url("/echo"), "a=1", "f@\(file.path);type=text/csv", "t=@\(file.path)")
        #expect(result.status == 0)
        let request = try #require(server.requests.first)
        #expect(request.header("Content-Type")?.hasPrefix("multipart/form-data; boundary=") == true)
        let body = String(decoding: request.body, as: UTF8.self)
        #expect(body.contains("name=\"a\"\r\n\r\n1\r\n"))
        #expect(body.contains("name=\"f\"; filename=\"a.csv\"\r\nContent-Type: text/csv\r\n\r\ntext\r\n"))
        #expect(body.contains("name=\"t\"\r\n\r\ntext\r\n"))
    }

    @Test("--retry repeats what may be repeated, after Retry-After") func retry() async throws {
        let server = try LoopbackServer { request, _ in
            request.path == "/always" || request.sequence <= 2
                ? ServerResponse(status: 503, headers: [ServerField("Retry-After", "0")], body: .data(Data("no".utf8))) : .ok("yes")
        }
        let result = try await ToolRun.run("--retry", "3", server.url("/"))
        #expect(result.status == 0)
        #expect(result.text == "yes")
        let directory = try TemporaryDirectory()
        let download = try await ToolRun.run("--retry", "3", "--download", directory.file("f").path, server.url("/"))
        #expect(download.status == 0, "\(download.error)")
        let given = try await ToolRun.run("--retry", "1", server.url("/always"))
        #expect(given.status == 5)
        #expect(given.text == "no")
        let count = server.requestCount
        #expect(try await ToolRun.run("--retry", "3", "POST", server.url("/always"), "a=1").status == 5)
        #expect(server.requestCount == count + 1)
    }

    @Test("a challenge is answered with --auth-type challenge, and netrc is read on request") func challenge() async throws {
        let server = try LoopbackServer { request, _ in
            request.header("Authorization") == "Basic dTpw"
                ? .ok("in") : .status(401, headers: [ServerField("WWW-Authenticate", "Basic realm=\"r\"")])
        }
        let result = try await ToolRun.run("-A", "challenge", "-u", "u:p", server.url("/"))
        #expect(result.text == "in")
        #expect(server.requests.map { $0.header("Authorization") } == [nil, "Basic dTpw"])
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            Data("machine other login a password b\nmachine 127.0.0.1\n login u\n password p\n".utf8), to: "netrc")
        #expect(try await ToolRun.run("--netrc", server.url("/"), environment: ["NETRC": file.path]).text == "in")
        let noTerminal = try await ToolRun.run("-u", "u", server.url("/"))
        #expect(noTerminal.status == 2 || noTerminal.text == "in")
    }

    @Test(
        "netrc is read as by curl: quotes, escapes, users of a host, macros and comments",
        arguments: [
            ("machine h login a password \"b c\\t\\\"\\\\#\"", nil, "a:b c\t\"\\#"), ("machine h login a password b\\n#c", nil, "a:b\\n#c"),
            ("machine h login a password 1\nmachine h login b password 2", "b", "b:2"),
            ("machine h login a password 1 login b password 2", "b", "b:2"), ("machine h login a password 1", "b", nil),
            ("macdef init\nmachine h login m password n\n\nmachine H login a password 1", nil, "a:1"),
            ("machine x macdef y\nlogin z\n\nmachine h login a # password b\npassword c", nil, "a:c"),
            ("machine x login y password machine\ndefault login a password \"\"", nil, "a:"), ("MACHINE h LOGIN a", nil, "a:"),
            ("machine h password 1\nmachine h login a password 2\r\n", nil, "a:2"),
        ] as [(String, String?, String?)])
    func netrc(_ text: String, _ user: String?, _ credential: String?) throws {
        #expect(try Netrc(text).credential(for: "h", user: user).map { "\($0.user):\($0.password)" } == credential)
    }

    @Test("netrc has the password of the user that is named, and a broken one is named itself") func netrcUser() async throws {
        let server = try LoopbackServer { request, _ in .ok(request.header("Authorization") ?? "none") }
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            Data("machine 127.0.0.1 login a password 1\nmachine 127.0.0.1 login u password p\n".utf8), to: "netrc")
        let environment = ["NETRC": file.path]
        for words in [["--user", "u", server.url("/")], [server.url("/").replacingOccurrences(of: "//", with: "//u@")]] {
            #expect(try await ToolRun(["--netrc"] + words, environment: environment).result().text == "Basic dTpw")
        }
        #expect(try await ToolRun.run("--netrc", "-u", "x:y", server.url("/"), environment: environment).text == "Basic eDp5")
        try directory.write(Data("\nmachine h login \"a\n".utf8), to: "netrc")
        let broken = try await ToolRun.run("--netrc", server.url("/"), environment: environment)
        #expect(broken.status == 2)
        #expect(broken.error.hasPrefix("curlew: line 2 of "))
    }

    @Test("a reserved word is a subcommand, and a host with a slash") func reservedWords() async throws {
        #expect(try await ToolRun.run("help").text == Help.text)
        let unknown = try await ToolRun.run("help", "nothing")
        #expect(unknown.status == 2)
        #expect(unknown.error == "curlew: there is no subcommand \"nothing\"; see curlew --help\n")
        let download = try await ToolRun.run("download")
        #expect(download.status == 2)
        #expect(download.error.hasPrefix("curlew: the URL is missing"))
        #expect(try await ToolRun.run("--offline", "https://bench/").text.contains("Host: bench\n"))
        #expect(try await ToolRun.run("--offline", "bench/").text.contains("Host: bench\n"))
        #expect(try await ToolRun.run("--offline", "GET", "bench").text.contains("Host: bench\n"))
    }

    @Test("sse prints events and lines of JSON") func events() async throws {
        let server = try LoopbackServer { _, _ in .ok("data: one\n\nevent: x\nid: 3\ndata: two\ndata: three\n\n", type: "text/event-stream")
        }
        let text = try await ToolRun.run("sse", "--once", server.url("/"))
        #expect(text.text == "one\nx: two\nthree\n")
        #expect(text.status == 0)
        let json = try await ToolRun.run("sse", "-n", "2", "--json", server.url("/"))
        #expect(
            json.text == #"{"event":"message","id":"","data":"one"}"# + "\n" + #"{"event":"x","id":"3","data":"two\nthree"}"# + "\n")
    }

    @Test("sse tells why it waits", arguments: [true, false]) func eventsWait(_ isStopped: Bool) async throws {
        let server = try LoopbackServer { _, _ in .ok("retry: 9000\ndata: one\n\n", type: "text/event-stream") }
        let url = server.url("/")
        if isStopped { server.stop() }
        let run = try ToolRun(["sse", url])
        let text = await ToolRun.text(of: run.error, until: "; connecting again in ")
        #expect(text.hasPrefix("curlew: the server has closed the stream; ") == !isStopped)
        #expect(text.contains("; connecting again in "))
        run.signal(SIGTERM)
        #expect(await run.status() == ExitStatus.terminated.rawValue)
        close(run.output)
        close(run.error)
    }

    @Test("bench sends the requests and tells how long they took") func bench() async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.run("bench", "-n", "50", "-c", "5", server.url("/json"))
        #expect(result.status == 0)
        #expect(server.requestCount == 50)
        #expect(server.connectionCount <= 5)
        #expect(result.text.contains("statuses    200: 50\n"))
        #expect(result.text.split(separator: "\n").count == 20)
        #expect(try await ToolRun.run("bench", "-v", server.url("/")).error.contains("--verbose has no meaning for bench"))
    }

    @Test("with a rate the wait behind a stalled request counts") func coordinatedOmission() async throws {
        let server = try LoopbackServer { request, connection in
            if request.sequence == 1 { _ = connection.pause(for: .milliseconds(300)) }
            return .ok("x")
        }
        let result = try await ToolRun.run("bench", "-n", "20", "-c", "1", "--rate", "100", server.url("/"))
        let median = result.text.split(separator: "\n").first { $0.hasPrefix("50 %") }?.split(separator: " ").dropLast().last
        // Half of the requests were due while the first one was waited for.
        #expect((median.flatMap { Double($0) } ?? 0) > 100)
    }
}
