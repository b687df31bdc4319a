// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation
import Testing

@testable import CurlewCookies

@Suite(.timeLimit(.minutes(1))) struct SetCookieTests {
    @Test(
        "name and value are separated by the first equals sign",
        arguments: [
            ("a=b", "a", "b"), ("  a \t=  b c ; Secure", "a", "b c"), ("a=", "a", ""), ("a=b=c", "a", "b=c"), ("a=\"b\"", "a", "\"b\""),
            ("a=b,c", "a", "b,c"), ("ä=ö;", "ä", "ö"), ("a=b;\u{301}x", "a", "b"),
        ])
    func pairs(_ text: String, _ name: String, _ value: String) {
        let cookie = SetCookie(text)
        #expect(cookie?.name == name)
        #expect(cookie?.value == value)
    }

    @Test(
        "invalid cookies are rejected",
        arguments: [
            "", ";", "=", " = ", "\t;a=b", "a\0=b", "a=b\u{1}", "a=b\u{7F}", "=; Path=/", "a=\(String(repeating: "b", count: 4096))",
        ])
    func nonsense(_ text: String) {
        #expect(SetCookie(text) == nil)
    }

    @Test(
        "a cookie without an equals sign, or with nothing before it, has no name",
        arguments: [("a", "a"), ("=b", "b"), (" = b=c ", "b=c"), ("a; Path=/", "a"), ("\"a b\"", "\"a b\"")])
    func nameless(_ text: String, _ value: String) {
        let cookie = SetCookie(text)
        #expect(cookie?.name == "")
        #expect(cookie?.value == value)
    }

    @Test("attribute names are case-insensitive") func attributes() throws {
        let cookie = try #require(
            SetCookie("a=b; pAth=/x; DOMAIN=.Example.ORG; secure; HTTPONLY=1; Max-Age=100; Expires=Sun, 06 Nov 1994 08:49:37 GMT; x=y"))
        #expect(cookie.path == "/x")
        #expect(cookie.domain == "example.org")
        #expect(cookie.isSecure && cookie.isHTTPOnly)
        #expect(cookie.maximumAge == 100)
        #expect(cookie.expires == Date(timeIntervalSince1970: 784_111_777))
        let plain = try #require(SetCookie("a=b"))
        #expect(plain.path == nil && plain.domain == nil && !plain.isSecure && !plain.isHTTPOnly && plain.maximumAge == nil)
    }

    @Test(
        "invalid attributes are ignored",
        arguments: [
            "Domain=", "Path=x", "Path=", "Max-Age=", "Max-Age=1.5", "Max-Age=+1", "Expires=soon",
            "Path=/\(String(repeating: "x", count: 1024))",
        ])
    func senselessAttributes(_ attribute: String) throws {
        let cookie = try #require(SetCookie("a=b; " + attribute))
        #expect(cookie == SetCookie("a=b"))
    }

    @Test(
        "Max-Age has precedence over Expires",
        arguments: [
            ("Max-Age=10; Expires=Sun, 06 Nov 1994 08:49:37 GMT", 10.0), ("Max-Age=0; Expires=Fri, 01 Jan 2100 00:00:00 GMT", -1.0),
            ("Max-Age=-1", -1.0),
            ("Max-Age=99999999999999999999", 3_153_600_000.0), ("Expires=Thu, 01 Jan 1970 00:01:40 GMT", -900.0),
        ])
    func expiry(_ attributes: String, _ seconds: Double) throws {
        let now = Date(timeIntervalSince1970: 1000)
        let expiry = try #require(SetCookie("a=b; " + attributes)?.expiry(now: now))
        if seconds == -1 { #expect(expiry < now) } else { #expect(expiry == now.addingTimeInterval(seconds)) }
    }

    @Test(
        "dates are parsed leniently",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "1994 nOVember 6 8:49:37",
            "08:49:37x 6th 94 Nov", "08:49:37:x 6 Nov 1994", "6/Nov/1994/08:49:37",
        ])
    func dates(_ text: String) {
        #expect(CookieDate.date(from: text) == Date(timeIntervalSince1970: 784_111_777))
    }

    @Test(
        "impossible dates are rejected",
        arguments: [
            "", "Sun, 06 Nov 1994", "08:49:37 Nov 1994", "06 Nov 08:49:37", "31 Feb 2000 00:00:00", "06 Nov 1600 00:00:00",
            "06 Nov 1994 24:00:00", "06 Nov 1994 00:60:00", "06 Nov 1994 00:00:60", "06 Nov 1994 2a:00:00",
            "06 Nov 1994 02:0a:00", "06 Nov 1994 02:00:a0", "06 Nov 1994 :00:00", "06 Nov 1994 002:00:00", "06 Nov 1994 02:00:000",
            "32 Nov 1994 00:00:00", "06 Nov 19941 00:00:00",
        ])
    func impossibleDates(_ text: String) {
        #expect(CookieDate.date(from: text) == nil)
    }

    @Test("two-digit years are 1970 to 2069") func shortYears() {
        #expect(CookieDate.date(from: "01 Jan 69 00:00:00") == CookieDate.date(from: "01 Jan 2069 00:00:00"))
        #expect(CookieDate.date(from: "01 Jan 70 00:00:00") == Date(timeIntervalSince1970: 0))
    }
}
