// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct RequestCURLTests {
    /// The command's lines, secrets included.
    private func lines(_ request: Request) -> [String] {
        ("$ " + request.cURLDescription(redacting: false)).components(separatedBy: " \\\n\t")
    }

    @Test("a plain request is the quoted URL, in the last place")
    func plain() {
        let manager = SessionManager(mock: MockTransport())
        defer { manager.invalidateAndCancel() }
        let request = manager.request("http://mock/path?a=b")
        #expect(request.debugDescription == "$ curl -v \\\n\t\"http://mock/path?a=b\"")
        #expect(request.cURLDescription() == "curl -v \\\n\t\"http://mock/path?a=b\"")
    }

    @Test("method, cookies, headers, body and URL come in this order, one per line")
    func order() {
        let manager = SessionManager(mock: MockTransport()) { $0.headers = ["X-Session": "s", "X-Both": "session"] }
        defer { manager.invalidateAndCancel() }
        let request = manager.request(
            "http://mock/", method: .post, parameters: ["k": "v"], encoding: JSONEncoding.default,
            headers: ["X-Both": "request", "Cookie": "a=b; c=d"])
        #expect(
            lines(request) == [
                "$ curl -v", "-X POST", #"-b "a=b; c=d""#, #"-H "X-Both: request""#, #"-H "Content-Type: application/json""#,
                #"-H "X-Session: s""#, #"-d "{\"k\":\"v\"}""#, #""http://mock/""#,
            ])
    }

    @Test("characters special to a shell are quoted")
    func quoting() {
        let manager = SessionManager(mock: MockTransport())
        defer { manager.invalidateAndCancel() }
        let request = manager.request("http://mock/", headers: ["A": #"a"b\c$de"#, "B": "it's!", "C": #"`\`"#])
        #expect(lines(request)[1] == #"-H "A: a\"b\\c\$de""#)
        #expect(lines(request)[2] == #"-H 'B: it'\''s!'"#)
        #expect(lines(request)[3] == #"-H 'C: `'\\'`'"#)
    }

    @Test("no shell runs what a value says", arguments: ["sh", "dash", "bash", "zsh", "fish"]) func injection(_ name: String) async throws {
        guard ChildProcess.path(of: name) != nil else { return }
        let manager = SessionManager(mock: MockTransport())
        defer { manager.invalidateAndCancel() }
        let directory = try TemporaryDirectory()
        let stub = try directory.write(Data("#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done\n".utf8), to: "curl")
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: stub.path)
        let command = "touch pwned"
        let values = [
            "!\\'; \(command); '", "!\\\\'; \(command); '\\", "`\(command)`", "\\`\(command)\\`", "\"; \(command); \"", "$(\(command))",
            "\\\"$(\(command))(\(command))", "'(\(command))'!", "\\", "!\\",
        ]
        for value in values {
            let request = manager.request("http://mock/", headers: ["X-Value": value])
            let shell = try ChildProcess(
                name, "-c", "cd '\(directory.url.path)'; " + request.cURLDescription(redacting: false),
                environment: ["PATH": directory.url.path + ":/usr/bin:/bin"])
            let (status, output) = await shell.finish()
            #expect(status == 0)
            let arguments = output.joined(separator: "\n").utf8.split(separator: 0).map { String(decoding: Array($0), as: UTF8.self) }
            #expect(arguments == ["-v", "-H", "X-Value: \(value)", "http://mock/"])
        }
        #expect(try contents(of: directory) == ["curl"])
    }

    @Test(
        "a shell passes a value on as it is, with marks after every delimiter",
        arguments: ["", "\u{301}", "\u{200D}", "\u{FE0F}", "\u{20DD}"]
    ) func shell(_ mark: String) async throws {
        let manager = SessionManager(mock: MockTransport())
        defer { manager.invalidateAndCancel() }
        let directory = try TemporaryDirectory()
        let stub = try directory.write(Data("#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done\n".utf8), to: "curl")
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: stub.path)
        let delimiters = "'\"\\$`!;&|<>(){}[]#~*?%=@-:/ ".unicodeScalars.map { "\($0)\(mark)" }
        let value = delimiters.map { "x\($0)$(touch pwned)\($0)" }.joined()
        let withoutMark = value.unicodeScalars.filter { $0 != "!" }.map(String.init).joined()
        let bodies = [
            (value, "@\(mark)\n\(value)\u{1B}[201~"), (withoutMark, "\(mark)\r\(withoutMark)\n^Content-Type:^; touch pwned;^"),
        ]
        for (text, body) in bodies {
            let request = manager.upload(Data(body.utf8), to: "http://mock/", headers: ["X-Value": text, "Content-Type": "a/b"])
            // An interactive shell replaces that by the command before.
            #expect(!request.cURLDescription(redacting: false).contains("\n^"))
            let shell = try ChildProcess(
                "/bin/sh", "-c", "cd '\(directory.url.path)'; " + request.cURLDescription(redacting: false),
                environment: ["PATH": directory.url.path + ":/usr/bin:/bin"])
            let (status, output) = await shell.finish()
            #expect(status == 0)
            let arguments = output.joined(separator: "\n").utf8.split(separator: 0).map { String(decoding: Array($0), as: UTF8.self) }
            // Compared by bytes: marks make some texts equal that are none.
            let expected = [
                "-v", "-X", "POST", "-H", "Content-Type: a/b", "-H", "X-Value: \(text)", body.utf8.first == 64 ? "--data-raw" : "-d", body,
            ]
            #expect(Set(arguments.map { Array($0.utf8) }).isSuperset(of: expected.map { Array($0.utf8) }), "\(arguments)")
            #expect(arguments.last == "http://mock/")
            #expect(try contents(of: directory) == ["curl"])
        }
    }

    @Test("every shell reads a word as it is", arguments: ["sh", "dash", "bash", "zsh", "fish"])
    func words(_ name: String) async throws {
        guard ChildProcess.path(of: name) != nil else { return }
        let directory = try TemporaryDirectory()
        let stub = try directory.write(Data("#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done\n".utf8), to: "stub")
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: stub.path)
        let keys = ["\t", "\u{1B}", "\r", "\u{7F}", "\u{85}", "\u{202E}", "\u{0}"]
        // After some of them fish looks for an index, a variable or a parenthesis.
        let others = [
            "[1]", "[", "$", "$x", "$(id)", "(", ")(a(", "'", "\"", "\\", "\\011", "`id`", "!", "7", "-x", "%d", "%", "~", "^", "\n^", "\n",
            "=", "{a,b}", "*", "\u{301}", "\u{200D}", "\u{FE0F}", "\u{20DD}", "\u{F600}",
        ]
        let words = keys.flatMap { key in others.flatMap { ["\(key)\($0)", "\($0)\(key)", "\($0)\(key)\(key)$\($0)!\(key)\($0)"] } }
        let commands = words.flatMap { [$0.quotedForShell(), $0.quotedForShell(singly: true)] }
        let lines = stride(from: 0, to: commands.count, by: 50).map { start in
            "./stub \(commands[start..<min(start + 50, commands.count)].joined(separator: " "))\n"
        }
        try directory.write(Data(lines.joined().utf8), to: "script")
        let shell = try ChildProcess(
            name, "-c", "cd '\(directory.url.path)'; . ./script; ./stub end", environment: ["PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"])
        let (status, output) = await shell.finish()
        #expect(status == 0)
        let bytes = Array(output.joined(separator: "\n").utf8)
        let read = bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast().map { Array($0) }
        // No argument contains a NUL.
        var expected = words.flatMap { word in repeatElement(word.utf8.filter { $0 != 0 }, count: 2) }
        expected.append(Array("end".utf8))
        #expect(read.count == expected.count)
        for (read, expected) in zip(read, expected) where read != expected {
            Issue.record("\(String(decoding: expected, as: UTF8.self).debugDescription) is \(String(decoding: read, as: UTF8.self))")
        }
    }

    @Test("keys of a terminal are not in a command")
    func keys() {
        let manager = SessionManager(mock: MockTransport())
        defer { manager.invalidateAndCancel() }
        let request = manager.upload(Data("a\u{1B}[201~\rid\t\n\u{85}\u{202E}".utf8), to: "http://mock/", headers: ["Content-Type": "a/b"])
        // Without what joins the lines.
        let command = request.cURLDescription(redacting: false).replacingScalars(" \\\n\t", with: " ")
        #expect(!command.unicodeScalars.contains { $0.properties.generalCategory == .control && $0 != "\n" })
        #expect(command.contains("-d \"$(printf 'a\\033[201~\\015id\\011\n\\302\\205\\342\\200\\256')\""))
    }

    @Test("curl's own interpretation of arguments is disabled")
    func options() throws {
        let manager = SessionManager(mock: MockTransport())
        defer { manager.invalidateAndCancel() }
        #expect(lines(manager.request("http://mock/", method: .head))[1] == "-I")
        #expect(lines(manager.request("http://mock/", method: .post)).contains(#"-d """#))
        #expect(lines(manager.request("http://mock/", method: .delete)) == ["$ curl -v", "-X DELETE", #""http://mock/""#])
        let upload = lines(manager.upload(Data("@file".utf8), to: "http://mock/"))
        #expect(upload.contains(#"--data-raw "@file""#))
        #expect(upload.contains(#"-H "Content-Type:""#))
        #expect(lines(manager.request("http://[::1]/a/../b")).suffix(3) == ["-g", "--path-as-is", #""http://[::1]/a/../b""#])
        #expect(lines(manager.request("http://mock/", headers: ["Accept-Encoding": "gzip"])).contains("--compressed"))
        #expect(lines(manager.request("http://mock/", headers: ["X-Empty": ""])).contains(#"-H "X-Empty;""#))
        #expect(lines(manager.request("http://mock/", headers: ["Cookie": "odd"])).contains(#"-H "Cookie: odd""#))
        let method = try #require(HTTPMethod(rawValue: "A$B"))
        #expect(lines(manager.request("http://mock/", method: method))[1] == #"-X "A\$B""#)
        #expect(lines(manager.request("http://mock/", headers: ["Content-Length": "5", "Transfer-Encoding": "chunked"])).count == 2)
    }

    @Test("a binary, large or streamed body is omitted; a file is named")
    func bodies() throws {
        let manager = SessionManager(mock: MockTransport())
        defer { manager.invalidateAndCancel() }
        for body in [Data([0xFF]), Data([0x61, 0]), Data(repeating: 0x61, count: 100_001)] {
            #expect(!manager.upload(body, to: "http://mock/").debugDescription.contains("-d"))
        }
        #expect(!manager.upload(InputStream(data: Data("a".utf8)), to: "http://mock/").debugDescription.contains("-d"))
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("abc".utf8), to: "a $file")
        #expect(lines(manager.upload(file, to: "http://mock/")).contains("--data-binary \"@\(directory.url.path)/a \\$file\""))
    }

    @Test("the request's credential is shown")
    func credential() {
        let manager = SessionManager(mock: MockTransport())
        defer { manager.invalidateAndCancel() }
        let request = manager.request("http://mock/").authenticate(user: "me", password: "a$b")
        #expect(lines(request) == ["$ curl -v", #"-u "me:a\$b""#, "--anyauth", #""http://mock/""#])
    }

    @Test("the session's cookies are shown")
    func cookies() throws {
        let storage = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: UUID().uuidString)
        let cookie = HTTPCookie(properties: [.domain: "mock", .path: "/", .name: "n", .value: "v"])
        storage.setCookie(try #require(cookie))
        let manager = SessionManager(mock: MockTransport()) { $0.cookieStorage = storage }
        defer { manager.invalidateAndCancel() }
        #expect(lines(manager.request("http://mock/", method: .post))[2] == #"-b "n=v""#)
    }

    @Test("the adapted request is shown, or the given one if the adapter failed")
    func adapted() {
        let manager = SessionManager(mock: MockTransport())
        defer { manager.invalidateAndCancel() }
        let signed = manager.request(
            "http://mock/",
            interceptor: Adapter { request in
                var request = request
                request.setValue("secret", forHTTPHeaderField: "Authorization")
                return request
            })
        #expect(lines(signed)[1] == #"-H "Authorization: secret""#)
        let failed = manager.request("http://mock/", headers: ["A": "b"], interceptor: Adapter { _ in throw UserError() })
        #expect(lines(failed) == ["$ curl -v", #"-H "A: b""#, #""http://mock/""#])
    }

    @Test("secrets are redacted by default")
    func redacted() throws {
        let manager = SessionManager(mock: MockTransport()) {
            $0.redaction = Redaction(headers: ["X-Curl-Key"], queryItems: ["curl_key"])
            $0.redirects.sensitiveHeaders = ["X-Curl-Sensitive"]
        }
        defer { manager.invalidateAndCancel() }
        let headers: HTTPHeaders = [
            .authorization(bearerToken: "s3cret"), HTTPHeader(name: "Cookie", value: "a=s3cret"),
            HTTPHeader(name: "x-curl-key", value: "s3cret"), HTTPHeader(name: "X-Curl-Sensitive", value: "s3cret"),
            HTTPHeader(name: "Proxy-Authorization", value: "Basic s3cret"), HTTPHeader(name: "Referer", value: "http://u:s3cret@h/"),
        ]
        let url = "http://user:s3cret@mock/?curl_key=s3cret&a=1"
        let request = manager.request(url, method: .post, parameters: ["curl_key": "s3cret", "b": 2], headers: headers)
        let lines = request.debugDescription.components(separatedBy: " \\\n\t")
        #expect(
            lines == [
                "$ curl -v", "-X POST", #"-b "<hidden>""#, #"-H "Authorization: <hidden>""#, #"-H "x-curl-key: <hidden>""#,
                #"-H "X-Curl-Sensitive: <hidden>""#, #"-H "Proxy-Authorization: <hidden>""#, #"-H "Referer: http://h/""#,
                #"-H "Content-Type: application/x-www-form-urlencoded; charset=utf-8""#, #"-d "b=2&curl_key=<hidden>""#,
                #""http://mock/?curl_key=<hidden>&a=1""#,
            ])
        #expect(request.cURLDescription(redacting: false).components(separatedBy: "s3cret").count == 10)
        let json = manager.request(
            "http://mock/", method: .post, parameters: ["password": "s3cret", "a": ["token": "s3cret"]], encoding: JSONEncoding.default,
            headers: ["X-RapidAPI-Key": "s3cret"])
        #expect(!json.debugDescription.contains("s3cret") && json.debugDescription.contains(#"\"password\":\"<hidden>\""#))
        let credential = manager.request("http://mock/").authenticate(user: "me", password: "s3cret")
        #expect(credential.cURLDescription().contains(#"-u "<hidden>" "#))
    }

    @Test("control characters are escaped by default")
    func controlCharacters() {
        let manager = SessionManager(mock: MockTransport())
        defer { manager.invalidateAndCancel() }
        let request = manager.upload(Data("a\n\u{1B}[2J".utf8), to: "http://mock/")
        #expect(request.cURLDescription().contains(#"-d "a\\n\\u{1B}[2J""#))
        #expect(request.cURLDescription(redacting: false).contains("-d \"$(printf 'a\n\\033[2J')\""))
    }

    @Test("a request without a URL gives a fixed sentence")
    func impossible() {
        let manager = SessionManager(mock: MockTransport())
        defer { manager.invalidateAndCancel() }
        for request in [
            manager.request("invalid_url"), manager.request("http://a b/"), manager.request("http://mock/", headers: ["A": "\n"]),
        ] {
            #expect(request.debugDescription == "$ curl command could not be created")
        }
        #expect(manager.stream(withHostName: "mock", port: 1).debugDescription == "$ curl command could not be created")
    }
}
