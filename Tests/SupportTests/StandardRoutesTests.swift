// SPDX-License-Identifier: Apache-2.0

import CurlewTestSupport
import Testing

@Suite struct StandardRoutesTests {
    private let server: LoopbackServer
    private let client: RawClient

    init() throws {
        server = try LoopbackServer.standard()
        client = try RawClient(port: server.port)
    }

    @Test(
        "a range request gets its part",
        arguments: [
            ("bytes=10-19", 206, 10..<20), ("bytes=90-", 206, 90..<100), ("bytes=-5", 206, 95..<100), ("bytes=50-500", 206, 50..<100),
            ("bytes=0-1,4-5", 200, 0..<100), ("lines=0-1", 200, 0..<100), ("bytes=9-1", 200, 0..<100), ("bytes=100-", 416, 0..<0),
            ("bytes=-0", 416, 0..<0),
        ])
    func rangeRequests(_ range: String, _ status: Int, _ part: Range<Int>) throws {
        let response = try client.exchange("/bytes/100?seed=5", headers: ["Range: \(range)"])
        #expect(response.status == status)
        #expect(response.body == GeneratedBody(seed: 5).data(offset: Int64(part.lowerBound), count: part.count))
        let expected = [206: "bytes \(part.lowerBound)-\(part.upperBound - 1)/100", 416: "bytes */100"][status]
        #expect(response.header("Content-Range") == expected)
    }

    @Test("If-Range gets the full body after a change") func ifRange() throws {
        let tag = try #require(try client.exchange("/bytes/100").header("ETag"))
        #expect(try client.exchange("/bytes/100", headers: ["Range: bytes=1-", "If-Range: \(tag)"]).status == 206)
        #expect(try client.exchange("/bytes/100", headers: ["Range: bytes=1-", "If-Range: \"other\""]).status == 200)
        #expect(try client.exchange("/bytes/100", headers: ["If-None-Match: \(tag)"]).status == 304)
        #expect(try client.exchange("/bytes/100?ranges=0", headers: ["Range: bytes=1-"]).status == 200)
    }

    @Test("a range beyond 4 GiB costs only its own bytes") func largeOffset() throws {
        let response = try client.exchange("/bytes/6000000000", headers: ["Range: bytes=5999999990-"])
        #expect(response.body == GeneratedBody().data(offset: 5_999_999_990, count: 10))
    }

    @Test("redirects count down to the target") func redirects() throws {
        #expect(try client.exchange("/redirect/2").header("Location") == "/redirect/1?status=302")
        #expect(try client.exchange("/redirect/1?status=307").header("Location") == "/json")
        let elsewhere = try client.exchange("/redirect-to?url=http%3A%2F%2Fexample.org%2F&status=308")
        #expect(elsewhere.status == 308)
        #expect(elsewhere.header("Location") == "http://example.org/")
    }

    @Test("credentials are requested and accepted") func authorization() throws {
        #expect(try client.exchange("/auth-token?token=t").header("WWW-Authenticate") == "Bearer realm=\"loopback\"")
        #expect(try client.exchange("/auth-token?token=t", headers: ["Authorization: Bearer t"]).status == 200)
        #expect(try client.exchange("/auth-basic?user=u&password=p", headers: ["Authorization: Basic dTpw"]).status == 200)
        #expect(try client.exchange("/auth-basic?user=u&password=p").status == 401)
    }

    @Test("flaky fails the given number of times per key") func flaky() throws {
        let statuses = try ["a", "a", "b", "a"].map { try client.exchange("/flaky?fail=2&key=\($0)").status }
        #expect(statuses == [503, 503, 503, 200])
    }

    @Test("headers and cookies are sent as requested") func headersAndCookies() throws {
        #expect(try client.exchange("/headers?X-A=1&X-B=2").header("x-b") == "2")
        #expect(try client.exchange("/cookies/set?a=1").header("Set-Cookie") == "a=1; Path=/")
        #expect(try client.exchange("/cookies", headers: ["Cookie: a=1; b=2"]).body.text == #"{"a":"1","b":"2"}"#)
    }

    @Test("a drip arrives byte by byte") func drip() throws {
        #expect(try client.exchange("/drip?n=3&ms=1").body.text == "***")
        #expect(try client.exchange("/delay/1").status == 200)
        #expect(try client.exchange("/nowhere").status == 404)
    }

    @Test("truncated responses end at the given byte") func truncation() throws {
        try client.send("GET /cut-body?announce=50&send=5 HTTP/1.1\r\n\r\n")
        let body = try client.readToEnd()
        #expect(body.text.contains("Content-Length: 50"))
        #expect(body.suffix(5) == GeneratedBody().data(count: 5))
        let other = try RawClient(port: server.port)
        try other.send("GET /cut-head HTTP/1.1\r\n\r\n")
        #expect(try other.readToEnd().text == "HTTP/1.1 200 OK\r\nContent-Le")
    }

    @Test("a reset is sent as RST") func reset() throws {
        try client.send("GET /reset HTTP/1.1\r\n\r\n")
        let error = #expect(throws: SocketError.self) { try client.readToEnd() }
        #expect(error?.code == ECONNRESET)
    }

    @Test("curl accepts the responses", arguments: ["/gzip", "/deflate", "/bytes"])
    func curlAccepts(_ route: String) throws {
        let path = route == "/bytes" ? "/bytes/70000" : "\(route)?n=70000"
        guard let output = try Curl.output(of: ["--compressed", "--fail", server.url(path)]) else { return }
        #expect(output == (route == "/bytes" ? GeneratedBody().data(count: 70000) : ServerRoutes.text(count: 70000)))
    }

    @Test("curl detects truncated gzip") func curlDetectsTruncation() throws {
        guard let output = try Curl.output(of: ["--compressed", server.url("/gzip-truncated?n=1000")]) else { return }
        #expect(output.count < 1000)
    }
}

/// The system's `curl`, as an independent view of the server.
private enum Curl {
    /// Returns its output; nil if it is not installed.
    static func output(of arguments: [String]) throws -> Data? {
        let tool = URL(fileURLWithPath: "/usr/bin/curl")
        guard FileManager.default.isExecutableFile(atPath: tool.path) else { return nil }
        let process = Process()
        let output = Pipe()
        process.executableURL = tool
        process.arguments = ["--silent"] + arguments
        process.standardOutput = output
        try process.run()
        let data = try output.fileHandleForReading.readToEnd()
        process.waitUntilExit()
        return data ?? Data()
    }
}
