// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation
import Testing

@Suite(.timeLimit(.minutes(1))) struct URLHostTests {
    @Test(
        "a host is normalized to the resolved form",
        arguments: [
            ("example.org", "example.org"), ("EXAMPLE.org.", "EXAMPLE.org."), ("a_b-c", "a_b-c"), ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"), ("[fe80::1%25eth0]", "[fe80::1%25eth0]"), ("ex%61mple.org", "example.org"),
            ("b\u{FC}cher.example", "xn--bcher-kva.example"), ("B%C3%BCCHER.example", "xn--bcher-kva.example"),
            ("fa\u{DF}.de", "xn--fa-hia.de"), ("a\u{3002}b", "a.b"),
            ("256.0.0.1.", "256.0.0.1."), ("1.2.3.4.5.", "1.2.3.4.5."),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ])
    func written(_ host: String, _ normalized: String) throws {
        #expect(try URLHost.normalized(host[...]) == normalized)
    }

    @Test(
        "an invalid host is rejected",
        arguments: [
            "", "a b", "a%20b", "a%00", "a%0d%0ab", "a\u{7F}", "a%7f", "a/b", "a%2fb", "a%5b", "a%5D", "a%40b", "a:b", "a%3Ab", "a#b",
            "a?b",
            "a\\b", "a<b", "a>b", "a^b", "a|b", "a%", "a%25", "%FF", "a\"b", "a{b}", "a`b", "[", "[]", "[::1", "[::1]]", "[a%5D]",
            "[::1%25]",
            "127.0.0.1.", "127.1.", "0X7f.1.", "2130706433.", "%31%32%37.1%2E", "127.1\u{3002}", "::1.",
            "a..b", ".a", "a..", "..", ".", "a,b", "a;b", "(a)", "a+b", "!a", "a=", "a*", "a&b", "a$", "a'",
            "[::1%eth0]", "[1.2.3.4]", "a\u{FF0F}b", "\u{FC}/b", "\u{FC}%20", "\u{AD}", "\u{202E}a", "xn--\u{FC}",
        ])
    func refused(_ host: String) {
        let error = #expect(throws: URLHost.ValidationError.self) { try URLHost.normalized(host[...]) }
        #expect(error == .invalid)
    }

    @Test("a name of more than 1,024 bytes is rejected") func long() throws {
        #expect(throws: URLHost.ValidationError.self) { try URLHost.normalized(Substring(String(repeating: "a.", count: 512) + "b")) }
        #expect(try !URLHost.normalized(Substring(String(repeating: "a.", count: 500) + "b")).isEmpty)
    }

    @Test(
        "only the host of a URL changes",
        arguments: [
            ("http://\u{FC}@\u{FC}.example:80/\u{FC}?\u{FC}#\u{FC}", "http://\u{FC}@xn--tda.example:80/\u{FC}?\u{FC}#\u{FC}"),
            ("//u:p@[::1]:8080/%41", "//u:p@[::1]:8080/%41"), ("/a//%41%00", "/a//%41%00"), ("http://%41.example", "http://A.example"),
        ])
    func inURL(_ url: String, _ normalized: String) throws {
        #expect(try url.normalizingHost() == normalized)
    }

    @Test("a stream's host follows the same rules, but its IPv6 address needs no brackets")
    func ofStream() throws {
        #expect(try URLHost.normalized(ofStream: "::1") == "::1")
        #expect(try URLHost.normalized(ofStream: "fe80::1%eth0") == "fe80::1%eth0")
        #expect(try URLHost.normalized(ofStream: "b\u{FC}cher.example") == "xn--bcher-kva.example")
        #expect(throws: URLHost.ValidationError.self) { try URLHost.normalized(ofStream: "::1]/") }
    }

    @Test(
        "references are resolved (RFC 3986, section 5.4)",
        arguments: [
            ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
            ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q#s"),
            (";x", "http://a/b/c/;x"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"),
            ("../..", "http://a/"), ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."), ("..g", "http://a/b/c/..g"), ("./g/.", "http://a/b/c/g/"), ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"), ("g#s/../x", "http://a/b/c/g#s/../x"), ("http://h/../x/./y/..", "http://h/x/"),
            ("//h/x/..//y", "http://h//y"), ("http://u:p@h/./x", "http://h/x"),
        ])
    func resolved(_ reference: String, _ target: String) throws {
        let base = try #require(URL(string: "http://a/b/c/d;p?q"))
        #expect(reference.resolved(against: base)?.absoluteString == (reference.isEmpty ? nil : target))
    }
}
