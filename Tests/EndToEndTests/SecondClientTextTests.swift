// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// The text of bodies, beside what requests and httpx make of the same responses.
@Suite(.timeLimit(.minutes(1))) struct SecondClientTextTests {
    /// Why the text of another client differs on purpose.
    private enum Reason {
        /// Python's decoders replace what is invalid by U+FFFD, without an error.
        case reportsInvalidBytes
        /// Python decodes a charset that it does not know as UTF-8.
        case reportsUnknownCharset
        /// Python knows more charsets than the Encoding Standard: also those in which bytes of ASCII mean something else.
        case refusesUnsafeCharset
        /// A label means what the Encoding Standard says; Python does not have it, or has a smaller charset of that name.
        case followsEncodingStandard
        /// Python knows the label since 3.14; before, it decoded the text in another charset.
        case isNewToPython
        /// A byte order mark is no text, and has precedence over the charset.
        case readsMark
        /// UTF-16 and UTF-32 without a mark are big-endian (RFC 2781, section 4.3), and not as on this machine, or an error.
        case isBigEndian
        /// requests assumes ISO 8859-1 for `text/*`, as RFC 2616 did; RFC 9110 has no default.
        case assumesUTF8
        /// httpx assumes UTF-8, and replaces what is invalid.
        case triesLatin1
        /// httpx does not read the declaration of an XML document.
        case readsDeclaration
        /// requests takes the last of two charsets.
        case takesFirstCharset
    }

    private struct Row {
        let type: String?
        let bytes: [UInt8]
        /// Where the texts differ.
        let reasons: [PythonClient: Reason]

        init(_ type: String?, _ bytes: [UInt8], requests: Reason? = nil, httpx: Reason? = nil) {
            (self.type, self.bytes) = (type, bytes)
            reasons = [PythonClient.requests: requests, .httpx: httpx].compactMapValues { $0 }
        }

        init(_ type: String?, text: String, requests: Reason? = nil, httpx: Reason? = nil) {
            self.init(type, Array(text.utf8), requests: requests, httpx: httpx)
        }

        init(charset: String, _ bytes: [UInt8], both reason: Reason? = nil) {
            self.init("text/plain; charset=\(charset)", bytes, requests: reason, httpx: reason)
        }
    }

    private static let latin1Document = [UInt8]("<?xml version='1.0' encoding='ISO-8859-1'?>".utf8) + [0xE9]

    private static let forms: [Row] = [
        Row("text/plain; charset=utf-8", text: "é"), Row("text/plain;CharSet=\"UTF8\"", text: "é"),
        Row("text/plain ; charset = 'iso-8859-1' ; x=y", [0xE9]), Row("text/plain; x=\"; charset=gbk\"; charset=latin1", [0xE9]),
        Row("text/plain; charset=latin1; charset=utf-8", [0xE9], requests: .takesFirstCharset),
        Row("application/json; charset=iso-8859-1", [0xE9]), Row("application/octet-stream; charset=gbk", [0xC4, 0xE3]),
        Row("text/plain; charset=", text: "é"), Row("text/plain; charset", text: "é", requests: .assumesUTF8), Row(nil, text: "plain"),
        Row("application/json", text: "é"), Row("application/json", [0xE9], requests: .reportsInvalidBytes, httpx: .reportsInvalidBytes),
        Row("text/plain", text: "é", requests: .assumesUTF8), Row("text/html", text: "é", requests: .assumesUTF8),
        Row("text/css", text: "é", requests: .assumesUTF8), Row("text/javascript", text: "é", requests: .assumesUTF8),
        Row("text/event-stream", text: "é", requests: .assumesUTF8), Row("text/xml", text: "<é/>", requests: .assumesUTF8),
        Row("text/plain", [0xE9], httpx: .triesLatin1), Row("text/html", [0xE9], httpx: .triesLatin1),
        Row("text/xml", latin1Document, httpx: .readsDeclaration),
        Row("text/plain", text: "\u{FEFF}é", requests: .readsMark, httpx: .readsMark),
        Row(charset: "utf-8", [0xEF, 0xBB, 0xBF, 0xC3, 0xA9], both: .readsMark),
        Row(charset: "iso-8859-1", [0xEF, 0xBB, 0xBF, 0xC3, 0xA9], both: .readsMark),
        Row(charset: "utf-16", [0xFF, 0xFE, 0xE9, 0x00]), Row(charset: "utf-16", [0x00, 0xE9], both: .isBigEndian),
        Row(charset: "utf-32", [0, 0, 0, 0xE9], both: .isBigEndian), Row(charset: "utf-8", [0xE9], both: .reportsInvalidBytes),
        Row(charset: "us-ascii", [0xE9], both: .reportsInvalidBytes), Row(charset: "gbk", [0x41, 0xFF], both: .reportsInvalidBytes),
        Row(charset: "unheard-of", [0x61], both: .reportsUnknownCharset),
        Row(charset: "utf-7", [0x2B, 0x41, 0x4F, 0x6B, 0x2D], both: .refusesUnsafeCharset),
        Row(charset: "IBM037", [0x81], both: .refusesUnsafeCharset),
        Row(charset: "gb2312", [0x81, 0x40], both: .followsEncodingStandard),
        Row(charset: "shift_jis", [0x87, 0x40], both: .followsEncodingStandard),
        Row(charset: "windows-31j", [0x93, 0xFA], both: .isNewToPython), Row(charset: "windows-874", [0xA1], both: .isNewToPython),
        Row(charset: "iso-8859-8-i", [0xF9], both: .isNewToPython),
        Row(charset: "x-mac-cyrillic", [0xE0], both: .followsEncodingStandard),
    ]

    /// Charsets in which both agree.
    private static let charsets: [(names: String, bytes: [UInt8])] = [
        ("gbk GB2312 cp936 GB18030", [0x61, 0xC4, 0xE3, 0xBA, 0xC3]), ("Big5 big5-hkscs", [0xA7, 0x41, 0xA6, 0x6E]),
        ("EUC-KR ks_c_5601-1987", [0xC7, 0xD1]), ("Shift_JIS shift-jis sjis", [0x93, 0xFA, 0x5C]), ("EUC-JP", [0xC6, 0xFC, 0xCB, 0xDC]),
        ("ISO-2022-JP csISO2022JP", [0x1B, 0x24, 0x42, 0x46, 0x7C, 0x4B, 0x5C, 0x1B, 0x28, 0x42]), ("windows-1250 cp1250", [0xB9]),
        ("windows-1251", [0xC0]), ("windows-1252", [0x80]), ("windows-1253", [0xC1]), ("windows-1254", [0xDE]), ("windows-1255", [0xF9]),
        ("windows-1256", [0xC7]), ("windows-1257", [0xC0]), ("windows-1258", [0xD0]), ("TIS-620", [0xA1]), ("ISO_8859-1:1987", [0xE9]),
        ("iso-8859-2 latin2", [0xB1]), ("iso-8859-3", [0xA1]), ("iso-8859-4", [0xA1]), ("iso-8859-5", [0xD0]), ("iso-8859-6", [0xC7]),
        ("iso-8859-7 greek", [0xC1]), ("iso-8859-8", [0xF9]), ("iso-8859-9", [0xDE]), ("iso-8859-10", [0xA1]), ("iso-8859-13", [0xC0]),
        ("iso-8859-14", [0xA1]), ("iso-8859-15", [0xA4]), ("iso-8859-16", [0xA4]), ("koi8-r", [0xC1]), ("KOI8-U", [0xA4]),
        ("ibm866 cp866", [0xA0]), ("macintosh", [0x8E]), ("utf-16be", [0, 0xE9]), ("utf-16le", [0xE9, 0]), ("utf-32be", [0, 0, 0, 0xE9]),
        ("utf-32le", [0xE9, 0, 0, 0]),
    ]

    @Test(.enabled("needs Python's requests and httpx") { try await PythonClient.areInstalled() }, arguments: PythonClient.allCases)
    func `the text is that of another client, or differs on purpose`(client: PythonClient) async throws {
        let rows = Self.forms + Self.charsets.flatMap { names, bytes in names.split(separator: " ").map { Row(charset: "\($0)", bytes) } }
        let server = try LoopbackServer { request, _ in
            guard let index = Int(request.path.dropFirst()), rows.indices.contains(index) else { return .status(404) }
            let row = rows[index]
            return ServerResponse(
                status: 200, headers: row.type.map { [ServerField("Content-Type", $0)] } ?? [], body: .data(Data(row.bytes)))
        }
        let urls = rows.indices.map { server.url("/\($0)") }
        let script = """
            for url in sys.argv[1:]:
                try: print(json.dumps(send('GET', url).text))
                except UnicodeError: print('null')
            """
        let texts = try await client.run(script, urls).map { try JSONDecoder().decode(String?.self, from: Data($0.utf8)) }
        try #require(texts.count == rows.count)
        let manager = makeManager()
        for (index, row) in rows.enumerated() {
            let text = await manager.request(urls[index]).serializingString().response.value
            // Scalars, since a string equals what is canonically equivalent.
            let isEqual = text.map { Array($0.unicodeScalars) } == texts[index].map { Array($0.unicodeScalars) }
            let both = "\(row.type ?? "no type") \(row.bytes): \(text ?? "none"), \(client) \(texts[index] ?? "none")"
            let reason = row.reasons[client]
            #expect(reason == .isNewToPython ? text != nil : isEqual == (reason == nil), "\(both)")
        }
    }
}
