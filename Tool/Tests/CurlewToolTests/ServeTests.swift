// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// `curlew serve`, asked by this program and by the curl of this machine.
@Suite(.timeLimit(.minutes(2))) struct ServeTests {
    /// A running server, its folder and its address.
    private struct Served {
        let folder: TemporaryDirectory
        let run: ToolRun
        let url: String
        let first: String

        init(_ words: [String] = []) async throws {
            folder = try TemporaryDirectory()
            let root = folder.file("root")
            try FileManager.default.createDirectory(at: root.appendingPathComponent("sub"), withIntermediateDirectories: true)
            try Data("0123456789".utf8).write(to: root.appendingPathComponent("digits.txt"))
            try Data("<x>".utf8).write(to: root.appendingPathComponent("a & <b> ü.html"))
            try Data("secret".utf8).write(to: root.appendingPathComponent(".hidden"))
            try Data("outside".utf8).write(to: folder.file("outside"))
            try FileManager.default.createSymbolicLink(
                at: root.appendingPathComponent("within"), withDestinationURL: root.appendingPathComponent(".hidden"))
            try FileManager.default.createSymbolicLink(at: root.appendingPathComponent("link"), withDestinationURL: folder.file("outside"))
            run = try ToolRun(["serve", "--quiet"] + words + [root.path])
            first = await ToolRun.text(of: run.output, until: words.contains("--tls") ? ".pem\n" : "\n")
            url = String(first.prefix { $0 != "\n" })
            #expect(url.hasPrefix(words.contains("--tls") ? "https://localhost:" : "http://127.0.0.1:"))
        }

        func end() async {
            run.signal(SIGINT)
            #expect(await run.status() == 130)
            close(run.output)
            close(run.error)
        }
    }

    @Test("files, ranges, listings and conditions") func files() async throws {
        let served = try await Served()
        let url = served.url
        #expect(try await ToolRun.run("\(url)digits.txt").text == "0123456789")
        let part = try await ToolRun.run("-p", "hb", "\(url)digits.txt", "Range:bytes=3-5")
        #expect(
            part.text.hasPrefix("HTTP/1.1 206 ") && part.text.contains("\nContent-Range: bytes 3-5/10\n") && part.text.hasSuffix("\n\n345"))
        #expect(try await ToolRun.run("\(url)digits.txt", "Range:bytes=-2").text == "89")
        #expect(try await ToolRun.run("\(url)digits.txt", "Range:bytes=99-").status == 4)
        #expect(try await ToolRun.run("\(url)digits.txt", "Range:bytes=3-5", "If-Range:\"other\"").text == "0123456789")
        let head = try await ToolRun.run("HEAD", "\(url)digits.txt")
        #expect(head.text.contains("\nContent-Length: 10\n") && head.text.contains("\nContent-Type: text/plain; charset=utf-8\n"))
        let tag = try #require(head.text.split(separator: "\n").first { $0.hasPrefix("ETag: ") }?.dropFirst(6))
        #expect(try await ToolRun.run("-h", "\(url)digits.txt", "If-None-Match:\(tag)").text.hasPrefix("HTTP/1.1 304 "))
        let page = try await ToolRun.run(url)
        #expect(page.text.contains("<a href=\"./a%20%26%20%3Cb%3E%20%C3%BC.html\">a &amp; &lt;b> ü.html</a>"))
        #expect(
            page.text.contains("href=\"./sub/\"") && !page.text.contains("hidden") && !page.text.contains("link")
                && !page.text.contains("files"))
        #expect(try await ToolRun.run("\(url)a & <b> ü.html").text == "<x>")
        #expect(try await ToolRun.run("\(url)sub").text.contains("href=\"../\""))
        await served.end()
    }

    @Test("nothing outside the folder, no hidden file, and no other name of this machine") func confined() async throws {
        let served = try await Served()
        for path in [
            "../outside", "%2e%2e/outside", "sub/..%2f..%2foutside", "link", "within", ".hidden", "%2Ehidden", "none", "digits.txt/",
            "a%00",
        ] {
            let result = try await ToolRun(["curl", "-s", "--path-as-is", "\(served.url)\(path)"]).result()
            #expect(result.status == 4 && !result.text.contains("outside") && !result.text.contains("secret"), "\(path): \(result.text)")
        }
        #expect(try await ToolRun.run("\(served.url)digits.txt", "Host:evil.example.org").status == 4)
        #expect(try await ToolRun.run("PUT", "\(served.url)new", "--raw", "x").status == 4)
        #expect(try await ToolRun.run("DELETE", "\(served.url)digits.txt").status == 4)
        #expect(!FileManager.default.fileExists(atPath: served.folder.file("root/new").path))
        await served.end()
    }

    @Test("--upload takes files, and --force replaces them") func uploads() async throws {
        let served = try await Served(["--upload"])
        #expect(try await ToolRun.run(served.url).text.contains("type=\"file\""))
        #expect(try await ToolRun.run("PUT", "\(served.url)sub/n%20w", "--raw", "new").status == 0)
        #expect(try Data(contentsOf: served.folder.file("root/sub/n w")) == Data("new".utf8))
        #expect(try await ToolRun.run("PUT", "\(served.url)digits.txt", "--raw", "new").text.contains("--force"))
        #expect(try Data(contentsOf: served.folder.file("root/digits.txt")) == Data("0123456789".utf8))
        for path in [".hidden2", "none/x", "..%2fx", "link"] {
            #expect(try await ToolRun.run("PUT", "\(served.url)\(path)", "--raw", "new").status == 4, "\(path)")
        }
        #expect(try Data(contentsOf: served.folder.file("outside")) == Data("outside".utf8))
        // Without a length it is not known how large a body becomes.
        let stream = try ToolRun(["PUT", "\(served.url)stream", "--body", "-"], hasInput: true)
        stream.feed(Data("x".utf8))
        #expect(await stream.result().status == 4)
        await served.end()
        let forced = try await Served(["--upload", "--force"])
        #expect(try await ToolRun.run("PUT", "\(forced.url)digits.txt", "--raw", "new").status == 0)
        #expect(try Data(contentsOf: forced.folder.file("root/digits.txt")) == Data("new".utf8))
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: forced.folder.file("root").path).filter { $0.hasPrefix(".") } == [".hidden"]
        )
        await forced.end()
    }

    @Test("names with percent signs are read once, and those of many bytes taken") func names() async throws {
        let served = try await Served(["--upload"])
        let emoji = String(repeating: "\u{1F600}", count: 60)
        for (path, name) in [("100%25.txt", "100%.txt"), ("a%2541.txt", "a%41.txt"), (emoji, emoji)] {
            #expect(try await ToolRun.run("PUT", "\(served.url)\(path)", "--raw", "x").status == 0, "\(path)")
            #expect(try Data(contentsOf: served.folder.file("root/\(name)")) == Data("x".utf8))
            #expect(try await ToolRun.run("\(served.url)\(path)").text == "x", "\(path)")
        }
        await served.end()
    }

    @Test("a PUT has conditions, and replaces a file by no part of one") func conditions() async throws {
        let served = try await Served(["--upload", "--force"])
        let url = "\(served.url)digits.txt"
        let part = try await ToolRun.run("PUT", url, "--raw", "x", "Content-Range:bytes 0-0/10")
        #expect(part.status == 4 && part.text == "a part of a file (Content-Range) is not taken\n")
        for field in ["If-None-Match:*", "If-Match:\"other\""] {
            let result = try await ToolRun.run("PUT", url, "--raw", "x", field)
            #expect(result.status == 4 && result.text == "the condition is not met by the present file\n", "\(field)")
        }
        #expect(try await ToolRun.run("PUT", "\(served.url)new", "--raw", "x", "If-Match:*").status == 4)
        #expect(!FileManager.default.fileExists(atPath: served.folder.file("root/new").path))
        #expect(try Data(contentsOf: served.folder.file("root/digits.txt")) == Data("0123456789".utf8))
        #expect(try await ToolRun.run("PUT", "\(served.url)new", "--raw", "x", "If-None-Match:*").status == 0)
        #expect(try await ToolRun.run("PUT", url, "--raw", "y", "If-Match:*").status == 0)
        #expect(try Data(contentsOf: served.folder.file("root/digits.txt")) == Data("y".utf8))
        await served.end()
    }

    @Test("what is refused is refused before its body") func early() async throws {
        let folder = try TemporaryDirectory()
        let files = try #require(FileServer(folder: folder.url.path, takesFiles: true, replacesFiles: false))
        let statuses = Lock([Int]())
        let handling: @Sendable (ServerRequest) -> LoopbackServer.BodyHandling = { request in
            let handling = files.handling(of: request)
            if case .refused(let response) = handling { statuses.withLock { $0.append(response.status) } }
            return handling
        }
        let server = try LoopbackServer(bodies: handling) { try files.respond($0, $1) }
        for (path, field) in [("/a", "Host:evil.example.org"), ("/.a", "X-A:1"), ("/a", "Content-Range:bytes 0-0/9"), ("/a", "If-Match:*")]
        {
            #expect(try await ToolRun.run("PUT", server.url(path), "--raw", "x", field).status == 4)
        }
        #expect(statuses.withLock { $0 } == [421, 404, 400, 412])
    }

    @Test(
        "without hard links a new file is made, an existing one kept, and another reason named",
        arguments: [(EPERM, 201, 409), (ENOSYS, 201, 409), (EIO, 403, 403)] as [(Int32, Int, Int)])
    func links(_ code: Int32, _ new: Int, _ existing: Int) throws {
        let folder = try TemporaryDirectory()
        try folder.write(Data("old".utf8), to: "old")
        var server = try #require(FileServer(folder: folder.url.path, takesFiles: true, replacesFiles: false))
        server.link = { _, _ in code }
        #expect(server.write("new", Data("x".utf8)).status == new)
        #expect(server.write("old", Data("x".utf8)).status == existing)
        #expect(try Data(contentsOf: folder.file("old")) == Data("old".utf8))
        #expect((try? Data(contentsOf: folder.file("new"))) == (new == 201 ? Data("x".utf8) : nil))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).allSatisfy { !$0.hasPrefix(".") })
    }

    @Test("--tls has a certificate that its authority's file vouches for, until the end") func tls() async throws {
        let served = try await Served(["--tls"])
        #expect(served.url.hasPrefix("https://"))
        let file = try #require(served.first.components(separatedBy: "--cacert ").last?.trimmingCharacters(in: .newlines))
        #expect(try await ToolRun.run("\(served.url)digits.txt").status == 7)
        #expect(try await ToolRun.run("--cacert", file, "\(served.url)digits.txt").text == "0123456789")
        await served.end()
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test("a download from it is resumed") func resumption() async throws {
        let served = try await Served()
        let body = GeneratedBody(seed: 6).data(count: 3_000_000)
        try body.write(to: served.folder.file("root/big"))
        let target = served.folder.file("big")
        try body.prefix(1_000_000).write(to: target)
        #expect(try await ToolRun.run("curl", "-s", "-C", "-", "-o", target.path, "\(served.url)big").status == 0)
        #expect(try Data(contentsOf: target) == body)
        #expect(try await ToolRun.run("dl", "-s", "4", "-o", served.folder.file("dl").path, "\(served.url)big").status == 0)
        #expect(try Data(contentsOf: served.folder.file("dl")) == body)
        await served.end()
    }

    @Test(
        "ranges are read",
        arguments: [
            ("bytes=0-0", 0..<1), ("bytes=5-", 5..<10), ("bytes=0-99", 0..<10), ("bytes=-3", 7..<10), ("bytes=-99", 0..<10),
            ("bytes=10-", 0..<0),
            ("bytes=-0", 10..<10), ("bytes=3-2", nil), ("bytes=1-2,4-5", nil), ("items=0-1", nil), ("bytes=a-b", nil), ("bytes=-", nil),
            ("bytes=0-9223372036854775807", 0..<10), ("bytes=99999999999999999999-5", nil), ("bytes=99999999999999999999-", 0..<0),
            ("bytes=-99999999999999999999", 0..<10),
        ] as [(String, Range<Int64>?)])
    func ranges(_ field: String, _ range: Range<Int64>?) {
        #expect(FileServer.range(field, of: 10) == range)
    }

    @Test("--port is the port, also at once after another server, and named if it is in use") func port() async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Data("x".utf8), to: "file")
        // None of those that the system gives to connections, which could take it meanwhile.
        let free = (0..<20).lazy.compactMap { _ in try? LoopbackServer(port: .random(in: 20_000..<30_000)) { _, _ in .ok("other") } }
        let other = try #require(free.first)
        let port = other.port
        // The server is the first to close, so that its connection keeps the port for a minute.
        #expect(try await ToolRun.run(other.url("/"), "Connection:close").text == "other")
        let taken = try await ToolRun.run("serve", "--port", "\(port)", folder.url.path)
        #expect(taken.status == 2 && taken.error == "curlew: the port \(port) is in use; see curlew --help\n")
        other.stop()
        let run = try ToolRun(["serve", "--quiet", "-p", "\(port)", folder.url.path])
        #expect(await ToolRun.text(of: run.output, until: "\n") == "http://127.0.0.1:\(port)/\n")
        #expect(try await ToolRun.run("http://127.0.0.1:\(port)/file").text == "x")
        run.signal(SIGINT)
        #expect(await run.status() == 130)
        close(run.output)
        close(run.error)
        for value in ["65536", "-1", "http"] { #expect(try await ToolRun.run("serve", "--port=\(value)", folder.url.path).status == 2) }
    }

    @Test("a folder that is not there is named") func missing() async throws {
        let result = try await ToolRun.run("serve", "/nowhere")
        #expect(result.status == 10 && result.error == "curlew: /nowhere: not a folder that can be read\n")
        #expect(try await ToolRun.run("serve", "--force").status == 2)
    }
}
