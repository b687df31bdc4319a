// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct ResponseHeadTests {
    private static func head(_ text: String) -> ResponseHead? { ResponseHead(bytes: Array(text.utf8)) }

    @Test(
        "status lines",
        arguments: [
            ("HTTP/1.1 200 OK\r\n", 200, "HTTP/1.1", "OK"), ("HTTP/1.0 404 Not Found\n", 404, "HTTP/1.0", "Not Found"),
            ("HTTP/2 204 \r\n", 204, "HTTP/2", ""), ("HTTP/2 204\r\n", 204, "HTTP/2", ""),
            ("HTTP/1.1 999 Odd  one", 999, "HTTP/1.1", "Odd  one"),
            ("HTTP/1.1 000 \r\n", 0, "HTTP/1.1", ""),
        ])
    func statusLine(line: String, code: Int, version: String, reason: String) throws {
        let head = try #require(Self.head(line))
        #expect(head.statusCode == code)
        #expect(head.httpVersion == version)
        #expect(head.reasonPhrase == reason)
        #expect(head.headers.isEmpty)
    }

    @Test(
        "text that is not a status line is rejected",
        arguments: [
            "", "HTTP/1.1", "HTTP/1.1 20 OK\r\n", "HTTP/1.1 2000 OK\r\n", "HTTP/1.1 OK 200\r\n", "http/1.1 200 OK\r\n", "ICY 200 OK\r\n",
            "HTTP/1.1\r\nX: 200 \r\n", "Content-Length: 1\r\n",
        ])
    func noStatusLine(line: String) {
        #expect(Self.head(line) == nil)
    }

    @Test("fields keep order and duplicates; folds become a space; lines without colon or name, or with a space in it, are skipped")
    func fields() throws {
        let text =
            "HTTP/1.1 200 OK\r\n astray: 1\r\nA: 1\r\nSet-Cookie: a=1, b\r\nno colon\r\nB:\r\nset-cookie:b=2 \r\n: nameless\r\n"
            + "Folded: one\r\n  two\r\n\t\tthree\r\nC : spaced\r\nD: x:y\n"
        let head = try #require(Self.head(text))
        let expected = [
            HTTPHeader(name: "A", value: "1"), HTTPHeader(name: "Set-Cookie", value: "a=1, b"), HTTPHeader(name: "B", value: ""),
            HTTPHeader(name: "set-cookie", value: "b=2"), HTTPHeader(name: "Folded", value: "one two three"),
            HTTPHeader(name: "D", value: "x:y"),
        ]
        #expect(Array(head.headers) == expected)
        for name in ["set-cookie", "SET-COOKIE"] { #expect(head.value(for: name) == "a=1, b") }
        #expect(head.value(for: "folded") == "one two three")
        #expect(head.value(for: "b") == "")
        for name in ["c", "c ", "astray", "", "E", "Folde", "HTTP/1.1 200 OK"] { #expect(head.value(for: name) == nil) }
    }

    @Test("a carriage return or a NUL does not end a line: in a value it becomes a space, a name with one is invalid")
    func controls() throws {
        let head = try #require(ResponseHead(bytes: Array("HTTP/1.1 200 OK\r\nA: b\rX: c\0d\r\nE\rF: g\r\nH: i\r\n".utf8)))
        #expect(head.headers == HTTPHeaders([HTTPHeader(name: "A", value: "b X: c d"), HTTPHeader(name: "H", value: "i")]))
    }

    @Test("valid values have no control characters that would be replaced by a space")
    func validValues() throws {
        let fields = "A: 1\r\na: b\rc\r\nA: d\0e\r\nB: 2\r\nA: f\r\n g\r\nA: h\r\r\n"
        let head = try #require(ResponseHead(bytes: Array("HTTP/1.1 200 OK\r\n\(fields)".utf8)))
        #expect(head.validValues(for: "a") == ["1", "f g", "h"])
    }

    @Test("bytes that are not UTF-8 are decoded as ISO 8859-1, per field")
    func encodings() throws {
        let bytes =
            Array("HTTP/1.1 200 Gr\u{FC}n\r\nLatin: ".utf8) + [0x47, 0xFC] + Array("\r\nUTF8: \u{20AC}\r\n".utf8) + [0xFF, 0x3A, 0x31]
        let head = try #require(ResponseHead(bytes: bytes))
        #expect(head.reasonPhrase == "Gr\u{FC}n")
        #expect(head.value(for: "Latin") == "G\u{FC}")
        #expect(head.value(for: "UTF8") == "\u{20AC}")
        #expect(head.headers.last == HTTPHeader(name: "\u{FF}", value: "1"))
    }

    @Test("a head created from parts returns them")
    func parts() {
        let head = ResponseHead(statusCode: 201, headers: ["A": "1", "a": "2", "Empty": ""])
        #expect(head.statusCode == 201)
        #expect(head.headers == ["A": "1", "a": "2", "Empty": ""])
        #expect(head.reasonPhrase == "")
        #expect(head.httpVersion == "HTTP/1.1")
    }

    @Test("random bytes never trap")
    func random() {
        var random = SplitMix(state: 7)
        let alphabet = Array("HTTP/1.1 200\r\n: \tA\u{FC}".utf8)
        for _ in 0..<2_000 {
            let tail = (0..<Int(random.next() % 40)).map { _ in alphabet[Int(random.next() % UInt64(alphabet.count))] }
            guard let head = ResponseHead(bytes: Array("HTTP/1.1 200 ".utf8) + tail) else { continue }
            #expect(head.headers.allSatisfy { !$0.name.isEmpty && !$0.value.contains("\n") })
            #expect(head.headers.allSatisfy { head.value(for: $0.name) != nil || !$0.name.utf8.allSatisfy { $0 < 0x80 } })
            #expect(!head.reasonPhrase.contains("\n"))
        }
    }
}
