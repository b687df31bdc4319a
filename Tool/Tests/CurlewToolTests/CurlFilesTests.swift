// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// What commands of curl leave in files, and to whom they send secrets.
@Suite(.timeLimit(.minutes(2))) struct CurlFilesTests {
    @Test("a file that has not changed, or of which the server sends no other part, is left as it is") func kept() async throws {
        let server = try LoopbackServer { request, _ in
            let page = ServerResponse.Body.data(Data("a page that is none of the file".utf8))
            switch request.path {
            case "/same": return .status(304, headers: [])
            case "/gone": return ServerResponse(status: 404, headers: [], body: page)
            case "/moved": return ServerResponse(status: 302, headers: [ServerField("Location", "/x")], body: page)
            case "/other":
                return ServerResponse(
                    status: 206, headers: [ServerField("Content-Range", "bytes 0-9/10")], body: .data(Data("0123456789".utf8)))
            default: return .ok("all of it, from its first byte")
            }
        }
        let folder = try TemporaryDirectory()
        let file = try folder.write(Data("012345".utf8), to: "part")
        for (words, path, status) in [
            (["-z", "Sun, 06 Nov 1994 08:49:37 GMT"], "/same", 0), (["--etag-compare", "/nowhere"], "/same", 0),
            (["-C", "-"], "/gone", 4), (["-C", "-"], "/moved", 3), (["-C", "-"], "/other", 9), (["-C", "-"], "/all", 9),
        ] as [([String], String, Int32)] {
            let result = try await ToolRun(["curl", "-s"] + words + ["-o", file.path, server.url(path)]).result()
            #expect(result.status == status, "\(words) \(path)")
            #expect(try Data(contentsOf: file) == Data("012345".utf8), "\(words) \(path)")
        }
    }

    @Test("a password is sent to challenges of the schemes that are named, and to no other") func schemes() async throws {
        let server = try LoopbackServer { request, _ in
            var fields = [ServerField("WWW-Authenticate", "Basic realm=\"r\"")]
            if request.path == "/both" { fields.append(ServerField("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"")) }
            return request.header("Authorization") == nil ? .status(401, headers: fields) : .ok("x")
        }
        for (options, path, scheme) in [
            (["--digest"], "/", nil), (["--ntlm"], "/both", nil), (["--negotiate"], "/", nil), (["--digest"], "/both", "Digest"),
            (["--anyauth"], "/", "Basic"), (["--digest", "--basic"], "/", "Basic"), (["--basic"], "/", "Basic"),
        ] as [([String], String, String?)] {
            let count = server.requestCount
            let result = try await ToolRun(["curl", "-s"] + options + ["-u", "u:p", server.url(path)]).result()
            #expect(result.status == (scheme == nil ? 4 : 0), "\(options) \(path)")
            let sent = server.requests.dropFirst(count).compactMap {
                $0.header("Authorization")?.split(separator: " ").first.map(String.init)
            }
            #expect(sent == (scheme.map { [$0] } ?? []), "\(options) \(path)")
        }
    }

    @Test("--noproxy and --proxy-user count for the proxies of the environment, too") func proxies() async throws {
        let proxy = try LoopbackServer { _, _ in .ok("proxy") }
        let server = try LoopbackServer { _, _ in .ok("direct") }
        let url = server.url("/")
        for (words, variable, text) in [
            ([], "", "proxy"), ([], "127.0.0.1", "direct"), (["--noproxy", "a.test, 127.0.0.1"], "", "direct"),
            (["--noproxy", "a.test"], "127.0.0.1", "proxy"), (["--noproxy", "*"], "", "direct"), (["-U", "u:p"], "127.0.0.1", "direct"),
            (["-U", "u:p"], "", "proxy"), (["-x", proxy.url(""), "--noproxy", "127.0.0.1"], "", "direct"),
        ] as [([String], String, String)] {
            let environment = ["http_proxy": proxy.url(""), "no_proxy": variable]
            let result = try await ToolRun(["curl", "-s"] + words + [url], environment: environment).result()
            #expect(result.text == text, "\(words) \(variable): \(result.error)")
        }
        #expect(proxy.requests.map { $0.header("Proxy-Authorization") } == [nil, nil, "Basic dTpw"])
    }

    @Test("a jar is replaced in one step by the cookies of all URLs, and a link stays one") func jars() async throws {
        let server = try LoopbackServer { request, _ in
            var response = ServerResponse.ok("x")
            response.headers.append(ServerField("Set-Cookie", "\(request.path.dropFirst())=1; Path=/"))
            return response
        }
        let folder = try TemporaryDirectory()
        let (jar, old, link) = (folder.file("jar"), folder.file("old"), folder.file("link"))
        try Data("# old\n".utf8).write(to: jar)
        try FileManager.default.linkItem(at: jar, to: old)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder.file("target"))
        for path in [jar.path, link.path] {
            let words = ["curl", "-sZ", "-c", path, server.url("/one"), server.url("/two")]
            #expect(try await ToolRun(words).result().status == 0)
            let text = try String(contentsOfFile: path, encoding: .utf8)
            #expect(text.contains("\tone\t1") && text.contains("\ttwo\t1"), "\(text)")
        }
        #expect(try Data(contentsOf: old) == Data("# old\n".utf8))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted() == ["jar", "link", "old", "target"])
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link.path) == folder.file("target").path)
        let failed = try await ToolRun.run("curl", "-s", "-c", "/nowhere/jar", server.url("/one"))
        #expect(failed.status == 10)
    }

    @Test("--fail-with-body writes the body of a failure, which is one to other options") func failures() async throws {
        let left = Lock(2)
        let server = try LoopbackServer { request, _ in
            let fails =
                request.path == "/none"
                || left.withLock { left in
                    left -= 1
                    return left >= 0
                }
            return fails ? ServerResponse(status: 404, headers: [], body: .data(Data("no".utf8))) : .ok("yes")
        }
        let folder = try TemporaryDirectory()
        let file = folder.file("f")
        let shown = try await ToolRun.run("curl", "-s", "--fail-with-body", "-w", "%{onerror} failed", server.url("/none"))
        #expect(shown.status == 4 && shown.text == "no failed")
        let words = ["curl", "-s", "--fail-with-body", "--remove-on-error", "-o", file.path, server.url("/none")]
        #expect(try await ToolRun(words).result().status == 4)
        #expect(!FileManager.default.fileExists(atPath: file.path))
        let all = ["curl", "-s", "--fail-with-body", "--retry", "3", "--retry-delay", "0.01", "--retry-all-errors", server.url("/")]
        #expect(try await ToolRun(all).result().text == "nonoyes")
    }

    @Test("--time-cond with a file that is not there is ignored, which is said") func condition() async throws {
        let server = try LoopbackServer { _, _ in .ok("x") }
        let result = try await ToolRun.run("curl", "-s", "-z", "soon", server.url("/"))
        #expect(result.status == 0 && result.text == "x")
        #expect(result.error == "curlew: \"soon\" is neither a date nor a file: curl's option --time-cond is ignored\n")
        #expect(server.requests.first?.header("If-Modified-Since") == nil)
    }

    @Test("the URLs of a file have names of their own, and leave others their targets") func targets() throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write(Data("# c\nhttp://h/a\nhttp://h/b\n".utf8), to: "urls").path
        func paths(_ words: String...) throws -> [String?] { try CurlCommandLine(words).commands.map(\.extras.output.path) }
        #expect(try paths("http://h/x", "--url", "@\(file)", "http://h/y") == [nil, "a", "b", nil])
        #expect(try paths("http://h/x", "--url", "@\(file)", "-o", "c") == ["c", "a", "b"])
        #expect(try paths("-o", "c", "http://h/x", "--url", "@\(file)") == ["c", "a", "b"])
    }
}
