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
            "--timeout", "1.5", "x", "--connect-timeout=2", "-v", "a=1", "--max-redirects=0", "--insecure", "--http1",
            "--no-decode", "--raw", "--headers", "--download", "f", "--force", "--continue", "--cacert", "c", "--token=t=u",
        ])
        #expect(arguments.timeout == .milliseconds(1500))
        #expect(arguments.connectTimeout == .seconds(2))
        #expect(arguments.maximumRedirects == 0)
        #expect(arguments.isVerbose && arguments.isInsecure && arguments.usesHTTP1 && arguments.isRaw && arguments.printsHead)
        #expect(!arguments.decodes)
        #expect(arguments.download == "f" && arguments.replacesFile && arguments.resumesDownload)
        #expect(arguments.certificateAuthorityFile == "c")
        #expect(arguments.token == "t=u")
    }

    @Test("a body is read from a file or standard input") func bodySources() throws {
        #expect(try Arguments(["x", "--body", "-"]).body == .standardInput)
        #expect(try Arguments(["x", "--body", "f"]).body == .file("f"))
    }

    @Test("two dashes end the options") func doubleDash() throws {
        #expect(try Arguments(["x", "--", "-a=1"]).items == [.field(name: "-a", value: "1")])
    }

    @Test("help and version need no URL", arguments: [["-h"], ["--help"], ["--version"], ["--help", "--version"]])
    func helpAndVersion(_ words: [String]) throws {
        let arguments = try Arguments(words)
        #expect(arguments.showsHelp || arguments.showsVersion)
    }

    @Test(
        "usage errors are explained",
        arguments: [
            ([], "the URL is missing"), (["GET"], "the URL is missing"), (["--what", "x"], "unknown option --what"),
            (["--secret=12", "x"], "unknown option --secret"), (["-x", "x"], "unknown option -x"),
            (["x", "--timeout"], "--timeout needs a value"),
            (["x", "--token="], "the value of --token is empty"), (["x", "--force=1"], "--force takes no value"),
            (["x", "--timeout", "0"], "--timeout needs a number of seconds above 0, not \"0\""),
            (["x", "--timeout", "-1"], "--timeout needs a number of seconds above 0, not \"-1\""),
            (["x", "--timeout", "nan"], "--timeout needs a number of seconds above 0, not \"nan\""),
            (["x", "--timeout", "1e999"], "--timeout needs a number of seconds above 0, not \"1e999\""),
            (["x", "--connect-timeout", "99999999999"], "--connect-timeout needs a number of seconds above 0, not \"99999999999\""),
            (["x", "--max-redirects", "-1"], "--max-redirects needs a number from 0 to 10000, not \"-1\""),
            (
                ["x", "--max-redirects", "9999999999999999999999"],
                "--max-redirects needs a number from 0 to 10000, not \"9999999999999999999999\""
            ),
            (["x", "--user", "name"], "--user needs NAME:PASSWORD"),
            (["x", "y"], "\"y\" is none of name=value, name:=json, name==value, Header:value, Header: and Header;"),
            (["x", "a=1", "a=2"], "the field \"a\" is given twice, which only --form allows"),
            (["x", "a:=nope"], "the value of \"a\" is not JSON"),
            (["x", "=1"], "a name is missing before \"=\""),
            (["x", "--body", "f", "a=1"], "--body and body fields can't be combined"),
            (["x", "--form", "a:=1"], "\"a\" is JSON, which --form can't send; use name=value"),
            (["x", "--form", "--body", "f"], "--body and --form can't be combined"),
            (["x", "--token", "t", "--user", "u:p"], "--token and --user can't be combined"),
            (["x", "--raw", "--pretty"], "--raw and --pretty can't be combined"), (["x", "--force"], "--force requires --download"),
            (["x", "--continue"], "--continue requires --download"),
            (["x", "--download", "-"], "--download needs a file; without it the body goes to standard output"),
        ])
    func usageErrors(_ words: [String], _ message: String) {
        #expect(throws: UsageError(message)) { try Arguments(words) }
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
            ("X:", .removedHeader(name: "X")), ("X;", .header(name: "X", value: "")), ("a;b=1", .field(name: "a;b", value: "1")),
            (#"a\:b=1"#, .field(name: "a:b", value: "1")), (#"a\=b==1"#, .query(name: "a=b", value: "1")),
            (#"a\\=1"#, .field(name: #"a\"#, value: "1")), (#"a\b=1\:2"#, .field(name: #"a\b"#, value: #"1\:2"#)),
            (#"a\;"#, nil), ("plain", nil), ("", nil), (":x", nil), (";", nil), ("=", nil), ("a:={", nil), ("a:=", nil),
        ] as [(String, RequestItem?)])
    func parsing(_ word: String, _ item: RequestItem?) {
        #expect((try? RequestItem(word)) == item)
    }
}
