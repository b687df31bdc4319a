// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewJSON
import CurlewTestSupport
import Foundation
import Testing

/// Decodes every type from every text, and each at every position: `FastJSONDecoder` has the outcome of `JSONDecoder`. With
/// `CURLEW_TEST_LONG=1` every type is decoded from every text at every position.
@Suite(.timeLimit(.minutes(1)))
struct ConformanceTests {
    static let numbers = [
        "0", "-0", "1", "-1", "7", "42", "127", "128", "-128", "-129", "255", "256", "32767", "32768", "-32769", "65535", "65536",
        "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295", "4294967296", "9007199254740991",
        "9007199254740992", "9007199254740993", "-9007199254740993", "999999999999999999", "1000000000000000000",
        "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
        "18446744073709551616", "170141183460469231731687303715884105727", "340282366920938463463374607431768211456",
        "0.0", "-0.0", "1.0", "-1.0", "1.5", "0.1", "3.14", "-2.5e3", "1e2", "1E2", "1e+2", "1e-2", "100e-2", "0e0",
        "127.0", "128.0", "1.0e2", "12345678901234567890e-1", "9007199254740993.0", "9007199254740993.5", "-9007199254740993.0",
        "9223372036854775807.0", "-9223372036854775808.0", "1e18", "1e19", "123e16", "18446744073709551615.0", "18446744073709551.615e3",
        "1e22", "1e23", "123456789012345678", "0.30000000000000004", "1.7976931348623157e308", "1.7976931348623159e308", "1e308", "1e309",
        "1e400", "-1e400", "1e-400", "4.9e-324", "2.4e-324", "2.2250738585072014e-308", "2.2250738585072011e-308", "3.4028235e38",
        "3.4028236e38", "1e39", "1e-45", "1e-46", "16777217", "16777217.0000001", "1.00000005960464477539062", "0.1e-6", "1e10",
        "1e127", "1e128", "1e150", "1e165", "1e166", "1e-127", "1e-128", "1e-129", "1e-200", "12345678901234567890123456789012345678.9",
        "123456789012345678901234567890123456789012345", "0.00000000000000000000000000000000000000000000001",
        "1e99999", "1e999999999999999999999", "1e-999999999999999999999", "17.000000000000000000000000000001",
        "5.0000000000000000000000000000000000000000000000000000000000000000", "1000000000000000000000000000000e-29",
        "-", "+1", ".5", "1.", "1.e2", "01", "-01", "00", "-.5", "1e", "1e+", "1.5.5", "1e5e5", "1e5.5", "--1", "1-2", "1+2", "0x10",
        "1_000",
        "- 1", "1 2", "Infinity", "NaN", "-Infinity", "0123", "-0e-0", "-00", "2.", "1ee2", "1e2-", "9-",
    ]
    static let strings = [
        #""""#, #""a""#, #""abcdefg""#, #""abcdefgh""#, #""abcdefghijklmnopqrstuvwxyz0123456789""#, #""1""#, #""1.5""#, #""true""#,
        #""null""#,
        #""\"\\\/\b\f\n\r\t""#, #""\u0041\u00e9\u20AC\uFFFF\u0000""#, #""\ud83d\ude00""#, #""\uD83D\uDE00x""#, #""\ud83d""#, #""\ud83dx""#,
        #""\ud83d\n""#, #""\ud83d\u0041""#, #""\ude00""#, #""\ud83d\ud83d\ude00""#, #""\u12""#, #""\u123""#, #""\u12g4""#, #""\u 123""#,
        #""\x41""#,
        #""\""#, #""\"#, #"""#, #""abc"#, #""\u"#, #""\u00"#, #""\'""#, #""\a""#, "\"a\nb\"", "\"a\tb\"", "\"\u{0}\"", "\"\u{1f}\"",
        "\"\u{7f}\"",
        #""é""#, #""e\u0301""#, #""日本語テキスト""#, #""😀😀""#, #""emoji 😀 in the middle of a longer text""#, #"'single'"#, #""a" "b""#,
        #""AQID""#, #""AQI=""#, #""AQ==""#, #""AQ=""#, #""A""#, #""!!!!""#, #""QUJD\nREVG""#, #""AQ\u0049\u003d""#, #""Q\/8=""#,
        #""https://example.org/a?b=c#d""#, #""http://[::1]/""#, #""not a url""#, #""http://exämple.org/ä""#, #""http://[""#, #""//x""#,
        #""6F9619FF-8B86-D011-B42D-00C04FC964FF""#, #""6f9619ff-8b86-d011-b42d-00c04fc964ff""#, #""6F9619FF""#,
        #""2026-01-02T03:04:05Z""#, #""2026-01-02T03:04:05+02:00""#, #""2026-01-02T03:04:05.678Z""#, #""2026-01-02""#,
        #""2026-13-02T03:04:05Z""#,
        #""red""#, #""green""#, #""inf""#, #""-inf""#, #""nan""#, #""\u0069nf""#,
    ]
    static let others = [
        "", " ", "\n", "null", "true", "false", "nul", "nulll", "tru", "True", "falsy", "truefalse", " true ", "\t1\r\n", "[", "]", "{",
        "}", "[]", "{}",
        "[1", "[1,", "[,]", "[,1]", "[1,]", "[1 2]", "[1,,2]", "[1]]", "[1}", "{1}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{"a":1"#,
        #"{"a":1]"#, #"{,}"#,
        #"{"a":1,,"b":2}"#, #"{a:1}"#, #"{"a" 1}"#, #"{"a":1 "b":2}"#, "{null:1}", "[1] x", "[1]\u{0}", "/* c */ 1", "// c\n1", "[1,2,3]",
        "[1,null,3]",
        "[null]", "[[]]", "[[1,2],[3]]", #"["a","b"]"#, #"["a",1]"#, "[true,false]", "[1.5,2]", #"[{"a":1}]"#, "[1,[2,[3,[4]]]]",
        "[255,0,1]", "[256]", "[-1]",
        #"{"a":1}"#, #"{"a":null}"#, #"{"a":"x"}"#, #"{"b":1}"#, #"{"a":1,"a":2}"#, #"{"a":1,"b":2,"a":3,"b":4}"#, #"{"b":2,"c":3,"a":1}"#,
        #"{"c":3,"b":2,"a":1}"#, #"{"\u0061":1}"#, #"{"a":1,"\u0061":2}"#, #"{"\u0061":2,"a":1}"#, #"{"é":1,"e\u0301":2}"#,
        #"{"1":"x","2":"y"}"#,
        #"{"1":1,"x":2}"#, #"{"\ud800":1,"a":2}"#, #"{"a":1,"b":"\ud800"}"#, #"{"a":1,"b":01}"#, "{\"a\":1,\"b\t\":2}", #"{"a":{"a":1}}"#,
        #"{"a":{"b":1}}"#,
        #"{"":1}"#, #"{"a":[1,2],"b":{"c":{}}}"#, #"{"red":{}}"#, #"{"both":{"x":1,"_1":"y"}}"#, #"{"both":{"x":1}}"#,
        #"{"red":{},"both":{}}"#,
        #"{"first_name":"x","last_name_":"y","_id":1}"#, #"{"firstName":"x"}"#, "{\"\u{212A}\":1}", "\u{FEFF}1", "[\u{a0}1]", "[1\u{0c}]",
        #"{"v":1}"#, #"{"v":null}"#, #"{"x":0,"a":1,"x":2,"b":3}"#,
    ]
    // Types have no mutable state.
    nonisolated(unsafe) static let plain: [any Decodable.Type] = [
        Bool.self, Int.self, Int8.self, Int16.self, Int32.self, Int64.self, UInt.self, UInt8.self, UInt16.self, UInt32.self, UInt64.self,
        Int128.self, UInt128.self, Float.self, Double.self, String.self, Decimal.self, Data.self, Date.self, URL.self, UUID.self,
        Color.self, Level.self,
    ]
    nonisolated(unsafe) static let compound: [any Decodable.Type] = [
        Int?.self, String?.self, Date?.self, [Int].self, [UInt8].self, [Bool].self, [String].self, [Double].self, [Int?].self, [[Int]].self,
        [Point].self, Set<String>.self,
        Point.self, Optionals.self, Shape.self,
        Derived.self, Tree.self, Explorer.self, Steps.self, Peeker.self, Names.self, Two.self, OutOfOrder.self, Kelvin.self, Catcher.self,
        Late.self,
    ]
    nonisolated(unsafe) static let dictionaries: [any Decodable.Type] = [
        [String: Int].self, [Int: String].self, [String: [Int]].self, [String: Int?].self, [Color: Int].self, [Level: Int].self,
        [String: String].self, [UUID: Int].self, [String: [String: Int]].self,
    ]

    @Test(arguments: ["numbers", "strings", "others"])
    func `every type with every text`(_ group: String) {
        let texts = group == "numbers" ? Self.numbers : group == "strings" ? Self.strings : Self.others
        let types = Self.plain + (group == "others" ? Self.compound : [])
        for (number, type) in types.enumerated() { everywhere(type, texts, number) }
        for type in Self.compound where group != "others" { compare(type, Array(texts.prefix(12)).map { "[\($0)]" } + texts.prefix(12)) }
    }

    @Test func `dictionaries with one failure`() {
        // Foundation visits keys in hash order, so with several failures any of them may be reported first.
        let texts = Self.others.filter { $0.split(separator: ":").count <= 2 }
        for type in Self.dictionaries {
            everywhere(type, texts)
        }
        compare([String: Int].self, [#"{"a":1,"b":2,"a":3}"#, #"{"red":1,"green":2}"#, #"{"é":1,"e\u0301":2}"#])
        compare([Int: String].self, [#"{"1":"x","2":"y"}"#])
        compare([Color: Int].self, [#"{"red":1,"green":2}"#, #"{"red":1,"green":2,"red":3}"#])
        compare([Level: Int].self, [#"{"42":1,"1":2}"#])
    }

    /// Decodes a type from each text alone, and inside of others: at one position, which is another one for the next text and for the type
    /// with the next number; at all of them without a number, or if the tests are long.
    private func everywhere<T: Decodable>(_ type: T.Type, _ texts: [String], _ number: Int? = nil) {
        func turn(_ position: Int) -> [String] {
            guard let number, !TestLength.isLong else { return texts }
            return texts.indices.filter { ($0 + number) % 5 == position }.map { texts[$0] }
        }
        compare(type, texts)
        compare([T].self, turn(0).map { "[\($0),\($0)]" })
        compare(Box<T>.self, turn(1).map { #"{"v":\#($0)}"# })
        compare(Maybe<T>.self, turn(2).map { #"{"w":0,"v": \#($0) }"# })
        compare(Single<T>.self, turn(3))
        compare(Unkeyed<T>.self, turn(4).map { "[\($0), null, \($0)]" })
    }
}
