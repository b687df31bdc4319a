// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// How a body is delimited, according to the fields of the head (RFC 9112, section 6.3).
@Suite(.timeLimit(.minutes(1))) struct BodyFramingTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let fields: [String]
        /// The body's bytes as received, after which the connection ends.
        var body = ""
        /// The delivered body; `nil` if the framing is invalid.
        var delivered: String?
        var kind = TransferFailure.Kind.protocolViolation
        var testDescription: String { "\(fields)" }
    }

    private static let valid: [Case] = [
        Case(fields: [], body: "to the end", delivered: "to the end"),
        Case(fields: ["Content-Length: 5"], body: "hello", delivered: "hello"),
        Case(fields: ["Content-Length: 005 "], body: "hello", delivered: "hello"),
        Case(fields: ["Content-Length: 5", "content-length: 5"], body: "hello", delivered: "hello"),
        Case(fields: ["Transfer-Encoding: chunked"], body: "5\r\nhello\r\n0\r\n\r\n", delivered: "hello"),
        Case(fields: ["transfer-encoding:\tCHUNKED "], body: "5\r\nhello\r\n0\r\n\r\n", delivered: "hello"),
        Case(fields: ["Content-Length: 99", "Transfer-Encoding: chunked"], body: "5\r\nhello\r\n0\r\n\r\n", delivered: "hello"),
    ]

    private static let invalid: [Case] =
        [
            "gzip, chunked", "chunked, foo", "xchunked", "chunked, chunked", "gzip", "chunked;q=1", "deflate, gzip, chunked", "xyz",
            "chunked chunked", "chunked\u{B}", "\u{C}chunked",
        ].map { Case(fields: ["Transfer-Encoding: \($0)"], body: "5\r\nhello\r\n0\r\n\r\n") }
        + [
            Case(fields: ["Content-Length : 100"], body: "hi"), Case(fields: ["content-length\t: 2"], body: "hi"),
            Case(fields: ["Transfer-Encoding : chunked"], body: "5\r\nhello\r\n0\r\n\r\n"),
            Case(fields: ["Transfer-Encoding: chunked", "Transfer-Encoding: gzip"], body: "5\r\nhello\r\n0\r\n\r\n"),
            Case(fields: ["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"], body: "5\r\nhello\r\n0\r\n\r\n"),
            Case(fields: ["Transfer-Encoding: gzip, chunked", "Content-Length: 5"], body: "hello"),
            Case(fields: ["Transfer-Encoding: chunked\r\n , gzip"], body: "5\r\nhello\r\n0\r\n\r\n"),
        ]
        + [
            "9223372036854775808", "99999999999999999999", "18446744073709551621", String(repeating: "9", count: 400), "5x", "five", "-5",
            "", "5, 6", "0x5", "5 5",
        ].map { Case(fields: ["Content-Length: \($0)"], body: "hello") }
        + [
            Case(fields: ["Content-Length: 5", "Content-Length: 50"], body: "hello"),
            Case(fields: ["Content-Length: 5", "Content-Length: "], body: "hello"),
            Case(fields: ["Content-Length: 9223372036854775807"], body: "hello", kind: .connectionLost),
        ]

    @Test("a body with valid framing is delivered, and rejected otherwise", arguments: valid + invalid)
    func bodies(_ test: Case) async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\n" + test.fields.map { "\($0)\r\n" }.joined() + "\r\n" + test.body)
            connection.close()
            return nil
        }
        let end = await CurlTransport().run(TransferRequest(url: server.url("/")))
        if let delivered = test.delivered {
            #expect(end.error == nil, "\(String(describing: end.error))")
            #expect(end.body == Data(delivered.utf8))
        } else {
            #expect(end.failure?.kind == test.kind, "\(String(describing: end.error))")
            #expect(test.kind == .connectionLost || end.body.isEmpty)
        }
    }

    @Test(
        "invalid framing of a response without a body is ignored",
        arguments: [
            (HTTPMethod.head, 200, "Transfer-Encoding: gzip, chunked"), (.get, 304, "Transfer-Encoding: gzip, chunked"),
            (.get, 204, "Transfer-Encoding: xyz"), (.head, 200, "Content-Length: 99999999999999999999"),
            (.get, 304, "Content-Length: 99999999999999999999"),
        ])
    func withoutBody(_ method: HTTPMethod, _ status: Int, _ field: String) async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 \(status) Any\r\n\(field)\r\n\r\n")
            connection.close()
            return nil
        }
        let end = await CurlTransport().run(TransferRequest(url: server.url("/"), method: method))
        #expect(end.error == nil, "\(String(describing: end.error))")
        #expect(end.head?.statusCode == status && end.head?.expectedBodyLength == nil)
    }

    @Test("the message names the field and quotes its value, escaped and truncated")
    func message() async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: a\u{1B}[31m\(String(repeating: "b", count: 500))\r\n\r\n")
            connection.close()
            return nil
        }
        let message = try #require(await CurlTransport().run(TransferRequest(url: server.url("/"))).failure?.message)
        // libcurl 8.14.1 finds it first: its messages have at most 255 bytes, of which one is escaped here.
        #expect(message.contains("Transfer-Encoding") && message.contains(#"a\u{1B}[31mbbb"#) && message.count < 265)
    }
}
