// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Runs the commands of `cURLDescription(redacting: false)` in a shell, and compares what the server receives with what the request itself
/// sends.
@Suite(.timeLimit(.minutes(2)), .enabled(if: ChildProcess.path(of: "curl") != nil, "needs the program curl")) struct CURLCommandTests {
    private static let awkward = #"it's "quoted" \ $HOME `id` $(id) ~ * ? # & ; | < > ( ) { } [ ] ! % a=b 'x' \\ \" \n é 日本 😃"#

    private let server: LoopbackServer
    private let manager = makeManager { $0.headers = ["User-Agent": "Test \"$1\"", "Accept": "*/*"] }

    init() throws {
        server = try LoopbackServer { _, _ in .ok() }
    }

    /// What both send, without the fields that describe a connection and without order, because curl uses its own.
    private struct Sent: Equatable {
        let method: String
        let target: String
        let headers: [String]
        let body: Data

        init(_ request: ServerRequest) {
            method = request.method
            target = request.target
            body = request.body
            headers = request.headers.map { "\($0.name.lowercased()): \($0.value)" }.filter { !$0.hasPrefix("accept-encoding:") }.sorted()
        }
    }

    /// Sends a request, then its command.
    private func compare(_ request: DataRequest) async throws {
        let response = await request.serializingData().response
        #expect(response.error == nil)
        let shell = try ChildProcess("/bin/sh", "-c", request.cURLDescription(redacting: false) + " -s -S --max-time 20")
        let (status, _) = await shell.finish()
        #expect(status == 0)
        let sent = server.requests.map(Sent.init)
        try #require(sent.count == 2)
        #expect(sent[0] == sent[1])
    }

    @Test("a plain GET") func plainGet() async throws {
        try await compare(manager.request(server.url("/path?a=b&c=d")))
    }

    @Test("parameters in the query") func query() async throws {
        try await compare(manager.request(server.url("/"), parameters: ["text": Self.awkward, "list": [1, 2], "map": ["k": "v"]]))
    }

    @Test("headers with characters special to a shell") func headers() async throws {
        let headers: HTTPHeaders = [
            "X-Awkward": Self.awkward, "X-Single": "it's", "X-Bang": "hi!there", "X-Tab": "a\tb", "X-Empty": "", "x-at": "@file",
            "X-Twice": "1", "Authorization": "Bearer a$b",
        ]
        try await compare(manager.request(server.url("/"), headers: headers))
    }

    @Test("repeated headers") func repeatedHeaders() async throws {
        try await compare(
            manager.request(server.url("/"), headers: [HTTPHeader(name: "X", value: "1"), HTTPHeader(name: "X", value: "2")]))
    }

    @Test("a JSON body") func json() async throws {
        try await compare(
            manager.request(
                server.url("/"), method: .post, parameters: ["text": Self.awkward, "lines": "a\nb\r\nc"], encoding: JSONEncoding.default))
    }

    @Test("a form") func form() async throws {
        try await compare(manager.request(server.url("/"), method: .post, parameters: ["text": Self.awkward]))
    }

    @Test(
        "bodies with characters special to a shell or to curl",
        arguments: [awkward, "@/etc/passwd", "a\nb\n", "\r\n", "'", "\"", "\\", "$", "!", "-d", "", "line\\\nbreak", "\u{1}\u{1b}[0m"])
    func bodies(_ body: String) async throws {
        try await compare(manager.upload(Data(body.utf8), to: server.url("/")))
    }

    @Test("methods with and without a body") func methods() async throws {
        for method in [HTTPMethod.post, .put, .patch, .delete, .options] {
            let suite = try CURLCommandTests()
            try await suite.compare(manager.request(suite.server.url("/"), method: method))
        }
    }

    @Test("HEAD ends without a body") func head() async throws {
        try await compare(manager.request(server.url("/"), method: .head))
    }

    @Test("a GET with a body") func getWithBody() async throws {
        var request = try URLRequest(url: server.url("/"), method: .get)
        request.httpBody = Data("body".utf8)
        try await compare(manager.request(request))
    }

    @Test("a file") func file() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(GeneratedBody().data(count: 60_000), to: "a \"file\" of $HOME's")
        try await compare(manager.upload(file, to: server.url("/"), method: .put, headers: ["Content-Type": "application/x-test"]))
    }

    @Test("cookies") func cookies() async throws {
        try await compare(manager.request(server.url("/"), headers: ["Cookie": "a=b; c=\"d e\""]))
    }

    @Test("a cookie without an equals sign") func oddCookie() async throws {
        try await compare(manager.request(server.url("/"), headers: ["Cookie": "odd"]))
    }

    @Test("a path with dot segments and escapes") func dots() async throws {
        try await compare(manager.request(server.url("/a/../b/./c/%2e%2E/?x%5B%5D=1&y=$HOME&z=it's#fragment")))
    }

    @Test("a user and a password in the URL") func userInfo() async throws {
        try await compare(manager.request("http://user:pa$$@127.0.0.1:\(server.port)/"))
    }
}
