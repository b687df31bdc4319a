// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewHTTP

@Suite struct EncodedTextTests {
    private static func read(_ bytes: [UInt8], _ contentType: String?) -> EncodedText {
        EncodedText(Data(bytes), contentType: contentType)
    }

    // MARK: What names the encoding

    private static let named: [(type: String?, bytes: [UInt8], text: String?)] = [
        // The charset, in any form.
        ("text/plain; charset=utf-8", [0xC3, 0xA9], "é"), ("text/plain;CharSet=\"UTF8\"", [0xC3, 0xA9], "é"),
        ("text/plain ; charset = 'iso-8859-1' ; x=y", [0xE9], "é"), ("text/plain; x=\"; charset=gbk\"; charset=latin1", [0xE9], "é"),
        ("text/plain; charset=latin1; charset=utf-8", [0xE9], "é"), ("text/plain; charset=ISO_8859-1:1987", [0xE9], "é"),
        ("application/json; charset=iso-8859-1", [0xE9], "é"), ("application/octet-stream; charset=gbk", [0xC4, 0xE3], "你"),
        // A byte order mark is no part of the text, and has precedence.
        ("text/plain; charset=iso-8859-1", [0xEF, 0xBB, 0xBF, 0xC3, 0xA9], "é"), ("text/plain; charset=gbk", [0xFE, 0xFF, 0, 0xE9], "é"),
        ("text/plain; charset=utf-8", [0xFF, 0xFE, 0xE9, 0x00], "é"), (nil, [0xFF, 0xFE, 0, 0, 0xE9, 0, 0, 0], "é"),
        ("application/json", [0, 0, 0xFE, 0xFF, 0, 0, 0, 0xE9], "é"), (nil, [0xEF, 0xBB, 0xBF], ""), (nil, [0xEF, 0xBB, 0xBF, 0xE9], nil),
        ("text/plain; charset=unheard-of", [0xEF, 0xBB, 0xBF, 0x41], "A"),
        // Otherwise it is UTF-8.
        (nil, [0xC3, 0xA9], "é"), ("application/problem+json", [0xC3, 0xA9], "é"), ("text/plain", [0xC3, 0xA9], "é"),
        ("text/plain; charset", [0xC3, 0xA9], "é"), ("text/plain; charset=", [0xC3, 0xA9], "é"),
        ("text/plain; charset=\"\"", [0xC3, 0xA9], "é"), ("text/plain", [0xE9], nil), (nil, [], ""),
        // Bytes that are invalid in the encoding.
        ("text/plain; charset=utf-8", [0xE9], nil), ("text/plain; charset=us-ascii", [0xE9], nil),
        ("text/plain; charset=utf-16le", [0x00, 0xD8], nil),
    ]

    @Test(arguments: named.indices)
    func `mark, charset or UTF-8`(_ row: Int) {
        let (type, bytes, text) = Self.named[row]
        let read = Self.read(bytes, type)
        #expect(read.text == text)
    }

    private static let declared: [(declaration: String, type: String?, encoding: String.Encoding)] = [
        ("<?xml version='1.0' encoding='ISO-8859-1'?>", "application/xml", .isoLatin1),
        ("<?xml version=\"1.0\"\n\tencoding = \"windows-1252\" standalone=\"yes\"?>", "image/svg+xml", .windowsCP1252),
        ("<?xml version='1.0' encoding='ISO-8859-1'?>", nil, .isoLatin1),
        ("<?xml version='1.0' encoding='ISO-8859-1'?>", "text/xml; charset=utf-8", .utf8),
        ("<?xml version='1.0'?>", "text/xml", .utf8), ("<?xml version='1.0' encoding=latin1?>", "text/xml", .utf8),
        ("<?xml version='1.0' encoding='latin1'", "text/xml", .utf8), (" <?xml encoding='latin1'?>", "text/xml", .utf8),
        // Of one byte a character, since it could be read.
        ("<?xml version='1.0' encoding='UTF-16'?>", "text/xml", .utf8),
    ]

    @Test(arguments: declared.indices)
    func `the declaration of an XML document counts without a charset`(_ row: Int) {
        let (declaration, type, encoding) = Self.declared[row]
        let text = declaration + "<é/>"
        let read = EncodedText(text.data(using: encoding) ?? Data(), contentType: type)
        #expect(read.encoding == encoding && read.text == text && read.unknownCharset == nil)
    }

    @Test(arguments: [
        ("none", "none"), ("UTF-8//TRANSLIT", "UTF-8//TRANSLIT"), ("utf-7", "utf-7"), ("gbk\u{301}", "gbk\u{301}"), ("IBM037", "IBM037"),
        ("\"g b k\"", "g b k"), (String(repeating: "x", count: 41), String(repeating: "x", count: 40)), ("iso-2022-cn", "iso-2022-cn"),
    ])
    func `an unknown charset is named`(_ charset: String, _ name: String) {
        let read = Self.read([0xE9], "text/plain; charset=\(charset)")
        #expect(read.unknownCharset == name && read.encoding == .utf8 && read.latin1Text == nil)
        if charset == name {
            let document = "<?xml version='1.0' encoding='\(charset)'?>"
            #expect(EncodedText(Data(document.utf8), contentType: nil).unknownCharset == name.lowercased())
        }
    }

    @Test(
        "ISO 8859-1 is offered where nothing names an encoding",
        arguments: [
            (nil, true), ("text/plain", true), ("text/html", true), ("text/css", true), ("text/javascript", true),
            ("application/octet-stream", true), ("no type", true), ("application/json", false), ("Application/JSON; x=y", false),
            ("text/json", false), ("application/problem+json", false), ("application/x-ndjson", false), ("application/json-seq", false),
            ("text/event-stream", false), ("text/xml", false), ("application/atom+XML", false), ("text/plain; charset=utf-8", false),
        ] as [(String?, Bool)])
    func latin1(_ type: String?, _ isOffered: Bool) {
        let read = Self.read([0xE9], type)
        #expect(read.text == nil && read.latin1Text == (isOffered ? "é" : nil))
        #expect(Self.read(Array("<?xml version='1.0'?>".utf8) + [0xE9], type).latin1Text == nil)
        #expect(Self.read([0xEF, 0xBB, 0xBF, 0xE9], type).latin1Text == nil)
    }

    @Test func `a known encoding gives way to a mark only`() {
        #expect(EncodedText(Data([0xC4, 0xE3]), encoding: .init(rawValue: 0x8000_0631)).text == "你")
        #expect(EncodedText(Data([0xFF, 0xFE, 0xE9, 0]), encoding: .isoLatin1).text == "é")
        #expect(EncodedText(Data([0xE9]), encoding: .utf8).text == nil)
        #expect(EncodedText(Data([0xE9]), encoding: .utf8).latin1Text == nil)
    }

    // MARK: Charsets

    private static let japanese: [UInt8] = [0x1B, 0x24, 0x42, 0x46, 0x7C, 0x4B, 0x5C, 0x1B, 0x28, 0x42]

    private static let charsets: [(names: [String], bytes: [UInt8], text: String?)] = [
        (["gbk", "GB2312", "cp936", "GB18030"], [0x61, 0xC4, 0xE3, 0xBA, 0xC3], "a你好"),
        (["gb18030"], [0x84, 0x31, 0xA4, 0x37], "\u{FFFD}"),
        (["Big5", "big5-hkscs"], [0xA7, 0x41, 0xA6, 0x6E], "你好"),
        // Two scalars of one sequence: the second is written by the last call.
        (["big5-hkscs"], [0x88, 0x62], "\u{CA}\u{304}"),
        (["EUC-KR", "ks_c_5601-1987"], [0xC7, 0xD1], "한"), (["Shift_JIS", "shift-jis", "sjis", "Windows-31J"], [0x93, 0xFA, 0x5C], "日\\"),
        (["EUC-JP"], [0xC6, 0xFC, 0xCB, 0xDC], "日本"), (["ISO-2022-JP", "csISO2022JP"], japanese, "日本"),
        (["windows-1250", "cp1250"], [0xB9], "ą"), (["windows-1251"], [0xC0], "А"), (["windows-1252"], [0x80], "€"),
        (["windows-1253"], [0xC1], "Α"), (["windows-1254"], [0xDE], "Ş"), (["windows-1255"], [0xF9], "ש"), (["windows-1256"], [0xC7], "ا"),
        (["windows-1257"], [0xC0], "Ą"), (["windows-1258"], [0xD0], "Đ"), (["windows-874", "TIS-620"], [0xA1], "ก"),
        (["iso-8859-2", "latin2"], [0xB1], "ą"), (["iso-8859-3"], [0xA1], "Ħ"), (["iso-8859-4"], [0xA1], "Ą"),
        (["iso-8859-5", "ISO_8859-5:1988"], [0xD0], "а"), (["iso-8859-6"], [0xC7], "ا"), (["iso-8859-7", "greek"], [0xC1], "Α"),
        (["iso-8859-8", "iso-8859-8-i"], [0xF9], "ש"), (["iso-8859-9"], [0xDE], "Ş"), (["iso-8859-10"], [0xA1], "Ą"),
        (["iso-8859-13"], [0xC0], "Ą"), (["iso-8859-14"], [0xA1], "Ḃ"), (["iso-8859-15"], [0xA4], "€"), (["iso-8859-16"], [0xA4], "€"),
        (["koi8-r"], [0xC1], "а"), (["KOI8-U"], [0xA4], "є"), (["ibm866", "cp866"], [0xA0], "а"), (["macintosh"], [0x8E], "é"),
        (["x-mac-cyrillic"], [0xE0], "а"), (["utf-16", "utf-16be"], [0, 0xE9], "é"), (["utf-16le"], [0xE9, 0], "é"),
        (["utf-32", "utf-32be"], [0, 0, 0, 0xE9], "é"), (["utf-32le"], [0xE9, 0, 0, 0], "é"),
        // Invalid sequences, and incomplete ones at the end.
        (["gbk", "gb18030", "big5", "euc-kr", "euc-jp", "shift_jis"], [0x41, 0xFF, 0xFF], nil),
        (["gbk", "gb18030", "big5", "euc-kr", "euc-jp"], [0x41, 0xC4], nil), (["shift_jis"], [0x93], nil),
        (["gb18030"], [0x84, 0x31, 0xA4], nil), (["iso-2022-jp"], [0x1B, 0x24, 0x42, 0x46], nil), (["windows-1255"], [0xFF], nil),
    ]

    @Test(arguments: charsets.indices)
    func `text is decoded by its charset's name`(_ row: Int) {
        let (names, bytes, text) = Self.charsets[row]
        for name in names {
            let read = Self.read(bytes, "text/plain; charset=\(name)")
            // Scalars, since a string equals what is canonically equivalent.
            #expect(read.unknownCharset == nil && read.text.map { Array($0.unicodeScalars) } == text.map { Array($0.unicodeScalars) })
            #expect(Self.read([], "text/plain; charset=\(name)").text?.isEmpty == true)
        }
    }

    @Test(
        "all encodings of the list have a converter",
        arguments: Set(Charset.encodings.values).subtracting([.utf16, .utf16BigEndian, .utf16LittleEndian]).subtracting([
            .utf32, .utf32BigEndian, .utf32LittleEndian,
        ]))
    func converters(_ encoding: String.Encoding) {
        // In all of them, ASCII is itself.
        let text = "<a b=\"1\">0123456789</a>\n"
        #expect(String(Data(text.utf8), in: encoding) == text)
    }

    @Test("text is longer than the converter's buffer, and is cut by it anywhere", arguments: 4090...4100)
    func long(_ count: Int) {
        let bytes = Data(repeating: 0x61, count: count) + Data((0..<5000).flatMap { _ in [0xC4, 0xE3] as [UInt8] })
        let text = EncodedText(bytes, contentType: "text/plain; charset=gbk").text
        #expect(text == String(repeating: "a", count: count) + String(repeating: "你", count: 5000))
        #expect(EncodedText(bytes + [0xFF], contentType: "text/plain; charset=gbk").text == nil)
    }

    @Test func `a slice of data is decoded like its copy`() {
        let slice = Data([0x00, 0xEF, 0xBB, 0xBF, 0x41, 0x42]).dropFirst()
        #expect(EncodedText(slice, contentType: nil).text == "AB")
        #expect(EncodedText(slice, contentType: nil).text(withoutLast: 1) == "A")
        #expect(EncodedText(Data([0, 0xC4, 0xE3]).dropFirst(), contentType: "a/b; charset=gbk").text == "你")
    }
}
