// SPDX-License-Identifier: Apache-2.0

import CurlewEncoding
import CurlewHTTP
import Testing

@Suite struct JSONEncodingTests {
    private struct Point {
        let x = 1
    }

    @Test("parameters become the body, with a content type, for any method")
    func encodesParameters() throws {
        for method in [HTTPMethod.post, .get, .put] {
            let original = try request("https://example.org/?q#f", method)
            let encoded = try JSONEncoding.default.encode(original, with: ["a": [1, "b", true, NSNull()] as [Any]])
            #expect(encoded.bodyText == #"{"a":[1,"b",true,null]}"#)
            #expect(encoded.value(forHTTPHeaderField: "Content-Type") == "application/json")
            #expect(encoded.url == original.url)
        }
    }

    @Test("nil leaves the request unchanged")
    func nilChangesNothing() throws {
        for encoded in [
            try JSONEncoding.default.encode(request(), with: nil), try JSONEncoding.default.encode(request()),
            try JSONEncoding.default.encode(request(), withJSONObject: nil),
        ] {
            #expect(encoded.httpBody == nil)
            #expect(encoded.value(forHTTPHeaderField: "Content-Type") == nil)
        }
    }

    @Test("an existing content type is kept")
    func contentTypeStays() throws {
        let original = try request(headers: ["content-type": "application/vnd.api+json"])
        let encoded = try JSONEncoding.default.encode(original, with: [:])
        #expect(encoded.value(forHTTPHeaderField: "Content-Type") == "application/vnd.api+json")
        #expect(encoded.bodyText == "{}")
    }

    @Test("options are applied")
    func optionsArrive() throws {
        let sorted = JSONEncoding(options: [.sortedKeys, .withoutEscapingSlashes])
        #expect(try sorted.encode(request(), with: ["b": "/", "a": 1]).bodyText == #"{"a":1,"b":"/"}"#)
        let pretty = try #require(JSONEncoding.prettyPrinted.encode(request(), with: ["a": 1]).bodyText)
        #expect(pretty.contains("\n"))
        #expect(JSONEncoding.default.options == [])
        #expect(JSONEncoding.prettyPrinted.options == .prettyPrinted)
    }

    private static let objects: [Sample<String>] = [
        Sample("array", [1, 2], "[1,2]"),
        Sample("empty array", [Any](), "[]"),
        Sample("dictionary of a type", ["a": 1], #"{"a":1}"#),
        Sample("NSDictionary", NSDictionary(dictionary: ["a": 1]), #"{"a":1}"#),
        Sample("NSArray", NSArray(array: ["a", 1]), #"["a",1]"#),
        Sample("Booleans", [true, false, NSNumber(value: true)] as [Any], "[true,false,true]"),
        Sample("numbers", [1, 1.5, UInt64.max, Int8(-1), NSNumber(value: 1)] as [Any], "[1,1.5,18446744073709551615,-1,1]"),
        Sample("Decimal", [Decimal(string: "12.5") as Any], "[12.5]"),
        Sample("Optionals", [Int?.some(1), nil], "[1,null]"),
        Sample("text", ["\u{0}\n\"\\é😀"], #"["\u0000\n\"\\é😀"]"#),
        Sample("AnyHashable for keys", [AnyHashable("a"): 1], #"{"a":1}"#),
    ]

    @Test("valid objects are encoded", arguments: objects)
    func encodesObjects(_ sample: Sample<String>) throws {
        #expect(try JSONEncoding.default.encode(request(), withJSONObject: sample.value()).bodyText == sample.expected)
    }

    private static let invalid: [Sample<Void>] = [
        Sample("Date", Date()), Sample("Data", Data([1])), Sample("URL", URL(string: "http://a/") as Any), Sample("UUID", UUID()),
        Sample("struct", Point()), Sample("closure", { 1 }), Sample("tuple", (1, 2)), Sample("set", Set([1])),
        Sample("NSObject", NSObject()),
        Sample("not a number", Double.nan), Sample("infinity", -Double.infinity), Sample("Float infinity", Float.infinity),
        Sample("NSNumber of no number", NSNumber(value: Double.nan)), Sample("Decimal that is no number", Decimal.nan),
        Sample("NSDecimalNumber that is no number", NSDecimalNumber.notANumber), Sample("numbers for keys", [1: 2]),
        Sample("NSDictionary with numbers for keys", NSDictionary(objects: [1], forKeys: [NSNumber(value: 1)])),
        Sample("600 levels", nested(600)), Sample("ten thousand levels", nested(10_000)),
    ]

    @Test("a value that JSON can't represent is an error, at any depth", arguments: invalid)
    func refusesInvalid(_ sample: Sample<Void>) throws {
        let value = sample.value()
        for object in [["a": value], ["a": ["b", ["c": value]] as [Any]], [value]] as [Any] {
            for encoding in [JSONEncoding.default, .prettyPrinted, JSONEncoding(options: .fragmentsAllowed)] {
                let error = #expect(throws: CurlewError.self) { try encoding.encode(request(), withJSONObject: object) }
                #expect(error?.jsonEncodingError != nil)
            }
        }
        let error = #expect(throws: CurlewError.self) { try JSONEncoding.default.encode(request(), with: ["a": value]) }
        #expect(error?.jsonEncodingError != nil)
    }

    @Test("the error names the path and the type, not the value")
    func errorNamesPlace() throws {
        let parameters: Parameters = ["list": [1, ["when": Date(timeIntervalSince1970: 0)]] as [Any]]
        let error = #expect(throws: CurlewError.self) { try JSONEncoding.default.encode(request(), with: parameters) }
        let text = try #require(error).description
        #expect(text.contains(#"The value at ["list"][1]["when"] is a Date"#))
        #expect(!text.contains("1970"))
    }

    private static let fragments: [Sample<String?>] = [
        Sample("String", "a", #""a""#), Sample("Int", 1, "1"), Sample("true", true, "true"), Sample("NSNull", NSNull(), "null"),
        Sample("Date", Date(), nil), Sample("not a number", Double.nan, nil), Sample("struct", Point(), nil),
    ]

    @Test("a fragment is an error, unless it is allowed and valid", arguments: fragments)
    func refusesFragments(_ sample: Sample<String?>) throws {
        let error = #expect(throws: CurlewError.self) { try JSONEncoding.default.encode(request(), withJSONObject: sample.value()) }
        #expect(error?.jsonEncodingError != nil)

        let encoding = JSONEncoding(options: .fragmentsAllowed)
        guard let expected = sample.expected else {
            #expect(throws: CurlewError.self) { try encoding.encode(request(), withJSONObject: sample.value()) }
            return
        }
        #expect(try encoding.encode(request(), withJSONObject: sample.value()).bodyText == expected)
    }

    @Test("512 levels are encoded, one more is an error")
    func depth() throws {
        #expect(try JSONEncoding.default.encode(request(), withJSONObject: nested(512)).httpBody?.count == 1025)
        #expect(throws: CurlewError.self) { try JSONEncoding.default.encode(request(), withJSONObject: nested(513)) }
    }

    @Test("errors of the convertible are rethrown unchanged")
    func convertibleThrows() {
        #expect(throws: NoRequest.Failure()) { try JSONEncoding.default.encode(NoRequest(), with: ["a": 1]) }
    }
}
