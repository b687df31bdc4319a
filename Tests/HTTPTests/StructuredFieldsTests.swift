// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewHTTP

@Suite struct StructuredFieldsTests {
    private typealias Item = StructuredFields.Item

    private static func decimal(_ thousandths: Int) -> StructuredFields.BareItem {
        StructuredFields.Decimal(thousandths: thousandths).map { .decimal($0) } ?? .boolean(false)
    }

    // MARK: Items

    // Not stored: the leak sanitizer does not see the `Data` of static properties.

    /// With the text as it is serialized, if that differs.
    private static var items: [(text: String, value: StructuredFields.BareItem, canonical: String?)] {
        [
            // The examples of RFC 9651, section 3.3.
            ("42", .integer(42), nil), ("4.5", decimal(4_500), nil), ("\"hello world\"", .string("hello world"), nil),
            ("foo123/456", .token("foo123/456"), nil),
            (":cHJldGVuZCB0aGlzIGlzIGJpbmFyeSBjb250ZW50Lg==:", .bytes(Data("pretend this is binary content.".utf8)), nil),
            ("?1", .boolean(true), nil),
            ("@1659578233", .date(1_659_578_233), nil),
            ("%\"This is intended for display to %c3%bcsers.\"", .displayString("This is intended for display to üsers."), nil),
            // Numbers.
            ("0", .integer(0), nil), ("-0", .integer(0), "0"), ("-42", .integer(-42), nil), ("007", .integer(7), "7"),
            ("999999999999999", .integer(999_999_999_999_999), nil), ("-999999999999999", .integer(-999_999_999_999_999), nil),
            ("1.0", decimal(1_000), nil), ("-0.0", decimal(0), "0.0"), ("1.50", decimal(1_500), "1.5"), ("0.001", decimal(1), nil),
            ("-1.123", decimal(-1_123), nil), ("999999999999.999", decimal(999_999_999_999_999), nil),
            ("-999999999999.999", decimal(-999_999_999_999_999), nil), ("00.1", decimal(100), "0.1"),
            // Strings and tokens.
            ("\"\"", .string(""), nil), (#""a\"b\\c""#, .string(#"a"b\c"#), nil), ("\" ~\"", .string(" ~"), nil),
            ("*", .token("*"), nil), ("a!#$%&'*+-.^_`|~:/9", .token("a!#$%&'*+-.^_`|~:/9"), nil), ("A", .token("A"), nil),
            // Byte sequences, also without padding and with bits that are not zero after the last byte.
            ("::", .bytes(Data()), nil), (":aGVsbG8=:", .bytes(Data("hello".utf8)), nil),
            (":aGVsbG8:", .bytes(Data("hello".utf8)), ":aGVsbG8=:"),
            (":/+Ah:", .bytes(Data([0xFF, 0xE0, 0x21])), nil),
            // The others.
            ("?0", .boolean(false), nil), ("@0", .date(0), nil), ("@-1", .date(-1), nil), ("%\"\"", .displayString(""), nil),
            ("%\"a%25%22%0a%00%f0%9f%98%80\\\"", .displayString("a%\"\n\0😀\\"), nil),
            // Spaces around the item.
            ("  1  ", .integer(1), "1"),
        ]
    }

    @Test(arguments: items.indices)
    func `an item is parsed and serialized`(_ row: Int) throws {
        let (text, value, canonical) = Self.items[row]
        let item = try StructuredFields.item(from: text)
        #expect(item == Item(value))
        #expect(try StructuredFields.text(of: item) == canonical ?? text)
    }

    private static let invalidItems: [(text: String, reason: StructuredFields.ParsingError.Reason, offset: Int)] = [
        ("", .noItem, 0), ("  ", .noItem, 2), ("\t1", .noItem, 0), ("1\t", .textAfterItem, 1), ("(1)", .noItem, 0), ("é", .noItem, 0),
        ("1 2", .textAfterItem, 2), ("1é", .textAfterItem, 1), ("a,b", .textAfterItem, 1), ("+1", .noItem, 0), (".5", .noItem, 0),
        ("-", .noDigit, 1), ("--1", .noDigit, 1), ("- 1", .noDigit, 1), ("1.", .noDigit, 2), ("1..2", .noDigit, 2), ("-.1", .noDigit, 1),
        ("1000000000000000", .tooManyDigits, 16), ("1234567890123.1", .tooManyDigits, 13), ("1.1234", .tooManyDigits, 6),
        ("1e5", .textAfterItem, 1), ("0x1", .textAfterItem, 1), ("1.2.3", .textAfterItem, 3),
        ("\"a", .openString, 2), ("\"a\\\"", .openString, 4), ("\"a\tb\"", .invalidCharacter, 2), ("\"é\"", .invalidCharacter, 1),
        ("\"\u{7F}\"", .invalidCharacter, 1), ("\"\\n\"", .invalidEscape, 2), ("\"\\", .invalidEscape, 2), ("'a'", .noItem, 0),
        ("\"a\"\u{301}", .textAfterItem, 3), ("\"a\u{301}\"", .invalidCharacter, 2), ("a\u{301}", .textAfterItem, 1),
        (":aGVsbG8=", .invalidBytes, 0), (":aGVs bG8=:", .invalidBytes, 0), (":a:", .invalidBytes, 0), (":_-:", .invalidBytes, 0),
        (":aGVsbG8=\n:", .invalidBytes, 0), (":", .invalidBytes, 0),
        ("?", .invalidBoolean, 1), ("?2", .invalidBoolean, 1), ("?true", .invalidBoolean, 1), ("?10", .textAfterItem, 2),
        ("@", .noDigit, 1), ("@1.5", .invalidDate, 1), ("@a", .noDigit, 1), ("@1000000000000000", .tooManyDigits, 17),
        ("%", .noItem, 1), ("%a", .noItem, 1), ("%\"a", .openString, 3), ("%\"%C3%BC\"", .invalidEscape, 2), ("%\"%c\"", .invalidEscape, 2),
        ("%\"%", .invalidEscape, 2), ("%\"%é\"", .invalidEscape, 2), ("%\"é\"", .invalidCharacter, 2), ("%\"\t\"", .invalidCharacter, 2),
        ("%\"%ff\"", .invalidUTF8, 0), ("%\"%c3\"", .invalidUTF8, 0),
        ("1;", .noKey, 2), ("1;A", .noKey, 2), ("1; ", .noKey, 3), ("1;a=", .noItem, 4), ("1;a =1", .textAfterItem, 4),
        ("1;a= 1", .noItem, 4), ("1 ;a", .textAfterItem, 2), ("1;;a", .noKey, 2), ("1;\ta", .noKey, 2), ("1;a=(1)", .noItem, 4),
        ("1;1", .noKey, 2), ("1;_", .noKey, 2),
    ]

    @Test(arguments: invalidItems.indices)
    func `an invalid item is refused with the place`(_ row: Int) {
        let (text, reason, offset) = Self.invalidItems[row]
        #expect(throws: StructuredFields.ParsingError(reason: reason, offset: offset), "\(text)") {
            try StructuredFields.item(from: text)
        }
    }

    @Test func `an error says what is wrong, and where`() {
        let error = #expect(throws: StructuredFields.ParsingError.self) { try StructuredFields.list(from: "a, b c") }
        #expect(error?.description == "a comma was expected after a member, at byte 5")
        #expect(error?.localizedDescription == error?.description)
    }

    @Test func `parameters are in order, and the last value of a key counts at the place of the first`() throws {
        let item = try StructuredFields.item(from: "abc; a=1;  b=?0;c;a=\"x\";*k_-.9=@1")
        #expect(
            item == Item(.token("abc"), parameters: ["a": .string("x"), "b": .boolean(false), "c": .boolean(true), "*k_-.9": .date(1)]))
        #expect(try StructuredFields.text(of: item) == "abc;a=\"x\";b=?0;c;*k_-.9=@1")
        let long = String(repeating: "k", count: 64)
        #expect(try StructuredFields.item(from: "1;\(long)=2").parameters[long] == .integer(2))
    }

    // MARK: Lists

    /// With the text as it is serialized, if that differs.
    private static var lists: [(text: String, members: [StructuredFields.Member], canonical: String?)] {
        [
            ("", [], nil), ("   ", [], ""),
            ("sugar, tea,rum", ["sugar", "tea", "rum"].map { .item(.init(.token($0))) }, "sugar, tea, rum"),
            ("a \t,\t b \t", [.item(.init(.token("a"))), .item(.init(.token("b")))], "a, b"),
            ("()", [.innerList(.init([]))], nil), ("(  )", [.innerList(.init([]))], "()"),
            (
                "(\"foo\" \"bar\"), (\"baz\"), (  \"bat\"   \"one\" ), ()",
                [
                    .innerList(.init([.init(.string("foo")), .init(.string("bar"))])), .innerList(.init([.init(.string("baz"))])),
                    .innerList(.init([.init(.string("bat")), .init(.string("one"))])), .innerList(.init([])),
                ],
                "(\"foo\" \"bar\"), (\"baz\"), (\"bat\" \"one\"), ()"
            ),
            (
                "(\"foo\"; a=1;b=2);lvl=5, (\"bar\" \"baz\");lvl=1",
                [
                    .innerList(
                        .init([.init(.string("foo"), parameters: ["a": .integer(1), "b": .integer(2)])], parameters: ["lvl": .integer(5)])),
                    .innerList(.init([.init(.string("bar")), .init(.string("baz"))], parameters: ["lvl": .integer(1)])),
                ],
                "(\"foo\";a=1;b=2);lvl=5, (\"bar\" \"baz\");lvl=1"
            ),
        ]
    }

    @Test(arguments: lists.indices)
    func `a list is parsed and serialized`(_ row: Int) throws {
        let (text, members, canonical) = Self.lists[row]
        let list = try StructuredFields.list(from: text)
        #expect(list == members)
        #expect(try StructuredFields.text(of: list) == canonical ?? text)
    }

    private static let invalidLists: [(text: String, reason: StructuredFields.ParsingError.Reason, offset: Int)] = [
        ("a,", .trailingComma, 2), ("a, ", .trailingComma, 3), (",a", .noItem, 0), ("a,,b", .noItem, 2), ("a b", .noComma, 2),
        ("a;b=1 c", .noComma, 6), ("\ta", .noItem, 0), ("(1", .openInnerList, 2), ("(", .openInnerList, 1), ("( ", .openInnerList, 2),
        ("(1,2)", .noSpace, 2), ("(1\t2)", .noSpace, 2), ("((1))", .noItem, 1), ("(1))", .noComma, 3), ("(a\"b\")", .noSpace, 2),
        ("a=1", .noComma, 1),
    ]

    @Test(arguments: invalidLists.indices)
    func `an invalid list is refused with the place`(_ row: Int) {
        let (text, reason, offset) = Self.invalidLists[row]
        #expect(throws: StructuredFields.ParsingError(reason: reason, offset: offset), "\(text)") {
            try StructuredFields.list(from: text)
        }
    }

    // MARK: Dictionaries

    /// With the text as it is serialized, if that differs.
    private static var dictionaries: [(text: String, members: StructuredFields.Dictionary, canonical: String?)] {
        [
            ("", [:], nil),
            (
                "en=\"Applepie\", da=:w4ZibGV0w6ZydGU=:",
                ["en": .item(.init(.string("Applepie"))), "da": .item(.init(.bytes(Data("Æbletærte".utf8))))], nil
            ),
            (
                "a=?0, b, c; foo=bar",
                [
                    "a": .item(.init(.boolean(false))), "b": .item(.init(.boolean(true))),
                    "c": .item(.init(.boolean(true), parameters: ["foo": .token("bar")])),
                ], "a=?0, b, c;foo=bar"
            ),
            (
                "rating=1.5, feelings=(joy sadness)",
                [
                    "rating": .item(.init(decimal(1_500))),
                    "feelings": .innerList(.init([.init(.token("joy")), .init(.token("sadness"))])),
                ], nil
            ),
            (
                "a=(1 2), b=3, c=4;aa=bb, d=(5 6);valid",
                [
                    "a": .innerList(.init([.init(.integer(1)), .init(.integer(2))])), "b": .item(.init(.integer(3))),
                    "c": .item(.init(.integer(4), parameters: ["aa": .token("bb")])),
                    "d": .innerList(.init([.init(.integer(5)), .init(.integer(6))], parameters: ["valid": .boolean(true)])),
                ], nil
            ),
            (
                "a=1,b=2 ,\ta=3;x", ["a": .item(.init(.integer(3), parameters: ["x": .boolean(true)])), "b": .item(.init(.integer(2)))],
                "a=3;x, b=2"
            ),
            ("a=?1;b", ["a": .item(.init(.boolean(true), parameters: ["b": .boolean(true)]))], "a;b"),
        ]
    }

    @Test(arguments: dictionaries.indices)
    func `a dictionary is parsed and serialized`(_ row: Int) throws {
        let (text, members, canonical) = Self.dictionaries[row]
        let dictionary = try StructuredFields.dictionary(from: text)
        #expect(dictionary == members)
        #expect(try StructuredFields.text(of: dictionary) == canonical ?? text)
    }

    @Test(
        arguments: [
            ("A", .noKey, 0), ("1=2", .noKey, 0), ("a=", .noItem, 2), ("a= 1", .noItem, 2), ("a =1", .noComma, 2),
            ("a,", .trailingComma, 2),
            ("a=1 b=2", .noComma, 4), ("a,,b", .noKey, 2), ("a=(1", .openInnerList, 4), ("\u{301}a", .noKey, 0), ("=1", .noKey, 0),
        ] as [(String, StructuredFields.ParsingError.Reason, Int)])
    func `an invalid dictionary is refused with the place`(text: String, reason: StructuredFields.ParsingError.Reason, offset: Int) {
        #expect(throws: StructuredFields.ParsingError(reason: reason, offset: offset)) { try StructuredFields.dictionary(from: text) }
    }

    @Test func `many members and deep nesting are parsed in linear time`() throws {
        let text = (0..<50_000).map { "k\($0)=\($0)" }.joined(separator: ", ")
        #expect(try StructuredFields.dictionary(from: text).count == 50_000)
        #expect(try StructuredFields.item(from: "1;" + text.replacingOccurrences(of: ", ", with: ";")).parameters.count == 50_000)
        #expect(throws: StructuredFields.ParsingError.self) { try StructuredFields.list(from: String(repeating: "(", count: 100_000)) }
    }

    @Test func `values of a map are set by their keys`() {
        var map: StructuredFields.Parameters = ["a": .integer(1), "b": .integer(2), "a": .integer(3)]
        #expect(map.map(\.key) == ["a", "b"] && map["a"] == .integer(3) && map["c"] == nil)
        map["a"] = nil
        map["c"] = .boolean(true)
        map["d"] = nil
        #expect(map == ["b": .integer(2), "c": .boolean(true)] && map != ["c": .boolean(true), "b": .integer(2)])
    }

    // MARK: Serializing

    @Test(
        arguments: [
            (Item(.integer(1_000_000_000_000_000)), .tooManyDigits(1_000_000_000_000_000)), (Item(.date(.min)), .tooManyDigits(.min)),
            (Item(.string("é")), .invalidString("é")), (Item(.string("\n")), .invalidString("\n")), (Item(.token("")), .invalidToken("")),
            (Item(.token("1a")), .invalidToken("1a")), (Item(.token("a b")), .invalidToken("a b")), (Item(.token("é")), .invalidToken("é")),
            (Item(.boolean(true), parameters: ["A": .boolean(true)]), .invalidKey("A")),
            (Item(.integer(1), parameters: ["": .integer(1)]), .invalidKey("")),
            (Item(.integer(1), parameters: ["-a": .integer(1)]), .invalidKey("-a")),
            (Item(.integer(1), parameters: ["a": .token("\"")]), .invalidToken("\"")),
        ] as [(StructuredFields.Item, StructuredFields.SerializationError)])
    func `what no field can have is refused`(item: StructuredFields.Item, error: StructuredFields.SerializationError) {
        #expect(error.localizedDescription == error.description)
        #expect(throws: error) { try StructuredFields.text(of: item) }
        #expect(throws: error) { try StructuredFields.text(of: [.innerList(.init([item]))]) }
        #expect(throws: error) { try StructuredFields.text(of: ["a": .item(item)] as StructuredFields.Dictionary) }
    }

    @Test(
        arguments: [
            (0.0005, "0.0"), (0.0015, "0.002"), (2.0625, "2.062"), (1.1, "1.1"), (-0.5, "-0.5"), (3, "3.0"),
            (999_999_999_999.999, "999999999999.999"),
            (1e12, nil), (-1e12, nil), (.infinity, nil), (.nan, nil),
        ] as [(Double, String?)])
    func `a Double is rounded to three digits, halves to even`(value: Double, text: String?) {
        #expect(StructuredFields.Decimal(value)?.description == text)
    }

    // MARK: Random input

    @Test func `what parses is serialized to a text that parses to the same`() {
        var generator = SplitMix(state: 9_651)
        let pieces = [
            "a", "k", "*", "=", ";", ",", " ", "\t", "(", ")", "\"", "\\", "%\"", "%c3%a9", "?1", "?0", "@", "-", "1", "20", ".5", ":",
            "YQ==",
            "=a", ";b", "é", "A", "\u{301}", "\"x\"", "/",
        ]
        var parsed = 0
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 1...9, using: &generator)).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
            if let item = try? StructuredFields.item(from: text) {
                parsed += 1
                #expect((try? StructuredFields.item(from: StructuredFields.text(of: item))) == item, "\(text)")
            }
            if let list = try? StructuredFields.list(from: text) {
                parsed += 1
                #expect((try? StructuredFields.list(from: StructuredFields.text(of: list))) == list, "\(text)")
            }
            if let dictionary = try? StructuredFields.dictionary(from: text) {
                parsed += 1
                #expect((try? StructuredFields.dictionary(from: StructuredFields.text(of: dictionary))) == dictionary, "\(text)")
            }
        }
        #expect(parsed > 1_000)
    }
}
