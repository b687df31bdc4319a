// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// What is kept between runs: `--session` and `--cache`.
@Suite(.timeLimit(.minutes(1))) struct SessionTests {
    @Test("a session keeps cookies and fields for its host, in a file of the user's own") func session() async throws {
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
        #expect(other.requests.last?.header("Cookie") == nil)
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
        #expect(session.cookies.map(\.name).sorted() == (0..<6).map { "k\($0)" })
        #expect(session.headers.map(\.name).sorted() == (0..<6).map { "X-\($0)" })
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
