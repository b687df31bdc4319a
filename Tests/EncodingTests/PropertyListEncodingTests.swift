// SPDX-License-Identifier: Apache-2.0

import CurlewEncoding
import CurlewHTTP
import Testing

@Suite struct PropertyListEncodingTests {
    private struct Point {
        let x = 1
    }

    private func decode(_ request: URLRequest) throws -> (list: Parameters, format: PropertyListSerialization.PropertyListFormat) {
        var format = PropertyListSerialization.PropertyListFormat.openStep
        let list = try PropertyListSerialization.propertyList(from: #require(request.httpBody), format: &format)
        return (try #require(list as? Parameters), format)
    }

    @Test("parameters become the body, with a content type, in the encoding's format")
    func encodesParameters() throws {
        let parameters: Parameters = [
            "s": "é & <", "i": Int.min, "u": UInt64.max, "d": 1.5, "t": true, "f": NSNumber(value: false), "data": Data([1, 2]),
            "date": Date(timeIntervalSince1970: 0), "a": [1, "b"] as [Any], "o": ["k": Int?.some(1) as Any],
        ]
        for encoding in [PropertyListEncoding.default, .xml, .binary] {
            let encoded = try encoding.encode(request("https://example.org/", .post), with: parameters)
            #expect(encoded.value(forHTTPHeaderField: "Content-Type") == "application/x-plist")
            let (list, format) = try decode(encoded)
            #expect(format == encoding.format)
            #expect(list["s"] as? String == "é & <")
            #expect(list["i"] as? Int == .min)
            #expect((list["u"] as? NSNumber)?.uint64Value == .max)
            #expect(list["d"] as? Double == 1.5)
            #expect(list["t"] as? Bool == true)
            #expect(list["f"] as? Bool == false)
            #expect(list["data"] as? Data == Data([1, 2]))
            #expect(list["date"] as? Date == Date(timeIntervalSince1970: 0))
            #expect((list["a"] as? [Any])?.last as? String == "b")
            #expect((list["o"] as? [String: Int]) == ["k": 1])
        }
    }

    @Test("the named encodings have their formats")
    func namedEncodings() {
        #expect(PropertyListEncoding.default.format == .xml)
        #expect(PropertyListEncoding.xml.format == .xml)
        #expect(PropertyListEncoding.binary.format == .binary)
        #expect(PropertyListEncoding().options == 0)
    }

    @Test("nil leaves the request unchanged, empty parameters are an empty dictionary")
    func nilAndEmpty() throws {
        let untouched = try PropertyListEncoding.default.encode(request(), with: nil)
        #expect(untouched.httpBody == nil)
        #expect(untouched.value(forHTTPHeaderField: "Content-Type") == nil)
        #expect(try decode(PropertyListEncoding.default.encode(request(), with: [:])).list.isEmpty)
    }

    @Test("an existing content type is kept")
    func contentTypeStays() throws {
        let encoded = try PropertyListEncoding.binary.encode(
            request(headers: ["Content-Type": "application/x-apple-binary-plist"]), with: [:])
        #expect(encoded.value(forHTTPHeaderField: "Content-Type") == "application/x-apple-binary-plist")
    }

    private static let invalid: [Sample<Void>] = [
        Sample("NSNull", NSNull()), Sample("nil", Int?.none as Any), Sample("URL", URL(string: "http://a/") as Any), Sample("UUID", UUID()),
        Sample("struct", Point()), Sample("closure", { 1 }), Sample("tuple", (1, 2)), Sample("set", Set([1])),
        Sample("NSObject", NSObject()),
        Sample("NSError", NSError(domain: "d", code: 1)), Sample("numbers for keys", [1: 2]),
        Sample("NSDictionary with numbers for keys", NSDictionary(objects: [1], forKeys: [NSNumber(value: 1)])),
        Sample("date that is no number", Date(timeIntervalSince1970: .nan)), Sample("endless date", Date(timeIntervalSince1970: .infinity)),
        Sample("600 levels", nested(600)), Sample("ten thousand levels", nested(10_000)),
    ]

    @Test("a value that a property list can't represent is an error, at any depth", arguments: invalid)
    func refusesInvalid(_ sample: Sample<Void>) throws {
        let value = sample.value()
        for parameters in [["a": value], ["a": [1, ["b": value]] as [Any]]] as [Parameters] {
            for encoding in [PropertyListEncoding.xml, .binary] {
                let error = #expect(throws: CurlewError.self) { try encoding.encode(request(), with: parameters) }
                #expect(error?.propertyListEncodingError != nil)
            }
        }
    }

    private static let invalidInXML: [Sample<Void>] = [
        Sample("zero", "\u{0}"), Sample("escape", "a\u{1B}b"), Sample("no character", "\u{FFFE}"), Sample("key", ["\u{1}": 1]),
        Sample("year 0", Date(timeIntervalSince1970: -62_135_596_801)), Sample("year 10000", Date(timeIntervalSince1970: 253_402_300_800)),
    ]

    @Test("a value that XML can't represent is an error in XML only", arguments: invalidInXML)
    func refusesInvalidInXML(_ sample: Sample<Void>) throws {
        let error = #expect(throws: CurlewError.self) { try PropertyListEncoding.xml.encode(request(), with: ["a": sample.value()]) }
        #expect(error?.propertyListEncodingError != nil)
        #expect(try PropertyListEncoding.binary.encode(request(), with: ["a": sample.value()]).httpBody?.isEmpty == false)
    }

    @Test("line breaks, tabs, and the first and last date of XML are valid")
    func limitsOfXML() throws {
        let dates = [Date(timeIntervalSince1970: -62_135_596_800), Date(timeIntervalSince1970: 253_402_300_799)]
        let encoded = try PropertyListEncoding.xml.encode(request(), with: ["s": "a\tb\nc", "d": dates])
        let list = try decode(encoded).list
        #expect(list["s"] as? String == "a\tb\nc")
        #expect(encoded.bodyText?.contains("9999-12-31T23:59:59Z") == true)
    }

    @Test("the format openStep is an error, not a trap")
    func refusesOpenStep() throws {
        let error = #expect(throws: CurlewError.self) { try PropertyListEncoding(format: .openStep).encode(request(), with: ["a": 1]) }
        #expect(error?.propertyListEncodingError != nil)
    }

    @Test("errors of the convertible are rethrown unchanged")
    func convertibleThrows() {
        #expect(throws: NoRequest.Failure()) { try PropertyListEncoding.default.encode(NoRequest(), with: ["a": 1]) }
    }
}
