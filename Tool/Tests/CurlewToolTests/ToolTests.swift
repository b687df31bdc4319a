// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

private let json = #"{"name":"curlew","numbers":[1,2,3],"nested":{"key":"value"}}"#

@Suite(.timeLimit(.minutes(2))) struct ToolTests {
    // MARK: Output

    @Test("a pipe gets the unchanged body") func pipedBody() async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.run(server.url("/json"))
        #expect(result.status == 0)
        #expect(result.text == json)
        #expect(result.error == "")
    }

    @Test("JSON is formatted on a terminal") func terminalFormatting() async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.run(server.url("/json"), environment: ["NO_COLOR": "1"], outputIsTerminal: true)
        #expect(result.status == 0)
        #expect(result.text.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(result.text.contains("\r\n\r\n{\r\n  \"name\": \"curlew\",\r\n  \"numbers\": [\r\n    1,"))
        #expect(result.text.hasSuffix("}\r\n"))
        let raw = try await ToolRun.run("-b", "--pretty", "none", server.url("/json"), outputIsTerminal: true)
        #expect(raw.text == json)
    }

    @Test("a terminal gets no binary body") func binaryBody() async throws {
        let server = try LoopbackServer { _, _ in .ok(Data([1, 0, 2]), type: "image/png") }
        let result = try await ToolRun.run("-b", server.url("/"), outputIsTerminal: true)
        #expect(result.status == 0)
        #expect(result.text == "")
        #expect(result.error.contains("the body is binary (image/png)"))
    }

    @Test("a body does not control the terminal, unless it is to", arguments: ["--body-only", "--pretty=none", "--raw-output"])
    func controls(_ word: String) async throws {
        let server = try LoopbackServer { _, _ in .ok("\u{1B}]52;c;eA==\u{7}", type: "text/plain") }
        let result = try await ToolRun.run("-b", word, server.url("/"), outputIsTerminal: true)
        #expect(result.text.contains("\u{1B}") == (word == "--raw-output"))
        let sent = try await ToolRun.run("-p", "B", word, "--raw", "\u{1B}c", server.url("/"), outputIsTerminal: true)
        #expect(sent.text.contains("\u{1B}") == (word == "--raw-output"))
    }

    @Test("a large body is written to a pipe completely") func largeBody() async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.run(server.url("/bytes/30000000?seed=7"))
        #expect(result.status == 0)
        #expect(result.output.count == 30_000_000)
        #expect(GeneratedBody(seed: 7).matches(result.output))
    }

    @Test("a closed output ends the tool silently") func closedOutput() async throws {
        let server = try LoopbackServer.standard()
        let tool = try ToolRun([server.url("/bytes/1000000000")])
        #expect(await !ToolRun.piece(of: tool.output).isEmpty)
        close(tool.output)
        async let error = ToolRun.bytes(of: tool.error)
        #expect(await tool.status() == 0)
        #expect(await error.isEmpty)
    }

    @Test("the head is printed on request") func headers() async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.run("-p", "hb", server.url("/json"))
        #expect(result.text.hasPrefix("HTTP/1.1 200 OK\n"))
        #expect(result.text.contains("\nContent-Type: application/json\n"))
        #expect(result.text.hasSuffix("\n\n" + json))
        let head = try await ToolRun.run("HEAD", server.url("/json"))
        #expect(head.text.hasPrefix("HTTP/1.1 200 OK\n"))
        #expect(head.text.hasSuffix("\n\n"))
    }

    @Test("verbose prints what was on the wire, and no secrets") func verbose() async throws {
        let server = try LoopbackServer { request, connection in
            if request.path == "/path" {
                try connection.send(
                    raw: "HTTP/1.1 302 Over There\r\nZ: 1\r\nSet-Cookie: session=s3cret\r\nSet-Cookie: b=s3cret\r\nA: 2\r\n"
                        + "Location: /next\r\nContent-Length: 0\r\n\r\n")
            } else {
                try connection.send(raw: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 Fine\r\nContent-Length: 1\r\n\r\nx")
            }
            return nil
        }
        let result = try await ToolRun.run(
            "-v", server.url("/path?token=s3cret&a=1"), "Cookie:s3cret", environment: ["CURLEW_TOKEN": "s3cret"])
        #expect(result.status == 0)
        let version = CurlewInfo.version
        #expect(
            result.text == """
                GET /path?token=<hidden>&a=1 HTTP/1.1
                Host: 127.0.0.1:\(server.port)
                User-Agent: curlew/\(version)
                Accept: */*
                Accept-Encoding: gzip, deflate, br, zstd
                Authorization: Bearer <hidden>
                Cookie: <hidden>

                HTTP/1.1 302 Over There
                Z: 1
                Set-Cookie: <hidden>
                Set-Cookie: <hidden>
                A: 2
                Location: /next
                Content-Length: 0

                GET /next HTTP/1.1
                Host: 127.0.0.1:\(server.port)
                User-Agent: curlew/\(version)
                Accept: */*
                Accept-Encoding: gzip, deflate, br, zstd
                Authorization: Bearer <hidden>
                Cookie: <hidden>

                HTTP/1.1 103 Early Hints
                Link: </a>

                HTTP/1.1 200 Fine
                Content-Length: 1

                x
                """)
        #expect(result.error == "")
        #expect(server.requests.first?.header("Authorization") == "Bearer s3cret")
    }

    @Test("the request's head is what the server gets") func wire() async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.run(
            "-p", "HB", "--show-secrets", server.url("/echo?a=1"), "X-B:2", "X-B:3", "b=c", "Authorization:x y")
        let request = try #require(server.requests.first)
        let lines = ["POST /echo?a=1 HTTP/1.1"] + request.headers.map { "\($0.name): \($0.value)" }
        #expect(
            result.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) == lines + ["", #"{"b":"c"}"#, "", ""])
        let offline = try await ToolRun.run(
            "--offline", "--show-secrets", server.url("/echo?a=1"), "X-B:2", "X-B:3", "b=c", "Authorization:x y")
        #expect(offline.text == result.text)
        #expect(server.requestCount == 1)
    }

    @Test("control characters from the server do not reach standard error") func controlCharacters() async throws {
        let odd = "x\u{1B}[2J\u{9B}\u{2028}\u{202E}y"
        let server = try LoopbackServer { request, connection in
            let head = request.path == "/redirect" ? "302 x\r\nLocation: ftp://\(odd)/\r\n" : "200 x\r\nTransfer-Encoding: \(odd)\r\n"
            try connection.send(raw: "HTTP/1.1 \(head)X-Odd: \(odd)\r\n\r\n")
            connection.close()
            return nil
        }
        for path in ["/redirect", "/coding"] {
            let result = try await ToolRun.run("-v", server.url(path))
            let text = result.text + result.error
            #expect(text.contains(#"\u{1B}[2J"#))
            #expect(text.unicodeScalars.allSatisfy { !$0.isControlInText || $0 == "\n" }, "\(text.debugDescription)")
        }
    }

    @Test("compression is decoded by default") func compression() async throws {
        let server = try LoopbackServer.standard()
        let plain = try await ToolRun.run(server.url("/gzip?n=500"))
        #expect(plain.output == ServerRoutes.text(count: 500))
        let coded = try await ToolRun.run("--no-decode", server.url("/gzip?n=500"))
        #expect(coded.output.starts(with: [0x1F, 0x8B]))
        #expect(server.requests.last?.header("Accept-Encoding") == nil)
    }

    @Test("help and version") func helpAndVersion() async throws {
        let help = try await ToolRun.run("--help")
        #expect(help.status == 0)
        for status in ExitStatus.allCases { #expect(help.text.contains("\(status.rawValue)  \(status.summary)\n")) }
        #expect(help.text.split(separator: "\n").allSatisfy { $0.count <= 120 })
        let version = try await ToolRun.run("--version")
        #expect(version.text.hasPrefix("curlew \(CurlewInfo.version)\nlibcurl \(CurlInfo.current.version)"))
    }

    // MARK: Requests

    @Test("fields, query and headers reach the server") func requestItems() async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.run(
            "patch", server.url("/echo?x=0"), "z=1", "a:={\"k\":1.0}", "q==a b", "X-Test:yes", "E;", "Accept-Encoding:")
        #expect(result.status == 0)
        let request = try #require(server.requests.first)
        #expect(request.method == "PATCH")
        #expect(request.target == "/echo?x=0&q=a%20b")
        #expect(request.body == Data(#"{"z":"1","a":{"k":1.0}}"#.utf8))
        #expect(request.header("Content-Type") == "application/json")
        #expect(request.header("X-Test") == "yes")
        #expect(request.header("E") == "")
        #expect(request.header("User-Agent") == "curlew/\(CurlewInfo.version)")
    }

    @Test("a form reaches the server") func form() async throws {
        let server = try LoopbackServer.standard()
        _ = try await ToolRun.run("--form", server.url("/echo"), "b=1 2", "a=ü", "a=3")
        let request = try #require(server.requests.first)
        #expect(request.method == "POST")
        #expect(request.body == Data("b=1%202&a=%C3%BC&a=3".utf8))
    }

    @Test("a file and standard input are sent as bodies") func bodies() async throws {
        let server = try LoopbackServer.standard()
        let directory = try TemporaryDirectory()
        let body = GeneratedBody(seed: 3).data(count: 3_000_000)
        let file = try directory.write(body, to: "body.bin")
        let sent = try await ToolRun.run("PUT", server.url("/upload"), "--body", file.path)
        #expect(sent.status == 0)
        #expect(server.requests.last?.header("Content-Length") == "3000000")
        let tool = try ToolRun([server.url("/upload"), "--body", "-"], hasInput: true)
        tool.feed(body)
        #expect(await tool.result().status == 0)
        let download = try await ToolRun.run(
            "POST", server.url("/upload"), "--body", file.path, "--download", directory.file("reply").path)
        #expect(download.status == 0)
        #expect(server.requests.map(\.bodyChecksum) == Array(repeating: CRC32.checksum(of: body), count: 3))
    }

    @Test("credentials are sent") func credentials() async throws {
        let server = try LoopbackServer.standard()
        #expect(try await ToolRun.run("--token", "t", server.url("/auth-token?token=t")).status == 0)
        #expect(try await ToolRun.run(server.url("/auth-token?token=t"), environment: ["CURLEW_TOKEN": "t"]).status == 0)
        #expect(try await ToolRun.run("--user", "u:p:q", server.url("/auth-basic?user=u&password=p:q")).status == 0)
    }

    // MARK: Downloads

    @Test("a download is complete or absent") func downloads() async throws {
        let server = try LoopbackServer.standard()
        let directory = try TemporaryDirectory()
        let file = directory.file("file.bin")
        let result = try await ToolRun.run(server.url("/bytes/5000000?seed=2"), "--download", file.path)
        #expect(result.status == 0)
        #expect(result.text == "" && result.error == "")
        #expect(CRC32.checksum(of: try Data(contentsOf: file)) == GeneratedBody(seed: 2).checksum(count: 5_000_000))

        let missing = try await ToolRun.run(server.url("/status/404"), "--download", directory.file("missing").path)
        #expect(missing.status == 4)
        #expect(missing.error == "curlew: the server responded with 404 Not Found\n")
        let cut = try await ToolRun.run(server.url("/cut-body?announce=900000"), "--download", directory.file("cut").path)
        #expect(cut.status == 9)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["file.bin"])
    }

    @Test("an existing file is an error before anything is sent, unless forced") func existingFile() async throws {
        let server = try LoopbackServer.standard()
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("old".utf8), to: "file")
        let refused = try await ToolRun.run(server.url("/json"), "--download", file.path)
        #expect(refused.status == 10)
        #expect(refused.error == "curlew: \(file.path): file exists; use --force to replace it\n")
        #expect(try Data(contentsOf: file) == Data("old".utf8))
        let folder = try await ToolRun.run(server.url("/json"), "--download", directory.url.path, "--force")
        #expect(folder.status == 10)
        #expect(server.requestCount == 0)
        #expect(try await ToolRun.run(server.url("/json"), "--download", file.path, "--force").status == 0)
        #expect(try Data(contentsOf: file) == Data(json.utf8))
    }

    /// Sends half of a body, and no more.
    private static func stallingServer() throws -> LoopbackServer {
        try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(count: 500_000))
            connection.waitUntilClosed()
            return nil
        }
    }

    @Test("a signal ends a download and removes the partial file", arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)])
    func signals(_ signal: Int32, _ status: Int32) async throws {
        let server = try Self.stallingServer()
        let directory = try TemporaryDirectory()
        let tool = try ToolRun([server.url("/"), "--download", directory.file("file").path], errorIsTerminal: true)
        let progress = await ToolRun.text(of: tool.error, until: "%")
        #expect(progress.contains("976.5 KiB"))
        tool.signal(signal)
        #expect(await tool.status() == status)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == [])
        close(tool.output)
        close(tool.error)
    }

    @Test("a signal ends the tool even if its output is not read") func signalWithBlockedOutput() async throws {
        let server = try LoopbackServer.standard()
        let tool = try ToolRun([server.url("/bytes/100000000")])
        #expect(await server.waitForRequests(1))
        tool.signal(SIGINT)
        #expect(await tool.status() == 130)
        close(tool.output)
        close(tool.error)
    }

    // MARK: Exit status

    @Test(
        "the exit status identifies the outcome",
        arguments: [
            (["/status/204"], 0), (["/status/304"], 0), (["/redirect/3"], 0), (["/redirect/1", "--max-redirects", "0"], 3),
            (["/redirect/5", "--max-redirects", "2"], 3), (["/redirect-to?url=ftp://x"], 3), (["/status/404"], 4),
            (["/auth-token?token=t"], 4),
            (["/status/500"], 5), (["/silent", "--timeout", "0.3"], 8), (["/head-only", "--timeout", "0.3"], 8),
            (["/redirect-to?url=/silent", "--timeout", "0.3"], 8), (["/cut-head"], 9), (["/cut-body"], 9), (["/reset?send=10"], 9),
            (["/gzip-truncated"], 9), (["/json", "--what"], 2), (["/json", "a"], 2), (["/json", "X:a\nb"], 2),
            (["/json", "--body", "/nowhere"], 10),
            (["/json", "--body", "/"], 10), (["/json", "--cacert", "/nowhere"], 10), (["/json", "--download", "/nowhere/file"], 10),
        ] as [([String], Int32)])
    func exitStatus(_ words: [String], _ status: Int32) async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun([server.url(words[0])] + words.dropFirst()).result()
        #expect(result.status == status, "\(result.error)")
        // Silent on success, one line otherwise.
        #expect(result.error.split(separator: "\n", omittingEmptySubsequences: false).count == (status == 0 ? 1 : 2), "\(result.error)")
        #expect(result.error.isEmpty || result.error.hasPrefix("curlew: "))
    }

    @Test("connection and TLS failures have their own statuses") func connectionFailures() async throws {
        let server = try LoopbackServer.standard()
        let plain = try await ToolRun.run("https://127.0.0.1:\(server.port)/?token=s3cret")
        #expect(plain.status == 7)
        #expect(!plain.error.contains("s3cret"))
        let certificates = try await ToolRun.run("https://127.0.0.1:\(server.port)/", "--cacert", #filePath)
        #expect(certificates.status == 7)
        server.stop()
        let refused = try await ToolRun.run("http://user:s3cret@127.0.0.1:\(server.port)/?token=s3cret")
        #expect(refused.status == 6)
        #expect(refused.error.hasPrefix("curlew: ") && !refused.error.contains("s3cret"))
        #expect(try await ToolRun.run("http://host.invalid/").status == 6)
    }

    @Test("a lack of descriptors is reported", arguments: 4...14)
    func descriptorLimit(_ limit: Int) async throws {
        let result = try await ToolRun(["--version"], limit: "-n \(limit)").result()
        #expect(result.status == ExitStatus.other.rawValue)
        #expect(result.text == "")
        #expect(result.error == "curlew: can't start: fewer than 12 file descriptors are available; raise the limit with ulimit -n\n")
    }

    /// A sanitizer's shadow memory takes terabytes of address space.
    @Test(
        "256 MB of address space are enough for a download",
        .disabled(if: ProcessInfo.processInfo.environment["CURLEW_TEST_SHORT"] == "1", "a run for a sanitizer"))
    func addressSpaceLimit() async throws {
        let server = try LoopbackServer.standard()
        let directory = try TemporaryDirectory()
        let file = directory.file("file")
        let words = [server.url("/bytes/5000000?seed=2"), "--download", file.path, "--continue"]
        let result = try await ToolRun(words, limit: "-v \(256 << 10)").result()
        #expect(result.status == 0)
        #expect(result.error == "")
        #expect(CRC32.checksum(of: try Data(contentsOf: file)) == GeneratedBody(seed: 2).checksum(count: 5_000_000))
    }

    @Test("the received part of a truncated body is printed") func truncatedBody() async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.run(server.url("/cut-body?announce=100000&send=50000"))
        #expect(result.status == 9)
        #expect(result.output == GeneratedBody().data(count: 50_000))
    }

    @Test("an error page is printed") func errorPage() async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.run(server.url("/status/503"))
        #expect(result.text == "503")
        #expect(result.error == "curlew: the server responded with 503 Service Unavailable\n")
    }
}
