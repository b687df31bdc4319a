// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// Client certificates in all their forms, and bodies as single words.
@Suite(.timeLimit(.minutes(2))) struct IdentityTests {
    /// A server that wants a certificate, and the files of one.
    private struct Setting {
        let folder: TemporaryDirectory
        let server: LoopbackServer

        init() throws {
            folder = try TemporaryDirectory()
            let authority = try CertificateAuthority()
            let identity = try authority.issue("client", usage: .client)
            server = try LoopbackServer(tls: ServerTLS(try authority.issue(), clientAuthority: authority)) { _, _ in .ok("hello") }
            try folder.write(authority.certificate, to: "ca.pem")
            try folder.write(Data(identity.chain.utf8), to: "cert.pem")
            try folder.write(Data(identity.key.utf8), to: "key.pem")
            try folder.write(Data((identity.key + identity.chain).utf8), to: "both.pem")
        }

        func path(_ name: String) -> String { folder.file(name).path }

        /// Makes a file with openssl.
        func openssl(_ words: String...) async throws {
            let program = try #require(
                ["/usr/bin/openssl", "/usr/local/bin/openssl"].first { FileManager.default.isExecutableFile(atPath: $0) })
            let result = try await ToolRun(words, program: URL(fileURLWithPath: program), folder: folder.url).result()
            #expect(result.status == 0, "\(result.error)")
        }
    }

    @Test("PEM in one file or two, encrypted keys, PKCS #12 and DER") func forms() async throws {
        let setting = try Setting()
        let url = setting.server.url("/")
        let trust = ["--cacert", setting.path("ca.pem")]
        try await setting.openssl("pkcs8", "-topk8", "-in", "key.pem", "-out", "locked.pem", "-passout", "pass:s3cret", "-v2", "aes256")
        try await setting.openssl(
            "pkcs12", "-export", "-inkey", "key.pem", "-in", "cert.pem", "-out", "id.p12", "-passout", "pass:s3cret")
        try await setting.openssl("x509", "-in", "cert.pem", "-outform", "DER", "-out", "cert.der")
        let environment = ["CURLEW_KEY_PASSWORD": "s3cret"]
        for words in [
            ["--cert", setting.path("cert.pem"), "--key", setting.path("key.pem")], ["--cert", setting.path("both.pem")],
            ["--cert", setting.path("cert.pem"), "--key", setting.path("locked.pem")], ["--cert", setting.path("id.p12")],
        ] {
            let result = try await ToolRun(trust + words + [url], environment: environment).result()
            #expect(result.text == "hello", "\(words): \(result.error)")
        }
        for words in [
            ["-E", setting.path("both.pem")], ["-E", setting.path("cert.pem"), "--key", setting.path("locked.pem"), "--pass", "s3cret"],
            ["-E", "\(setting.path("cert.pem")):s3cret", "--key", setting.path("locked.pem")],
            ["-E", "\(setting.path("id.p12")):s3cret", "--cert-type", "P12"],
            ["-E", setting.path("cert.der"), "--cert-type", "DER", "--key", setting.path("key.pem")],
        ] {
            let result = try await ToolRun(["curl"] + trust + words + [url]).result()
            #expect(result.text == "hello", "\(words): \(result.error)")
        }
        let printed = try await ToolRun(["--curl", "--cert", setting.path("id.p12"), url], environment: environment).result()
        #expect(printed.text.contains(" --cert-type P12 ") && !printed.text.contains("s3cret"))
    }

    @Test("what is no identity is named, and no password is printed") func wrong() async throws {
        let setting = try Setting()
        try await setting.openssl("pkcs8", "-topk8", "-in", "key.pem", "-out", "locked.pem", "-passout", "pass:right", "-v2", "aes256")
        let url = setting.server.url("/")
        func error(_ words: [String], _ environment: [String: String] = [:]) async throws -> String {
            let result = try await ToolRun(words + [url], environment: environment).result()
            #expect(result.status != 0 && result.text == "")
            return result.error
        }
        #expect(
            try await error(["--cert", setting.path("cert.pem")]).contains(
                "cert.pem\" has no private key in PEM; --key names the file of the key"))
        #expect(try await error(["--cert", setting.path("nowhere")]).contains("nowhere: No such file"))
        let junk = try setting.folder.write(Data("junk".utf8), to: "junk").path
        #expect(try await error(["--cert", junk]).contains("junk\" is neither a certificate in PEM nor a PKCS #12 archive"))
        let locked = ["--cacert", setting.path("ca.pem"), "--cert", setting.path("cert.pem"), "--key", setting.path("locked.pem")]
        let wrong = try await error(locked, ["CURLEW_KEY_PASSWORD": "s3cret"])
        #expect(!wrong.contains("s3cret"))
        let curl = try await error(["curl", "-E", "\(setting.path("cert.pem")):s3cret", "--key", setting.path("locked.pem")])
        #expect(!curl.contains("s3cret"))
    }

    @Test("the password of an encrypted key is asked for on the terminal, and not shown") func prompt() async throws {
        let setting = try Setting()
        try await setting.openssl("pkcs8", "-topk8", "-in", "key.pem", "-out", "locked.pem", "-passout", "pass:s3cret", "-v2", "aes256")
        let words = [
            "-b", "--cacert", setting.path("ca.pem"), "--cert", setting.path("cert.pem"), "--key", setting.path("locked.pem"),
            setting.server.url("/"),
        ]
        let tool = try ToolRun(words, hasInput: true, hasTerminal: true)
        let asked = await ToolRun.text(of: tool.output, until: "locked.pem: ")
        #expect(asked.contains("password of "))
        tool.feed(Data("s3cret\n".utf8))
        let rest = await ToolRun.text(of: tool.output, until: "hello")
        #expect(rest.contains("hello") && !rest.contains("s3cret"))
        #expect(await tool.status() == 0)
        close(tool.output)
        close(tool.error)
    }

    @Test("a password is asked for once for all URLs of a command", arguments: [[], ["-Z"]]) func onePrompt(_ option: [String]) async throws
    {
        let setting = try Setting()
        try await setting.openssl("pkcs8", "-topk8", "-in", "key.pem", "-out", "locked.pem", "-passout", "pass:s3cret", "-v2", "aes256")
        let words = [
            "curl", "-sS", "--cacert", setting.path("ca.pem"), "--cert", setting.path("cert.pem"), "--key", setting.path("locked.pem"),
            setting.server.url("/a"), setting.server.url("/b"),
        ]
        let tool = try ToolRun(words + option, hasInput: true, hasTerminal: true)
        #expect(await ToolRun.text(of: tool.output, until: "locked.pem: ").contains("password of "))
        tool.feed(Data("s3cret\n".utf8))
        let result = await tool.result()
        #expect(result.status == 0 && result.text.components(separatedBy: "hello").count == 3, "\(result.text)")
        #expect(!result.text.contains("password of "))
    }

    @Test("@file and - are all of the body, and a redirected file has a length") func bodies() async throws {
        let server = try LoopbackServer.standard()
        let folder = try TemporaryDirectory()
        let file = try folder.write(Data("{\"a\":1}".utf8), to: "b.json").path
        #expect(try await ToolRun.run(server.url("/echo"), "@\(file)").status == 0)
        let sent = try #require(server.requests.last)
        #expect(sent.method == "POST" && sent.body == Data("{\"a\":1}".utf8) && sent.header("Content-Type") == "application/json")
        let tool = try ToolRun(["PUT", server.url("/echo"), "-"], hasInput: true)
        tool.feed(Data("piped".utf8))
        #expect(await tool.result().status == 0)
        #expect(server.requests.last?.body == Data("piped".utf8) && server.requests.last?.header("Content-Length") == nil)
        for (command, body) in [
            ("exec \"$0\" POST \"$1\" - <\"$2\"", "{\"a\":1}"), ("{ read -r -n 2 x; exec \"$0\" POST \"$1\"; } <\"$2\"", "a\":1}"),
        ] {
            let executable = try ToolRun.executable().path
            let shell = try await ToolRun(
                ["-c", command, executable, server.url("/echo"), file], program: URL(fileURLWithPath: "/bin/bash")
            ).result()
            #expect(shell.status == 0, "\(shell.error)")
            let request = try #require(server.requests.last)
            #expect(request.body == Data(body.utf8))
            #expect(request.header("Content-Length") == "\(body.utf8.count)" && request.header("Transfer-Encoding") == nil)
        }
        #expect(throws: UsageError("\"@f\" and body fields can't be combined")) { try Arguments(["x", "@f", "a=1"]) }
        #expect(throws: UsageError("\"-\" and another body can't be combined")) { try Arguments(["x", "@f", "-"]) }
        #expect(throws: UsageError("\"@f\" and another body can't be combined")) { try Arguments(["x", "--raw", "a", "@f"]) }
    }

    @Test("a part of a form may be JSON, with its type") func typedParts() async throws {
        let server = try LoopbackServer.standard()
        #expect(try await ToolRun.run("--multipart", server.url("/echo"), "a:={\"b\":1}", "c=d").status == 0)
        let body = String(decoding: try #require(server.requests.last).body, as: UTF8.self)
        #expect(body.contains("name=\"a\"\r\nContent-Type: application/json\r\n\r\n{\"b\":1}\r\n"))
        #expect(body.contains("name=\"c\"\r\n\r\nd\r\n"))
    }
}

@Suite(.timeLimit(.minutes(1))) struct BenchAssertionTests {
    private static let run = BenchAssertion.Measurements(latencies: [1, 2, 3, 10], failures: 1, count: 5, perSecond: 50)

    @Test(
        "assertions hold or say what it was",
        arguments: [
            ("p50<=2ms", nil), ("p99<10ms", "p99<10ms: it was 10.00 ms"), ("max<0.011s", nil), ("mean<4ms", "mean<4ms: it was 4.00 ms"),
            ("p75>2000us", nil),
            ("failures<=20%", nil), ("failures<20%", "failures<20%: it was 20.00 %"), ("failures<=0", "failures<=0: it was 1"),
            ("rate>=50", nil), ("rate>50", "rate>50: it was 50.00 a second"),
        ] as [(String, String?)])
    func assertions(_ text: String, _ failure: String?) throws {
        #expect(try #require(BenchAssertion(argument: text)).failure(of: Self.run) == failure)
    }

    @Test(
        "what is none is refused",
        arguments: ["", "p99", "p99<", "p99<200", "p0<1s", "p101<1s", "x<1s", "rate>1s", "failures<1ms", "p99=1s", "mean<-1s"])
    func invalid(_ text: String) { #expect(BenchAssertion(argument: text) == nil) }

    @Test("without a response no latency is met") func empty() throws {
        let none = BenchAssertion.Measurements(latencies: [], failures: 3, count: 3, perSecond: 1)
        #expect(try #require(BenchAssertion(argument: "p99<1s")).failure(of: none) == "p99<1s: there was no response")
    }

    @Test("the exit status of bench is 1 if one does not hold") func command() async throws {
        let server = try LoopbackServer { request, _ in request.path == "/none" ? .status(404) : .ok("x") }
        let good = try await ToolRun.run("bench", "-n", "20", "-c", "2", "--assert", "p99<30s", "--assert=failures<=0", server.url("/"))
        #expect(good.status == 0 && good.error == "")
        let bad = try await ToolRun.run(
            "bench", "-n", "20", "-c", "2", "--assert", "failures<50%", "--assert", "max<1us", server.url("/none"))
        #expect(bad.status == 1 && bad.error.hasPrefix("curlew: not met: failures<50%: it was 100.00 %; max<1us: it was "))
        #expect(bad.text.contains("404: 20"))
        #expect(try await ToolRun.run("bench", "--assert", "p99", server.url("/")).status == 2)
    }
}
