// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Testing

@Suite struct URLEncodedFormEncoderTests {
    private struct Bird: Encodable {
        var name = "curlew"
        var age = 3
        var weight = 0.5
        var isWading = true
        var tags = ["long", "beak"]
        var nest = Nest()
        var mate: String?
    }

    private struct Nest: Encodable {
        var eggs = 4
        var place = "moor"
    }

    private struct Box<Value: Encodable>: Encodable {
        var key: Value
    }

    private func text(_ value: some Encodable, _ encoder: URLEncodedFormEncoder = URLEncodedFormEncoder()) throws -> String {
        try encoder.encode(value)
    }

    @Test("a value becomes pairs, sorted by key at every depth")
    func defaults() throws {
        let expected = "age=3&isWading=1&name=curlew&nest%5Beggs%5D=4&nest%5Bplace%5D=moor&tags%5B%5D=long&tags%5B%5D=beak&weight=0.5"
        #expect(try text(Bird()) == expected)
        let data: Data = try URLEncodedFormEncoder().encode(Bird())
        #expect(data == Data(expected.utf8))
    }

    @Test("without sorting, pairs are in the order of encoding")
    func order() throws {
        let encoder = URLEncodedFormEncoder(alphabetizeKeyValuePairs: false)
        #expect(
            try text(Bird(), encoder)
                == "name=curlew&age=3&weight=0.5&isWading=1&tags%5B%5D=long&tags%5B%5D=beak&nest%5Beggs%5D=4&nest%5Bplace%5D=moor")
    }

    @Test("dictionaries are sorted, at every depth")
    func dictionaries() throws {
        let inner = Dictionary(uniqueKeysWithValues: "hgfedcba".map { (String($0), 1) })
        let expected = "abcdefgh".map { "key%5B\($0)%5D=1" }.joined(separator: "&")
        for _ in 0..<20 { #expect(try text(["key": inner]) == expected) }
        #expect(try text([String: Int]()) == "")
        #expect(try text([2: "b", 1: "a"]) == "1=a&2=b")
    }

    @Test(
        "arrays",
        arguments: [
            (URLEncodedFormEncoder.ArrayEncoding.brackets, "key%5B%5D=1&key%5B%5D=2"), (.noBrackets, "key=1&key=2"),
            (.indexInBrackets, "key%5B0%5D=1&key%5B1%5D=2"), (.custom { "\($0).\($1) &" }, "key.0%20%26=1&key.1%20%26=2"),
        ])
    func arrays(_ encoding: URLEncodedFormEncoder.ArrayEncoding, _ expected: String) throws {
        #expect(try text(Box(key: [1, 2]), URLEncodedFormEncoder(arrayEncoding: encoding)) == expected)
    }

    @Test("arrays in arrays, of structures, and empty ones")
    func nestedArrays() throws {
        #expect(try text(Box(key: [[1], [2]])) == "key%5B%5D%5B%5D=1&key%5B%5D%5B%5D=2")
        #expect(
            try text(Box(key: [Nest()]), URLEncodedFormEncoder(arrayEncoding: .indexInBrackets))
                == "key%5B0%5D%5Beggs%5D=4&key%5B0%5D%5Bplace%5D=moor")
        #expect(try text(Box(key: [Int]())) == "")
    }

    @Test("Booleans") func booleans() throws {
        #expect(try text(Box(key: [true, false])) == "key%5B%5D=1&key%5B%5D=0")
        #expect(try text(Box(key: [true, false]), URLEncodedFormEncoder(boolEncoding: .literal)) == "key%5B%5D=true&key%5B%5D=false")
    }

    @Test("numbers are decimal, whole numbers without a fraction")
    func numbers() throws {
        #expect(try text(Box(key: 1.0)) == "key=1")
        #expect(try text(Box(key: Float(2.5))) == "key=2.5")
        #expect(try text(Box(key: Int8.min)) == "key=-128")
        #expect(try text(Box(key: UInt64.max)) == "key=18446744073709551615")
        #expect(try text(Box(key: Decimal(string: "1.10"))) == "key=1.1")
        #expect(try text(Box(key: Double.infinity)) == "key=inf")
    }

    @Test("data") func data() throws {
        let value = Box(key: Data([0xFB, 0xFF]))
        #expect(try text(value) == "key=%2B/8%3D")
        #expect(try text(value, URLEncodedFormEncoder(dataEncoding: .deferredToData)) == "key%5B%5D=251&key%5B%5D=255")
        #expect(try text(value, URLEncodedFormEncoder(dataEncoding: .custom { "\($0.count) bytes" })) == "key=2%20bytes")
    }

    @Test("dates") func dates() throws {
        let value = Box(key: Date(timeIntervalSince1970: 1.5))
        func text(_ encoding: URLEncodedFormEncoder.DateEncoding) throws -> String {
            try self.text(value, URLEncodedFormEncoder(dateEncoding: encoding))
        }
        #expect(try text(.deferredToDate) == "key=-978307198.5")
        #expect(try text(.secondsSince1970) == "key=1.5")
        #expect(try text(.millisecondsSince1970) == "key=1500")
        #expect(try text(.iso8601) == "key=1970-01-01T00%3A00%3A01Z")
        #expect(try text(.custom { "\(Int($0.timeIntervalSince1970))" }) == "key=1")
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "dd.MM.yyyy"
        #expect(try text(.formatted(formatter)) == "key=01.01.1970")
    }

    @Test("a date without a textual form is an error", arguments: [Double.infinity, .nan, 1e300, -1e300])
    func impossibleDates(_ time: Double) throws {
        let value = Box(key: Date(timeIntervalSince1970: time))
        #expect(throws: EncodingError.self) { try text(value, URLEncodedFormEncoder(dateEncoding: .iso8601)) }
        #expect(throws: EncodingError.self) { try text(value, URLEncodedFormEncoder(dateEncoding: .formatted(DateFormatter()))) }
        _ = try text(value, URLEncodedFormEncoder(dateEncoding: .secondsSince1970))
    }

    @Test(
        "keys",
        arguments: [
            (URLEncodedFormEncoder.KeyEncoding.useDefaultKeys, "myURLProperty"), (.convertToSnakeCase, "my_url_property"),
            (.convertToKebabCase, "my-url-property"), (.capitalized, "MyURLProperty"), (.uppercased, "MYURLPROPERTY"),
            (.lowercased, "myurlproperty"), (.custom { "<\($0)>" }, "%3CmyURLProperty%3E"),
        ])
    func keys(_ encoding: URLEncodedFormEncoder.KeyEncoding, _ expected: String) throws {
        #expect(try text(["myURLProperty": 1], URLEncodedFormEncoder(keyEncoding: encoding)) == "\(expected)=1")
    }

    @Test(
        "words in keys",
        arguments: [
            ("oneTwoThree", "one_two_three"), ("a", "a"), ("A", "a"), ("ID", "id"), ("userID", "user_id"),
            ("version2Beta", "version2_beta"),
            ("already_there", "already_there"), ("_private", "_private"), ("", ""),
        ])
    func words(_ key: String, _ expected: String) throws {
        #expect(try text([key: 1], URLEncodedFormEncoder(keyEncoding: .convertToSnakeCase)) == "\(expected)=1")
    }

    @Test("nested keys") func keyPaths() throws {
        let value = Box(key: Box(key: Box(key: 1)))
        #expect(try text(value) == "key%5Bkey%5D%5Bkey%5D=1")
        #expect(try text(value, URLEncodedFormEncoder(keyPathEncoding: .dots)) == "key.key.key=1")
        #expect(try text(value, URLEncodedFormEncoder(keyPathEncoding: .init { "->\($0)" })) == "key-%3Ekey-%3Ekey=1")
    }

    private struct Optionals: Encodable {
        var bool: Bool?
        var date: Date?
        var double: Double?
        var float: Float?
        var int: Int?
        var int8: Int8?
        var int16: Int16?
        var int32: Int32?
        var int64: Int64?
        var nest: Nest?
        var string: String?
        var uint: UInt?
        var uint8: UInt8?
        var uint16: UInt16?
        var uint32: UInt32?
        var uint64: UInt64?
    }

    @Test("nil, of every type") func nils() throws {
        let names = [
            "bool", "date", "double", "float", "int", "int16", "int32", "int64", "int8", "nest", "string", "uint", "uint16", "uint32",
            "uint64",
            "uint8",
        ]
        #expect(try text(Optionals()) == "")
        #expect(try text(Optionals(), URLEncodedFormEncoder(nilEncoding: .null)) == names.map { "\($0)=null" }.joined(separator: "&"))
        #expect(try text(Optionals(), URLEncodedFormEncoder(nilEncoding: .dropValue)) == names.map { "\($0)=" }.joined(separator: "&"))
        let custom = URLEncodedFormEncoder(nilEncoding: .init { "a b" })
        #expect(try text(["key": Int?.none], custom) == "key=a%20b")
        #expect(try text(Box(key: [1, nil, 2]), custom) == "key%5B%5D=1&key%5B%5D=a%20b&key%5B%5D=2")
        #expect(try text(Box(key: [1, nil, 2])) == "key%5B%5D=1&key%5B%5D=2")
        #expect(try text(Box(key: Int?.none), URLEncodedFormEncoder(nilEncoding: .null)) == "key=null")
    }

    @Test("spaces") func spaces() throws {
        let value = ["a b": "c d+e%20f"]
        #expect(try text(value) == "a%20b=c%20d%2Be%2520f")
        #expect(try text(value, URLEncodedFormEncoder(spaceEncoding: .plusReplaced)) == "a+b=c+d%2Be%2520f")
    }

    @Test("the same characters are escaped as by URLEncoding") func escaping() throws {
        let all = String(String.UnicodeScalarView((0..<0x180).compactMap { Unicode.Scalar($0) }))
        let escaped = URLEncoding.default.escape(all)
        #expect(try text([all: all]) == "\(escaped)=\(escaped)")
    }

    @Test("URLs and enumerations are encoded as text") func texts() throws {
        enum Kind: String, Encodable { case wader }
        #expect(try text(["key": URL(string: "https://a.b/?c")]) == "key=https%3A//a.b/?c")
        #expect(try text(["key": Kind.wader]) == "key=wader")
    }

    private class Animal: Encodable {
        let legs = 2
    }

    private final class Curlew: Animal {
        let beak = "bent"

        enum CodingKeys: String, CodingKey { case beak, feet, parts }

        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(beak, forKey: .beak)
            try super.encode(to: container.superEncoder())
            var feet = container.nestedContainer(keyedBy: CodingKeys.self, forKey: .feet)
            try feet.encode(2, forKey: .beak)
            var parts = container.nestedUnkeyedContainer(forKey: .parts)
            try parts.encode("a")
            try parts.encodeNil()
            var inner = parts.nestedUnkeyedContainer()
            try inner.encode(1)
            var last = parts.nestedContainer(keyedBy: CodingKeys.self)
            try last.encode("x", forKey: .beak)
            #expect(parts.count == 4)
        }
    }

    @Test("nested containers and superclasses") func containers() throws {
        let encoder = URLEncodedFormEncoder(arrayEncoding: .indexInBrackets, keyPathEncoding: .dots)
        #expect(
            try text(Curlew(), encoder)
                == "beak=bent&feet.beak=2&parts%5B0%5D=a&parts%5B2%5D%5B0%5D=1&parts%5B3%5D.beak=x&super.legs=2")
    }

    private struct Twice: Encodable {
        enum CodingKeys: CodingKey { case key }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(1, forKey: .key)
            var again = encoder.container(keyedBy: CodingKeys.self)
            try again.encode(2, forKey: .key)
        }
    }

    @Test("a repeated key has its last value") func twice() throws {
        #expect(try text(Twice()) == "key=2")
    }

    private final class Ring: Encodable {
        var next: Ring?
    }

    @Test("a top level without keys is an error, and so is infinite nesting")
    func refusals() throws {
        #expect(throws: EncodingError.self) { try text([1, 2]) }
        #expect(throws: EncodingError.self) { try text("text") }
        #expect(throws: EncodingError.self) { try text(Int?.none) }
        let ring = Ring()
        ring.next = ring
        defer { ring.next = nil }
        #expect(throws: EncodingError.self) { try text(ring) }
    }

    private struct Refusing: Encodable {
        struct Refusal: Error {}
        func encode(to encoder: any Encoder) throws { throw Refusal() }
    }

    @Test("errors of values are rethrown") func thrown() {
        #expect(throws: Refusing.Refusal.self) { try text(["key": Refusing()]) }
    }
}
