// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// Commands of curl: those that are printed, and those that are read.
@Suite(.timeLimit(.minutes(2))) struct CurlTests {
    /// What arrived at a server, without what no two programs agree on: the boundary of a form, and the order of the fields.
    private struct Arrival: Equatable {
        let line: String
        let headers: [String]
        let body: String

        init(_ request: ServerRequest) {
            let boundary = request.header("Content-Type")?.components(separatedBy: "boundary=").dropFirst().first
            func plain(_ text: String) -> String { boundary.map { text.replacingOccurrences(of: $0, with: "BOUNDARY") } ?? text }
            line = "\(request.method) \(request.target)"
            headers = request.headers.filter { boundary == nil || $0.name.lowercased() != "content-length" }
                .map { plain("\($0.name.lowercased()): \($0.value)") }.sorted()
            body = plain(String(decoding: request.body, as: UTF8.self))
        }
    }

    private static let curl = ["/usr/bin/curl", "/usr/local/bin/curl"].first { FileManager.default.isExecutableFile(atPath: $0) }

    /// Runs a line in a shell, with `curl` as the first word of another program.
    private static func run(_ line: String, as program: String) async throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", program + line.dropFirst(4)]
        process.environment = [:]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            process.terminationHandler = { _ in continuation.resume() }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
    }

    @Test(
        "what --curl prints sends the same, run by curl and by this program",
        arguments: [
            ["URL"], ["POST", "URL"], ["PUT", "URL"], ["DELETE", "URL"], ["HEAD", "URL"], ["OPTIONS", "URL"], ["PURGE", "URL"],
            ["URL", "a=it's", "b=ü", "q==x y"], ["PUT", "URL", "a:=[1,2]"], ["GET", "URL", "a=1"], ["-f", "URL", "a=1 2", "b=&"],
            ["-f", "URL"],
            ["--raw", "@FILE", "URL"], ["--raw", "", "URL"], ["--raw", "a\nb\\n!$x", "URL"], ["-j", "--raw", "x", "URL"],
            ["--body", "FILE", "URL"], ["--body", "FILE", "PUT", "URL"], ["--body", "FILE", "URL", "Content-Type:a/b"],
            ["--multipart", "URL", "a=1", "f@FILE"], ["--multipart", "URL", "f@FILE;type=text/csv;filename=x;\"y.csv"],
            ["--multipart", "PUT", "URL", "na\"me=;1", "b=@FILE"],
            ["URL", "User-Agent:"], ["URL", "Accept:"], ["URL", "Accept-Encoding:"], ["URL", "Accept-Encoding:gzip"],
            ["--no-decode", "URL"],
            ["URL", "X-A:1", "X-A:2", "X-E;", "Cookie:a=b", "Host:example.org"], ["-u", "u:p'w d", "URL"], ["--token", "t", "URL"],
            ["-A", "challenge", "-u", "u:p", "URLchallenge"], ["URLredirect"], ["--max-redirects", "0", "URLredirect"],
            ["URL../b/./c?d=%20"], ["URLa b?ü"], ["--resolve", "name.test:PORT:127.0.0.1", "http://name.test:PORT/"],
            ["-4", "--tls", "1.3", "URL"],
            ["--timeout", "20", "--deadline", "20.5", "--connect-timeout", "9", "--retry", "1", "URL"], ["--proxy", "none", "URL"],
            ["--proxy", "URL", "http://other.test/x?y"], ["--http", "1.1", "URL"], ["--interface", "lo", "URL"],
        ])
    func roundTrip(_ words: [String]) async throws {
        let server = try LoopbackServer { request, _ in
            switch request.path {
            case "/redirect": .status(302, headers: [ServerField("Location", "/")])
            case "/challenge" where request.header("Authorization") == nil:
                .status(401, headers: [ServerField("WWW-Authenticate", "Basic realm=\"r\"")])
            default: .ok("x")
            }
        }
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("text, \r\nof lines\n".utf8), to: "a;b,c.txt").path
        let given = words.map {
            $0.replacingOccurrences(of: "URL", with: server.url("/")).replacingOccurrences(of: "FILE", with: file)
                .replacingOccurrences(of: "PORT", with: "\(server.port)")
        }
        let own = try await ToolRun(given).result()
        #expect([0, 3].contains(own.status), "\(own.error)")
        let expected = server.requests.map(Arrival.init)
        #expect(!expected.isEmpty)
        let printed = try await ToolRun(["--curl"] + given).result()
        #expect(printed.status == 0 && printed.text.hasPrefix("curl "), "\(printed.error)")
        #expect(server.requestCount == expected.count)
        var programs = [CurlText.quoted(try ToolRun.executable().path) + " curl"]
        if let curl = Self.curl { programs.append(curl) }
        for program in programs {
            let count = server.requestCount
            try await Self.run(printed.text, as: program)
            #expect(server.requests.dropFirst(count).map(Arrival.init) == expected, "\(program): \(printed.text)")
        }
    }

    @Test("a word that a shell reads as something else is quoted") func quotedWords() {
        let words = [("=ls", "'=ls'"), ("~", "'~'"), ("", "''"), ("a=b", "a=b"), ("\\'; x; '", #"''\\''\''; x; '\'''"#)]
        for (word, quoted) in words { #expect(CurlText.quoted(word) == quoted) }
    }

    @Test(
        "a pasted command of curl is translated",
        arguments: [
            (["http://x/"], ["--no-decode", "--max-redirects=0", "--ignore-stdin", "GET", "http://x/"]),
            (
                ["curl", "-sSL", "--compressed", "-H", "A: b", "-d", "x=1", "-d", "y=2", "x"],
                [
                    "--max-redirects=50", "--ignore-stdin", "POST", "http://x", "A: b", "Content-Type: application/x-www-form-urlencoded",
                ]
            ),
            (
                ["-XPUT", "-uu:p", "-k", "https://x/"],
                ["--user=u:p", "--insecure", "--no-decode", "--max-redirects=0", "--ignore-stdin", "PUT", "https://x/"]
            ),
            (
                ["-G", "--data-urlencode", "q=a b", "--url-query", "c=ü", "x"],
                ["--no-decode", "--max-redirects=0", "--ignore-stdin", "GET", "http://x?c=%C3%BC&q=a+b"]
            ),
            (
                ["-b", "a=1", "--cookie", "b=2", "x"],
                ["--no-decode", "--max-redirects=0", "--ignore-stdin", "GET", "http://x", "Cookie: a=1; b=2"]
            ),
            (
                ["-A", "", "-e", "u", "-r", "0-5", "x"],
                ["--no-decode", "--max-redirects=0", "--ignore-stdin", "GET", "http://x", "User-Agent:", "Referer: u", "Range: bytes=0-5"]
            ),
            (["-I", "-m", "5", "x"], ["--timeout=5", "--no-decode", "--max-redirects=0", "--ignore-stdin", "HEAD", "http://x"]),
            (
                ["-d", "", "-o", "/dev/null", "x", "-H", "Content-Type:"],
                ["--no-decode", "--max-redirects=0", "--ignore-stdin", "POST", "http://x", "Content-Type:"]
            ),
            (
                ["-X", "PUT", "-d", "a", "-H", "X: @y", "--compressed", "x"],
                [
                    "--max-redirects=0", "--ignore-stdin", "PUT", "http://x", "X: @y", "Content-Type: application/x-www-form-urlencoded",
                ]
            ),
            (
                ["--proto", "=https", "--tlsv1.2", "-sSf", "--socks5-hostname", "h:1", "-U", "a:b c", "https://x/a/../b"],
                [
                    "--no-decode", "--proxy=socks5h://a:b%20c@h:1", "--max-redirects=0", "--ignore-stdin", "GET",
                    "https://x/b",
                ]
            ),
            (
                ["-T", "f/g.txt", "-x", "", "-g", "-6", "--tlsv1.3", "http://x/[1]/"],
                [
                    "--ipv6", "--no-decode", "--proxy=none", "--body=f/g.txt", "--max-redirects=0", "--ignore-stdin", "PUT",
                    "http://x/[1]/g.txt", "Content-Type:",
                ]
            ),
            (["-L", "--no-location", "--", "-x"], ["--no-decode", "--max-redirects=0", "--ignore-stdin", "GET", "http://-x"]),
        ])
    func translation(_ words: [String], _ ours: [String]) throws {
        #expect(try CurlCommandLine(words).commands.map(\.words) == [ours])
        _ = try RequestPlan(Arguments(ours), environment: [:])
    }

    @Test(
        "parts of a form are read as curl does",
        arguments: [
            ("a=1", .field(name: "a", value: "1")), ("a==@x", .field(name: "a", value: "=@x")),
            ("a=\"x;\\\"y\"", .field(name: "a", value: "x;\"y")),
            ("a={};type=application/json", .typedField(name: "a", value: "{}", type: "application/json")),
            (
                "f=@p;type=text/html;charset=utf-8;filename=\"a b\"",
                .file(name: "f", path: "p", type: "text/html;charset=utf-8", fileName: "a b")
            ),
            ("f=@\"p;q,r\"", .file(name: "f", path: "p;q,r", type: "application/octet-stream")),
            ("f=@\"p", .file(name: "f", path: "\"p", type: "application/octet-stream")),
            ("f=@p.PNG", .file(name: "f", path: "p.PNG", type: "image/png")),
        ] as [(String, RequestItem)])
    func parts(_ word: String, _ item: RequestItem) throws {
        let command = try #require(try CurlCommandLine(["-F", word, "x"]).commands.first)
        #expect(command.parts == [item])
        #expect(command.words == ["--no-decode", "--multipart", "--max-redirects=0", "--ignore-stdin", "POST", "http://x"])
        #expect(try CurlForm.part("a=@x", isString: true) == .field(name: "a", value: "@x"))
    }

    @Test("--fail prints no body of an error, -o replaces a file, and - is standard input") func behaviour() async throws {
        let server = try LoopbackServer { request, _ in
            request.path == "/none" ? ServerResponse(status: 404, headers: [], body: .data(Data("no".utf8))) : .ok("yes")
        }
        let failed = try await ToolRun.run("curl", "-f", server.url("/none"))
        #expect(failed.status == 4)
        #expect(failed.text == "")
        #expect(try await ToolRun.run("curl", server.url("/none")).text == "no")
        #expect(try await ToolRun.run("curl", "-f", server.url("/")).text == "yes")
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("old".utf8), to: "f")
        #expect(try await ToolRun.run("curl", "-o", file.path, server.url("/")).status == 0)
        #expect(try Data(contentsOf: file) == Data("yes".utf8))
        #expect(try await ToolRun.run("curl", "--create-dirs", "-o", directory.file("a/b/c").path, server.url("/")).status == 0)
        #expect(try Data(contentsOf: directory.file("a/b/c")) == Data("yes".utf8))
        let tool = try ToolRun(["curl", "-d", "@-", server.url("/")], hasInput: true)
        tool.feed(Data("a=1\n".utf8))
        #expect(await tool.result().status == 0)
        #expect(server.requests.last?.body == Data("a=1".utf8))
        #expect(server.requests.last?.header("Accept-Encoding") == nil)
    }

    @Test(
        "a command pasted from a browser prints what its codings hold",
        arguments: [("br", "0b0280", "03"), ("zstd", "28b52ffd2005290000", "")])
    func codings(_ name: String, _ before: String, _ after: String) async throws {
        func bytes(_ digits: String) -> Data {
            Data(stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(digits.dropFirst($0).prefix(2), radix: 16) })
        }
        let coded = bytes(before) + Data("hello".utf8) + bytes(after)
        let server = try LoopbackServer { _, _ in
            var response = ServerResponse.ok(coded, type: "text/plain")
            response.headers.append(ServerField("Content-Encoding", name))
            return response
        }
        let field = "Accept-Encoding: gzip, deflate, br;q=0.9, zstd, dcb, *"
        let result = try await ToolRun.run("curl", server.url("/"), "--compressed", "-H", field)
        #expect(result.text == "hello")
        #expect(server.requests.last?.header("Accept-Encoding") == "gzip, deflate, br;q=0.9, zstd")
        // Without --compressed curl decodes nothing.
        #expect(try await ToolRun.run("curl", server.url("/"), "-H", field).output == coded)
        #expect(server.requests.last?.header("Accept-Encoding") == String(field.dropFirst(17)))
    }

    @Test("a method in lower case is sent in upper case, which is said") func lowercaseMethod() async throws {
        let server = try LoopbackServer.standard()
        let result = try await ToolRun.run("curl", "-X", "post", server.url("/echo"))
        #expect(result.error == "curlew: curl sends the method \"post\" as it is written; POST is sent\n")
        #expect(server.requests.map(\.method) == ["POST"])
    }

    @Test("the codings that are named are those of the library") func knownCodings() {
        let library = SessionManager.defaultHTTPHeaders["Accept-Encoding"]?.split(separator: ",").map {
            $0.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces)
        }
        #expect(library?.sorted() == ContentCodings.known.sorted())
        #expect(ContentCodings.reduced("dcb, compress") == "identity")
        #expect(ContentCodings.reduced("identity, *;q=0, br;q=0.0") == "identity, *;q=0, br;q=0.0")
    }

    @Test(
        "what curl has and we have not is named",
        arguments: [
            (["--ciphers", "a", "x"], "curl's option --ciphers is not supported: the library's choice of TLS parameters can't be changed"),
            (["-0", "x"], "curl's option --http1.0 is not supported: HTTP/1.1 is the oldest version"),
            (["--what", "x"], "curl's option --what is not known"), (["-é", "x"], "curl's option -é is not known"),
            (["--no-header", "x"], "curl's option --no-header is not known"),
            (["-H"], "curl's option --header needs a value"), ([], "the URL is missing"),
            (["-X", "foo", "x"], "curl's option --request is supported with methods in uppercase only"),
            (["x/{a,b}"], "curl's patterns of URLs are not supported; -g takes {} and [] as they are"),
            (["--proto", "=ftp", "x"], "curl's option --proto is supported with =http and =https only"),
            (["--proto", "=https", "x"], "--proto allows https only"),
            (["--cert-type", "ENG", "-E", "a", "x"], "curl's option --cert-type is supported with PEM, DER and P12 only"),
            (["-F", "a=1;headers=x", "x"], "\";headers=\" of the part \"a\" is not supported"),
            (["-F", "a=1;filename=x", "x"], "the part \"a\" is no file, so it has no file name"),
            (["-F", "s3cret", "x"], "the value of curl's option --form is no part of a form: it has no NAME="),
            (["-H", "s3cret", "x"], "the value of curl's option --header is no header field: it has no colon"),
            (["-w", "%{what}", "x"], "curl's option --write-out knows no variable \"what\""),
            (["--tlsv1.3", "--tls-max", "1.2", "x"], "curl's option --tls-max has a version below the least that is allowed"),
            (["--proto-redir", "=https", "x"], "curl's option --proto-redir is supported with one scheme only if that is the URL's"),
            (["--retry", "-1", "x"], "curl's option --retry can't have the value \"-1\""),
            (["--connect-to", "a:b", "x"], "curl's option --connect-to can't have the value \"a:b\""),
            (["-C", "-", "x"], "curl's option --continue-at - needs a file"),
            (["--aws-sigv4", "goog:x", "x"], "curl's option --aws-sigv4 is supported with aws:amz[:REGION[:SERVICE]] only"),
            (["-d", "a", "-T", "f", "x"], "curl's options --upload-file and --data or --form can't be combined"),
            (["-I", "-d", "a", "x"], "curl's options --head and --data or --form can't be combined"),
            (["--disallow-username-in-url", "http://u:p@x"], "the URL has a user's name, which --disallow-username-in-url forbids"),
        ])
    func unsupported(_ words: [String], _ message: String) {
        #expect(throws: UsageError(message)) { try CurlCommandLine(words) }
    }
}

@Suite struct CurlOptionTests {
    /// The options of curl 8.14, without `--`, as its manual lists them.
    private static let manual = """
        abstract-unix-socket alt-svc anyauth append aws-sigv4 basic ca-native cacert capath cert cert-status cert-type ciphers compressed \
        compressed-ssh config connect-timeout connect-to continue-at cookie cookie-jar create-dirs create-file-mode crlf crlfile curves \
        data data-ascii data-binary data-raw data-urlencode delegation digest disable disable-eprt disable-epsv disallow-username-in-url \
        dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-cert-status doh-insecure doh-url dump-ca-embed dump-header ech egd-file \
        engine etag-compare etag-save expect100-timeout fail fail-early fail-with-body false-start form form-escape form-string \
        ftp-account ftp-alternative-to-user ftp-create-dirs ftp-method ftp-pasv ftp-port ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc \
        ftp-ssl-ccc-mode ftp-ssl-control get globoff happy-eyeballs-timeout-ms haproxy-clientip haproxy-protocol head header help \
        hostpubmd5 hostpubsha256 hsts http0.9 http1.0 http1.1 http2 http2-prior-knowledge http3 http3-only ignore-content-length insecure \
        interface ip-tos ipfs-gateway ipv4 ipv6 json junk-session-cookies keepalive-cnt keepalive-time key key-type krb libcurl limit-rate \
        list-only local-port location location-trusted login-options mail-auth mail-from mail-rcpt mail-rcpt-allowfails manual \
        max-filesize max-redirs max-time metalink mptcp negotiate netrc netrc-file netrc-optional next no-alpn no-buffer no-clobber \
        no-keepalive no-npn no-progress-meter no-sessionid noproxy ntlm ntlm-wb oauth2-bearer output output-dir parallel \
        parallel-immediate parallel-max pass path-as-is pinnedpubkey post301 post302 post303 preproxy progress-bar proto proto-default \
        proto-redir proxy proxy-anyauth proxy-basic proxy-ca-native proxy-cacert proxy-capath proxy-cert proxy-cert-type proxy-ciphers \
        proxy-crlfile proxy-digest proxy-header proxy-http2 proxy-insecure proxy-key proxy-key-type proxy-negotiate proxy-ntlm proxy-pass \
        proxy-pinnedpubkey proxy-service-name proxy-ssl-allow-beast proxy-ssl-auto-client-cert proxy-tls13-ciphers proxy-tlsauthtype \
        proxy-tlspassword proxy-tlsuser proxy-tlsv1 proxy-user proxy1.0 proxytunnel pubkey quote random-file range rate raw referer \
        remote-header-name remote-name remote-name-all remote-time remove-on-error request request-target resolve retry retry-all-errors \
        retry-connrefused retry-delay retry-max-time sasl-authzid sasl-ir service-name show-error show-headers sigalgs silent \
        skip-existing socks4 socks4a socks5 socks5-basic socks5-gssapi socks5-gssapi-nec socks5-gssapi-service socks5-hostname \
        speed-limit speed-time ssl ssl-allow-beast ssl-auto-client-cert ssl-no-revoke ssl-reqd ssl-revoke-best-effort ssl-sessions sslv2 \
        sslv3 stderr styled-output suppress-connect-headers tcp-fastopen tcp-nodelay telnet-option tftp-blksize tftp-no-options time-cond \
        tls-earlydata tls-max tls13-ciphers tlsauthtype tlspassword tlsuser tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3 tr-encoding trace \
        trace-ascii trace-config trace-ids trace-time unix-socket upload-file upload-flags url url-query use-ascii user user-agent \
        variable verbose version vlan-priority write-out xattr
        """.split(whereSeparator: \.isWhitespace).map { "--\($0)" }

    @Test("each option of curl is done, has no effect, or is refused with a reason: one of them") func classified() {
        for name in Self.manual {
            #expect((CurlOption.long[name] != nil) != (CurlRefusal.all[name] != nil), "\(name)")
        }
        #expect(Set(Self.manual).count == Self.manual.count && Self.manual.count > 260)
        #expect(Set(CurlOption.long.keys).isDisjoint(with: CurlRefusal.all.keys))
    }

    @Test("the letters of curl are all classified") func letters() {
        let letters = "0123446aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwxXyYzZ:#"
        for letter in letters {
            let name = CurlOption.short[letter]
            #expect(name.map { CurlOption.long[$0] != nil || CurlRefusal.all[$0] != nil } == true, "\(letter)")
        }
        #expect(Set(CurlOption.short.keys) == Set(letters))
    }

    @Test("the options of the curl of this machine take a value where they do here")
    func values() async throws {
        let curl = try #require(["/usr/bin/curl", "/usr/local/bin/curl"].first { FileManager.default.isExecutableFile(atPath: $0) })
        let help = try await ToolRun(["--help", "all"], program: URL(fileURLWithPath: curl)).result().text
        var count = 0
        for line in help.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard let index = words.firstIndex(where: { $0.hasPrefix("--") }), let option = CurlOption.long[String(words[index])] else {
                continue
            }
            count += 1
            let takesValue =
                words.count > index + 1 && (words[index + 1].hasPrefix("<") || words[index + 1].hasPrefix("[")) && words[index] != "--help"
            #expect(option.takesValue == takesValue, "\(line)")
        }
        #expect(count > 150)
    }

    @Test("each option of ours that one stands for is there") func replacements() throws {
        let known = SendCommand._dumpHelp()
        for (name, option) in CurlOption.long {
            guard case .flag(let ours) = option else { continue }
            let word = ours.dropFirst(2).prefix { $0 != "=" }
            #expect(known.contains("\"name\" : \"\(word)\"") || known.contains("\"\(word)\""), "\(name)")
        }
    }
}
