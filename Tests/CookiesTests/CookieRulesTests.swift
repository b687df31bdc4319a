// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

@testable import CurlewCookies

@Suite(.timeLimit(.minutes(1))) struct CookieRulesTests {
    @Test(
        "domain matching",
        arguments: [
            ("example.org", "example.org", true), ("a.b.example.org", "example.org", true), ("badexample.org", "example.org", false),
            ("example.org", "a.example.org", false), ("1.2.3.4", "3.4", false), ("1.2.3.4", "1.2.3.4", true), ("::1", "1", false),
        ])
    func domains(_ host: String, _ domain: String, _ matches: Bool) {
        #expect(CookieRules.domainMatches(host: host, domain: domain) == matches)
    }

    @Test(
        "path matching",
        arguments: [
            ("/", "/", true), ("/a", "/", true), ("/a", "/a", true), ("/a/b", "/a", true), ("/a/b", "/a/", true), ("/ab", "/a", false),
            ("/a", "/a/", false), ("/", "/a", false), ("/A", "/a", false),
        ])
    func paths(_ path: String, _ cookiePath: String, _ matches: Bool) {
        #expect(CookieRules.pathMatches(path, cookiePath: cookiePath) == matches)
    }

    @Test(
        "the default path ends before the last slash",
        arguments: [("/", "/"), ("/a", "/"), ("/a/", "/a"), ("/a/b", "/a"), ("/a/b/", "/a/b"), ("", "/"), ("a", "/")])
    func defaultPaths(_ path: String, _ expected: String) {
        #expect(CookieRules.defaultPath(of: path) == expected)
    }

    @Test(
        "the system's public suffix list decides",
        .enabled(if: PublicSuffixList.contains("org") != nil),
        arguments: [
            ("github.io", true), ("curlew.github.io", false), ("foo.ck", true), ("www.ck", false), ("co.uk", true), ("org", true),
            ("example.org", false), ("a..b", true), (".org", true), ("", true),
        ])
    func listedSuffixes(_ domain: String, _ isPublic: Bool) {
        #expect(CookieRules.isPublicSuffix(domain) == isPublic)
    }

    @Test(
        "without the list, single labels and second-level labels of registries are public suffixes",
        arguments: [
            ("org", true), ("localhost", true), ("co.uk", true), ("com.au", true), ("ne.jp", true),
            ("example.org", false), ("example.co.uk", false), ("example.de", false), ("co.com", false),
        ])
    func publicSuffixes(_ domain: String, _ isPublic: Bool) {
        #expect(CookieRules.looksPublic(domain) == isPublic)
    }
}
