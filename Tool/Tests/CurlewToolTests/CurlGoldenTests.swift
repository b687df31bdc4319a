// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// The curl of this machine.
private enum RealCurl {
    static let path = ["/usr/bin/curl", "/usr/local/bin/curl"].first { FileManager.default.isExecutableFile(atPath: $0) }
}

/// Commands of curl, each run by the curl of this machine and by this program: what arrives and what is written is the same.
@Suite(.timeLimit(.minutes(3)), .enabled(if: RealCurl.path != nil, "needs curl")) struct CurlGoldenTests {
    /// What no two programs agree on is left out: their names, and the boundaries of forms.
    private static func plain(_ data: Data) -> Data {
        let text = String(decoding: data, as: UTF8.self)
        guard text.contains("boundary=") || text.contains("multipart/mixed") || text.contains("form-data") else { return data }
        var result = ""
        for line in text.components(separatedBy: "\r\n") {
            var line = line
            if let mark = line.range(of: "boundary=") { line = line[..<mark.upperBound] + "B" }
            if line.hasPrefix("--") { line = line.hasSuffix("--") ? "--B--" : "--B" }
            result += line + "\r\n"
        }
        return Data(result.utf8)
    }

    private struct Arrival: Equatable {
        let line: String
        let fields: [String]
        let body: Data

        init(_ request: ServerRequest) {
            let isForm = request.header("Content-Type")?.hasPrefix("multipart/") == true
            line = "\(request.method) \(request.target)"
            fields = request.headers.filter { field in
                let name = field.name.lowercased()
                // Uploads of 7.88 wait for 100 Continue, those of 8.14 with more than a megabyte.
                return name != "expect" && !(isForm && name == "transfer-encoding")
                    && !(name == "user-agent" && (field.value.hasPrefix("curl/") || field.value.hasPrefix("curlew/")))
                    && !(isForm && name == "content-length")
            }.map { String(decoding: CurlGoldenTests.plain(Data("\($0.name): \($0.value)".utf8)), as: UTF8.self) }.sorted()
            body = CurlGoldenTests.plain(request.body)
        }
    }

    private static func server() throws -> LoopbackServer {
        try LoopbackServer { request, _ in
            var response = ServerResponse.ok("hello\n", type: "text/plain")
            switch request.path {
            case "/redirect": response = .status(302, headers: [ServerField("Location", "/end"), ServerField("X-Hop", "1")])
            case "/cookies": response.headers += [ServerField("Set-Cookie", "k=v; Path=/")]
            case "/none": response = ServerResponse(status: 404, headers: [], body: .data(Data("none\n".utf8)))
            case "/tag":
                response.headers += [ServerField("ETag", "\"a b\""), ServerField("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")]
            case "/unmodified": response = .status(304, headers: [])
            case "/unmet": response = ServerResponse(status: 412, headers: [], body: .data(Data("unmet\n".utf8)))
            case "/named": response.headers += [ServerField("Content-Disposition", "attachment; filename=\"given.txt\"")]
            case "/range":
                let all = Array("0123456789".utf8)
                guard let text = request.header("Range")?.dropFirst("bytes=".count), let first = Int(text.prefix { $0 != "-" }) else {
                    return .ok(Data(all))
                }
                guard first < all.count else { return .status(416, headers: [ServerField("Content-Range", "bytes */10")]) }
                let last = Int(text.drop { $0 != "-" }.dropFirst()) ?? 9
                response = ServerResponse(
                    status: 206, headers: [ServerField("Content-Range", "bytes \(first)-\(last)/10")], body: .data(Data(all[first...last])))
            default: break
            }
            return response
        }
    }

    /// The files that commands read.
    private static func folder() throws -> TemporaryDirectory {
        let folder = try TemporaryDirectory()
        try folder.write(Data("some\r\ntext\n".utf8), to: "text.txt")
        try folder.write(Data([0xFF, 0x0D, 0x0A, 0x61, 0xFE]), to: "bytes")
        try folder.write(Data("X-File: one\r\nX-Other: two\n".utf8), to: "fields")
        try folder.write(Data("\"a b\"\n".utf8), to: "tag")
        try folder.write(Data("012345".utf8), to: "part")
        try folder.write(Data("# A comment\nheader = \"X-Config: a \\\"b\\\"\"\n--data a=1\nrequest: PURGE\n-G\n".utf8), to: "config")
        try folder.write(
            Data("# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tk\tv\n".utf8), to: "cookies")
        return folder
    }

    private static func run(_ words: [String], _ server: LoopbackServer, program: URL?) async throws -> (
        arrivals: [Arrival], result: ToolRun.Result, files: [String: Data]
    ) {
        let folder = try folder()
        let count = server.requestCount
        let given = words.map { $0.replacingOccurrences(of: "URL", with: server.url("/")) }
        let result = try await ToolRun(
            (program == nil ? ["curl"] : []) + given, environment: ["HOME": folder.url.path], program: program, folder: folder.url
        ).result()
        var files: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.url.path) {
            files[name] = try? Data(contentsOf: folder.file(name))
        }
        return (server.requests.dropFirst(count).map(Arrival.init), result, files)
    }

    @Test(
        "the same is sent and written",
        arguments: [
            ["-s", "URLx"], ["-si", "URLx"], ["-sI", "URLx"], ["-siL", "URLredirect"], ["-s", "URLredirect"], ["-s", "-D", "-", "URLx"],
            ["-sL", "-D", "heads", "-o", "body", "URLredirect"], ["-s", "URLnone"], ["-s", "-o", "body", "URLnone"],
            ["-sf", "-o", "b", "URLnone"],
            // Bodies.
            ["-s", "-d", "@text.txt", "URLx"], ["-s", "--data-binary", "@bytes", "URLx"],
            ["-s", "-d", "a=1", "--data-binary", "@bytes", "URLx"],
            ["-s", "--data-binary", "@bytes", "-d", "a=1", "URLx"], ["-s", "-d", "a", "--json", "{}", "--json", "[]", "URLx"],
            ["-s", "--data-urlencode", "a=b c&ü", "--data-urlencode", "q@bytes", "--data-urlencode", "=x y", "URLx"],
            ["-s", "-G", "-d", "a=1", "--data-urlencode", "b=x y", "URLx?c=2"],
            ["-s", "--url-query", "a=b c", "--url-query", "+x=%20", "URLx"],
            ["-s", "--json", "@text.txt", "-H", "Accept: a/b", "URLx"], ["-s", "-T", "text.txt", "URLdir/"], ["-s", "-T", "bytes", "URLx"],
            // Forms.
            ["-s", "-F", "a=1;type=a/b", "-F", "f=@text.txt", "-F", "g=<text.txt", "URLx"], ["-s", "-F", "f=@text.txt,bytes", "URLx"],
            ["-s", "-F", "f=@text.txt;type=x/y,bytes;filename=z.png", "-F", "b=2", "URLx"], ["-s", "-F", "f=@-", "URLx"],
            ["-s", "-F", "f=@bytes;filename=\"q w.jpg\"", "--form-string", "s=@;x", "URLx"],
            // Fields.
            ["-s", "-H", "@fields", "-H", "Host: a.test", "-H", "X-Empty;", "URLx"],
            ["-s", "-A", "", "-e", "here", "-r", "2-5", "URLrange"],
            ["-s", "-z", "Sun, 06 Nov 1994 08:49:37 GMT", "URLtag"], ["-s", "-z", "-02 Jan 2020 03:04:05 +0100", "URLx"],
            ["-s", "-z", "Fri, 31 Dec 1999 23:59:59 GMT", "-o", "b", "URLx"], ["-s", "-z", "20010203", "URLx"],
            ["-s", "--etag-compare", "tag", "--etag-save", "new", "URLtag"],
            ["-s", "-u", "u:p", "--basic", "URLx"], ["-s", "--oauth2-bearer", "t0k", "URLx"],
            // Cookies.
            ["-s", "-b", "a=1; b=2", "URLx"], ["-s", "-b", "cookies", "URLx"], ["-s", "-b", "", "URLcookies", "URLx"],
            ["-s", "-b", "cookies", "-j", "URLx"], ["-s", "-L", "-b", "", "URLcookies", "--next", "-s", "URLx"],
            ["-s", "URLcookies", "URLx"],
            // Files.
            ["-s", "-o", "a", "-o", "b", "URLx", "URLnone"], ["-s", "URLx", "-o", "a", "--next", "-d", "b", "URLy"],
            ["-s", "-O", "URLdir/name?q"],
            ["-s", "--remote-name-all", "URLa", "URLb"], ["-s", "-OJ", "URLnamed"], ["-s", "-OJ", "URLother"],
            ["-s", "--output-dir", "sub", "--create-dirs", "-o", "a/b", "URLx"], ["-s", "--no-clobber", "-o", "text.txt", "URLx"],
            ["-s", "-C", "-", "-o", "part", "URLrange"], ["-s", "-C", "3", "-o", "part", "URLrange"],
            ["-s", "-C", "-", "-o", "part", "URLx"],
            ["-s", "--max-filesize", "3", "-o", "b", "URLx"],
            ["-s", "-z", "20010203", "-o", "text.txt", "URLunmodified"], ["-s", "-z", "-20010203", "-o", "text.txt", "URLunmet"],
            ["-s", "--etag-compare", "tag", "-o", "text.txt", "URLunmodified"],
            ["-s", "-D", "heads", "-o", "a", "URLx", "-o", "b", "URLnone"], ["-s", "-r", "7", "URLrange"],
            // Others.
            ["-s", "-K", "config", "URLx?z"], ["-s", "--retry", "2", "URLnone"], ["-s", "--path-as-is", "URLa/../b"], ["-s", "URLa/../b"],
            ["-s", "--connect-to", "example.test:80:URL", "URLx"], ["-s", "--connect-to", "::127.0.0.1:", "URLx"],
            ["-s", "-X", "PURGE", "URLx"], ["-s", "--url", "URLx", "--ftp-pasv", "-Q", "PWD"], ["-s", "--parallel", "URLx", "-o", "a"],
        ] as [[String]])
    func same(_ words: [String]) async throws {
        let server = try Self.server()
        let words = words.map { $0.replacingOccurrences(of: "example.test:80:URL", with: "example.test:80:127.0.0.1:\(server.port)") }
        let expected = try await Self.run(words, server, program: URL(fileURLWithPath: try #require(RealCurl.path)))
        let actual = try await Self.run(words, server, program: nil)
        #expect(actual.arrivals == expected.arrivals, "\(words)")
        #expect(!expected.arrivals.isEmpty)
        #expect(actual.result.text == expected.result.text, "\(words)")
        // Files have other names for no reason but the name of the program.
        #expect(actual.files == expected.files, "\(words)")
        // A status of HTTP is no failure to curl, unless it is asked for.
        let failed = ![0, 4, 5, 3].contains(actual.result.status) || words[0].contains("f")
        #expect(failed == (expected.result.status != 0), "\(words): \(actual.result.error)")
    }

    @Test(
        "the variables of --write-out that don't depend on time or program",
        arguments: [
            "%{http_code} %{response_code} %{http_connect} %{http_version}|%{num_redirects} %{num_connects} %{num_headers}",
            "%{size_download} %{size_upload} %{size_header}|%{content_type}|%{remote_ip} %{local_ip} %{remote_port}",
            "%{url} %{url_effective} %{redirect_url} %{urlnum}|%{method}|%{filename_effective}|%{ssl_verify_result}",
            "%header{content-type} %header{none}|%{header_json}|%{exitcode}%{errormsg}\\t\\n%%{x} %x", "%{stderr}%{http_code}%{stdout}!\\r",
            "%{onerror}never",
        ], [["URLx"], ["-L", "URLredirect"], ["URLredirect"], ["-d", "abc", "-o", "file", "URLnone"], ["URLx", "URLy"]] as [[String]])
    func variables(_ format: String, _ words: [String]) async throws {
        let server = try Self.server()
        let words = ["-s", "-w", format + "\\n"] + words
        let expected = try await Self.run(words, server, program: URL(fileURLWithPath: try #require(RealCurl.path)))
        let actual = try await Self.run(words, server, program: nil)
        // Each URL has its own connection.
        guard !(format.contains("num_connects") && words.contains("URLy")) else { return }
        // Of a response without failure, this program's exit status is that of the status.
        guard !(format.contains("exitcode") && words.contains { $0.contains("none") || $0.contains("redirect") }) else { return }
        #expect(actual.result.text == expected.result.text)
        if format.contains("stderr") { #expect(actual.result.error.hasPrefix(expected.result.error)) }
    }

    /// What browsers copy, with what a shell makes of it.
    private static let pasted: [(String, String)] = [
        (
            "Chrome",
            #"""
            curl 'URLapi/items?page=2&q=a%20b' \
              -H 'accept: application/json, text/plain, */*' \
              -H 'accept-language: en-US,en;q=0.9,de;q=0.8' \
              -H 'cache-control: no-cache' \
              -H 'content-type: application/json' \
              -b 'session=abc123; theme=dark; _ga=GA1.1.1' \
              -H 'origin: https://app.example.org' \
              -H 'priority: u=1, i' \
              -H 'referer: https://app.example.org/' \
              -H 'sec-ch-ua: "Chromium";v="136", "Google Chrome";v="136", "Not.A/Brand";v="99"' \
              -H 'sec-ch-ua-mobile: ?0' \
              -H 'sec-ch-ua-platform: "Linux"' \
              -H 'sec-fetch-mode: cors' \
              -H 'user-agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/136.0.0.0 Safari/537.36' \
              --data-raw '{"name":"it'\''s","tags":["a","ü"],"at":"@x"}'
            """#
        ),
        (
            "Firefox",
            #"""
            curl 'URLlogin' \
              --compressed \
              -X POST \
              -H 'User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:138.0) Gecko/20100101 Firefox/138.0' \
              -H 'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' \
              -H 'Accept-Language: en-US,en;q=0.5' \
              -H 'Accept-Encoding: gzip, deflate' \
              -H 'Content-Type: application/x-www-form-urlencoded' \
              -H 'Origin: https://example.org' \
              -H 'Connection: keep-alive' \
              -H 'Cookie: a=1; b=2' \
              -H 'Upgrade-Insecure-Requests: 1' \
              -H 'Pragma: no-cache' \
              --data-raw 'user=ann&password=p%40ss+w%C3%B6rd&next=%2F'
            """#
        ),
        (
            "Safari",
            #"""
            curl 'URLupload' \
            -X 'PUT' \
            -H 'Accept: */*' \
            -H 'Content-Type: text/plain;charset=UTF-8' \
            -H 'Origin: https://example.org' \
            -H 'Sec-Fetch-Dest: empty' \
            -H 'Accept-Language: en-GB,en;q=0.9' \
            -H 'User-Agent: Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Safari/605.1.15' \
            -H 'Referer: https://example.org/' \
            --data-binary $'line one\nline two \'quoted\'\u00e9\x00'
            """#
        ),
    ]

    @Test("a command copied from a browser sends the bytes that curl sends", arguments: pasted) func browser(_ name: String, _ text: String)
        async throws
    {
        let server = try Self.server()
        let line = text.replacingOccurrences(of: "URL", with: server.url("/"))
        // bash knows $'…'.
        for program in [try #require(RealCurl.path), "'\(try ToolRun.executable().path)' curl"] {
            let result = try await ToolRun(["-c", program + line.dropFirst(4)], program: URL(fileURLWithPath: "/bin/bash")).result()
            #expect(result.text == "hello\n", "\(result.error)")
        }
        let requests = server.requests
        try #require(requests.count == 2)
        #expect(requests[1].body == requests[0].body)
        #expect(Arrival(requests[1]) == Arrival(requests[0]))
    }
}
