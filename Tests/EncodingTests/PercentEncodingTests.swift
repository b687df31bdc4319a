// SPDX-License-Identifier: Apache-2.0

import CurlewEncoding
import Testing

@Suite struct PercentEncodingTests {
    @Test("letters, digits and -._~/? are kept, all other ASCII characters are escaped")
    func escapesASCII() {
        let kept = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/?".utf8)
        for byte in UInt8(0)..<0x80 {
            let string = String(UnicodeScalar(byte))
            let hex = String(byte, radix: 16, uppercase: true)
            #expect(PercentEncoding.escape(string) == (kept.contains(byte) ? string : "%" + (byte < 16 ? "0" : "") + hex))
        }
    }

    @Test(
        "non-ASCII text is escaped byte by byte in UTF-8",
        arguments: [
            ("é", "%C3%A9"), ("e\u{301}", "e%CC%81"), ("ÿ", "%C3%BF"), ("€", "%E2%82%AC"), ("日本", "%E6%97%A5%E6%9C%AC"),
            ("😀", "%F0%9F%98%80"), ("👩‍👧", "%F0%9F%91%A9%E2%80%8D%F0%9F%91%A7"), ("\u{10FFFF}", "%F4%8F%BF%BF"), ("\r\n", "%0D%0A"),
        ])
    func escapesUnicode(_ string: String, _ escaped: String) {
        #expect(PercentEncoding.escape(string) == escaped)
    }

    @Test("every Unicode scalar round-trips")
    func everyScalarSurvives() {
        for block in stride(from: UInt32(0), to: 0x110000, by: 0x400) {
            var string = ""
            string.unicodeScalars.append(contentsOf: (block..<block + 0x400).compactMap(UnicodeScalar.init))
            let escaped = PercentEncoding.escape(string)
            #expect(escaped.utf8.allSatisfy { $0 < 0x80 })
            #expect(escaped.removingPercentEncoding.map { Array($0.utf8) } == Array(string.utf8), "block \(block)")
        }
    }

    @Test("a percent sign is escaped, even in an escape")
    func escapesPercent() {
        #expect(PercentEncoding.escape("100%") == "100%25")
        #expect(PercentEncoding.escape("%20") == "%2520")
    }

    @Test("a very long string is escaped completely")
    func escapesLongStrings() {
        let escaped = PercentEncoding.escape(String(repeating: "a é", count: 1_000_000))
        #expect(escaped.utf8.count == 10_000_000)
        #expect(escaped.hasPrefix("a%20%C3%A9a%20"))
        #expect(escaped.hasSuffix("a%20%C3%A9"))
        #expect(PercentEncoding.escape(String(repeating: "a", count: 1_000_000)).utf8.count == 1_000_000)
    }

    @Test("in quoted parameters only quotation marks and line breaks are escaped")
    func escapesQuoted() {
        #expect(PercentEncoding.escapeQuoted("a\"b\r\nc\nd\re") == "a%22b%0D%0Ac%0Ad%0De")
        #expect(PercentEncoding.escapeQuoted("é 100%'\\;=/?&\t") == "é 100%'\\;=/?&\t")
        #expect(PercentEncoding.escapeQuoted("").isEmpty)
    }

    @Test("an empty string is unchanged")
    func escapesEmpty() {
        #expect(PercentEncoding.escape("").isEmpty)
    }
}
