// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewJSON
import Foundation
import Testing

/// Each strategy with valid and invalid input.
@Suite(.timeLimit(.minutes(1)))
struct OptionTests {
    private struct Timed: Decodable { var at: Date, by: [Date]?, of: [String: Date]? }
    private struct Blob: Decodable { var data: Data, more: [Data]? }
    private struct Real: Decodable { var d: Double, f: Float?, m: [Double]? }

    private static let dates = [
        "0", "1", "-1.5", "1e9", "1767323045", "1767323045678", "1e400", "01", "null", "true", #""x""#, #""2026-01-02T03:04:05Z""#,
        #""2026-01-02T03:04:05+01:30""#, #""2026-01-02""#, #""2026-02-30T00:00:00Z""#, #""\u0032026-01-02T03:04:05Z""#, #""\ud800""#, "[1]",
        "{}",
    ]

    private enum Refusal: Error { case refused }

    private static let dateStrategies: [JSONDecoder.DateDecodingStrategy] = [
        .deferredToDate, .secondsSince1970, .millisecondsSince1970, .iso8601,
        .custom { Date(timeIntervalSince1970: try Double($0.singleValueContainer().decode(Int.self)) + Double($0.codingPath.count)) },
        .custom { throw DecodingError.dataCorrupted(.init(codingPath: $0.codingPath, debugDescription: "no")) },
        .custom { _ in throw Refusal.refused },
    ]

    @Test(arguments: dateStrategies.indices)
    func `dates`(_ strategy: Int) {
        let options = Options(date: Self.dateStrategies[strategy])
        compare(Date.self, Self.dates, options)
        compare(Date?.self, Self.dates, options)
        compare(Timed.self, Self.dates.map { #"{"at": \#($0)}"# }, options)
        compare(Timed.self, Self.dates.map { #"{"at": 1, "by": [\#($0)]}"# }, options)
        compare(Timed.self, Self.dates.map { #"{"at": "2026-01-02T03:04:05Z", "of": {"x": \#($0)}}"# }, options)
    }

    @Test func `data`() {
        let texts = [
            #""""#, #""AQID""#, #""AQI=""#, #""AQ""#, #""*""#, #""AQ\u0049\u003d""#, #""A Q I D""#, #""QUJD\r\nREVG""#, #""é""#,
            "[1,2,255]", "[256]", "[-1]", "null", "1", "{}",
        ]
        let strategies: [JSONDecoder.DataDecodingStrategy] = [
            .base64, .deferredToData, .custom { Data(try $0.singleValueContainer().decode(String.self).utf8) },
        ]
        for strategy in strategies {
            let options = Options(data: strategy)
            compare(Data.self, texts, options)
            compare(Blob.self, texts.map { #"{"data": \#($0), "more": [\#($0)]}"# }, options)
        }
    }

    @Test func `non-conforming floats`() {
        let texts = [
            #""inf""#, #""-inf""#, #""nan""#, #""infi""#, #""""#, #""\u0069nf""#, "1", "1e400", "null", "true", #""1""#, "[]",
            #""unendlich ∞""#,
        ]
        for floats in [
            JSONDecoder.NonConformingFloatDecodingStrategy.throw,
            .convertFromString(positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan"),
            .convertFromString(positiveInfinity: "unendlich ∞", negativeInfinity: "", nan: ""),
        ] {
            let options = Options(floats: floats)
            compare(Double.self, texts, options)
            compare(Float.self, texts, options)
            compare(Int.self, texts, options)
            compare(Decimal.self, texts, options)
            compare(Real.self, texts.map { #"{"d": \#($0), "f": \#($0), "m": [\#($0)]}"# }, options)
        }
    }

    @Test func `snake case`() {
        struct Keys: Decodable {
            let keys: [String]
            init(from decoder: any Decoder) throws {
                keys = try decoder.container(keyedBy: AnyKey.self).allKeys.map(\.stringValue).sorted()
            }
        }
        let options = Options(keys: .convertFromSnakeCase)
        let names = [
            "a", "a_b", "one_two_three", "_one_two_", "__a__b__", "_", "__", "", "a_", "_a", "oneTwo", "one_TWO", "ONE_TWO", "one_2_x3y",
            "a__b", "url_ID",
            "é_ä", "foo_bar-baz", "foo_bar.baz qux", "ß_ß", "a_ǆb", "x_o'neil", "x_3rd",
        ]
        compare(Keys.self, names.map { #"{"\#($0)": 1}"# }, options)
        compare(
            Names.self,
            [#"{"first_name":"x","last_name_":"y","_id":1}"#, #"{"first_name":1}"#, #"{"firstName":"x","first_name":"y"}"#, "{}"], options)
        // Dictionaries keep their keys at every depth.
        compare(
            Box<[String: Int]>.self, [#"{"v":{"a_b":1}}"#, #"{"v":{"a_b":null}}"#, #"{"v":null}"#, #"{"v":[]}"#, #"{"v":{"a":1,"a":2}}"#],
            options)
        compare(
            [String: [String: Names]].self, [#"{"a_b":{"c_d":{"first_name":"x"}}}"#, #"{"a_b":{"c_d":{"first_name":1}}}"#, #"{"a_b":1}"#],
            options)
        compare([String: Int].self, [#"{"\ud800":1}"#, #"{"a_b":x}"#], options)
        compare([Int: String].self, [#"{"1":"x"}"#, #"{"1_2":"x"}"#], options)
    }

    @Test func `custom keys`() {
        let options = Options(keys: .custom { path in AnyKey((path.last?.stringValue ?? "?").uppercased() + "\(path.count)") })
        struct Upper: Decodable {
            var A1: Int, B1: [Inner]?
            struct Inner: Decodable { var A3: Int }
        }
        compare(
            Upper.self,
            [#"{"a":1}"#, #"{"a":1,"b":[{"a":2}]}"#, #"{"a":1,"A":2}"#, #"{"a":1,"b":[{"b":2}]}"#, #"{"a":1,"b":[{"a":"x"}]}"#, "{}"],
            options)
    }

    @Test func `userInfo and dictionaries without braces`() {
        let key = CodingUserInfoKey(rawValue: "k")
        compare(Explorer.self, ["1", "[1]", #"{"a":{"a":[1]}}"#], Options(userInfo: key.map { [$0: "v"] } ?? [:]))
        let bare = [
            "", " ", #""a":1"#, #" "a" : 1 , "#, #""a":1,"b":{"c":[1,2,]}"#, #"{"a":1}"#, #" {"a":1} "#, #""a":1}"#, "}", #""a":1,}"#,
            #""a""#, #""a":"#, "1", #""a":1 "b":2"#,
            #"{"a":1"#, #""a":1]"#,
        ]
        let options = Options(assumesTopLevelDictionary: true)
        compare(Point.self, bare, options)
        compare(Peeker.self, bare, options)
    }

    @Test func `other encodings`() {
        let text = #"{"a": 1, "b": 20}"#
        let encodings: [String.Encoding] = [
            .utf8, .utf16, .utf16BigEndian, .utf16LittleEndian, .utf32, .utf32BigEndian, .utf32LittleEndian,
        ]
        var inputs = encodings.compactMap { text.data(using: $0) }
        inputs += encodings.compactMap { #"["é😀"]"#.data(using: $0) } + encodings.compactMap { "1".data(using: $0) }
        let marks: [[UInt8]] = [
            [0xEF, 0xBB, 0xBF], [0xFE, 0xFF], [0xFF, 0xFE], [0, 0, 0xFE, 0xFF], [0xFF, 0xFE, 0, 0], [0xFE, 0xFF, 0, 0],
        ]
        inputs += marks.flatMap { mark in inputs.map { Data(mark) + $0 } } + marks.map { Data($0) }
        // Truncated and malformed input.
        inputs +=
            inputs.filter { !$0.isEmpty }.map { $0.dropLast() } + [
                Data([0x31, 0]), Data([0, 0x31]), Data([0]), Data([0xD8, 0, 0xD8, 0]), Data([0x5B, 0, 0, 0xD8, 0x5D, 0]),
            ]
        let options = Options()
        for input in inputs {
            compare(Point.self, input, fast: options.fast, foundation: options.foundation)
            compare(Tree.self, input, fast: options.fast, foundation: options.foundation)
            compare([String].self, input, fast: options.fast, foundation: options.foundation)
        }
    }
}
