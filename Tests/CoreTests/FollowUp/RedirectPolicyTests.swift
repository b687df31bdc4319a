// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct RedirectPolicyTests {
    private static func next(
        _ url: String = "http://a.example/dir/file?q=1", method: HTTPMethod = .get, headers: HTTPHeaders = [:],
        body: (any BodySource)? = nil,
        status: Int = 302, location: String? = "/next", redirectCount: Int = 0, policy: RedirectPolicy = RedirectPolicy()
    ) throws(CurlewError) -> TransferRequest? {
        let request = TransferRequest(url: url, method: method, headers: headers, body: body)
        let head = ResponseHead(statusCode: status, headers: location.map { ["Location": $0] } ?? [:])
        return try policy.next(after: request, head, redirectCount: redirectCount)
    }

    @Test(
        "methods and bodies by status (RFC 9110, section 15.4)",
        arguments: [
            (301, HTTPMethod.post, HTTPMethod.get, false), (302, .post, .get, false), (303, .post, .get, false), (303, .put, .get, false),
            (303, .delete, .get, false), (301, .put, .put, true), (302, .patch, .patch, true), (302, .delete, .delete, true),
            (307, .post, .post, true), (308, .post, .post, true), (303, .get, .get, true), (301, .get, .get, true),
        ])
    func methods(_ status: Int, _ before: HTTPMethod, _ after: HTTPMethod, _ keepsBody: Bool) throws {
        let names = ["Content-Type", "Content-Length", "Content-Range", "Content-Digest", "Repr-Digest", "Last-Modified"]
        let headers = HTTPHeaders((names + ["X-Kept"]).map { HTTPHeader(name: $0, value: "1") })
        let next = try #require(try Self.next(method: before, headers: headers, body: DataBody(Data("abc".utf8)), status: status))
        #expect(next.method == after)
        #expect((next.body != nil) == keepsBody)
        for name in names { #expect((next.headers[name] != nil) == keepsBody, "\(name)") }
        #expect(next.headers["X-Kept"] == "1")
    }

    @Test("HEAD stays HEAD", arguments: [301, 302, 303, 307, 308])
    func headStays(_ status: Int) throws {
        #expect(try Self.next(method: .head, status: status)?.method == .head)
    }

    @Test("other statuses are no redirects", arguments: [200, 201, 300, 304, 305, 306, 309, 404])
    func otherStatuses(_ status: Int) throws {
        #expect(try Self.next(status: status) == nil)
    }

    @Test("bytes of a Location that are no ASCII are escaped as they came, not as what they may mean")
    func rawLocation() throws {
        let bytes = Array("HTTP/1.1 302 Found\r\nLocation: /caf".utf8) + [0xE9] + Array("\r\n".utf8)
        let head = try #require(ResponseHead(bytes: bytes))
        let next = try RedirectPolicy().next(after: TransferRequest(url: "http://example.org/"), head, redirectCount: 0)
        #expect(next?.url == "http://example.org/caf%E9")
    }

    @Test(
        "what is invalid where it stands is escaped, and escapes stay",
        arguments: [
            ("/s?filter[name]=a%20b", "/s?filter%5Bname%5D=a%20b"), ("/a[b]%2Fc", "/a%5Bb%5D%2Fc"),
            ("/s?q=a b%20c|d", "/s?q=a%20b%20c%7Cd"),
            ("/x%zz%4", "/x%25zz%254"), ("/x#a[%20#b", "/x#a%5B%20%23b"), ("?[0]=%41", "/dir/file?%5B0%5D=%41"),
        ])
    func repaired(_ location: String, _ reached: String) throws {
        #expect(try Self.next(location: location)?.url == "http://a.example" + reached)
        let absolute = "//[::1]:81" + (location.hasPrefix("?") ? "/dir/file" : "") + location
        #expect(try Self.next("http://[::1]:81/dir/file", location: absolute)?.url == "http://[::1]:81" + reached)
    }

    @Test(
        "user and password of the URL stay at its origin",
        arguments: [
            ("/x", true), ("http://a.example/x", true), ("//A.example:80/x", true), ("http://eve:pw@a.example/x", true),
            ("http://b.example/x", false), ("http://a.example:81/x", false), ("https://a.example/x", false),
        ])
    func userInfo(_ location: String, _ stays: Bool) throws {
        let next = try #require(try Self.next("http://me:p%40ss@a.example/dir", location: location))
        #expect(next.url.contains("//me:p%40ss@") == stays && !next.url.contains("eve"))
        #expect(stays || !next.url.contains("@"))
    }

    @Test("a hop has what is left of the time for the whole", arguments: [(4, 6), (10, 0), (20, 0)])
    func remainingTime(_ elapsed: Int, _ left: Int) {
        var request = TransferRequest(url: "http://example.org/")
        request.options.totalTimeout = .seconds(10)
        #expect(request.continuing(after: .seconds(elapsed)).options.totalTimeout == .seconds(left))
    }

    @Test("without a Location, or with an empty one, the response is delivered", arguments: [nil, ""])
    func noLocation(_ location: String?) throws {
        #expect(try Self.next(location: location) == nil)
    }

    @Test(
        "a Location is resolved against the request's URL, and repaired",
        arguments: [
            ("/next", "http://a.example/next"), ("next", "http://a.example/dir/next"), ("../up", "http://a.example/up"),
            ("?q=2", "http://a.example/dir/file?q=2"), ("//b.example/x", "http://b.example/x"),
            ("https://b.example/", "https://b.example/"), ("http://b.example", "http://b.example"),
            ("/a b", "http://a.example/a%20b"), ("/é", "http://a.example/%C3%A9"), ("/a%20b", "http://a.example/a%20b"),
            ("/100%", "http://a.example/100%25"), ("/a%20b%zz", "http://a.example/a%20b%25zz"),
            ("/<x>\"|", "http://a.example/%3Cx%3E%22%7C"),
            ("/x#there", "http://a.example/x#there"), ("HTTP://b.example/x", "HTTP://b.example/x"),
            ("http://[::1]:8080/x", "http://[::1]:8080/x"), ("/%", "http://a.example/%25"),
            ("http://b.example/x/../y/./z/..", "http://b.example/y/"), ("//b.example/../x", "http://b.example/x"),
            ("http://b.example/x?a/../b#c/./d", "http://b.example/x?a/../b#c/./d"), ("http://b.example?a/../b", "http://b.example?a/../b"),
            ("http://b\u{FC}cher.example/\u{FC}", "http://xn--bcher-kva.example/%C3%BC"),
            ("//b%C3%BCcher.example:81/x", "http://xn--bcher-kva.example:81/x"), ("http://ex%61mple.org/", "http://example.org/"),
            ("http://\u{2603}.example", "http://xn--n3h.example"),
        ])
    func locations(_ location: String, _ target: String) throws {
        #expect(try Self.next(location: location)?.url == target)
    }

    @Test("a reference without a path leaves the path as the user gave it")
    func pathAsGiven() throws {
        #expect(try Self.next("http://a.example/b/../c", location: "?q")?.url == "http://a.example/b/../c?q")
    }

    @Test("the old fragment stays unless there is a new one", arguments: [("/x", "#a%20b"), ("/x#new", "#new")])
    func fragments(_ location: String, _ fragment: String) throws {
        #expect(try Self.next("http://a.example/#a%20b", location: location)?.url == "http://a.example/x" + fragment)
    }

    @Test(
        "a Location that leads to no http or https URL is an error",
        arguments: ["ftp://b.example/", "file:///etc/passwd", "mailto:a@b", "http://", "http:///x", "http://b.example:x/", "javascript:1"]
            + [
                "http://b\u{7F}/", "http://b%7F/", "http://b%00/", "http://b%0D%0AX/", "http://b c/", "http://b%20c/", "http://b%5Bc/",
                "http://b%5D/", "http://b%2Fc/", "http://b%40c/", "http://b%3Ac/", "http://b<c/", "http://b^c/", "http://b|c/",
                "http://b%25/",
                "http://b../", "http://127.0.0.1./", "//127.1.:80/",
                "http://b..c/", "//.b/", "http://" + String(repeating: "b.", count: 600) + "c/",
                "http://b\u{FF0F}c/", "http://b%FF/", "http://\u{AD}/", "http://[x]/", "http://xn--\u{FC}/",
            ])
    func badLocations(_ location: String) {
        let error = #expect(throws: CurlewError.self) { try Self.next(location: location) }
        if case .redirectFailed(.invalidLocation(location), _)? = error { return }
        Issue.record("\(String(describing: error))")
    }

    private static let secrets: HTTPHeaders = [
        "Authorization": "Bearer 1", "cookie": "a=b", "Proxy-Authorization": "Basic 1", "HOST": "a.example", "X-Api-Key": "1",
        "Accept": "*/*",
    ]

    @Test(
        "credentials stay at their origin: scheme, host and port",
        arguments: [
            ("http://a.example/", "/x", true), ("http://a.example/", "http://A.EXAMPLE:80/x", true),
            ("http://a.example:80/", "http://a.example/x", true),
            ("https://a.example/", "https://a.example:443/x", true), ("http://a.example/", "https://a.example/x", false),
            ("http://a.example/", "http://a.example:8080/x", false), ("http://a.example/", "http://b.a.example/x", false),
            ("http://a.example/", "//b.example/x", false), ("http://a.example/", "http://user@a.example/", true),
        ])
    func credentials(_ url: String, _ location: String, _ areKept: Bool) throws {
        var policy = RedirectPolicy()
        policy.sensitiveHeaders = ["x-api-key"]
        let next = try #require(try Self.next(url, headers: Self.secrets, location: location, policy: policy))
        for name in ["Authorization", "Cookie", "Proxy-Authorization", "Host", "X-Api-Key"] {
            #expect((next.headers[name] != nil) == areKept, "\(name)")
        }
        #expect(next.headers["Accept"] == "*/*")
    }

    private static let usualSecrets = [
        "X-Api-Key", "Api-Key", "X-Auth-Token", "x-auth", "X-Secret", "X-Token", "X-Password", "DD-API-KEY", "DD-APPLICATION-KEY",
        "X-RapidAPI-Key", "CF-Access-Client-Secret", "X-Amz-Security-Token", "DPoP", "X-Redirects-Marked",
    ]

    @Test("fields that are usual for secrets, or marked, stay at their origin, unless they are forwarded") func usualSecrets() throws {
        Redaction(headers: ["x-redirects-marked"]).register()
        var headers = HTTPHeaders(Self.usualSecrets.map { HTTPHeader(name: $0, value: "s3cret") })
        let plain = ["X-Request-Id", "Accept", "Idempotency-Key", "X-Next-Page-Token", "Sec-WebSocket-Key"]
        for name in plain { headers.append(name: name, value: "1") }
        headers.append(name: "Authorization", value: "s3cret")
        let kept = try #require(try Self.next("https://a.example/", headers: headers, location: "/x"))
        #expect(kept.headers == headers)
        let next = try #require(try Self.next("https://a.example/", headers: headers, location: "https://b.example/"))
        #expect(next.headers.map(\.name) == plain)
        var policy = RedirectPolicy()
        policy.forwardedHeaders = ["x-api-key", "X-REDIRECTS-MARKED", "authorization", "x-token"]
        policy.sensitiveHeaders = ["X-Token"]
        let forwarded = try #require(try Self.next("https://a.example/", headers: headers, location: "https://b.example/", policy: policy))
        #expect(forwarded.headers.map(\.name) == ["X-Api-Key", "X-Redirects-Marked"] + plain)
    }

    @Test("user and password in the URL don't go to another host")
    func userInfo() throws {
        #expect(try Self.next("http://user:secret@a.example/", location: "http://b.example/")?.url == "http://b.example/")
        #expect(try Self.next("http://user:secret@a.example/", location: "//b.example/")?.url == "http://b.example/")
    }

    @Test(
        "a user name and password that a Location brings are dropped, at every origin",
        arguments: [
            ("http://eve:pw@b.example/", "http://b.example/"), ("//eve:pw@b.example/x", "http://b.example/x"),
            ("http://@b.example/", "http://b.example/"), ("http://:@b.example/", "http://b.example/"),
            ("http://eve@b.example", "http://b.example"),
            ("http://a@b@b.example/x@y?u=http://v@w#@", "http://b.example/x@y?u=http://v@w#@"),
            ("http://eve:pw@a.example/", "http://user:secret@a.example/"), ("HTTP://EVE@a.example/", "HTTP://user:secret@a.example/"),
            ("/http://c@d/", "http://user:secret@a.example/http://c@d/"), ("next", "http://user:secret@a.example/dir/next"),
            ("?u=//c@d/", "http://user:secret@a.example/dir/file?u=//c@d/"),
        ], [301, 307])
    func userInfoOfLocation(_ test: (location: String, url: String), _ status: Int) throws {
        let next = try Self.next("http://user:secret@a.example/dir/file", status: status, location: test.location)
        #expect(next?.url == test.url)
    }

    @Test("https leads to http only when that is allowed")
    func downgrade() throws {
        let error = #expect(throws: CurlewError.self) { try Self.next("https://a.example/", location: "http://a.example/") }
        guard case .redirectFailed(.insecureDowngrade, _)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        var policy = RedirectPolicy()
        policy.allowsInsecureDowngrade = true
        #expect(try Self.next("https://a.example/", location: "http://a.example/", policy: policy)?.url == "http://a.example/")
    }

    @Test("the limit is the number of redirects followed; 0 delivers them")
    func limit() throws {
        var policy = RedirectPolicy()
        policy.limit = 2
        #expect(try Self.next(redirectCount: 1, policy: policy) != nil)
        let error = #expect(throws: CurlewError.self) { try Self.next(redirectCount: 2, policy: policy) }
        guard case .redirectFailed(.tooMany(limit: 2), _)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        policy.limit = 0
        #expect(try Self.next(policy: policy) == nil)
    }

    @Test("a body that can't be sent again is an error, where it would have to be")
    func unrepeatableBody() throws {
        let body = StreamBody(InputStream(data: Data("abc".utf8)))
        body.prepare {}
        let error = #expect(throws: CurlewError.self) { try Self.next(method: .post, body: body, status: 307) }
        guard case .redirectFailed(.bodyNotRepeatable, _)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(try Self.next(method: .post, body: body, status: 302)?.body == nil)
    }

    // MARK: Through the session

    @Test("the last hop is the request and the response that the handlers see")
    func followed() async {
        let mock = MockTransport.answering(inTurn: [
            .response(302, ["Location": "/second"], "moved"), .response(307, ["Location": "http://other.example/"]),
            .response(200, [:], "here"),
        ])
        let manager = SessionManager(mock: mock)
        let request = manager.request("http://mock/", headers: ["Authorization": "Bearer 1"])
        let response = await request.serializingString().response
        #expect(response.value == "here")
        #expect(response.request?.url?.absoluteString == "http://other.example/")
        #expect(response.response?.url?.absoluteString == "http://other.example/")
        #expect(mock.started.all.map { $0.request.headers["Authorization"] } == ["Bearer 1", "Bearer 1", nil])
        #expect(request.task?.originalRequest?.url?.absoluteString == "http://mock/")
        #expect(request.task?.redirectCount == 2)
    }

    @Test("the redirect that is not followed is the response")
    func refused() async {
        let manager = SessionManager(mock: .answering(302, ["Location": "/again"])) { $0.redirects.limit = 3 }
        let response = await manager.request("http://mock/").serializingData().response
        guard case CurlewError.redirectFailed(.tooMany(limit: 3), _)? = response.error else {
            Issue.record("\(String(describing: response.error))")
            return
        }
        #expect(response.response?.statusCode == 302)
        #expect(response.metrics.redirectCount == 3)
    }

    @Test("a redirect's long body is cut off, and the redirect followed")
    func longBody() async {
        let long = String(repeating: "x", count: 300_000)
        let mock = MockTransport.answering(inTurn: [.response(302, ["Location": "/x"], long), .response(200, [:], "here")])
        let manager = SessionManager(mock: mock)
        #expect(await manager.request("http://mock/").serializingString().response.value == "here")
    }

    @Test("a redirect is followed without waiting for a body that is announced as long; its coding does not matter")
    func unwantedBody() async {
        for steps: [MockTransport.Step] in [
            [.head(302, ["Location": "/x", "Content-Length": "300000"]), .stall],
            [.head(302, ["Location": "/x"]), .bytes(Data(count: 10)), .complete(CurlewError.failure(.decoding))],
        ] {
            let manager = SessionManager(mock: .answering(inTurn: [steps, .response(200, [:], "here")]))
            #expect(await manager.request("http://mock/").serializingString().response.value == "here")
        }
    }

    @Test("a body is dropped up to a size, and for a time")
    func discardedBody() {
        let (start, second) = (MonotonicTime.now(), Duration.seconds(1).nanoseconds)
        var body = DiscardedBody(announced: nil, at: start)
        body.receive(DiscardedBody.limit, at: start + second)
        #expect(!body.isCutOff)
        body.receive(1, at: start + second)
        #expect(body.isCutOff)
        var slow = DiscardedBody(announced: 100, at: start)
        slow.receive(1, at: start + DiscardedBody.timeout.nanoseconds)
        #expect(!slow.isCutOff)
        slow.receive(1, at: start + DiscardedBody.timeout.nanoseconds + 1)
        #expect(slow.isCutOff)
    }

    @Test("a failure while a redirect's body comes ends the request")
    func failureInRedirect() async {
        let mock = MockTransport { _ in [.head(302, ["Location": "/x"]), .complete(CurlewError.failure(.connectionLost))] }
        let manager = SessionManager(mock: mock)
        #expect(kindOf(await manager.request("http://mock/").serializingData().response.error) == .connectionLost)
        #expect(mock.started.count == 1)
    }

    @Test("cancelling during a redirect ends the request")
    func cancelledInRedirect() async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        let request = manager.request("http://mock/")
        let exchange = await mock.started[0]
        exchange.perform(.head(302, ["Location": "/x"]))
        request.cancel()
        #expect(request.task?.state != .running)
        #expect(isCancelled(await request.serializingData().response.error))
        #expect(mock.started.count == 1)
    }

    @Test("a hop of a suspended request begins suspended")
    func suspended() async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        let request = manager.request("http://mock/")
        let first = await mock.started[0]
        mock.onStart { _ in request.suspend() }
        first.respond(302, ["Location": "/x"])
        let second = await mock.started[1]
        #expect(await eventually { second.isSuspended })
        request.resume()
        #expect(await eventually { !second.isSuspended })
        second.respond(200)
        #expect(await request.serializingData().response.error == nil)
    }
}
