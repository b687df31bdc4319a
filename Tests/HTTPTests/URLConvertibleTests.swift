// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP
import Testing

@Suite struct URLConvertibleTests {
    @Test(
        "a string that is a URL is unchanged",
        arguments: [
            "https://example.org", "https://u:p@example.org:8443/a%20b/../c?d=e&f=%C3%A9#g", "http://[::1]/",
            "http://xn--bcher-kva.example/",
            "http://example.org/?q=a+b", "HTTP://EXAMPLE.org/", "/relative", "//example.org/",
        ])
    func strings(_ string: String) throws {
        #expect(try string.asURL().absoluteString == string)
    }

    @Test(
        "characters that a URL can't contain are percent-encoded where their meaning is clear",
        arguments: [
            ("http://example.org/?ids[]=1&ids[]=2", "http://example.org/?ids%5B%5D=1&ids%5B%5D=2"),
            ("http://example.org/a|b?c|d#e|f", "http://example.org/a%7Cb?c%7Cd#e%7Cf"),
            ("http://example.org/a b?c d", "http://example.org/a%20b?c%20d"), ("http://example.org?a b", "http://example.org?a%20b"),
            ("http://example.org/\"<>^`{id}", "http://example.org/%22%3C%3E%5E%60%7Bid%7D"),
            ("http://example.org/a[b]/c", "http://example.org/a%5Bb%5D/c"), ("http://example.org/#a#b", "http://example.org/#a%23b"),
            ("http://u:p@[::1]:8080/[x]", "http://u:p@[::1]:8080/%5Bx%5D"), ("//example.org/a b", "//example.org/a%20b"),
        ])
    func encoded(_ string: String, _ url: String) throws {
        #expect(try string.asURL().absoluteString == url)
        #expect(URL(string: string)?.absoluteString == url)
    }

    @Test("escapes are not encoded again with the characters between them") func escapes() throws {
        #expect(try "http://example.org/a%20b c%2F[?%7C|".asURL().absoluteString == "http://example.org/a%20b%20c%2F%5B?%7C%7C")
    }

    @Test(
        "a string with such a character before its path, or whose meaning is in doubt, is rejected",
        arguments: [
            "", " ", " http://example.org/", "http://example.org/\n", "http://example.org/a\r\nb: c", "http://bücher.example/",
            "http://example.org/é", "http://example.org/?\u{301}", "http://example.org/|\u{301}",
            "http://example.org/%zz", "http://example.org/%", "http://example.org/%2", "http://example.org/%zz|",
            "http://example.org/a b%", "http://example.org/\\", "http://example.org\\@example.com/", "http://example.org/\0",
            "http://example.org/\u{7F}", "http://example.org:port/", "http://[::1", "http://[::1/[x]", "http://exa mple.org/",
            "http://exa|mple.org/a|b", "http://<host>/", "http://u:p w@example.org/", "ht tp://example.org/", "/a b", "a|b", "?ids[]=1",
            "http:a b", "http://example.org\u{301}/",
        ])
    func noURLs(_ string: String) {
        let error = #expect(throws: CurlewError.self) { try string.asURL() }
        guard case .invalidURL(let refused, _) = error else {
            return #expect(Bool(false), "not invalidURL but \(String(describing: error))")
        }
        #expect(refused as? String == string)
    }

    @Test("a URL is itself")
    func urls() throws {
        let url = try #require(URL(string: "b", relativeTo: URL(string: "http://a/")))
        #expect(try url.asURL() == url)
    }

    @Test("components return their URL, or throw an error")
    func components() throws {
        var components = URLComponents()
        components.scheme = "http"
        components.host = "example.org"
        components.path = "/é"
        #expect(try components.asURL().absoluteString == "http://example.org/%C3%A9")
        components.path = "no slash"
        let error = #expect(throws: CurlewError.self) { try components.asURL() }
        guard case .invalidURL(let refused, _) = error else {
            return #expect(Bool(false), "not invalidURL but \(String(describing: error))")
        }
        #expect(refused is URLComponents)
    }
}
