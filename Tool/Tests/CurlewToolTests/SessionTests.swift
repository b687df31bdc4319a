// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// What is kept between runs: `--session` and `--cache`.
@Suite(.timeLimit(.minutes(1))) struct SessionTests {
    @Test("a session keeps cookies for the host and fields for the origin, in files of the user's own") func session() async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Set-Cookie", "k=v; Path=/")], body: .data(Data("x".utf8)))
        }
        let other = try LoopbackServer.standard()
        let directory = try TemporaryDirectory()
        let environment = ["XDG_CONFIG_HOME": directory.url.path]
        #expect(try await ToolRun.run("--session", "s", server.url("/"), "X-A:1", environment: environment).status == 0)
        #expect(try await ToolRun.run("--session", "s", server.url("/"), environment: environment).status == 0)
        #expect(server.requests.last?.header("Cookie") == "k=v")
        #expect(server.requests.last?.header("X-A") == "1")
        let printed = try await ToolRun.run("--session", "s", "--curl", server.url("/"), "Cookie:a=b", environment: environment)
        #expect(printed.text.contains(" -H 'Cookie: a=b; k=v' "))
        let offline = try await ToolRun.run("--session", "s", "--offline", "--show-secrets", server.url("/"), environment: environment)
        #expect(offline.text.contains("\nX-A: 1\nCookie: k=v\n"))
        #expect(try await ToolRun.run("--session", "s", other.url("/json"), environment: environment).status == 0)
        // As with browsers, a cookie is for each port of its host (RFC 6265, section 8.5).
        #expect(other.requests.last?.header("Cookie") == "k=v")
        #expect(other.requests.last?.header("X-A") == nil)
        let file = directory.file("curlew/sessions/http-\(server.port)-127.0.0.1/s.json")
        #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
    }

    @Test("processes that write a session at once keep the cookies of all") func concurrent() async throws {
        let gate = Gate()
        let server = try LoopbackServer { request, connection in
            // All have read the session before the first one writes it.
            _ = connection.wait(until: gate)
            return ServerResponse(
                status: 200, headers: [ServerField("Set-Cookie", "k\(request.query("n") ?? "")=v")], body: .data(Data("x".utf8)))
        }
        let directory = try TemporaryDirectory()
        let environment = ["XDG_CONFIG_HOME": directory.url.path]
        let runs = try (0..<6).map { try ToolRun(["--session", "s", server.url("/?n=\($0)"), "X-\($0):1"], environment: environment) }
        #expect(await gate.arrivals(6))
        gate.open()
        for run in runs { #expect(await run.result().status == 0) }
        let session = try SessionFile(contentsOf: Self.file(directory, server))
        #expect(try Self.cookies(directory).cookies().map(\.name).sorted() == (0..<6).map { "k\($0)" })
        #expect(session.headers.map(\.name).sorted() == (0..<6).map { "X-\($0)" })
    }

    private static func cookies(_ directory: TemporaryDirectory) -> CookieStore {
        .file(directory.file("curlew/sessions/s.cookies.txt"), keepsSessionCookies: true)
    }

    private static func file(_ directory: TemporaryDirectory, _ server: LoopbackServer) -> URL {
        directory.file("curlew/sessions/http-\(server.port)-127.0.0.1/s.json")
    }

    @Test("a cookie that the server has deleted is removed") func deleted() async throws {
        let server = try LoopbackServer { request, _ in
            let cookie = request.path == "/" ? "k=v" : "k=; Max-Age=0; Path=/"
            return ServerResponse(status: 200, headers: [ServerField("Set-Cookie", cookie)], body: .data(Data("x".utf8)))
        }
        let directory = try TemporaryDirectory()
        let environment = ["XDG_CONFIG_HOME": directory.url.path]
        for path in ["/", "/delete", "/delete"] {
            #expect(try await ToolRun.run("--session", "s", server.url(path), environment: environment).status == 0)
        }
        #expect(server.requests.map { $0.header("Cookie") } == [nil, "k=v", nil])
    }

    @Test("a damaged session is named, and so is one that a full disk does not take") func unusable() async throws {
        let server = try LoopbackServer.standard()
        let directory = try TemporaryDirectory()
        let environment = ["XDG_CONFIG_HOME": directory.url.path]
        let file = Self.file(directory, server)
        let words = ["--session", "s", server.url("/json"), "X-A:1"]
        // A limit of the size of files fails as a full disk does.
        let full = try await ToolRun(words, environment: environment, limit: "-f 0 && trap '' XFSZ").result()
        #expect(full.status == 10)
        #expect(full.error == "curlew: \(file.path): File too large\n")
        #expect(try await ToolRun(words, environment: environment).result().status == 0)
        try Data("{".utf8).write(to: file)
        let damaged = try await ToolRun(words, environment: environment).result()
        #expect(damaged.status == 10)
        #expect(damaged.error == "curlew: \(file.path): not a session's file; remove it to begin anew\n")
        #expect(try Data(contentsOf: file) == Data("{".utf8))
    }

    @Test("a damaged file of cookies is named before anything is sent") func damagedCookies() async throws {
        let server = try LoopbackServer.standard()
        let directory = try TemporaryDirectory()
        let file = directory.file("curlew/sessions/s.cookies.txt")
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data("no cookies\n".utf8).write(to: file)
        let result = try await ToolRun(
            ["--session", "s", server.url("/json")], environment: ["XDG_CONFIG_HOME": directory.url.path]
        ).result()
        #expect(result.status == 10)
        #expect(result.error == "curlew: The file \(file.path) has another format: its line 1 is not understood\n")
        #expect(server.requestCount == 0)
        #expect(try Data(contentsOf: file) == Data("no cookies\n".utf8))
    }

    @Test("cookies have a domain, a path and an end, as those of a browser") func scopes() async throws {
        let server = try LoopbackServer { request, _ in
            guard request.path == "/login" else { return .ok("x") }
            let cookies = ["host=1; Path=/", "domain=2; Domain=example.test; Path=/", "deep=3; Path=/deep", "alien=4; Domain=other.test"]
            return ServerResponse(status: 200, headers: cookies.map { ServerField("Set-Cookie", $0) }, body: .data(Data("x".utf8)))
        }
        let directory = try TemporaryDirectory()
        func sent(_ host: String, _ path: String) async throws -> String? {
            let words = ["--session", "s", "--resolve", "\(host):\(server.port):127.0.0.1", "http://\(host):\(server.port)\(path)"]
            let result = try await ToolRun(words, environment: ["XDG_CONFIG_HOME": directory.url.path]).result()
            #expect(result.status == 0, "\(result.error)")
            return server.requests.last?.header("Cookie")
        }
        #expect(try await sent("www.example.test", "/login") == nil)
        #expect(try await sent("www.example.test", "/") == "host=1; domain=2")
        #expect(try await sent("www.example.test", "/deep/x") == "deep=3; host=1; domain=2")
        #expect(try await sent("www.example.test", "/deeper") == "host=1; domain=2")
        #expect(try await sent("api.example.test", "/deep") == "domain=2")
        #expect(try await sent("other.test", "/") == nil)
        // One whose time is over is not sent, and leaves the file with the next change.
        let file = directory.file("curlew/sessions/s.cookies.txt")
        #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
        let old = "www.example.test\tFALSE\t/\tFALSE\t1000000000\told\t5\n"
        try Data(String(contentsOf: file, encoding: .utf8).appending(old).utf8).write(to: file)
        #expect(try await sent("www.example.test", "/") == "host=1; domain=2")
        #expect(try await sent("www.example.test", "/login") == "host=1; domain=2")
        #expect(try String(contentsOf: file, encoding: .utf8).contains("\told\t") == false)
    }

    @Test("secure cookies are sent over TLS only", .enabled(if: ServerTLS.isAvailable)) func secure() async throws {
        let made = try ServerTLS.throwAway()
        let directory = try TemporaryDirectory()
        let authority = try directory.write(made.authority.certificate, to: "authority.pem").path
        let secure = try LoopbackServer(tls: made.tls) { _, _ in
            ServerResponse(
                status: 200, headers: [ServerField("Set-Cookie", "safe=1; Secure; Path=/"), ServerField("Set-Cookie", "plain=2; Path=/")],
                body: .data(Data("x".utf8)))
        }
        let plain = try LoopbackServer { _, _ in
            // It may neither set a secure cookie nor replace one.
            ServerResponse(
                status: 200, headers: [ServerField("Set-Cookie", "safe=no; Path=/"), ServerField("Set-Cookie", "new=3; Secure; Path=/")],
                body: .data(Data("x".utf8)))
        }
        let environment = ["XDG_CONFIG_HOME": directory.url.path]
        for url in [secure.url("/"), "http://localhost:\(plain.port)/", secure.url("/")] {
            let result = try await ToolRun(["--session", "s", "--cacert", authority, url], environment: environment).result()
            #expect(result.status == 0, "\(result.error)")
        }
        #expect(plain.requests.map { $0.header("Cookie") } == ["plain=2"])
        #expect(secure.requests.map { $0.header("Cookie") } == [nil, "safe=1; plain=2"])
    }

    @Test("--user and --token are kept for their origin, until others are given") func credentials() async throws {
        let server = try LoopbackServer { _, _ in .ok("x") }
        let other = try LoopbackServer { _, _ in .ok("x") }
        let directory = try TemporaryDirectory()
        func sent(_ words: [String], to server: LoopbackServer, token: String? = nil) async throws -> String? {
            var environment = ["XDG_CONFIG_HOME": directory.url.path]
            if let token { environment["CURLEW_TOKEN"] = token }
            let result = try await ToolRun(["--session", "s"] + words + [server.url("/")], environment: environment).result()
            #expect(result.status == 0, "\(result.error)")
            return server.requests.last?.header("Authorization")
        }
        #expect(try await sent(["--token", "t1"], to: server) == "Bearer t1")
        #expect(try await sent([], to: server) == "Bearer t1")
        #expect(try await sent([], to: other) == nil)
        #expect(try await sent(["-u", "u:p"], to: server) == "Basic dTpw")
        #expect(try await sent([], to: server) == "Basic dTpw")
        #expect(try await sent(["--token", "t2"], to: server) == "Bearer t2")
        // Of the environment's token, nothing is kept, and what is kept counts before it.
        #expect(try await sent([], to: server, token: "e") == "Bearer t2")
        #expect(try await sent([], to: other, token: "e") == "Bearer e")
        #expect(try await sent([], to: other) == nil)
        // That of a download is the same.
        let words = ["dl", "--session", "s", "-o", directory.file("file").path, server.url("/")]
        #expect(try await ToolRun(words, environment: ["XDG_CONFIG_HOME": directory.url.path]).result().status == 0)
        #expect(server.requests.last?.header("Authorization") == "Bearer t2")
    }

    @Test("\"Authorization:\" forgets what is kept") func forgotten() async throws {
        let server = try LoopbackServer { _, _ in .ok("x") }
        let directory = try TemporaryDirectory()
        let environment = ["XDG_CONFIG_HOME": directory.url.path]
        for words in [["--token", "t"], [], ["Authorization:"], []] {
            #expect(try await ToolRun(["--session", "s", server.url("/")] + words, environment: environment).result().status == 0)
        }
        #expect(server.requests.map { $0.header("Authorization") } == ["Bearer t", "Bearer t", nil, nil])
    }

    @Test("a name and password for challenges are kept, and answer later ones") func challenges() async throws {
        let server = try LoopbackServer { request, _ in
            guard request.header("Authorization") == nil else { return .ok("in") }
            return ServerResponse(
                status: 401, headers: [ServerField("WWW-Authenticate", "Basic realm=\"r\"")], body: .data(Data("out".utf8)))
        }
        let directory = try TemporaryDirectory()
        let environment = ["XDG_CONFIG_HOME": directory.url.path]
        for words in [["-A", "challenge", "-u", "u:p"], []] {
            let result = try await ToolRun(["--session", "s", server.url("/")] + words, environment: environment).result()
            #expect(result.status == 0 && result.text == "in", "\(result.error)")
        }
        #expect(server.requests.map { $0.header("Authorization") } == [nil, "Basic dTpw", nil, "Basic dTpw"])
    }

    @Test("the stored head is printed for a response from the cache", arguments: ["-h", "-v"]) func cachedHead(_ word: String) async throws
    {
        let server = try LoopbackServer { _, _ in
            var response = ServerResponse.ok("cached")
            response.headers += [ServerField("Cache-Control", "max-age=600"), ServerField("X-Stored", "yes")]
            return response
        }
        let directory = try TemporaryDirectory()
        let environment = ["HOME": directory.url.path, "XDG_CACHE_HOME": directory.url.path]
        #expect(try await ToolRun.run("--cache", server.url("/"), environment: environment).text == "cached")
        let result = try await ToolRun.run("--cache", word, server.url("/"), environment: environment)
        #expect(result.text.hasPrefix("HTTP/1.1 200"))
        #expect(result.text.contains("\nX-Stored: yes\n"))
        #expect(result.text.hasSuffix("\n\ncached") == (word == "-v"))
        #expect(server.requestCount == 1)
    }
}
