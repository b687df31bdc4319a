// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewJSON
import Foundation
import Testing

/// What is and is not JSON by RFC 8259, defined by this table rather than by another decoder.
@Suite(.timeLimit(.minutes(1)))
struct GrammarTests {
    /// Decodes every value of the text.
    private enum Value: Decodable {
        case value

        init(from decoder: any Decoder) throws {
            self = .value
            do {
                let object = try decoder.container(keyedBy: AnyKey.self)
                for key in object.allKeys { _ = try object.decode(Value.self, forKey: key) }
                return
            } catch is DecodingError {}
            do {
                var array = try decoder.unkeyedContainer()
                while !array.isAtEnd { _ = try array.decode(Value.self) }
                return
            } catch is DecodingError {}
            let single = try decoder.singleValueContainer()
            if single.decodeNil() { return }
            do {
                _ = try single.decode(Bool.self)
            } catch is DecodingError {
                do {
                    _ = try single.decode(String.self)
                } catch is DecodingError {
                    _ = try single.decode(Double.self)
                }
            }
        }
    }

    @Test(arguments: [
        "null", "true", "false", "0", "-0", "-0.0", "1", "-1", "10", "1.5", "1.50", "1e1", "1E1", "1e+1", "1e-1", "-1.5e-1", "0e1",
        "0.1e01", "123456789012345678901234567890",
        #""""#, #""a""#, #""\"\\\/\b\f\n\r\t\u0000\uabCD""#, #""\ud834\udd1e""#, "\"\u{7f}\u{80}\u{2028}\u{FFFF}\u{10FFFF}\"", "[]", "[ ]",
        "[null]", "[1,[2,{}]]", " [1 , 2 ] ",
        "{}", "{ }", #"{"":0}"#, #"{"a":1,"b":[],"c":{"d":null}}"#, #"{ "a" : 1 , "a" : 2 }"#, "\t\r\n 1\t\r\n ",
        // Not in the RFC, but accepted by Foundation.
        "[1,]", #"{"a":1,}"#, "[[],]",
    ])
    func `valid JSON`(_ text: String) throws {
        _ = try FastJSONDecoder().decode(Value.self, from: Data(text.utf8))
    }

    @Test(arguments: [
        "", " ", "nul", "nullx", "NULL", "tru", "truee", "True", "fals", "undefined", "NaN", "Infinity", "-Infinity", "-", "+1", "--1",
        "01", "-01", "1.", ".1", "-.1", "1.e1", "1e",
        "1e+", "1e1.5", "1.2.3", "1-2", "0x1", "1_0", "1 2", "\u{661}", "[", "]", "{", "}", "[1", "[1,", "[,1]", "[,]", "[1 2]", "[1,,2]",
        "[1}", "[1]]", "[1][2]", "[1],", "{,}", #"{"a"}"#,
        #"{"a":}"#, #"{:1}"#, #"{"a":1"#, #"{"a":1,"#, #"{"a":1 "b":2}"#, #"{"a" 1}"#, #"{"a"::1}"#, #"{"a":1]"#, "{a:1}", "{1:1}",
        "{'a':1}", "{[]:1}", #"""#, #""a"#, #""\"#, #""\""#,
        #""\a""#, #""\x41""#, #""\U0041""#, #""\u""#, #""\u12""#, #""\u12g4""#, #""\u-123""#, #""\ud800""#, #""\ud800\ud800""#,
        #""\udc00""#, #""\ud800x""#, "\"\n\"", "\"\t\"", "\"\u{0}\"",
        "\"\u{1f}\"", "'a'", "/**/1", "1//", "#1", "[1\u{a0}]", "\u{b}1", "\u{0}", "12\u{0}", "\u{FEFF}\u{FEFF}1",
    ])
    func `invalid JSON`(_ text: String) {
        #expect {
            try FastJSONDecoder().decode(Value.self, from: Data(text.utf8))
        } throws: { error in
            guard case DecodingError.dataCorrupted(let context) = error else { return false }
            return context.codingPath.isEmpty
        }
    }

    @Test(
        arguments: [
            [0x80], [0xC0, 0xAF], [0xC1, 0x81], [0xC3], [0xE2, 0x82], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0xF0, 0x80, 0x80, 0x80],
            [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80],
            [0xFE], [0xFF], [0xE2, 0x28, 0xA1], [0xF0, 0x9F, 0x98], [0xC3, 0xA9, 0xC3],
        ] as [[UInt8]])
    func `invalid UTF-8`(_ bytes: [UInt8]) {
        for prefix in ["", "plain text before it", #"\n"#] {
            let text = Data([UInt8](#"["\#(prefix)"#.utf8) + bytes + [UInt8](#"", 1]"#.utf8))
            #expect(throws: DecodingError.self) { try FastJSONDecoder().decode(Value.self, from: text) }
            compare([String].self, text, fast: FastJSONDecoder(), foundation: JSONDecoder())
            let key = Data([UInt8](#"{"\#(prefix)"#.utf8) + bytes + [UInt8](#"": 1, "a": 2}"#.utf8))
            compare(Peeker.self, key, fast: FastJSONDecoder(), foundation: JSONDecoder())
        }
    }
}
