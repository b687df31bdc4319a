// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation
import Testing

@testable import CurlewCookies

/// What is stored of fields and sent to URLs, by RFC 6265bis, sections 5.6 to 5.8. Each row is a case of its algorithms.
@Suite(.timeLimit(.minutes(1))) struct CookieTableTests {
    private static let now = Date(timeIntervalSince1970: 1_000_000_000)

    private func origin(_ url: String) throws -> CookieOrigin {
        try #require(CookieOrigin(try url.asURL()))
    }

    /// The field with which a request to `url` follows responses of `source`; "" for none.
    private func sent(
        _ fields: [String], from source: String = "http://home.example.org/a/b", to url: String? = nil, after seconds: Double = 0
    ) throws -> String {
        var table = CookieTable()
        for field in fields {
            if let cookie = SetCookie(field) { table.store(cookie, from: try origin(source), now: Self.now) }
        }
        let cookies = table.cookies(for: try origin(url ?? source), now: Self.now.addingTimeInterval(seconds))
        return cookies.map(\.pair).joined(separator: "; ")
    }

    @Test(
        "names and values (section 5.6)",
        arguments: [
            ("foo=bar", "foo=bar"), ("foo=", "foo="), ("foo", "foo"), ("=foo", "foo"), ("==foo", "=foo"), ("=", ""), ("", ""), (";", ""),
            ("; foo=bar", ""), ("foo=bar;", "foo=bar"), ("foo=bar;;;", "foo=bar"), ("  foo=bar  ", "foo=bar"),
            ("foo = bar", "foo=bar"), ("foo\t=\tbar", "foo=bar"), ("foo=bar baz", "foo=bar baz"), ("foo=\"bar\"", "foo=\"bar\""),
            ("foo=\" bar \"", "foo=\" bar \""), ("foo=\"bar;baz\"", "foo=\"bar"), ("foo=bar=baz", "foo=bar=baz"), ("foo==", "foo=="),
            ("foo=bar,baz=qux", "foo=bar,baz=qux"), ("foo bar=baz", "foo bar=baz"), ("$Version=1", "$Version=1"),
            ("foo=\"\"", "foo=\"\""), ("foo='bar'", "foo='bar'"), ("foo\\=bar", "foo\\=bar"), ("Foo=bar", "Foo=bar"),
            ("foo=b\tar", "foo=b\tar"), ("fo\to=bar", "fo\to=bar"), ("föö=bär", "föö=bär"), ("foo=bar; baz=qux", "foo=bar"),
            ("{\"a\":1}=2", "{\"a\":1}=2"), ("@=:", "@=:"), ("foo=%41%3B", "foo=%41%3B"), ("foo=bar\0", ""), ("foo=b\u{8}ar", ""),
            ("foo=bar\u{7F}", ""), ("foo\n=bar", ""), ("a=1; x=\u{1}", ""), ("secure", "secure"), ("path=/x", "path=/x"),
            ("expires=Thu, 01 Jan 1970 00:00:00 GMT", "expires=Thu, 01 Jan 1970 00:00:00 GMT"),
        ])
    func pairs(_ field: String, _ expected: String) throws {
        #expect(try sent([field]) == expected)
    }

    @Test(
        "names and values have at most 4096 bytes together, values of attributes 1024",
        arguments: [
            ("a=" + String(repeating: "b", count: 4095), true), ("a=" + String(repeating: "b", count: 4096), false),
            (String(repeating: "b", count: 4096), true), (String(repeating: "b", count: 4097), false),
            ("é=" + String(repeating: "b", count: 4094), true), ("é=" + String(repeating: "b", count: 4095), false),
            ("a=b; Domain=" + String(repeating: "x", count: 1024), false), ("a=b; Domain=" + String(repeating: "x", count: 1025), true),
            ("a=b; Path=/" + String(repeating: "x", count: 1023), false), ("a=b; Path=/" + String(repeating: "x", count: 1024), true),
        ])
    func sizes(_ field: String, _ isSent: Bool) throws {
        #expect(try sent([field]).isEmpty != isSent)
    }

    @Test(
        "expiration (sections 5.6.1, 5.6.2 and 5.7)",
        arguments: [
            ("a=b; Max-Age=100", 99, true), ("a=b; Max-Age=100", 100, false), ("a=b; max-age=0", 0, false), ("a=b; Max-Age=-5", 0, false),
            ("a=b; Max-Age=x", 9e9, true), ("a=b; Max-Age=1x", 9e9, true), ("a=b; Max-Age=", 9e9, true), ("a=b; Max-Age", 9e9, true),
            ("a=b; Max-Age=\"100\"", 9e9, true), ("a=b; Max-Age= 100 ", 101, false), ("a=b; Max-Age=007", 8, false),
            ("a=b; Max-Age=5; Max-Age=50", 20, true), ("a=b; Max-Age=50; Max-Age=5", 20, false), ("a=b; Max-Age=50; Max-Age=x", 60, false),
            ("a=b; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0, false), ("a=b; Expires=Sun, 09 Sep 2001 01:48:20 GMT", 99, true),
            ("a=b; Expires=Sun, 09 Sep 2001 01:48:20 GMT", 100, false), ("a=b; Expires=never", 9e9, true),
            ("a=b; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=10", 5, true),
            ("a=b; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 5, true),
            ("a=b; Max-Age=-1; Expires=Fri, 01 Jan 2100 00:00:00 GMT", 0, false),
            ("a=b; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Expires=Fri, 01 Jan 2010 00:00:00 GMT", 100, true),
            ("a=b; Expires=Fri, 01 Jan 2010 00:00:00 GMT; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0, false),
            ("a=b; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Expires=x", 0, false),
            ("a=b; Max-Age=99999999999999999999", 34_559_999, true), ("a=b; Max-Age=99999999999999999999", 34_560_001, false),
            ("a=b; Expires=Fri, 31 Dec 9999 23:59:59 GMT", 34_559_999, true),
            ("a=b; Expires=Fri, 31 Dec 9999 23:59:59 GMT", 34_560_001, false),
        ])
    func expiration(_ field: String, _ seconds: Double, _ isSent: Bool) throws {
        #expect(try sent([field], after: seconds) == (isSent ? "a=b" : ""))
    }

    @Test(
        "domains (sections 5.1.3, 5.6.3 and 5.7)",
        arguments: [
            ("a=b", "http://home.example.org/a/", true), ("a=b", "http://sub.home.example.org/a/", false),
            ("a=b", "http://example.org/a/", false), ("a=b; Domain=home.example.org", "http://home.example.org/a/", true),
            ("a=b; Domain=home.example.org", "http://sub.home.example.org/a/", true),
            ("a=b; Domain=example.org", "http://other.example.org/a/", true), ("a=b; Domain=example.org", "http://example.org/a/", true),
            ("a=b; Domain=.example.org", "http://a.b.example.org/a/", true),
            ("a=b; Domain=..example.org", "http://home.example.org/a/", false),
            ("a=b; Domain=EXAMPLE.org", "http://home.example.org/a/", true),
            ("a=b; Domain=example.org.", "http://home.example.org/a/", false),
            ("a=b; Domain=ome.example.org", "http://home.example.org/a/", false),
            ("a=b; Domain=sub.home.example.org", "http://home.example.org/a/", false),
            ("a=b; Domain=other.example.org", "http://other.example.org/a/", false),
            ("a=b; Domain=org", "http://home.example.org/a/", false),
            ("a=b; Domain=.org", "http://home.example.org/a/", false), ("a=b; Domain=", "http://home.example.org/a/", true),
            ("a=b; Domain=", "http://sub.home.example.org/a/", false), ("a=b; Domain=.", "http://home.example.org/a/", true),
            ("a=b; Domain=.", "http://sub.home.example.org/a/", false),
            ("a=b; Domain", "http://home.example.org/a/", true), ("a=b; Domain= example.org ", "http://example.org/a/", true),
            ("a=b; Domain=other.org; Domain=example.org", "http://home.example.org/a/", true),
            ("a=b; Domain=example.org; Domain=other.org", "http://home.example.org/a/", false),
            ("a=b; Domain=example.org; Domain=", "http://sub.home.example.org/a/", false),
            ("a=b; Domain=\"example.org\"", "http://home.example.org/a/", false),
            ("a=b; Domain=example.org:80", "http://home.example.org/a/", false),
            ("a=b; Domain=éxample.org", "http://home.example.org/a/", false),
            ("a=b; Domain=example.org/", "http://home.example.org/a/", false),
            ("a=b; Domain=example.org", "https://home.example.org:8443/a/", true), ("a=b", "http://HOME.Example.ORG/a/", true),
        ])
    func domains(_ field: String, _ url: String, _ isSent: Bool) throws {
        #expect(try sent([field], to: url) == (isSent ? "a=b" : ""))
    }

    @Test(
        "addresses have no domains above them, public suffixes only themselves",
        arguments: [
            ("http://1.2.3.4/", "a=b", "http://1.2.3.4/", true), ("http://1.2.3.4/", "a=b; Domain=1.2.3.4", "http://1.2.3.4/", true),
            ("http://1.2.3.4/", "a=b; Domain=3.4", "http://1.2.3.4/", false),
            ("http://1.2.3.4/", "a=b; Domain=.", "http://1.2.3.4/", false),
            ("http://1.2.3.4/", "a=b; Domain=", "http://1.2.3.4/", true),
            ("http://1.2.3.4/", "a=b; Domain=.1.2.3.4", "http://x.1.2.3.4/", false),
            ("http://[::1]/", "a=b", "http://[::1]/", true), ("http://localhost/", "a=b; Domain=localhost", "http://localhost/", true),
            ("http://localhost/", "a=b; Domain=localhost", "http://sub.localhost/", false),
            ("http://co.uk/", "a=b; Domain=co.uk", "http://co.uk/", true),
            ("http://co.uk/", "a=b; Domain=co.uk", "http://example.co.uk/", false),
            ("http://www.example.co.uk/", "a=b; Domain=co.uk", "http://www.example.co.uk/", false),
            ("http://www.example.co.uk/", "a=b; Domain=example.co.uk", "http://example.co.uk/", true),
        ])
    func hosts(_ source: String, _ field: String, _ url: String, _ isSent: Bool) throws {
        #expect(try sent([field], from: source, to: url) == (isSent ? "a=b" : ""))
    }

    @Test(
        "paths (sections 5.1.4 and 5.6.4)",
        arguments: [
            ("a=b", "/a/b", true), ("a=b", "/a/c", true), ("a=b", "/a", true), ("a=b", "/a/", true), ("a=b", "/", false),
            ("a=b", "/ab", false),
            ("a=b", "/a/b/c", true), ("a=b; Path=/", "/", true), ("a=b; Path=/", "/x/y", true), ("a=b; Path=/x", "/x", true),
            ("a=b; Path=/x", "/x/", true), ("a=b; Path=/x", "/xy", false), ("a=b; Path=/x/", "/x", false), ("a=b; Path=/x/", "/x/y", true),
            ("a=b; Path=x", "/a/b", true), ("a=b; Path=x", "/x", false), ("a=b; Path=", "/a/b", true), ("a=b; Path", "/a/b", true),
            ("a=b; Path=\"/x\"", "/a/b", true), ("a=b; Path=/X", "/x", false), ("a=b; path = /x ", "/x", true),
            ("a=b; Path=/y; Path=/x", "/x", true), ("a=b; Path=/x; Path=/y", "/x", false), ("a=b; Path=/x; Path=", "/a/b", true),
            ("a=b; Path=/x?y", "/x?y", false), ("a=b; Path=/%78", "/x", false), ("a=b; Path=/x", "/x?query", true),
            ("a=b; Path=/x#y", "/x", false),
            ("a=b; Path=//", "/", false), ("a=b; Path=/é", "/a/b", false), ("a=b; Path=/a/b/", "/a/b", false),
            ("a=b; Path=/a/../x", "/x", false),
        ])
    func paths(_ field: String, _ path: String, _ isSent: Bool) throws {
        #expect(try sent([field], to: "http://home.example.org" + path) == (isSent ? "a=b" : ""))
    }

    @Test(
        "attributes (sections 5.6.5 to 5.6.7)",
        arguments: [
            ("a=b; Secure", "https", true), ("a=b; SECURE=no", "https", true), ("a=b; secure=", "https", true),
            ("a=b; Secured", "http", true),
            ("a=b; =Secure", "http", true), ("a=b; HttpOnly", "http", true), ("a=b; unknown; x=y; Partitioned", "http", true),
            ("a=b; Version=1; Comment=\"x; Secure\"", "https", true), ("a=b; SameSite=Strict", "http", true),
            ("a=b; SameSite=x", "http", true),
        ])
    func attributes(_ field: String, _ scheme: String, _ isSent: Bool) throws {
        let url = "\(scheme)://home.example.org/a/b"
        #expect(try sent([field], from: url) == (isSent ? "a=b" : ""))
    }

    @Test("a secure cookie comes from TLS, and goes to it only") func secure() throws {
        #expect(try sent(["a=b; Secure"], from: "https://home.example.org/", to: "http://home.example.org/") == "")
        #expect(try sent(["a=b; Secure"], from: "http://home.example.org/", to: "https://home.example.org/") == "")
        #expect(try sent(["a=b"], from: "https://home.example.org/", to: "http://home.example.org/") == "a=b")
    }

    @Test(
        "without TLS no cookie takes the place of a secure one, or goes before it (section 5.7)",
        arguments: [
            ("a=2; Path=/", false), ("a=2; Path=/x", false), ("a=2; Domain=example.org; Path=/", false), ("b=2; Path=/", true),
            ("A=2; Path=/", true),
        ])
    func shadows(_ field: String, _ isStored: Bool) throws {
        var table = CookieTable()
        try table.store(#require(SetCookie("a=1; Secure; Path=/")), from: origin("https://home.example.org/"), now: Self.now)
        try table.store(#require(SetCookie(field)), from: origin("http://home.example.org/"), now: Self.now)
        #expect(table.count == (isStored ? 2 : 1))
        #expect(table.cookies.contains { $0.value == "1" })
    }

    @Test("a secure cookie of a longer path does not protect a shorter one") func shorterPath() throws {
        var table = CookieTable()
        try table.store(#require(SetCookie("a=1; Secure; Path=/login")), from: origin("https://home.example.org/"), now: Self.now)
        try table.store(#require(SetCookie("a=2; Path=/")), from: origin("http://home.example.org/"), now: Self.now)
        #expect(table.count == 2)
    }

    @Test(
        "prefixes of names have requirements, in any case (section 4.1.3)",
        arguments: [
            ("https", "__Secure-a=1; Secure", true), ("https", "__Secure-a=1", false), ("http", "__Secure-a=1; Secure", false),
            ("https", "__secure-a=1", false), ("https", "__SeCuRe-a=1; Secure; Domain=example.org", true),
            ("https", "__Secure-=1; Secure", true),
            ("https", "__Host-a=1; Secure; Path=/", true), ("https", "__Host-a=1; Secure", false), ("https", "__Host-a=1; Path=/", false),
            ("https", "__HOST-a=1; Secure; Path=/; Domain=home.example.org", false), ("https", "__Host-a=1; Secure; Path=/; Domain=", true),
            ("https", "__Host-a=1; Secure; Path=/a", false), ("http", "__Host-a=1; Secure; Path=/", false), ("https", "__Host_a=1", true),
            ("https", "=__Host-a=1; Secure; Path=/", false), ("https", "__Secure-a; Secure", false), ("https", "=__secure-a", false),
            ("https", "=x__Host-a", true),
        ])
    func prefixes(_ scheme: String, _ field: String, _ isStored: Bool) throws {
        #expect(try sent([field], from: "\(scheme)://home.example.org/a/b").isEmpty != isStored)
    }

    @Test(
        "a cookie takes the place of one with its name, domain and path, and keeps its creation",
        arguments: [
            (["a=1", "a=2"], "a=2"), (["a=1", "b=2", "a=3"], "a=3; b=2"), (["a=1", "A=2"], "a=1; A=2"),
            (["a=1; Path=/", "a=2; Path=/a"], "a=2; a=1"),
            (["a=1", "a=; Max-Age=0"], ""), (["a=1", "a=2; Max-Age=0; Path=/"], "a=1"),
            (["a=1", "a=2; Domain=home.example.org"], "a=1; a=2"),
            (["a=1; Domain=example.org", "a=2; Domain=home.example.org"], "a=1; a=2"), (["a", "b"], "b"), (["=a", "x=a"], "a; x=a"),
            (["b=2; Path=/", "a=1; Path=/a/b", "c=3; Path=/a"], "a=1; c=3; b=2"), (["z=1", "y=2", "x=3"], "z=1; y=2; x=3"),
            (["a=1; HttpOnly", "a=2"], "a=2"),
        ])
    func replacement(_ fields: [String], _ expected: String) throws {
        #expect(try sent(fields) == expected)
    }

    @Test("SameSite keeps a cookie from requests that belong to another site, and from being set there") func sameSite() throws {
        var table = CookieTable()
        let here = try origin("https://home.example.org/")
        for field in ["s=1; SameSite=strict", "l=1; SameSite=LAX", "n=1; SameSite=None", "d=1", "u=1; SameSite=Unknown"] {
            try table.store(#require(SetCookie(field)), from: here, now: Self.now)
        }
        #expect(table.cookies.map(\.sameSite) == [.strict, .lax, Cookie.SameSite.none, nil, nil])
        #expect(table.cookies(for: here, now: Self.now).count == 5)
        #expect(table.cookies(for: here, isCrossSite: true, now: Self.now).map(\.name) == ["n", "d", "u"])
        var other = CookieTable()
        for field in ["s=1; SameSite=Strict", "l=1; SameSite=Lax", "n=1; SameSite=None", "d=1"] {
            try other.store(#require(SetCookie(field)), from: here, isCrossSite: true, now: Self.now)
        }
        #expect(other.cookies.map(\.name) == ["n", "d"])
    }

    @Test(
        "a site is a scheme and a registrable domain",
        arguments: [
            ("https://a.example.org/", "https://b.example.org/x", true), ("https://example.org/", "https://other.org/", false),
            ("https://example.org/", "http://example.org/", false), ("https://a.co.uk/", "https://b.co.uk/", false),
            ("https://x.a.co.uk/", "https://y.a.co.uk:444/", true), ("http://1.2.3.4/", "http://5.2.3.4/", false),
            ("http://localhost/", "http://localhost:8080/", true),
        ])
    func sites(_ first: String, _ second: String, _ isSame: Bool) throws {
        #expect(try origin(first).isSameSite(as: origin(second)) == isSame)
        #expect(try origin(second).isSameSite(as: origin(first)) == isSame)
    }

    @Test("of too many cookies of a domain, expired ones go first, then those not secure, the longest unused first") func evictionOfDomain()
        throws
    {
        var table = CookieTable(limits: .init(perDomain: 4, total: 100))
        let here = try origin("https://home.example.org/")
        func add(_ field: String, at seconds: Double) throws {
            try table.store(#require(SetCookie(field)), from: here, now: Self.now.addingTimeInterval(seconds))
        }
        try add("s=1; Secure", at: 0)
        try add("old=1", at: 1)
        try add("dead=1; Max-Age=1", at: 2)
        try add("used=1", at: 3)
        try add("a=1", at: 10)
        #expect(table.cookies.map(\.name) == ["s", "old", "used", "a"])
        let old = table.cookies.filter { $0.name == "old" }
        table.use(old, now: Self.now.addingTimeInterval(11))
        try add("b=1", at: 12)
        #expect(table.cookies.map(\.name) == ["s", "old", "a", "b"])
        for (index, name) in ["t", "u", "v"].enumerated() { try add("\(name)=1; Secure", at: 20 + Double(index)) }
        #expect(table.cookies.map(\.name) == ["s", "t", "u", "v"])
        try add("plain=1", at: 30)
        #expect(table.cookies.map(\.name) == ["s", "t", "u", "v"])
        try add("w=1; Secure", at: 31)
        #expect(table.cookies.map(\.name) == ["t", "u", "v", "w"])
    }

    @Test("of too many cookies of all domains, expired ones go first, then the longest unused") func evictionOfAll() throws {
        var table = CookieTable(limits: .init(perDomain: 10, total: 3))
        for (index, field) in ["a=1", "b=1; Max-Age=1", "c=1", "d=1", "e=1"].enumerated() {
            try table.store(
                #require(SetCookie(field)), from: origin("http://host\(index).example\(index).org/"),
                now: Self.now.addingTimeInterval(2 * Double(index)))
        }
        #expect(table.cookies.map(\.name).sorted() == ["c", "d", "e"])
        #expect(table.count == 3)
    }
}
