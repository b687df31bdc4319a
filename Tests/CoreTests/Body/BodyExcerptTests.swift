// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Testing

@testable import CurlewCore

@Suite struct BodyExcerptTests {
    private static let rows: [(body: [UInt8], contentType: String?, text: String?)] = [
        (Array("no such user\r\n\t{}".utf8), "text/plain", "no such user\r\n\t{}"),
        (Array(#"{"error":"ü"}"#.utf8), "application/json", #"{"error":"ü"}"#),
        (Array("untyped".utf8), nil, "untyped"),
        ([], "text/plain", nil),
        ([0x89, 0x50, 0x4E, 0x47], "image/png", nil),
        ([0x66, 0xFC, 0x72], "text/plain; charset=ISO-8859-1", "für"),
        ([0x66, 0xFC, 0x72], "text/plain", "für"),
        ([0x66, 0xFC, 0x72], "application/json", nil),
        ([0x66, 0xFC, 0x72], "text/event-stream", nil),
        ([0x66, 0xFC, 0x72], "text/plain; charset=unheard-of", nil),
        ([0xC4, 0xE3, 0xBA, 0xC3], "text/plain; charset=gbk", "你好"),
        ([0xEF, 0xBB, 0xBF, 0x61], "text/plain; charset=gbk", "a"),
        ([0x66, 0xFC, 0x72], "text/plain; charset=utf-8", nil),
        (Array("a\u{1B}[2J".utf8), "text/plain", nil),
        (Array("a\0b".utf8), "text/plain", nil),
        (Array("a\u{85}b".utf8), "text/plain", nil),
        (Array("a\u{7F}".utf8), nil, nil),
    ]

    @Test(arguments: rows.indices)
    func `text is told from other bytes`(_ row: Int) {
        let (body, type, text) = Self.rows[row]
        #expect(BodyExcerpt.text(of: Data(body), limit: 1024, contentType: type) == text)
    }

    @Test(arguments: 0...4)
    func `a long body is cut between two characters`(_ offset: Int) {
        let body = String(repeating: "x", count: offset) + String(repeating: "🐦", count: 300)
        let text = BodyExcerpt.text(of: Data(body.utf8), limit: 1024, contentType: "text/plain")
        #expect(text == String(repeating: "x", count: offset) + String(repeating: "🐦", count: (1024 - offset) / 4))
    }

    @Test(arguments: 0...2)
    func `text in another charset is cut between two characters`(_ offset: Int) {
        let body = Data(repeating: 0x78, count: offset) + Data((0..<600).flatMap { _ in [0xC4, 0xE3] as [UInt8] })
        let text = BodyExcerpt.text(of: body, limit: 1024, contentType: "text/plain; charset=gbk")
        #expect(text == String(repeating: "x", count: offset) + String(repeating: "你", count: (1024 - offset) / 2))
    }

    @Test func `a body of the limit's length is complete`() {
        let body = String(repeating: "x", count: 1024)
        #expect(BodyExcerpt.text(of: Data(body.utf8), limit: 1024, contentType: nil) == body)
        #expect(BodyExcerpt.text(of: Data((body + "x").utf8), limit: 1024, contentType: nil) == body)
        // A character that its body leaves incomplete is invalid.
        #expect(BodyExcerpt.text(of: Data("🐦".utf8.dropLast()), limit: 1024, contentType: nil) == nil)
        #expect(BodyExcerpt.text(of: Data("a🐦".utf8.dropLast()), limit: 1024, isCut: true, contentType: nil) == "a")
    }
}
