// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CurlewTool

private func formatted(_ text: String, pieces size: Int = .max) -> String {
    var reindenter = JSONReindenter()
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
        reindenter.append(rest.prefix(size))
        rest = rest.dropFirst(size)
    }
    return String(decoding: reindenter.finish(), as: UTF8.self)
}

@Suite struct JSONReindenterTests {
    private static let texts = [
        (#"{"b":1,"a":[true,false,null]}"#, "{\n  \"b\": 1,\n  \"a\": [\n    true,\n    false,\n    null\n  ]\n}"),
        ("[]", "[]"), ("{ }", "{}"), ("[ [ ] , { } ]", "[\n  [],\n  {}\n]"), (#"{"a":{"b":{}}}"#, "{\n  \"a\": {\n    \"b\": {}\n  }\n}"),
        (#""a\"\\\/\b\u00e9ü,:{[""#, #""a\"\\\/\b\u00e9ü,:{[""#), ("1", "1"), (" true\n", "true"),
        (#"{"a":"x","a":"x"}"#, "{\n  \"a\": \"x\",\n  \"a\": \"x\"\n}"), (#"["a","b"]"#, "[\n  \"a\",\n  \"b\"\n]"),
        (
            "[0,-0,-1.50e+10,1E400,0.10000000000000000001,12345678901234567890]",
            "[\n  0,\n  -0,\n  -1.50e+10,\n  1E400,\n  0.10000000000000000001,\n  12345678901234567890\n]"
        ),
        ("\t[\r\n1 ,\t2]  ", "[\n  1,\n  2\n]"),
    ]

    @Test("JSON is formatted, and nothing else is changed", arguments: texts)
    func formatting(_ text: String, _ expected: String) {
        #expect(formatted(text) == expected)
    }

    @Test("pieces may be split anywhere", arguments: texts, [1, 2, 3])
    func pieces(_ text: (String, String), _ size: Int) {
        #expect(formatted(text.0, pieces: size) == text.1)
    }

    @Test(
        "invalid JSON is unchanged",
        arguments: [
            "", " ", "[", "[1", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}", "[1,]", "[,1]", "[1 2]", "{a:1}", "{1:2}", "{\"a\" 1}", "]",
            "}",
            "[}", "{]", "{\"a\":1]", "[1}", "01", "-", "1.", ".5", "+1", "1e", "1e+", "--1", "tru", "truex", "nul", "TRUE", "\"a", #""\x""#,
            #""\u12g4""#, #""\u12"#, "\"a\nb\"", "1 2", "{} {}", "[1]]", "\u{FEFF}[]", "NaN", "'a'", "// x\n1", ",", ":", "\"a\":1",
            "<html>",
            #"{"a""b"}"#, #"{"a":"b":"c"}"#, #"["a":1]"#, #"{"a"}"#, #"{"a",}"#,
        ])
    func invalidJSON(_ text: String) {
        #expect(formatted(text) == text)
        #expect(formatted(text, pieces: 1) == text)
        #expect(!JSONReindenter.isValid(text.utf8))
    }

    @Test("text nested too deep is unchanged") func nesting() {
        let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        #expect(formatted(deep) == deep)
    }

    @Test("text whose indentation takes too much memory is unchanged") func expansion() {
        let text = String(repeating: "[", count: 100) + String(repeating: "0,", count: 100) + "0" + String(repeating: "]", count: 100)
        for (limit, isFormatted) in [(30_000, false), (50_000, true)] {
            var reindenter = JSONReindenter(maximumOutput: limit)
            reindenter.append(text.utf8)
            #expect((reindenter.finish() != Array(text.utf8)) == isFormatted)
        }
    }

    @Test("bytes that are not text are unchanged") func invalidUTF8() {
        var reindenter = JSONReindenter()
        reindenter.append([0xFF, 0x00, 0x5B])
        #expect(reindenter.finish() == [0xFF, 0x00, 0x5B])
    }
}
