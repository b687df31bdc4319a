// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSigning
import CurlewTesting
import Testing

@testable import CurlewTool

/// What commands of curl do over time, and what this machine's curl has not.
@Suite(.timeLimit(.minutes(2))) struct CurlRunTests {
    @Test(
        "variables are expanded",
        arguments: [
            ("{{a}}-{{b:trim:b64}}", "x y-dA=="), ("\\{{a}} {{missing}}! {{no name}} {{a", "{{a}} ! {{no name}} {{a"),
            ("{{j:json}}", #"q\"\n\u0001"#), ("{{a:url}}", "x%20y"), ("{{c}}{{d}}{{CURLEW_TEST_NONE}}", "1234-fallback"),
            ("{{b64:64dec}} {{a:64dec}}", "hi [64dec-fail]"),
        ])
    func variables(_ text: String, _ expanded: String) throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write(Data("012345".utf8), to: "f").path
        var variables = CurlVariables()
        for variable in ["a=x y", "b= t\n", "j=q\"\n\u{1}", "c[1-2]@\(file)", "d[3-]=xxx3", "%CURLEW_TEST_NONE=4-fallback", "b64=aGk="] {
            try variables.set(variable)
        }
        #expect(try variables.expanded(text) == expanded)
    }

    @Test("what is no variable is named, and its value is not") func badVariables() throws {
        var variables = CurlVariables()
        for (text, message) in [
            ("=s3cret", "curl's option --variable needs a name of letters, digits and _"),
            ("a", "curl's option --variable needs =CONTENT or @FILE after \"a\""),
            ("%CURLEW_TEST_NONE", "the variable \"CURLEW_TEST_NONE\" is not in the environment"),
            ("a[3-1]=s3cret", "curl's option --variable needs [FIRST-LAST] after \"a\""), ("a@/nowhere", "\"/nowhere\" can't be read"),
        ] {
            #expect(throws: UsageError(message)) { try variables.set(text) }
        }
        try variables.set("all[0-9223372036854775807]=xyz")
        #expect(try variables.expanded("{{all}}") == "xyz")
        try variables.set("nul[0-1]=ab")
        #expect(throws: UsageError("curl's variables have no function \"up\"")) { try variables.expanded("{{nul:up}}") }
        #expect(throws: UsageError("curl's option --silent has no value to be expanded")) { try CurlCommandLine(["--expand-silent", "x"]) }
        let words = try CurlCommandLine(["--variable", "h=example.org", "--expand-url", "https://{{h}}/", "--expand-data", "{{h:b64}}"])
        #expect(words.commands[0].words.contains("https://example.org/"))
        #expect(words.commands[0].extras.body == Data("ZXhhbXBsZS5vcmc=".utf8))
    }

    @Test("a configuration's mistakes are named with their lines") func configurations() throws {
        let folder = try TemporaryDirectory()
        for (text, message) in [
            ("data", "line 1 of FILE: curl's option --data needs a value"),
            ("\n# c\nsilent = yes", "line 3 of FILE: curl's option --silent has no value"),
            ("-d", "line 1 of FILE: curl's option -d needs a value"), ("-s = yes", "line 1 of FILE: curl's option -s has no value"),
            ("data = \"x", "line 1 of FILE has a quote without an end"), ("what = x", "curl's option --what is not known"),
        ] {
            let file = try folder.write(Data(text.utf8), to: "config").path
            let error = #expect(throws: UsageError.self) { try CurlCommandLine(["-K", file, "x"]) }
            #expect(error?.message == message.replacingOccurrences(of: "FILE", with: file.quoted))
        }
        let file = try folder.write(Data("config = \"\(folder.file("config").path)\"\n".utf8), to: "config").path
        let error = #expect(throws: UsageError.self) { try CurlCommandLine(["-K", file, "x"]) }
        #expect(error?.message == "files of curl's option --config are nested more than 10 deep")
    }

    /// Fails as often as a path says.
    private static func flaky(_ status: Int, _ fields: [ServerField] = []) throws -> LoopbackServer {
        let left = Lock(2)
        return try LoopbackServer { request, _ in
            let fails = left.withLock { left in
                left -= 1
                return left >= 0
            }
            return fails ? ServerResponse(status: status, headers: fields, body: .data(Data("no".utf8))) : .ok("yes")
        }
    }

    @Test("--retry repeats each method, and --retry-all-errors what --fail calls an error")
    func retries() async throws {
        let busy = try Self.flaky(503)
        let result = try await ToolRun.run(
            "curl", "--retry", "3", "--retry-delay", "0.05", "-d", "a", "-w", " %{num_retries}", busy.url("/"))
        #expect(result.status == 0 && result.text == "nonoyes 2")
        #expect(
            result.error == """
                curlew: the server responded with 503 Service Unavailable; retry 1 in 0.1 s
                curlew: the server responded with 503 Service Unavailable; retry 2 in 0.1 s

                """)
        #expect(busy.requests.map(\.method) == ["POST", "POST", "POST"])
        let missing = try Self.flaky(404)
        #expect(try await ToolRun.run("curl", "-f", "--retry", "3", "--retry-delay", "0.01", missing.url("/")).status == 4)
        #expect(missing.requestCount == 1)
        let gone = try Self.flaky(404)
        let all = try await ToolRun.run("curl", "-sf", "--retry", "3", "--retry-delay", "0.01", "--retry-all-errors", gone.url("/"))
        #expect(all.status == 0 && all.text == "yes" && all.error == "")
        #expect(gone.requestCount == 3)
        // A wait that would end after the window is none; Retry-After counts.
        let late = try Self.flaky(503, [ServerField("Retry-After", "600")])
        #expect(try await ToolRun.run("curl", "-s", "--retry", "3", "--retry-max-time", "5", late.url("/")).text == "no")
        #expect(late.requestCount == 1)
        // A file has what the last attempt brought.
        let folder = try TemporaryDirectory()
        let file = folder.file("f")
        let broken = try Self.flaky(500)
        let words = ["curl", "-s", "--retry", "2", "--retry-delay", "0.01", "-o", file.path, broken.url("/")]
        #expect(try await ToolRun(words).result().status == 0)
        #expect(broken.requestCount == 3)
        #expect(try Data(contentsOf: file) == Data("yes".utf8))
    }

    @Test("a refused connection is repeated with --retry-connrefused only") func refused() async throws {
        let server = try LoopbackServer.standard()
        let url = server.url("/json")
        server.stop()
        let once = try await ToolRun.run("curl", "--retry", "1", "--retry-delay", "0.01", url)
        #expect(once.status == 6 && once.error.split(separator: "\n").count == 1)
        let twice = try await ToolRun.run("curl", "--retry", "1", "--retry-delay", "0.01", "--retry-connrefused", url)
        #expect(twice.status == 6 && twice.error.split(separator: "\n").count == 2)
        #expect(try await ToolRun.run("curl", "-s", url).error == "")
        #expect(try await ToolRun.run("curl", "-sS", url).error.hasPrefix("curlew: "))
    }

    @Test("--limit-rate holds for both directions") func rates() async throws {
        let server = try LoopbackServer.standard()
        let start = ContinuousClock.now
        let down = try await ToolRun.run("curl", "-s", "--limit-rate", "200k", server.url("/bytes/200000?seed=4"))
        #expect(CRC32.checksum(of: down.output) == GeneratedBody(seed: 4).checksum(count: 200_000))
        let middle = ContinuousClock.now
        #expect(middle - start > .seconds(0.8))
        let folder = try TemporaryDirectory()
        let body = GeneratedBody(seed: 5).data(count: 200_000)
        let file = try folder.write(body, to: "f").path
        #expect(try await ToolRun.run("curl", "-s", "--limit-rate", "200k", "-T", file, server.url("/upload")).status == 0)
        #expect(ContinuousClock.now - middle > .seconds(0.8))
        #expect(server.requests.last?.header("Content-Length") == "200000")
        #expect(server.requests.last?.bodyChecksum == CRC32.checksum(of: body))
    }

    @Test("--speed-limit ends what is too slow") func slow() async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin")
            connection.waitUntilClosed()
            return nil
        }
        let result = try await ToolRun.run("curl", "-Y", "10", "-y", "1", server.url("/"))
        #expect(result.status == 8 && result.text == "begin")
        #expect(result.error == "curlew: less than 10 bytes a second for 1 s (--speed-limit)\n")
    }

    @Test("-Z sends several at once") func parallel() async throws {
        let gate = Gate()
        let server = try LoopbackServer { request, connection in
            _ = connection.wait(until: gate)
            return .ok("x")
        }
        let run = try ToolRun(["curl", "-sZ"] + (0..<4).map { server.url("/\($0)") })
        #expect(await gate.arrivals(4))
        gate.open()
        #expect(await run.result().text == "xxxx")
        // The first failure ends it all with --fail-early.
        let early = try await ToolRun.run("curl", "-sf", "--fail-early", "http://127.0.0.1:1/", server.url("/never"))
        #expect(early.status == 6 && server.requestCount == 4)
    }

    @Test(
        "--parallel and --fail-early are undone by their opposites, and --parallel-max stands anywhere",
        arguments: [
            (["-Z"], 50, false), (["-Z", "--no-parallel"], 1, false), (["--no-parallel", "-Z"], 50, false),
            (["--parallel-max", "3", "-Z"], 3, false), (["-Z", "--parallel-max", "3"], 3, false), (["--parallel-max", "3"], 1, false),
            (["--fail-early"], 1, true), (["--fail-early", "--no-fail-early"], 1, false),
        ] as [([String], Int, Bool)])
    func undone(_ words: [String], _ parallel: Int, _ failsEarly: Bool) throws {
        let line = try CurlCommandLine(words + ["http://a/"])
        #expect(line.parallel == parallel && line.failsEarly == failsEarly)
    }

    @Test("--location-trusted sends credentials to each place, --location to none but the first") func trust() async throws {
        let target = try LoopbackServer { _, _ in .ok("x") }
        let place = target.url("/end")
        let server = try LoopbackServer { _, _ in .redirect(to: place) }
        for option in ["-L", "--location-trusted"] {
            #expect(try await ToolRun.run("curl", option, "-u", "u:p", "-b", "a=1", server.url("/")).status == 0)
        }
        #expect(target.requests.map { $0.header("Authorization") } == [nil, "Basic dTpw"])
        #expect(server.requests.map { $0.header("Authorization") } == ["Basic dTpw", "Basic dTpw"])
    }

    @Test("--aws-sigv4 signs with the product for signing, and sends no password") func signature() async throws {
        let server = try LoopbackServer { _, _ in .ok("x") }
        let result = try await ToolRun.run(
            "curl", "--aws-sigv4", "aws:amz:eu-west-1:execute-api", "-u", "AKID:s3cret", "-d", "body", server.url("/p?b=2&a=1"))
        #expect(result.status == 0 && result.text == "x" && !result.error.contains("s3cret"))
        let request = try #require(server.requests.first)
        let field = try #require(request.header("Authorization"))
        let date = try #require(request.header("X-Amz-Date"))
        #expect(field.hasPrefix("AWS4-HMAC-SHA256 Credential=AKID/\(date.prefix(8))/eu-west-1/execute-api/aws4_request, SignedHeaders="))
        // Signed again from what has arrived, the signature is the same.
        let signed = Set(field.components(separatedBy: "SignedHeaders=")[1].prefix { $0 != "," }.split(separator: ";").map(String.init))
        var headers = HTTPHeaders()
        for field in request.headers where signed.contains(field.name.lowercased()) { headers.append(name: field.name, value: field.value) }
        headers.remove(name: "X-Amz-Date")
        let again = try AWSSignatureV4(service: "execute-api", region: "eu-west-1").sign(
            method: "POST", url: server.url("/p?b=2&a=1"), headers: headers, payload: .body(Data("body".utf8)),
            credentials: AWSCredentials(accessKeyID: "AKID", secretAccessKey: "s3cret"), at: try #require(Self.date(date)))
        #expect(again["Authorization"] == field)
        let missing = try await ToolRun.run("curl", "--aws-sigv4", "aws:amz", "-u", "a:s3cret", "http://localhost/")
        #expect(missing.status == 2 && missing.error.hasPrefix("curlew: curl's option --aws-sigv4 needs the region"))
    }

    /// `20260101T000000Z`
    private static func date(_ text: String) -> Date? {
        let time = text.dropFirst(9).prefix(6)
        let parts = [time.prefix(2), time.dropFirst(2).prefix(2), time.dropFirst(4)].joined(separator: ":")
        return CurlTimeCondition.date("\(text.prefix(8)) \(parts)")
    }

    @Test("--netrc-file, --stderr, --remote-time and --create-file-mode") func files() async throws {
        let server = try LoopbackServer { request, _ in
            var response = ServerResponse.ok(request.header("Authorization") ?? "none")
            response.headers.append(ServerField("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"))
            return response
        }
        let folder = try TemporaryDirectory()
        let netrc = try folder.write(Data("machine 127.0.0.1 login u password p\n".utf8), to: "n").path
        #expect(try await ToolRun.run("curl", "-s", "--netrc-file", netrc, server.url("/")).text == "Basic dTpw")
        #expect(try await ToolRun.run("curl", "-s", "--netrc-optional", "--netrc-file", "/nowhere", server.url("/")).text == "none")
        #expect(try await ToolRun.run("curl", "-s", "--netrc-file", "/nowhere", server.url("/")).status == 2)
        let (errors, file) = (folder.file("e"), folder.file("f"))
        let words = [
            "curl", "-R", "--create-file-mode", "0600", "--stderr", errors.path, "-o", file.path, server.url("/"), "http://127.0.0.1:1/",
        ]
        let result = try await ToolRun(words).result()
        #expect(result.status == 6 && result.error == "")
        #expect(try String(contentsOf: errors, encoding: .utf8).hasPrefix("curlew: "))
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect((attributes[.modificationDate] as? Date)?.timeIntervalSince1970 == 784_111_777)
    }

    @Test("-v goes to standard error, so that standard output has the body only, and has no secrets") func verbose() async throws {
        let server = try LoopbackServer { _, _ in .ok("body") }
        let result = try await ToolRun.run("curl", "-v", "-H", "Authorization: Bearer s3cret", server.url("/x"))
        #expect(result.text == "body")
        #expect(result.error.hasPrefix("GET /x HTTP/1.1\nHost: ") && result.error.contains("\n\nHTTP/1.1 200 OK\n"))
        #expect(!result.error.contains("s3cret"))
    }

    @Test(
        "dates are read as curl reads them",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("06 Nov 1994 08:49:37", 784_111_777), ("Nov 6 1994", 784_080_000),
            ("1994-11-06", 784_080_000), ("19941106 08:49:37 +0100", 784_108_177), ("1994-11-06T08:49:37Z", 784_111_777),
            ("6 november 1994 08:49 EST", 784_129_740), ("1994.11.06", nil), ("31 Feb 2020", nil), ("hello", nil), ("", nil),
            ("25:00 1 Jan 2020", nil),
        ] as [(String, Double?)])
    func dates(_ text: String, _ seconds: Double?) {
        #expect(CurlTimeCondition.date(text)?.timeIntervalSince1970 == seconds)
    }

    @Test("all files have to be there before anything is sent") func missing() async throws {
        let server = try LoopbackServer { _, _ in .ok("x") }
        for words in [
            ["-E", "/nowhere"], ["--crlfile", "/nowhere"], ["-T", "/nowhere"], ["-F", "a=@/nowhere"], ["-d", "@/nowhere"],
            ["-D", "/nowhere/x"],
        ] {
            let result = try await ToolRun(["curl"] + words + [server.url("/")]).result()
            #expect([2, 10].contains(result.status) && result.error.contains("/nowhere"), "\(words): \(result.error)")
        }
        #expect(server.requestCount == 0)
    }
}
