// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct RedirectTests {
    private let server: LoopbackServer
    private let manager = makeManager()

    init() throws {
        server = try LoopbackServer.standard()
    }

    @Test(
        "method and body change according to the status",
        arguments: [
            (301, HTTPMethod.post, "GET"), (302, .post, "GET"), (303, .post, "GET"), (303, .put, "GET"), (303, .delete, "GET"),
            (301, .put, "PUT"), (302, .patch, "PATCH"), (307, .post, "POST"), (308, .put, "PUT"), (308, .post, "POST"),
        ])
    func methods(_ status: Int, _ method: HTTPMethod, _ expected: String) async throws {
        let reply = try await manager.echo(
            server.url("/redirect-to?url=/echo&status=\(status)"), method: method, parameters: ["a": 1], encoding: JSONEncoding.default)
        #expect(reply.method == expected)
        #expect(reply.bodyLength == (expected == "GET" ? 0 : 7))
        #expect((reply.header("Content-Type") != nil) == (expected != "GET"))
    }

    @Test("HEAD stays HEAD", arguments: [301, 302, 303, 307, 308]) func head(_ status: Int) async throws {
        let response = await manager.request(server.url("/redirect-to?url=/json&status=\(status)"), method: .head).serializingData()
            .response
        #expect(response.error == nil)
        #expect(server.requests.map(\.method) == ["HEAD", "HEAD"])
    }

    @Test("other 3xx statuses are not followed", arguments: [300, 304, 305]) func otherStatuses(_ status: Int) async throws {
        let response = await manager.request(server.url("/redirect-to?url=/json&status=\(status)")).serializingData().response
        #expect(response.response?.statusCode == status)
        #expect(server.requestCount == 1)
    }

    @Test("a body from data or a file is sent again") func repeatableBody() async throws {
        let directory = try TemporaryDirectory()
        let body = GeneratedBody().data(count: 1_000_000)
        let url = server.url("/redirect-to?url=/upload&status=307")
        for request in [manager.upload(body, to: url), manager.upload(try directory.write(body, to: "body"), to: url)] {
            let reply = try await request.validate().serializingDecodable(EchoReply.self).value
            #expect(reply.bodyLength == 1_000_000)
            #expect(reply.bodyChecksum == CRC32.checksum(of: body))
        }
    }

    @Test("a stream that was sent is not sent again") func sentStream() async throws {
        let url = server.url("/redirect-to?url=/upload&status=308")
        let response = await manager.upload(InputStream(data: Data(count: 100_000)), to: url).serializingData().response
        #expect(response.error?.redirectFailure == .bodyNotRepeatable)
        #expect(server.requestCount == 1)
    }

    @Test("credentials in a Location are not sent", arguments: ["eve:pw@", "eve@", "@", ":@"], [301, 303, 307])
    func locationCredentials(_ userInfo: String, _ status: Int) async throws {
        let other = try LoopbackServer.standard()
        for target in [other, server] {
            let location = target.url("/echo").replacing("http://", with: "http://\(userInfo)")
            let origin = try LoopbackServer { _, _ in .redirect(to: location, status: status) }
            let reply = try await manager.echo(origin.url("/"), method: .post)
            #expect(reply.header("Authorization") == nil)
            #expect(reply.header("Host") == "127.0.0.1:\(target.port)")
        }
    }

    @Test("credentials are sent within the origin") func sameOrigin() async throws {
        let headers: HTTPHeaders = ["Authorization": "Bearer a", "Cookie": "b=1", "X-Other": "c"]
        let reply = try await manager.echo(server.url("/redirect-to?url=/echo"), headers: headers)
        #expect(headers.allSatisfy { reply.header($0.name) == $0.value })
    }

    @Test("credentials are dropped when port or host change") func otherOrigin() async throws {
        let other = try LoopbackServer.standard()
        let manager = makeManager { $0.redirects.sensitiveHeaders = ["X-Token"] }
        let headers: HTTPHeaders = [
            "Authorization": "Bearer a", "Cookie": "b=1", "Proxy-Authorization": "Basic x", "x-token": "t", "X-Other": "c",
        ]
        for target in [other.url("/echo"), "http://localhost:\(server.port)/echo", "http://localhost:\(other.port)/echo"] {
            let reply = try await manager.echo(server.url("/redirect-to?url=\(target)"), headers: headers)
            #expect(reply.header("X-Other") == "c", "\(target)")
            for name in ["Authorization", "Cookie", "Proxy-Authorization", "X-Token"] {
                #expect(reply.header(name) == nil, "\(name) at \(target)")
            }
            #expect(target.contains(reply.header("Host") ?? "none"))
        }
    }

    @Test("a closure gets the redirect without the secrets of the request and the session, which are not sent", arguments: [true, false])
    func usualSecrets(changes: Bool) async throws {
        let other = try LoopbackServer.standard()
        let manager = makeManager { $0.headers.append(name: "X-Auth-Token", value: "s3cret") }
        let proposed = Log<[String: String]>()
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, request, follow in
            proposed.append(request.allHTTPHeaderFields ?? [:])
            var request = request
            if changes { request.setValue("1", forHTTPHeaderField: "X-Changed") }
            follow(request)
        }
        let headers: HTTPHeaders = ["X-Api-Key": "s3cret", "X-Other": "c"]
        let reply = try await manager.echo(server.url("/redirect-to?url=\(other.url("/echo"))"), headers: headers)
        #expect(server.requests.first?.header("X-Api-Key") == "s3cret" && server.requests.first?.header("X-Auth-Token") == "s3cret")
        #expect(reply.header("X-Other") == "c" && reply.header("X-Api-Key") == nil && reply.header("X-Auth-Token") == nil)
        #expect(proposed.elements.count == 1 && proposed.elements.allSatisfy { !$0.values.contains("s3cret") })
    }

    @Test("dropped credentials are not sent again") func droppedCredentials() async throws {
        let other = try LoopbackServer.standard()
        let back = "http://127.0.0.1:\(server.port)/echo"
        let away = other.url("/redirect-to?url=\(back)")
        let reply = try await manager.echo(server.url("/redirect-to?url=\(away)"), headers: ["Authorization": "Bearer a"])
        #expect(reply.header("Authorization") == nil)
    }

    @Test("redirects end at the limit") func limit() async throws {
        let response = await manager.request(server.url("/redirect/21")).serializingData().response
        #expect(response.error?.redirectFailure == .tooMany(limit: 20))
        #expect(response.metrics.redirectCount == 20)
        #expect(server.requestCount == 21)
        #expect(response.response?.statusCode == 302)
        let last = await manager.request(server.url("/redirect/20")).validate().serializingData().response
        #expect(last.error == nil)
    }

    @Test("no redirect is followed if the policy does not allow it") func noRedirects() async throws {
        let manager = makeManager { $0.redirects.limit = 0 }
        let response = await manager.request(server.url("/redirect/1")).serializingData().response
        #expect(response.error == nil)
        #expect(response.response?.statusCode == 302)
        #expect(response.response?.value(forHTTPHeaderField: "Location") == "/json")
    }

    @Test("a Location with another scheme is rejected", arguments: ["ftp://127.0.0.1/", "file:///etc/passwd", "http://"])
    func otherSchemes(_ location: String)
        async throws
    {
        let redirecting = try LoopbackServer { _, _ in .redirect(to: location) }
        let response = await manager.request(redirecting.url("/")).serializingData().response
        #expect(response.error?.redirectFailure == .invalidLocation(location))
    }

    @Test("relative and non-normalized locations are resolved") func relativeLocations() async throws {
        let locations = ["echo": "/a/echo", "../echo": "/echo", "?q=1": "/a/b", "/echo with space": "/echo with space"]
        let location = Log<String>()
        let redirecting = try LoopbackServer { request, _ in
            request.query("start") == nil ? .ok(request.path) : .redirect(to: request.header("X-Location") ?? "")
        }
        for (text, path) in locations {
            let reached = try await manager.request(redirecting.url("/a/b?start=1"), headers: ["X-Location": text]).serializingString()
                .value
            #expect(reached == path, "\(text)")
            location.append(reached)
        }
    }

    // Where they differ only in what they escape, they ask for the same. Of a percent sign that begins no escape Curlew makes one.
    @Test(
        "curl follows a redirect to the same target", .enabled(if: ChildProcess.path(of: "curl") != nil, "needs the program curl"),
        arguments: [
            "/s?filter[name]=a%20b", "/a[1]/b%20c", "/a b", "/a|b?c|d", "/\u{E9}?\u{E9}", "?only=query", "x/../y/./z",
            "/a%2Fb/../c", "/a%2e%2e/b", "/a\\b?c\\d", "/a?b#c%20d", "/{id}?q={x}", "/a\"b?<c>", "/^`?^`", "/a;b=c?d;e", "/?a=%E9",
            "/?next=http://x/y?z", "   /lead", "//localhost:PORT/other?x", "http://localhost:PORT", "HTTP://localhost:PORT/UP",
        ])
    func sameTarget(location: String) async throws {
        let server = try LoopbackServer { request, _ in
            guard request.target == "/start", let port = request.header("Host")?.split(separator: ":").last else { return .ok() }
            return .redirect(to: location.replacing("PORT", with: port))
        }
        let url = "http://localhost:\(server.port)/start"
        _ = try await manager.request(url).serializingData().value
        let curl = try ChildProcess("curl", "-sSL", "--noproxy", "*", "--max-time", "20", url)
        #expect(await curl.finish().status == 0)
        let targets = server.requests.map { request in
            request.target.utf8.map { byte in
                "\"<>\\^`{|}[]".utf8.contains(byte) || byte > 0x7E ? "%" + String(byte, radix: 16) : String(UnicodeScalar(byte))
            }.joined().lowercased()
        }
        try #require(targets.count == 4)
        #expect(targets[1] == targets[3])
    }

    @Test("a download follows redirects and keeps only the last body") func download()
        async throws
    {
        let directory = try TemporaryDirectory()
        let response = await manager.download(server.url("/redirect-to?url=/bytes/1000"), to: directory.file("file")).validate()
            .serializingData().response
        #expect(response.value == GeneratedBody().data(count: 1000))
        #expect(response.response?.url?.path == "/bytes/1000")
    }

    @Test("the body of a redirect is discarded, however long it is") func redirectBody()
        async throws
    {
        let redirecting = try LoopbackServer { request, _ in
            guard request.path != "/end" else { return .ok("end") }
            var response = ServerResponse.redirect(to: "/end")
            response.body = .generated(length: Int64(request.query("n") ?? "0") ?? 0)
            return response
        }
        for length in [0, 1000, 50_000_000] {
            let text = try await manager.request(redirecting.url("/?n=\(length)")).serializingString().value
            #expect(text == "end")
        }
    }

    // MARK: From https to http

    @Test("a redirect from https to http is rejected", .enabled(if: TLSRedirector.isAvailable)) func downgrade() async throws {
        let redirector = try await TLSRedirector(to: server.url("/json"))
        let manager = makeManager { $0.tls.certificateAuthorityFile = redirector.certificate.path }
        let response = await manager.request(redirector.url).serializingData().response
        #expect(response.error?.redirectFailure == .insecureDowngrade(to: try server.url("/json").asURL()))
        #expect(server.connectionCount == 0)
    }

    @Test("a redirect from https to http is followed if allowed", .enabled(if: TLSRedirector.isAvailable))
    func allowedDowngrade() async throws {
        let redirector = try await TLSRedirector(to: server.url("/echo"))
        let manager = makeManager {
            $0.tls.certificateAuthorityFile = redirector.certificate.path
            $0.redirects.allowsInsecureDowngrade = true
        }
        let reply = try await manager.echo(redirector.url, headers: ["Authorization": "Bearer a"])
        #expect(reply.header("Authorization") == nil)
    }

    @Test("a redirect from http to https is followed", .needsNginx) func upgrade() async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        let response = await manager.request(server.url("/redirect-to?url=\(nginx.tls)/1k.bin")).validate().serializingData().response
        #expect(response.value?.count == 1024)
        #expect(response.response?.url?.scheme == "https")
    }
}
