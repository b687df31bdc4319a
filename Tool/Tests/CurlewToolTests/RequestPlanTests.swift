// SPDX-License-Identifier: Apache-2.0
import Curlew
import Testing

@testable import CurlewTool

private func plan(_ words: String..., environment: [String: String] = [:]) throws -> RequestPlan {
    try RequestPlan(Arguments(words), environment: environment)
}

@Suite struct RequestPlanTests {
    @Test(
        "a URL without a scheme is completed",
        arguments: [
            ("example.org", "https://example.org"), ("http://example.org/a?b#c", "http://example.org/a?b#c"),
            (":8080/path", "http://localhost:8080/path"),
            (":8080?a", "http://localhost:8080?a"),
            (":/path", "http://localhost/path"), (":", "http://localhost"), ("localhost:1?a", "http://localhost:1?a"),
            ("127.0.0.1", "http://127.0.0.1"),
            ("127.1.2.3:80/x", "http://127.1.2.3:80/x"), ("[::1]:8080/", "http://[::1]:8080/"), ("api.localhost", "http://api.localhost"),
            ("127.example.org", "https://127.example.org"), ("localhost.example.org", "https://localhost.example.org"),
            ("//example.org/x", "https://example.org/x"), ("example.org/?u=http://x", "https://example.org/?u=http://x"),
            ("user:word@localhost/x", "http://user:word@localhost/x"), ("localhost@example.org", "https://localhost@example.org"),
        ])
    func defaultScheme(_ text: String, _ url: String) throws {
        #expect(try plan(text).url == url)
    }

    @Test(
        "an invalid URL is rejected without showing secrets",
        arguments: [
            ("ftp://example.org", "the scheme is not http or https: ftp://example.org"), ("http://", "the URL has no host: http://"),
            ("http://u:secret@a b/", "invalid URL: http://a b/"), ("https://x y/a?secret", "invalid URL: https://x y/a"),
        ])
    func invalidURLs(_ text: String, _ message: String) {
        #expect(throws: UsageError(message)) { try plan(text) }
    }

    @Test(
        "what a URL can't have behind the host is encoded",
        arguments: [
            ("x/a b?c d", "https://x/a%20b?c%20d"), ("x/ü?ü=1", "https://x/%C3%BC?%C3%BC=1"), ("x/[a]{b}|", "https://x/%5Ba%5D%7Bb%7D%7C"),
            ("x/100%?a%2", "https://x/100%25?a%252"), ("x/%41%zz#a", "https://x/%41%25zz#a"), ("[::1]:8/[", "http://[::1]:8/%5B"),
        ])
    func encoding(_ text: String, _ url: String) throws {
        #expect(try plan(text).url == url)
    }

    @Test(
        "segments of dots are removed as curl does",
        arguments: [
            ("http://x/a/../b", "http://x/b"), ("http://x/a/./b?c/../d", "http://x/a/b?c/../d"), ("http://x/a/..", "http://x/"),
            ("http://x/../../b/.", "http://x/b/"), ("http://x/.a/..b", "http://x/.a/..b"), ("http://x", "http://x"),
        ])
    func dotSegments(_ url: String, _ result: String) {
        #expect(RequestURL.withoutDotSegments(url) == result)
    }

    @Test("query items are escaped and added in order") func queryItems() throws {
        #expect(try plan("http://x/?z=0#f", "b==1 2", "a==ü&").url == "http://x/?z=0&b=1%202&a=%C3%BC%26#f")
        #expect(try plan("http://x", "a==1").url == "http://x?a=1")
    }

    @Test("fields become JSON in order") func jsonFields() throws {
        let plan = try plan("x", "b=\"q\"\\\n\u{1}", "a:=1.0", "ü:=[null]")
        #expect(plan.method == .post)
        #expect(plan.body == .bytes(Data(#"{"b":"\"q\"\\\n\u0001","a":1.0,"ü":[null]}"#.utf8)))
        #expect(plan.headers["Content-Type"] == "application/json")
        #expect(plan.headers["Accept"] == "application/json, */*;q=0.5")
    }

    @Test(
        "keys in brackets nest",
        arguments: [
            (["a[b]=1", "a[c][0]=2", "a[c][]:=3"], #"{"a":{"b":"1","c":["2",3]}}"#), (["a[]=1", "a[]=2"], #"{"a":["1","2"]}"#),
            (["[]:=1", "[]:=2"], "[1,2]"), (["a[2]:=1"], #"{"a":[null,null,1]}"#), (["a[b=1"], #"{"a[b":"1"}"#),
        ])
    func nestedFields(_ items: [String], _ text: String) throws {
        #expect(try RequestPlan(Arguments(["x"] + items), environment: [:]).body == .bytes(Data(text.utf8)))
    }

    @Test("a field that does not fit another is an error") func misfits() {
        #expect(throws: UsageError(#""a[0]" does not fit an earlier field, which is of another kind"#)) {
            try plan("x", "a[b]=1", "a[0]=2")
        }
    }

    @Test("fields become a form, with repeated names") func formFields() throws {
        let plan = try plan("x", "--form", "b=1 &", "a=2", "a=3")
        #expect(plan.body == .bytes(Data("b=1%20%26&a=2&a=3".utf8)))
        #expect(plan.headers["Content-Type"] == "application/x-www-form-urlencoded")
    }

    @Test("without a body the method is GET") func defaultMethod() throws {
        #expect(try plan("x", "q==1", "X:y").method == .get)
        #expect(try plan("x", "--body", "-").method == .post)
        #expect(try plan("GET", "x", "a=1").method == .get)
    }

    @Test("--json says that a file and standard input are JSON") func types() throws {
        #expect(try plan("x", "--body", "f").headers["Content-Type"] == nil)
        #expect(try plan("x", "--body", "f", "-j").headers["Content-Type"] == "application/json")
        #expect(try plan("x", "--body", "-", "-j").headers["Content-Type"] == "application/json")
    }

    @Test("header items replace, remove and repeat") func headerItems() throws {
        let headers = try plan("x", "user-agent:me", "Accept:", "X:1", "X: 2", "E;").headers
        #expect(
            headers.map { "\($0.name):\($0.value)" } == [
                "Accept-Encoding:gzip, deflate, br, zstd", "user-agent:me", "X:1", "X:2", "E:", "Accept:*/*",
            ])
    }

    @Test("credentials are taken from items, options and environment, in this order")
    func credentials() throws {
        let environment = ["CURLEW_TOKEN": "e"]
        #expect(try plan("x", environment: environment).headers["Authorization"] == "Bearer e")
        #expect(try plan("x", "--token", "t", environment: environment).headers["Authorization"] == "Bearer t")
        #expect(try plan("x", "--user", "u:p", environment: environment).headers["Authorization"] == "Basic dTpw")
        #expect(try plan("x", "--token", "t", "Authorization:A b", environment: environment).headers["Authorization"] == "A b")
        #expect(try plan("x", "Authorization:", environment: environment).headers["Authorization"] == nil)
        #expect(try plan("u:p@x", environment: environment).headers["Authorization"] == nil)
    }
}

@Suite struct VerboseTextTests {
    @Test(
        "headers are printed without secrets",
        arguments: [
            ("Authorization", "Bearer abc", "Authorization: Bearer <hidden>"), ("authorization", "abc", "authorization: <hidden>"),
            ("Cookie", "a b", "Cookie: <hidden>"), ("Set-Cookie", "a=b", "Set-Cookie: <hidden>"),
            ("X-Api-Key", "abc", "X-Api-Key: <hidden>"),
            ("WWW-Authenticate", "Basic realm", "WWW-Authenticate: Basic realm"), ("X", "a\u{1B}[2J", #"X: a\u{1B}[2J"#),
        ])
    func headers(_ name: String, _ value: String, _ line: String) {
        #expect(VerboseText.line(name, value) == line)
    }

    @Test(
        "targets are printed without secrets",
        arguments: [
            ("http://u:p@x", "/"), ("http://x/a?b=1&access_token=2&c#f", "/a?b=1&access_token=<hidden>&c"), ("http://x?a=1", "/?a=1"),
        ])
    func targets(_ url: String, _ target: String) {
        #expect(VerboseText.target(url) == target)
    }
}
