// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct FieldParserTests {
    @Test(arguments: [
        ("a, b ,\t c", ["a", "b", "c"]), ("", []), (" ,, ", []), ("a,,b,", ["a", "b"]), ("\"a,b\", c", ["\"a,b\"", "c"]),
        (#""a\",b", c"#, [#""a\",b""#, "c"]), (#"a\",b", c"#, [#"a\",b""#, "c"]), ("\"open, b", ["\"open, b"]), (#"""#, [#"""#]),
        (#""\"#, [#""\"#]),
        // A mark does not hide the delimiter before it.
        ("a,\u{301}b", ["a", "\u{301}b"]), ("\"\u{301},\"\u{200D},c", ["\"\u{301},\"\u{200D}", "c"]),
    ])
    func `members are separated outside of quotes`(value: String, members: [String]) {
        #expect(FieldParser.members(of: value).map(String.init) == members)
        #expect(FieldParser.members(of: value.replacingScalars(",", with: ";")[...], separator: ";").count == members.count)
    }

    @Test(arguments: [
        (#""a b" c"#, "a b", " c"), (#""""#, "", ""), (#""\"\\\é""#, #""\é"#, ""), ("\"\u{301}\"\u{301}", "\u{301}", "\u{301}"),
    ])
    func `a quoted string has no escapes in its content`(value: String, content: String, rest: String) {
        var parser = FieldParser(value)
        #expect(parser.takeQuotedString() == content && parser.rest.elementsEqual(rest.utf8))
    }

    @Test(arguments: [("\"open", "open"), (#""open\"#, "open"), (#""a\"b"#, "a\"b"), ("\"", "")])
    func `an open quoted string is none, or extends to the end`(value: String, content: String) {
        var (strict, loose) = (FieldParser(value), FieldParser(value))
        #expect(strict.takeQuotedString() == nil)
        #expect(loose.takeQuotedString(mayBeOpen: true) == content && loose.isAtEnd)
        var other = FieldParser("a\"b\"")
        #expect(other.takeQuotedString(mayBeOpen: true) == nil)
    }

    @Test(
        arguments: [
            ("a", "a", nil), ("a = b ;", "a", "b"), ("a=\"b c\"", "a", "b c"), ("a=\"\"", "a", ""), ("a b", "a", nil), ("a;b", "a", nil),
        ] as [(String, String, String?)])
    func `a parameter has an argument or none`(text: String, name: String, argument: String?) {
        var parser = FieldParser(text)
        let parameter = parser.takeParameter()
        #expect(parameter?.name == name[...] && parameter?.argument == argument)
    }

    @Test(arguments: ["", "=b", "a=", "a=;", "a=\"b", "ä=b", "\"a\"=b", " a"])
    func `a parameter that is malformed is none`(text: String) {
        var parser = FieldParser(text)
        #expect(parser.takeParameter() == nil)
    }

    @Test(
        arguments: [
            ("a b = c d ; e", "a b", "c d"), ("=c", "", "c"), ("ä=ö", "ä", "ö"), ("a=\"b;c", "a", "b;c"), ("a=", "a", ""),
            ("a ;", "a", nil),
        ] as [(String, String, String?)])
    func `a loose parameter may have any characters`(text: String, name: String, argument: String?) {
        var parser = FieldParser(text)
        let parameter = parser.takeLooseParameter { $0 == UInt8(ascii: ";") }
        #expect(parameter.name == name[...] && parameter.argument == argument)
    }

    @Test(
        arguments: [
            ("a", "a", nil), ("a=b", "a", "b"), ("a=\"b\"", "a", "b"), ("a =b", "a ", "b"), ("a= \"b\"", "a", " \"b\""),
            ("a=\"b\"c", "a", "\"b\"c"), ("a=b=c", "a", "b=c"), (#"a="\"b""#, "a", "\"b"), ("a=\"", "a", "\""),
        ] as [(String, String, String?)])
    func `whitespace around the equals sign of a pair is part of it`(member: String, name: String, argument: String?) {
        let pair = FieldParser.pair(member[...])
        #expect(pair.name == name[...] && pair.argument == argument)
    }

    @Test(arguments: [
        ("text/plain; charset=utf-8", ["charset": "utf-8"]), ("a;b;c=;d = \"e;f\" x; D=g", ["c": "", "d": "e;f"]), ("a", [:]),
        ("a;b=\"c\u{301}\"\u{301};d=e", ["b": "c\u{301}", "d": "e"]),
    ])
    func `the first parameter of each name counts`(value: String, parameters: [String: String]) {
        #expect(value.fieldParameters == parameters)
    }

    @Test(arguments: [
        ("text/plain; charset=utf-8", "text/plain"), (" Text/HTML ;a=\"b;c\"", "Text/HTML"), ("text / *", "text/*"), (";a", ""), ("", ""),
    ])
    func `a media type has neither parameters nor white space`(value: String, type: String) {
        #expect(value.mediaType == type && value[...].mediaType == type)
    }

    @Test func `blanks are spaces and tabs`() {
        #expect("\t a b \t".trimmingBlanks == "a b" && " \t".trimmingBlanks.isEmpty && "\u{A0}".trimmingBlanks == "\u{A0}")
        let headers: HTTPHeaders = ["Via": "a, b", "via": "c", "x": "d"]
        #expect(headers.members(of: "Via") == ["a", "b", "c"])
    }
}
