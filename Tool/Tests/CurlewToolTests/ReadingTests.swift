// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// Bodies as a reader at a terminal sees them.
@Suite(.timeLimit(.minutes(1))) struct ReadingTests {
    private static func printed(_ pieces: [Data], type: String?, isTerminal: Bool = true, style: Style = Style(isOn: false)) throws
        -> String
    {
        var output = Data()
        try withUnsafeMutablePointer(to: &output) { output in
            var printer = BodyPrinter(isTerminal: isTerminal, isRaw: false, isPretty: false, style: style) { output.pointee += $0 }
            for piece in pieces { _ = try printer.print(piece, contentType: type) }
            try printer.finish()
        }
        return String(decoding: output, as: UTF8.self)
    }

    @Test(
        "text of another charset is converted, wherever its pieces are parted",
        arguments: [
            ("text/plain; charset=windows-1252", [0x66, 0xFC, 0x72, 0x20, 0x80], "für €\n"),
            ("text/plain; charset=ISO-8859-15", [0xA4], "€\n"),
            ("text/plain; charset=GBK", [0xC4, 0xE3], "你\n"),
            ("text/plain;charset=\"windows-1251\"", [0xEF, 0xF0, 0xE8], "при\n"),
            ("text/plain; charset=utf-16le", [0x68, 0x00, 0xAC, 0x20], "h€\n"),
            ("text/plain", [0xFF, 0xFE, 0x68, 0x00, 0x69, 0x00], "hi\n"),
            ("application/json; charset=utf-16be", [0x00, 0x5B, 0x00, 0x31, 0x00, 0x5D], "[\n  1\n]\n"),
            ("text/html; charset=Shift_JIS", [0x93, 0xFA, 0x96, 0x7B], "日本\n"),
            ("text/plain; charset=utf-8", [0x66, 0xC3, 0xBC], "fü\n"), ("text/plain; charset=unknown", [0x61], "a\n"),
        ] as [(String, [UInt8], String)])
    func charsets(_ type: String, _ bytes: [UInt8], _ text: String) throws {
        #expect(try Self.printed([Data(bytes)], type: type) == text)
        // The first two bytes may be a byte order mark.
        #expect(try Self.printed([Data(bytes.prefix(2))] + bytes.dropFirst(2).map { Data([$0]) }, type: type) == text)
        #expect(try Self.printed([Data(bytes)], type: type, isTerminal: false) == String(decoding: bytes, as: UTF8.self))
    }

    @Test("lines of another charset are converted as they come") func convertedLines() throws {
        func check(_ type: String, _ pieces: [([UInt8], String)], rest: String) throws {
            var output = Data()
            try withUnsafeMutablePointer(to: &output) { output in
                var printer = BodyPrinter(isTerminal: true, isRaw: false, isPretty: false) { output.pointee += $0 }
                for (bytes, text) in pieces {
                    _ = try printer.print(Data(bytes), contentType: type)
                    #expect(String(decoding: output.pointee, as: UTF8.self) == text, "\(type)")
                }
                try printer.finish()
            }
            #expect(String(decoding: output, as: UTF8.self) == rest, "\(type)")
        }
        try check(
            "text/plain; charset=windows-1252", [([0x66, 0xFC, 0x0A, 0x80], "fü\n"), ([0x0A], "fü\n€\n"), ([0xE4], "fü\n€\n")],
            rest: "fü\n€\nä\n")
        // A character that is parted.
        try check(
            "text/event-stream; charset=GBK", [([0xC4], ""), ([0xE3, 0x0A, 0xC4], "你\n"), ([0xE3, 0x0A], "你\n你\n")], rest: "你\n你\n")
        // The first bytes of units of two, and states.
        try check("text/plain; charset=utf-16le", [([0x0A, 0x01, 0x0A, 0x00], ""), ([0x61, 0x00], "")], rest: "Ċ\na\n")
        try check("text/plain; charset=iso-2022-jp", [([0x1B, 0x24, 0x42, 0x46, 0x7C, 0x1B, 0x28, 0x42, 0x0A], "")], rest: "日\n")
        // A line that is none in the charset comes as it is, and the next one is converted again.
        try check("text/plain; charset=unknown", [([0x61, 0x0A], "a\n"), ([0x62, 0x0A], "a\nb\n")], rest: "a\nb\n")
        try check("application/json; charset=ISO-8859-1", [([0x5B, 0x22, 0xFC, 0x22, 0x0A], ""), ([0x5D], "")], rest: "[\n  \"ü\"\n]\n")
    }

    @Test("JSON is formatted with each type that servers give it, and logs come as they are written")
    func types() async throws {
        let server = try LoopbackServer { request, connection in
            let type = request.query("type").map { "Content-Type: \($0)\r\n" } ?? ""
            try connection.send(raw: "HTTP/1.1 200 OK\r\n\(type)Content-Length: 9\r\n\r\n[1, true]")
            return nil
        }
        for type in [nil, "text/plain", "text/html", "application/dns-json", "application/octet-stream"] {
            let words = ["-b", server.url("/")] + (type.map { ["type==\($0)"] } ?? [])
            #expect(try await ToolRun.inTerminal(80, words).text == "[\r\n  1,\r\n  true\r\n]\r\n")
            #expect(try await ToolRun(words).result().text == "[1, true]")
        }
    }

    @Test("XML and HTML are coloured, and otherwise unchanged")
    func markup() throws {
        let page = "<?xml version='1'?><a b=\"c>d\"><!-- <x> --->text 1 < 2</a>"
        for size in [1, 2, 7, 100] {
            let pieces = stride(from: 0, to: page.utf8.count, by: size).map { Data(Array(page.utf8)[$0..<min($0 + size, page.utf8.count)]) }
            let text = try Self.printed(pieces, type: "application/xml", style: Style(isOn: true))
            #expect(text.replacingOccurrences(of: "\u{1B}\\[[0-9]+m", with: "", options: .regularExpression) == page + "\n")
        }
        let text = try Self.printed([Data(page.utf8)], type: "text/html; charset=utf-8", style: Style(isOn: true))
        #expect(text.contains("<a \u{1B}[0m\u{1B}[34mb=\u{1B}[0m") && text.contains("\u{1B}[32m\"c>d\"\u{1B}[0m"))
        #expect(text.contains("\u{1B}[2m- <x> --->\u{1B}[0mtext 1 "))
        #expect(!MarkupPainter.isMarkup("text/plain") && MarkupPainter.isMarkup("image/svg+xml"))
    }

    @Test("--pager shows what is printed in another program, with colours as on the terminal")
    func pager() async throws {
        let server = try LoopbackServer { _, _ in .ok("[1]", type: "application/json") }
        let words = ["--pager", "-b", server.url("/")]
        let run = try ToolRun(words, environment: ["PAGER": "sed s/^/P:/", "PATH": "/usr/bin:/bin"], outputIsTerminal: true, columns: 60)
        let result = await run.result()
        #expect(result.status == 0 && result.error == "")
        #expect(result.text == "P:[\r\nP:  \u{1B}[35m1\u{1B}[0m\r\nP:]\r\n")
        // The own variable counts first; a pipe has no pager.
        let own = try ToolRun(
            words, environment: ["PAGER": "false", "CURLEW_PAGER": "cat -n", "NO_COLOR": "1", "PATH": "/usr/bin:/bin"],
            outputIsTerminal: true)
        #expect(await own.result().text.contains("2\t  1"))
        #expect(try await ToolRun(words, environment: ["PAGER": "sed s/^/P:/"]).result().text == "[1]")
    }
}

@Suite(.timeLimit(.minutes(1))) struct IRegexpTests {
    @Test(
        "text matches as a whole, or in a part",
        arguments: [
            ("a.*b", "axxb", true, true), ("a.*b", "xaxxbx", false, true), ("a.*b", "a\nb", false, false), (".", "\r", false, false),
            ("[0-9]{2,3}", "123", true, true), ("[0-9]{2,3}", "1234", true, false), ("[0-9]{2,3}", "1234", false, true),
            ("[0-9]{2}", "1", true, false), ("a{2,}", "aaaa", true, true), ("a{0}b", "b", true, true), ("(ab)?c+", "abcc", true, true),
            ("(a|bc|)d", "bcd", true, true), ("(a|bc|)d", "d", true, true), ("x|y|z", "foo z", false, true), ("x|y|z", "foo", false, false),
            ("[^a-c]", "b", true, false), ("[^a-c]", "d", true, true), ("[-a]", "-", true, true), ("[a-]", "-", true, true),
            ("[\\-\\]^]+", "-]^", true, true), ("\\p{Lu}\\p{L}", "Éé", true, true), ("\\P{L}", "é", true, false),
            ("[\\p{Nd}.]+", "1.٣", true, true), ("\\n\\t\\(\\|", "\n\t(|", true, true),
            // Neither is an anchor, nor are characters composed.
            ("^a$", "^a$", true, true), ("^a$", "a", false, false), ("e", "e\u{301}", false, true), ("e.", "e\u{301}", true, true),
            ("", "", true, true), ("", "a", true, false), ("", "a", false, true), ("(a*)*", "aaa", true, true),
        ] as [(String, String, Bool, Bool)])
    func matching(_ pattern: String, _ text: String, _ isWhole: Bool, _ matches: Bool) throws {
        #expect(try #require(IRegexp(pattern)).matches(text, isWhole: isWhole) == matches)
    }

    @Test(
        "what is no expression is refused",
        arguments: [
            "[", "[]", "(", ")", "a**", "*", "a{", "a{2", "a{3,2}", "a{,2}", "\\d", "\\", "\\p{Q}", "\\p{Lx}", "\\p{L", "[a-b-c]", "[z-a]",
            "[[a]", "a]", "a}", "((a{5000}){5000}){5000}", "a{99999999999999999999}", String(repeating: "(", count: 1000),
        ])
    func invalid(_ pattern: String) { #expect(IRegexp(pattern) == nil) }

    @Test("an expression with which going back would take for ever takes as long as the text") func time() throws {
        let text = String(repeating: "a", count: 20_000)
        let start = ContinuousClock.now
        #expect(try !#require(IRegexp("(a|a)*(a*)*b")).matches(text, isWhole: true))
        #expect(try !#require(IRegexp("(a|aa)+$")).matches(text, isWhole: false))
        #expect(ContinuousClock.now - start < .seconds(20))
    }
}

@Suite(.timeLimit(.minutes(1))) struct JSONPathTests {
    private static let text = #"""
        {"store": {"book": [
          {"category": "reference", "author": "Nigel", "title": "Sayings", "price": 8.95},
          {"category": "fiction", "author": "Evelyn", "title": "Sword", "price": 12.99},
          {"category": "fiction", "author": "Herman", "title": "Moby", "isbn": "0-553", "price": 8.99}
        ], "bicycle": {"color": "r\u00e9d\n", "price": 399}}, "a.b": [0, 1.50, null, true, []], "x": {"y": {"y": 1}}}
        """#

    /// The examples of RFC 9535, section 1.5, and others.
    @Test(
        "values are selected",
        arguments: [
            ("$.store.book[*].author", ["Nigel", "Evelyn", "Herman"]), ("$..author", ["Nigel", "Evelyn", "Herman"]),
            ("store.book[2].title", ["Moby"]), ("$..book[-1].title", ["Moby"]), ("$..book[0,1].price", ["8.95", "12.99"]),
            ("$..book[:2].price", ["8.95", "12.99"]), ("$..book[::-1].price", ["8.99", "12.99", "8.95"]),
            ("$..book[5:1:-2].price", ["8.99"]),
            ("$..book[?@.isbn].title", ["Moby"]), ("$..book[?@.price<10].title", ["Sayings", "Moby"]),
            ("$..book[?@.price < $.store.book[1].price && @.category=='fiction'].title", ["Moby"]),
            ("$..book[?!@.isbn && (@.price>10 || @.author==\"Nigel\")].title", ["Sayings", "Sword"]),
            ("$.store.bicycle.color", ["réd\n"]), ("$['a.b'][1]", ["1.50"]), ("$[\"a.b\"][2,3,4]", ["null", "true", "[]"]),
            ("['a.b'][?@==1.5]", ["1.50"]), ("$.store.*.price", ["399"]), ("$..y", [#"{"y":1}"#, "1"]), ("$.none", []),
            ("$.store.book[9]", []),
            ("$.store.book[::0]", []), ("$..book[?length(@.title)==4].author", ["Herman"]), ("$[?count(@.*)==2].bicycle.price", ["399"]),
            ("$..book[?@.author >= 'H'].author", ["Nigel", "Herman"]), ("$['x','none']['y'].y", ["1"]), ("$..book[9223:1]", []),
            ("$[?@[0]==0 && @[?@==9007199254740993]]", []),
            ("$..book[?9007199254740993>9007199254740992].title", ["Sayings", "Sword", "Moby"]),
            ("$..book[?match(@.title, 'S.*')].title", ["Sayings", "Sword"]), ("$..book[?match(@.title, 'S')].title", []),
            ("$..book[?search(@.title, \"[xyz]\") && !match(@.title,'S.*')].title", ["Moby"]),
            ("$..book[?!(search(@.author, 'l') || @.isbn)].title", []), ("$..book[?search(@.isbn, '^0')].title", []),
            // What is no text or no pattern matches nothing; a pattern may be in the document.
            ("$..book[?match(@.price, '8.*')]", []), ("$..book[?search(@.title, '[')]", []), ("$..book[?search(@.title, 1)]", []),
            ("$..book[?match(@.category, $.store.book[0].category)].title", ["Sayings"]),
        ] as [(String, [String])])
    func selection(_ path: String, _ values: [String]) throws {
        let root = try #require(NestedJSON(parsing: Array(Self.text.utf8)))
        #expect(try JSONPath(path).values(in: root).map { $0.string ?? $0.json } == values)
    }

    @Test(
        "what is no path is named with its place",
        arguments: [
            ("$.", "character 3: a name or * was expected"), ("$[", "character 3: a name in quotes, a number, *, : or ? was expected"),
            ("$['a", "character 5: the quote has no end"), ("$.a b", "character 5: the end was expected"),
            ("[-9223372036854775808]", "character 3: the number is no whole number below 2^53"),
            ("$[?@.a==]", "character 9: a query"),
            ("$[?match(@.a)]", "character 13: , was expected, and a pattern"), ("$[?search(@.a, 'b'", "character 19: ) was expected"),
            ("$[?match(@.a, 'b')==true]", "character 19: ] was expected"), ("$[01x]", "character 5: ] was expected"),
            ("$[?(@.a]", "character 8: ) was expected"), (String(repeating: "[?@", count: 70), "more than 64"),
        ] as [(String, String)])
    func errors(_ path: String, _ message: String) throws {
        let error = #expect(throws: UsageError.self) { try JSONPath(path) }
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    }

    @Test("JSON is checked in memory that does not grow with it") func checking() {
        // As deep as may be, which formatted has 500 times the size.
        let text = String(repeating: "[", count: 500) + String(repeating: "1,", count: 1 << 20) + "1" + String(repeating: "]", count: 500)
        #expect(JSONReindenter.isValid(text.utf8))
        #expect(!JSONReindenter.isValid(text.utf8.dropLast()))
    }

    @Test("JSON is read as it is written, and nothing else is") func trees() throws {
        for text in [#"{"a":[1e5,-0.0,"\ud83d\ude00\"",{}],"b":null}"#, "[]", "1", #""x""#, " [ 1 , 2 ] "] {
            let tree = try #require(NestedJSON(parsing: Array(text.utf8)), "\(text)")
            #expect(tree.json == text.filter { $0 != " " })
        }
        #expect(NestedJSON(parsing: Array(#"["\ud83d\ude00\u0041\/"]"#.utf8)).map { JSONPathTests.first($0) } == "😀A/")
        for text in ["", "[1,]", "{", "nul", "[1] x", String(repeating: "[", count: 2000)] {
            #expect(NestedJSON(parsing: Array(text.utf8)) == nil)
        }
    }

    private static func first(_ tree: NestedJSON) -> String? { if case .array(let elements) = tree { elements.first?.string } else { nil } }

    @Test("--filter prints the values, and its exit status says whether there are any") func command() async throws {
        let server = try LoopbackServer { request, _ in
            switch request.path {
            case "/text": .ok("no JSON")
            case "/none": ServerResponse(status: 404, headers: [], body: .data(Data("gone".utf8)))
            default: .ok(JSONPathTests.text, type: "text/plain")
            }
        }
        let titles = try await ToolRun.run("--filter", "store.book[*].title", server.url("/"))
        #expect(titles.status == 0 && titles.text == "Sayings\nSword\nMoby\n" && titles.error == "")
        #expect(try await ToolRun.run("--filter=$.x", server.url("/")).text == "{\"y\":{\"y\":1}}\n")
        #expect(try await ToolRun.inTerminal(80, ["--filter", "$.x.y", server.url("/")]).text == "{\r\n  \"y\": 1\r\n}\r\n")
        #expect(try await ToolRun.run("-p", "hb", "--filter", "x.y.y", server.url("/")).text.hasSuffix("\n\n1\n"))
        let missing = try await ToolRun.run("--filter", "$.nothing", server.url("/"))
        #expect(missing.status == 1 && missing.error == "curlew: nothing in the body matches --filter\n")
        let text = try await ToolRun.run("--filter", "$.x", server.url("/text"))
        #expect(text.status == 9 && text.error == "curlew: the body is not JSON, which --filter needs\n")
        #expect(try await ToolRun.run("--filter", "$.x", server.url("/none")).status == 4)
        let wrong = try await ToolRun.run("--filter", "$.", server.url("/"))
        #expect(wrong.status == 2 && wrong.error.hasPrefix("curlew: --filter \"$.\", character 3: "))
        #expect(server.requestCount == 7)
    }
}
