// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CurlewTool

@Suite struct ArgumentsTests {
    @Test("method, URL and items are distinguished") func positionals() throws {
        let arguments = try Arguments(["put", "example.org", "a=1", "b==2", "X:y"])
        #expect(arguments.method == "PUT")
        #expect(arguments.url == "example.org")
        #expect(
            arguments.items == [.field(name: "a", value: "1"), .query(name: "b", value: "2"), .header(name: "X", value: "y")])
    }

    @Test(
        "a method is a common one or in uppercase",
        arguments: [(["PURGE", "x"], "PURGE"), (["get", "x"], "GET"), (["M-SEARCH", "x"], "M-SEARCH")])
    func methods(_ words: [String], _ method: String) throws {
        #expect(try Arguments(words).method == method)
    }

    @Test("a URL is not a method", arguments: [["localhost"], ["example.org", "a=1"], [":8080"], ["localhost", "a=1"]])
    func urlsAreNotMethods(_ words: [String]) throws {
        let arguments = try Arguments(words)
        #expect(arguments.method == nil)
        #expect(arguments.url == words[0])
    }

    @Test("options are accepted anywhere, with a space or an equals sign before the value")
    func options() throws {
        let arguments = try Arguments([
            "--timeout", "1.5", "x", "--connect-timeout=2", "-v", "a=1", "--max-redirects=0", "--insecure", "--http", "1.1",
            "--no-decode", "--headers", "--download", "f", "--force", "--continue", "--cacert", "c", "--token=t=u",
        ])
        #expect(arguments.timeout?.duration == .milliseconds(1500))
        #expect(arguments.connectTimeout?.duration == .seconds(2))
        #expect(arguments.maxRedirects == 0)
        #expect(arguments.verbose && arguments.insecure && arguments.http == .http1 && arguments.headers)
        #expect(!arguments.decodes)
        #expect(arguments.download == "f" && arguments.replacesFile && arguments.resumesDownload)
        #expect(arguments.cacert == "c")
        #expect(arguments.token == "t=u")
    }

    @Test("a body is read from a file or standard input") func bodySources() throws {
        #expect(try Arguments(["x", "--body", "-"]).body == .standardInput)
        #expect(try Arguments(["x", "--body", "f"]).body == .file("f"))
        #expect(try Arguments(["x", "--raw", "t"]).body == .text("t"))
    }

    @Test("two dashes end the options") func doubleDash() throws {
        #expect(try Arguments(["x", "--", "-a=1"]).items == [.field(name: "-a", value: "1")])
    }

    @Test("help and version need no URL", arguments: [["--help"], ["--version"], ["--help", "--version"]])
    func helpAndVersion(_ words: [String]) throws {
        let arguments = try Arguments(words)
        #expect(arguments.showsHelp || arguments.showsVersion)
    }

    @Test(
        "usage errors are explained",
        arguments: [
            ([], "the URL is missing"), (["GET"], "the URL is missing"),
            (["--what", "x"], "unknown option '--what'. Did you mean '--har'?"),
            (["--secret=12", "x"], "unknown option '--secret'. Did you mean '--cert'?"),
            (["x", "--timeout"], "missing value for '--timeout <timeout>'"),
            (["x", "--token="], "missing value for '--token <token>'"),
            (["x", "--timeout", "0"], "the value '0' is invalid for '--timeout <timeout>'"),
            (["x", "--timeout", "nan"], "the value 'nan' is invalid for '--timeout <timeout>'"),
            (["x", "--max-redirects", "20000"], "--max-redirects needs a number from 0 to 10000, not \"20000\""),
            (["x", "y"], "\"y\" is none of name=value, name:=json, name==value, name@file, Header:value, Header: and Header;"),
            (["x", "a=1", "a=2"], "the field \"a\" is given twice, which only --form allows"),
            (["x", "a:=nope"], "the value of \"a\" is not JSON"),
            (["x", "=1"], "a name is missing before \"=\""),
            (["x", "--body", "f", "a=1"], "--body and body fields can't be combined"),
            (["x", "--form", "a:=1"], "\"a\" is JSON, which --form can't send; use name=value"),
            (["x", "--form", "--body", "f"], "--body and --form can't be combined"),
            (["x", "--form", "--multipart"], "--form and --multipart can't be combined"),
            (["x", "--form", "a@f"], "\"a\" is a file, which --form can't send; use --multipart"),
            (["x", "a@f"], "\"a\" is a file, which only --multipart can send; a=@FILE sends its text"),
            (["x", "--token", "t", "--user", "u:p"], "--token and --user can't be combined"),
            (["x", "--force"], "--force requires --download"),
            (["x", "--continue"], "--continue requires --download"),
            (["x", "--key", "k"], "--key requires --cert"),
            (["x", "--print", "hx"], "--print knows the letters H, B, h, b and m, not \"x\""),
            (["x", "--pin", "a"], "--pin needs sha256//BASE64, not \"a\""),
            (["x", "--session", "../a"], "a session's name can't be \"../a\""),
            (["x", "--download", "-"], "--download needs a file; without it the body goes to standard output"),
            (["x", "-H", "A: b"], "unknown option -H: a header field is written Name:value"),
            (["x", "-L"], "unknown option -L: redirects are followed; --max-redirects 0 follows none"),
            (["-X", "POST", "x"], "unknown option -X: the method is written before the URL"),
            (["x", "-d", "a"], "unknown option -d: a field is written name=value, another body --raw TEXT or --body FILE"),
            (["x", "-o", "f"], "unknown option -o: a file is written with --download FILE"),
            (["x", "-k"], "unknown option -k: the options are --insecure and --cacert"),
            (["--max-time", "5", "x"], "unknown option --max-time: the option is --timeout"),
            (["--fail", "x"], "unknown option --fail: the exit status tells an error anyway"),
            (["x", "-w", "a"], "unknown option -w: --meta prints times, connection and sizes"),
            (["x", "--http2"], "unknown option --http2: the option is --http 2"),
            (["x", "-46"], "--ipv4 and --ipv6 can't be combined"), (["x", "-pq"], "--print knows the letters H, B, h, b and m, not \"q\""),
            (["http://u:p@ss@h/"], "an @ in a user's name or password is written %40: http://h/"),
            (["u:p@ss@h"], "an @ in a user's name or password is written %40: https://h"),
        ])
    func usageErrors(_ words: [String], _ message: String) {
        #expect(throws: UsageError(message)) { try RequestPlan(Arguments(words), environment: [:]) }
    }
}

@Suite struct JoinedOptionTests {
    @Test("a short option may have its value joined") func joined() throws {
        let arguments = try Arguments(["-ph", "-uann:pw", "-Achallenge", "x"])
        #expect(arguments.print == "h" && arguments.user == "ann:pw" && arguments.authType == .challenge)
        let download = try DownloadCommand.parsed(["-ofile", "-s8", "-j2", "-d.", "-ua:b", "x"])
        #expect(download.output == "file" && download.segments == 8 && download.jobs == 2 && download.user == "a:b")
        #expect(try EventsCommand.parsed(["-n5", "-ua:b", "x"]).count == 5)
        #expect(try WebSocketCommand.parsed(["-n5", "x"]).count == 5)
    }
}

@Suite struct OptionHintsTests {
    @Test("what is hinted at is no option of ours, and what a hint names is one") func names() throws {
        let known = try PlainOptionsTests.names()
        for (words, hint) in OptionHints.hints {
            for word in words { #expect(!known.contains(word), "\(word)") }
            for name in hint.split(whereSeparator: { " ;,".contains($0) }) where name.hasPrefix("-") {
                #expect(known.contains(String(name)), "\(hint)")
            }
        }
    }
}

@Suite struct RequestItemTests {
    @Test(
        "an item is split at its first separator",
        arguments: [
            ("a=1", RequestItem.field(name: "a", value: "1")), ("a=", .field(name: "a", value: "")),
            ("a=b:c==d", .field(name: "a", value: "b:c==d")),
            ("a==1", .query(name: "a", value: "1")), ("a===1", .query(name: "a", value: "=1")),
            ("a:=[1,2]", .json(name: "a", text: "[1,2]")),
            ("a:=1.50", .json(name: "a", text: "1.50")), ("X:y", .header(name: "X", value: "y")),
            ("X: y=z", .header(name: "X", value: " y=z")),
            ("a@f;type=t/u", .file(name: "a", path: "f", type: "t/u")), ("a@f;b", .file(name: "a", path: "f;b", type: nil)),
            ("a@f;filename=g;type=t/u;c=d", .file(name: "a", path: "f", type: "t/u;c=d", fileName: "g")),
            ("a@f;type=t/u;filename=g", .file(name: "a", path: "f", type: "t/u", fileName: "g")),
            (#"a\@b=1"#, .field(name: "a@b", value: "1")),
            ("X:", .removedHeader(name: "X")), ("X;", .header(name: "X", value: "")), ("a;b=1", .field(name: "a;b", value: "1")),
            (#"a\:b=1"#, .field(name: "a:b", value: "1")), (#"a\=b==1"#, .query(name: "a=b", value: "1")),
            (#"a\\=1"#, .field(name: #"a\"#, value: "1")), (#"a\b=1\:2"#, .field(name: #"a\b"#, value: #"1\:2"#)),
            (#"a\;"#, nil), ("plain", nil), ("", nil), (":x", nil), (";", nil), ("=", nil), ("a:={", nil), ("a:=", nil),
        ] as [(String, RequestItem?)])
    func parsing(_ word: String, _ item: RequestItem?) {
        #expect((try? RequestItem(word)) == item)
    }
}
