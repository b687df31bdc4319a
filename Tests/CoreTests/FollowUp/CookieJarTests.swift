// SPDX-License-Identifier: Apache-2.0
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct CookieJarTests {
    private let storage: HTTPCookieStorage

    init() throws {
        storage = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
    }

    private func jar(_ change: (inout SessionConfiguration) -> Void = { _ in }) throws -> CookieJar {
        var configuration = SessionConfiguration()
        configuration.cookieStorage = storage
        change(&configuration)
        return try #require(configuration.makeCookieJar())
    }

    /// The cookies that a request sends after a response has set some.
    private func sent(to url: String, after cookies: String..., from origin: String = "http://www.example.org/a/b") throws -> String? {
        try set(cookies, from: origin)
        return try jar().adding(to: TransferRequest(url: url)).headers["Cookie"]
    }

    private func set(
        _ cookies: [String], from url: String, in jar: CookieJar? = nil, change: (inout TransferRequest) -> Void = { _ in }
    ) throws {
        var request = TransferRequest(url: url)
        change(&request)
        let head = ResponseHead(statusCode: 200, headers: HTTPHeaders(cookies.map { HTTPHeader(name: "Set-Cookie", value: $0) }))
        try (jar ?? self.jar()).store(head, of: request)
    }

    private var names: [String] { (storage.cookies ?? []).map(\.name).sorted() }

    @Test(
        "a cookie is sent to matching domains and paths",
        arguments: [
            ("http://www.example.org/a/c", "x=1", true), ("http://www.example.org/a", "x=1", true),
            ("http://www.example.org/", "x=1", false),
            ("http://www.example.org/ab", "x=1", false), ("http://example.org/a", "x=1", false),
            ("http://a.www.example.org/a", "x=1", false),
            ("http://example.org/", "x=1; Domain=example.org; Path=/", true),
            ("http://b.example.org/", "x=1; Domain=.Example.org; Path=/", true),
            ("http://badexample.org/", "x=1; Domain=example.org; Path=/", false), ("http://WWW.example.org/a/", "x=1", true),
            ("https://www.example.org:444/a", "x=1", true), ("http://www.example.org/%61/", "x=1", false),
        ])
    func scope(_ url: String, _ cookie: String, _ goes: Bool) throws {
        #expect(try sent(to: url, after: cookie) == (goes ? "x=1" : nil))
    }

    @Test("a cookie with a carriage return is dropped, the response's other cookies are stored")
    func carriageReturn() throws {
        let fields = "Set-Cookie: a=1\r; Path=/\r\nSet-Cookie: b=2; Path=/\rx\r\nSet-Cookie: c=3; Path=/\r\n"
        let head = try #require(ResponseHead(bytes: Array("HTTP/1.1 200 OK\r\n\(fields)".utf8)))
        try jar().store(head, of: TransferRequest(url: "http://www.example.org/"))
        #expect(names == ["c"])
    }

    @Test(
        "a host sets cookies for itself and its parent domains",
        arguments: [
            ("http://www.example.org/", "Domain=other.org", false), ("http://www.example.org/", "Domain=a.www.example.org", false),
            ("http://www.example.org/", "Domain=org", false), ("http://www.example.co.uk/", "Domain=co.uk", false),
            ("http://localhost/", "Domain=localhost", true), ("http://1.2.3.4/", "Domain=1.2.3.4", true),
            ("http://1.2.3.4/", "Domain=2.3.4", false), ("http://localhost/", "Secure", false), ("https://localhost/", "Secure", true),
            ("http://[::1]/", "Path=/", true),
        ])
    func acceptance(_ url: String, _ attribute: String, _ isKept: Bool) throws {
        #expect(try sent(to: url, after: "x=1; " + attribute, from: url) == (isKept ? "x=1" : nil))
    }

    @Test("a secure cookie is sent over TLS only") func secure() throws {
        #expect(try sent(to: "http://www.example.org/a/", after: "x=1; Secure", from: "https://www.example.org/a/b") == nil)
        #expect(try sent(to: "https://www.example.org/a/") == "x=1")
    }

    @Test("without TLS a secure cookie can't be shadowed") func secureStays() throws {
        try set(["x=1; Secure; Path=/"], from: "https://www.example.org/")
        try set(["x=2; Path=/", "x=3; Domain=example.org; Path=/a"], from: "http://www.example.org/")
        #expect(try jar().adding(to: TransferRequest(url: "https://www.example.org/a")).headers["Cookie"] == "x=1")
    }

    @Test(
        "cookies that break the rules of their name's prefix are dropped",
        arguments: [
            ("https", "__Secure-x=1; Secure", true), ("https", "__SECURE-x=1", false), ("http", "__Secure-x=1", false),
            ("https", "__Host-x=1; Secure; Path=/", true), ("https", "__host-x=1; Secure", false), ("https", "__Host-x=1; Path=/", false),
            ("https", "__Host-x=1; Secure; Path=/; Domain=www.example.org", false),
        ])
    func prefixes(_ scheme: String, _ cookie: String, _ isKept: Bool) throws {
        try set([cookie], from: "\(scheme)://www.example.org/")
        #expect(names.count == (isKept ? 1 : 0))
    }

    @Test("longer paths come first, then older cookies") func order() throws {
        try set(["c=1; Path=/", "b=2; Path=/a"], from: "http://www.example.org/")
        try set(["a=3; Path=/"], from: "http://www.example.org/")
        #expect(try jar().adding(to: TransferRequest(url: "http://www.example.org/a")).headers["Cookie"] == "b=2; c=1; a=3")
    }

    @Test("a cookie is replaced by one with its name, domain and path, and removed by an expired one") func replacement() throws {
        #expect(try sent(to: "http://www.example.org/a", after: "x=1", "x=2") == "x=2")
        #expect(try sent(to: "http://www.example.org/a", after: "x=3; Domain=www.example.org") == "x=3")
        #expect(names == ["x"])
        #expect(try sent(to: "http://www.example.org/a", after: "x=4; Path=/") == "x=3; x=4")
        #expect(try sent(to: "http://www.example.org/a", after: "x=; Max-Age=0") == "x=4")
        #expect(try sent(to: "http://www.example.org/a", after: "x=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT") == nil)
        #expect(names == [])
    }

    @Test("an expired cookie is not sent") func expiry() throws {
        try set(["x=1; Max-Age=100"], from: "http://www.example.org/")
        let url = try #require(URL(string: "http://www.example.org/"))
        let origin = try #require(CookieOrigin(url))
        let cookies = FoundationCookies(storage: storage)
        #expect(cookies.pairs(for: origin, url: url, now: Date().addingTimeInterval(90)).map(\.text) == ["x=1"])
        #expect(cookies.pairs(for: origin, url: url, now: Date().addingTimeInterval(110)).isEmpty)
    }

    @Test("the user's cookies come first, and replace stored ones of the same name") func usersOwn() throws {
        try set(["a=1", "b=2"], from: "http://www.example.org/")
        let request = TransferRequest(url: "http://www.example.org/", headers: ["Cookie": "u=0; a=9"])
        #expect(try jar().adding(to: request).headers.values(for: "Cookie") == ["u=0; a=9; b=2"])
    }

    @Test("a stored cookie that is invalid in a header field is not sent") func unsendable() throws {
        for (name, value) in [("x", "1\r\nEvil: 1"), ("y", "1; z=2"), ("v=w", "1"), ("ok", "1")] {
            let cookie = HTTPCookie(properties: [.name: name, .value: value, .domain: "www.example.org", .path: "/"])
            if let cookie { storage.setCookie(cookie) }
        }
        #expect(try jar().adding(to: TransferRequest(url: "http://www.example.org/")).headers["Cookie"] == "ok=1")
    }

    @Test("a request without cookie handling neither sends nor stores cookies") func unhandled() throws {
        try set(["a=1"], from: "http://www.example.org/") { $0.handlesCookies = false }
        #expect(names == [])
        try set(["a=1"], from: "http://www.example.org/")
        var request = TransferRequest(url: "http://www.example.org/")
        request.handlesCookies = false
        #expect(try jar().adding(to: request).headers["Cookie"] == nil)
    }

    @Test("a session may send no cookies, or store none") func policies() throws {
        try set(["a=1"], from: "http://www.example.org/", in: jar { $0.cookieAcceptPolicy = .never })
        #expect(names == [])
        let silent = try jar { $0.sendsCookies = false }
        try set(["a=1"], from: "http://www.example.org/", in: silent)
        #expect(names == ["a"])
        #expect(silent.adding(to: TransferRequest(url: "http://www.example.org/")).headers["Cookie"] == nil)
    }

    @Test(
        "with a main document, cookies of its domain are stored",
        arguments: [
            (nil, true), ("http://www.example.org/x", true), ("http://example.org/", true), ("http://a.www.example.org/", true),
            ("http://other.org/", false), ("http://org/", false), ("nonsense", false),
        ])
    func mainDocument(_ document: String?, _ isKept: Bool) throws {
        try set(["a=1"], from: "http://www.example.org/") { $0.mainDocumentURL = document }
        #expect(names == (isKept ? ["a"] : []))
        try set(["b=1"], from: "http://www.example.org/", in: jar { $0.cookieAcceptPolicy = .always }) { $0.mainDocumentURL = document }
        #expect(names.contains("b"))
    }

    @Test("the number of cookies per domain is limited") func limits() throws {
        for round in 0..<3 {
            try set((0..<300).map { "c\(round)-\($0)=1" }, from: "http://www.example.org/")
        }
        #expect(names.count == FoundationCookies.limitPerDomain)
        #expect(names.allSatisfy { $0.hasPrefix("c2-") })
    }

    @Test("a cookie without a name is not stored: Foundation has none") func nameless() throws {
        try set(["a", "=b", "c=1"], from: "http://www.example.org/")
        #expect(names == ["c"])
    }

    @Test("HttpOnly and the expiry date are stored") func properties() throws {
        try set(["a=1; HttpOnly; Max-Age=1000", "b=2"], from: "http://www.example.org/")
        let cookies = (storage.cookies ?? []).sorted { $0.name < $1.name }
        #expect(cookies.map(\.isHTTPOnly) == [true, false])
        #expect(cookies.map(\.isSessionOnly) == [false, true])
        #expect(cookies.map { $0.expiresDate != nil } == [true, false])
    }
}
