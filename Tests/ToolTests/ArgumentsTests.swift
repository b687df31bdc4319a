// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CurlewTool

@Suite struct ArgumentsTests {
    @Test("method, URL and items are told apart") func methodURLAndItemsAreToldApart() throws {
        let arguments = try Arguments(["put", "example.org", "a=1", "b==2", "X:y"])
        #expect(arguments.method == "PUT")
        #expect(arguments.url == "example.org")
        #expect(
            arguments.items == [.field(name: "a", value: "1"), .query(name: "b", value: "2"), .header(name: "X", value: "y")])
    }

    @Test(
        "a method is a usual word or stands in capitals",
        arguments: [(["PURGE", "x"], "PURGE"), (["get", "x"], "GET"), (["M-SEARCH", "x"], "M-SEARCH")])
    func aMethodIsAUsualWordOrStandsInCapitals(_ words: [String], _ method: String) throws {
        #expect(try Arguments(words).method == method)
    }

    @Test("a URL is no method", arguments: [["localhost"], ["example.org", "a=1"], [":8080"], ["localhost", "a=1"]])
    func aURLIsNoMethod(_ words: [String]) throws {
        let arguments = try Arguments(words)
        #expect(arguments.method == nil)
        #expect(arguments.url == words[0])
    }

    @Test("options may stand anywhere, with a space or an equals sign before their value")
    func optionsMayStandAnywhereWithASpaceOrAnEqualsSignBeforeTheirValue() throws {
        let arguments = try Arguments([
            "--timeout", "1.5", "x", "--connect-timeout=2", "-v", "a=1", "--max-redirects=0", "--insecure", "--http1",
            "--no-decode", "--raw", "--headers", "--download", "f", "--force", "--continue", "--cacert", "c", "--token=t=u",
        ])
        #expect(arguments.timeout == .milliseconds(1500))
        #expect(arguments.connectTimeout == .seconds(2))
        #expect(arguments.maximumRedirects == 0)
        #expect(arguments.isVerbose && arguments.isInsecure && arguments.usesHTTP1 && arguments.isRaw && arguments.printsHead)
        #expect(!arguments.decodes)
        #expect(arguments.download == "f" && arguments.replacesFile && arguments.continuesDownload)
        #expect(arguments.certificateAuthorityFile == "c")
        #expect(arguments.token == "t=u")
    }

    @Test("a body comes from a file or standard input") func aBodyComesFromAFileOrStandardInput() throws {
        #expect(try Arguments(["x", "--body", "-"]).body == .standardInput)
        #expect(try Arguments(["x", "--body", "f"]).body == .file("f"))
    }

    @Test("two dashes end the options") func twoDashesEndTheOptions() throws {
        #expect(try Arguments(["x", "--", "-a=1"]).items == [.field(name: "-a", value: "1")])
    }

    @Test("help and version need no URL", arguments: [["-h"], ["--help"], ["--version"], ["--help", "--version"]])
    func helpAndVersionNeedNoURL(_ words: [String]) throws {
        let arguments = try Arguments(words)
        #expect(arguments.showsHelp || arguments.showsVersion)
    }

    @Test(
        "wrong usage is named",
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
            (["x", "a=1", "a=2"], "the field \"a\" is given twice"), (["x", "a:=nope"], "the value of \"a\" is not JSON"),
            (["x", "=1"], "a name is missing before \"=\""),
            (["x", "--body", "f", "a=1"], "--body and fields of a body exclude each other"),
            (["x", "--form", "a:=1"], "\"a\" is JSON, which --form does not take"),
            (["x", "--form", "--body", "f"], "--body and --form exclude each other"),
            (["x", "--token", "t", "--user", "u:p"], "--token and --user exclude each other"),
            (["x", "--raw", "--pretty"], "--raw and --pretty exclude each other"), (["x", "--force"], "--force needs --download"),
            (["x", "--continue"], "--continue needs --download"),
            (["x", "--download", "-"], "--download needs a file; without it the body goes to standard output"),
        ])
    func wrongUsageIsNamed(_ words: [String], _ message: String) {
        #expect(throws: UsageError(message)) { try Arguments(words) }
    }
}

@Suite struct RequestItemTests {
    @Test(
        "an item is taken apart at its first separator",
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
    func itemIsTakenApart(_ word: String, _ item: RequestItem?) {
        #expect((try? RequestItem(word)) == item)
    }
}
