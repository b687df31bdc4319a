// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import Testing

@testable import CurlewWebSocket

@Suite(.timeLimit(.minutes(1))) struct HandshakeTests {
    private static let key = "dGhlIHNhbXBsZSBub25jZQ=="

    private func request(
        _ url: String = "ws://example.org/", headers: HTTPHeaders = [:], subprotocols: [String] = [], defaults: HTTPHeaders = [:],
        compression: WebSocketCompression? = nil, change: (inout URLRequest) -> Void = { _ in }
    ) throws -> HandshakeRequest {
        var urlRequest = try URLRequest(url: url, method: .get, headers: headers)
        change(&urlRequest)
        return try HandshakeRequest(urlRequest, subprotocols: subprotocols, defaults: defaults, compression: compression, key: Self.key)
    }

    private func lines(_ request: HandshakeRequest) -> [String] {
        String(decoding: request.upgrade.bytes(with: request.upgrade.headers), as: UTF8.self).components(separatedBy: "\r\n")
    }

    @Test("the key of RFC 6455, section 1.3, gives its accept value") func acceptValue() {
        #expect(WebSocketHandshake.accept(for: Self.key) == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }

    @Test("a complete request") func request() throws {
        let request = try request(
            "wss://example.org/chat?x=1", headers: ["Origin": "https://example.org"], subprotocols: ["a", "b"],
            defaults: ["User-Agent": "test", "Accept-Encoding": "gzip", "Origin": "other"], compression: WebSocketCompression())
        #expect(request.upgrade.host == "example.org")
        #expect(request.upgrade.port == 443)
        #expect(request.upgrade.isSecure)
        #expect(
            lines(request) == [
                "GET /chat?x=1 HTTP/1.1", "Host: example.org", "Upgrade: websocket", "Connection: Upgrade",
                "Sec-WebSocket-Key: \(Self.key)",
                "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: a, b",
                "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits", "Origin: https://example.org", "User-Agent: test",
                "", "",
            ])
    }

    @Test(
        "URLs determine host, port and request line",
        arguments: [
            ("ws://example.org", "example.org", 80, false, "GET / HTTP/1.1", "Host: example.org"),
            ("http://example.org:8080/a%20b", "example.org", 8080, false, "GET /a%20b HTTP/1.1", "Host: example.org:8080"),
            ("WSS://example.org:80?q", "example.org", 80, true, "GET /?q HTTP/1.1", "Host: example.org:80"),
            ("https://[::1]:443/", "::1", 443, true, "GET / HTTP/1.1", "Host: [::1]"),
            ("ws://[::1]:9/", "::1", 9, false, "GET / HTTP/1.1", "Host: [::1]:9"),
            ("ws://[fe80::1%25eth0]:9/", "fe80::1%25eth0", 9, false, "GET / HTTP/1.1", "Host: [fe80::1]:9"),
            ("wss://[fe80::1%254]/", "fe80::1%254", 443, true, "GET / HTTP/1.1", "Host: [fe80::1]"),
        ])
    func urls(_ url: String, _ host: String, _ port: Int, _ isSecure: Bool, _ first: String, _ second: String) throws {
        let request = try request(url)
        #expect(request.upgrade.host == host)
        #expect(request.upgrade.port == port)
        #expect(request.upgrade.isSecure == isSecure)
        #expect(lines(request).prefix(2) == [first, second])
    }

    @Test("user name and password in a URL become Basic authentication unless there is another") func userInfo() throws {
        #expect(try lines(request("ws://user:pa%20ss@example.org/")).contains("Authorization: Basic dXNlcjpwYSBzcw=="))
        #expect(throws: WebSocketError.self) { try lines(request("ws://us%3Aer:pass@example.org/")) }
        let own = try request("ws://user:pass@example.org/", headers: ["Authorization": "Bearer t"])
        #expect(lines(own).filter { $0.hasPrefix("Authorization") } == ["Authorization: Bearer t"])
    }

    @Test("a custom Host is sent once") func host() throws {
        #expect(try lines(request(headers: ["Host": "other"])).filter { $0.hasPrefix("Host") } == ["Host: other"])
    }

    @Test("subprotocols may be given in a header field") func subprotocolHeader() throws {
        let request = try request(headers: ["Sec-WebSocket-Protocol": "b, c"], subprotocols: ["a"])
        #expect(request.subprotocols == ["a", "b", "c"])
        #expect(lines(request).contains("Sec-WebSocket-Protocol: a, b, c"))
    }

    @Test(
        "invalid requests are rejected",
        arguments: [
            ("ftp://example.org/", [:], [], "unsupportedScheme(\"ftp\")"),
            ("ws://127.1./", [:], [], "invalidURL(\"ws://127.1./\")"),
            ("ws:///x", [:], [], "invalidURL(\"ws:///x\")"),
            ("ws://u:p@example.org/#f", [:], [], "invalidURL(\"ws://example.org/#f\")"),
            ("ws://example.org:99999/", [:], [], "invalidURL(\"ws://example.org:99999/\")"),
            ("ws://example.org/", ["Sec-WebSocket-Key": "x"], [], "invalidHeader(name: \"Sec-WebSocket-Key\")"),
            ("ws://example.org/", ["connection": "close"], [], "invalidHeader(name: \"connection\")"),
            ("ws://example.org/", [:], ["a b"], "invalidSubprotocol(\"a b\")"),
            ("ws://example.org/", [:], ["a", "a"], "invalidSubprotocol(\"a\")"),
            ("ws://example.org/", [:], [""], "invalidSubprotocol(\"\")"),
        ] as [(String, HTTPHeaders, [String], String)])
    func invalidRequests(_ url: String, _ headers: HTTPHeaders, _ subprotocols: [String], _ reason: String) throws {
        let error = #expect(throws: WebSocketError.self) { try request(url, headers: headers, subprotocols: subprotocols) }
        guard case .invalidRequest(let found)? = error else { return #expect(Bool(false), "\(String(describing: error))") }
        // Foundation changes the case of field names.
        #expect("\(found)".lowercased() == reason.lowercased())
    }

    @Test("error texts contain no secrets and no control characters") func texts() {
        let odd = "a\r\n\u{1B}\u{9B}\u{202E}"
        let closure = WebSocketClosure(code: .protocolError, reason: odd)
        let errors: [WebSocketError] = [
            .closed(closure), .handshakeFailed(reason: .unexpectedSubprotocol(odd)), .handshakeFailed(reason: .invalidExtension(odd)),
            .protocolViolation(code: .protocolError, message: odd),
            .invalidRequest(reason: .invalidURL("ws://u:s3cret@h/?access_token=s3cret#\(odd)")),
            .invalidRequest(reason: .invalidHeader(name: odd)),
        ]
        for value in errors as [Any] + [closure, WebSocketError.HandshakeFailureReason.invalidExtension(odd)] {
            var reflection = ""
            dump(value, to: &reflection)
            // The dump's own line breaks are real; the server's would be escaped, inside quotation marks.
            let lines = reflection.split(separator: "\n").map(String.init)
            for text in ["\(value)", String(reflecting: value)] + lines {
                #expect(!text.contains("s3cret") && text.unicodeScalars.allSatisfy { !$0.isControlInText })
            }
        }
    }

    @Test("only a GET without a body opens a WebSocket") func notAGet() {
        #expect(throws: WebSocketError.self) { try request { $0.httpMethod = "POST" } }
        #expect(throws: WebSocketError.self) { try request { $0.httpBody = Data([1]) } }
    }

    @Test("keys are 16 bytes and unique") func keys() {
        let keys = (0..<100).map { _ in HandshakeRequest.makeKey() }
        #expect(Set(keys).count == 100)
        #expect(keys.allSatisfy { Data(base64Encoded: $0)?.count == 16 })
    }

    // MARK: Responses

    fileprivate static let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    fileprivate static let validHead =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\n\(accept)\r\n"

    private func validate(
        _ head: String, subprotocols: [String] = [], compression: WebSocketCompression? = nil
    ) throws -> WebSocketHandshake {
        let request = try request(subprotocols: subprotocols, compression: compression)
        let response = try #require(ResponseHead(bytes: Array(head.utf8)))
        return try WebSocketHandshake.validate(response, for: request).0
    }

    @Test("a valid response") func validResponse() throws {
        let handshake = try validate(
            Self.validHead + "Sec-WebSocket-Protocol: b\r\nSec-WebSocket-Extensions: permessage-deflate\r\n", subprotocols: ["a", "b"],
            compression: WebSocketCompression())
        #expect(handshake.subprotocol == "b")
        #expect(handshake.isCompressed)
        #expect(handshake.response.statusCode == 101)
        #expect(try validate(Self.validHead, subprotocols: ["a"]).subprotocol == nil)
    }

    @Test("invalid responses are rejected", arguments: rejectedHandshakes)
    func invalidResponses(_ head: String, _ violation: HandshakeViolation) {
        #expect(throws: violation) { try validate(head) }
    }

    @Test("a repeated extension is rejected") func repeatedExtension() {
        #expect(throws: HandshakeViolation.invalidExtension("permessage-deflate")) {
            try validate(
                Self.validHead + "Sec-WebSocket-Extensions: permessage-deflate, permessage-deflate\r\n",
                compression: WebSocketCompression())
        }
    }

    // MARK: Parsing

    private func read(_ text: String, by size: Int) throws -> UpgradeReader.Result? {
        var reader = UpgradeReader()
        let bytes = Data(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: size) {
            if let result = try reader.feed(bytes[start..<min(start + size, bytes.count)]) { return result }
        }
        return nil
    }

    @Test("a response is parsed after interim ones, in pieces of any size", arguments: [1, 7, 10_000])
    func pieces(_ size: Int) throws {
        let result = try read("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + Self.validHead + "\r\n", by: size)
        guard case .switched(let head, _)? = result else { return #expect(Bool(false)) }
        #expect(head.statusCode == 101)
    }

    @Test("32 interim responses are skipped, more are refused") func interimResponses() throws {
        let interim = "HTTP/1.1 103 Early Hints\r\n\r\n"
        for end in [Self.validHead + "\r\n", "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"] {
            #expect(try read(String(repeating: interim, count: 32) + end, by: 10_000) != nil)
            #expect(throws: UpgradeReader.Malformed.self) { try read(String(repeating: interim, count: 33) + end, by: 10_000) }
        }
    }

    @Test("bytes after the head belong to the frames") func rest() throws {
        guard case .switched(_, let rest)? = try read(Self.validHead + "\r\n\u{81}", by: 10_000) else { return #expect(Bool(false)) }
        #expect(rest == Data("\u{81}".utf8))
    }

    @Test("a rejection has its status and body") func rejected() throws {
        let result = try read("HTTP/1.1 401 No\r\nContent-Length: 5\r\n\r\nsorry and more", by: 3)
        guard case .refused(let head, let body)? = result else { return #expect(Bool(false)) }
        #expect(head.statusCode == 401 && body == Data("sorry".utf8))
    }

    @Test(
        "a rejection's body is read to its end, however that is marked",
        arguments: [
            ("Content-Length: 5\r\n\r\nsorry and more", true, "sorry"), ("Content-Length: 50\r\n\r\nsorry", false, "sorry"),
            ("Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nsor\r\n2\r\nry\r\n0\r\n\r\n", true, "sorry"),
            ("Transfer-Encoding: chunked\r\n\r\n3\r\nsor\r\n2\r\nr", false, "sorr"),
            ("Transfer-Encoding: chunked\r\n\r\n5\r\nsorry\r\nxyz\r\n", true, "sorry"),
            ("Connection: close\r\n\r\nsorry", false, "sorry"), ("X: y\r\n\r\nsorry", true, ""),
            ("Content-Length: -1\r\n\r\nsorry", true, ""),
        ] as [(String, Bool, String)])
    func rejectedBodies(_ rest: String, _ isMarked: Bool, _ expected: String) throws {
        for size in [1, 4, 10_000] {
            var reader = UpgradeReader()
            let bytes = Data("HTTP/1.1 400 No\r\n\(rest)".utf8)
            var result: UpgradeReader.Result?
            for start in stride(from: 0, to: bytes.count, by: size) where result == nil {
                result = try reader.feed(bytes[start..<min(start + size, bytes.count)])
            }
            #expect((result != nil) == isMarked)
            guard case .refused(_, let body)? = result ?? reader.end() else { return #expect(Bool(false)) }
            #expect(String(decoding: body, as: UTF8.self) == expected)
        }
    }

    @Test(
        "a rejection has 64 KiB of its body at most",
        arguments: ["Content-Length: 900000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\ndbba0\r\n", "Connection: close\r\n\r\n"]
            as [String])
    func longRejection(_ rest: String) throws {
        guard case .refused(_, let body)? = try read("HTTP/1.1 400 No\r\n\(rest)" + String(repeating: "x", count: 900_000), by: 10_000)
        else { return #expect(Bool(false)) }
        #expect(body == Data(String(repeating: "x", count: 64 << 10).utf8))
    }

    @Test("a rejection to HEAD, or with 204 or 304, has no body, though it announces one", arguments: ["403", "204", "304"] as [String])
    func bodiless(_ status: String) throws {
        var reader = UpgradeReader(toHead: status == "403")
        guard case .refused(_, let body)? = try reader.feed(Data("HTTP/1.1 \(status) No\r\nContent-Length: 5\r\n\r\n".utf8)) else {
            return #expect(Bool(false))
        }
        #expect(body.isEmpty)
    }

    @Test("small chunks and long extensions of chunks cost neither much time nor memory") func chunks() throws {
        for (chunk, isAll) in [("1\r\nX\r\n", false), ("1;\(String(repeating: "e", count: 1_000))\r\nX\r\n", false), ("+1\r\nX\r\n", true)]
        {
            var reader = UpgradeReader()
            let head = try reader.feed(Data("HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\n".utf8))
            #expect(head.map { _ in true } == nil)
            var (result, count): (UpgradeReader.Result?, Int) = (nil, 0)
            while result == nil, count < 100_000 {
                result = try reader.feed(Data(chunk.utf8))
                count += 1
            }
            guard case .refused(_, let body)? = result else { return #expect(Bool(false)) }
            #expect(reader.bodyBytes <= (256 << 10) + chunk.utf8.count && body.count <= count && body.isEmpty == isAll)
        }
    }

    @Test("non-HTTP bytes and an endless head are rejected") func notHTTP() {
        #expect(throws: UpgradeReader.Malformed.self) { try read("SSH-2.0-OpenSSH", by: 4) }
        #expect(throws: UpgradeReader.Malformed.self) {
            try read("HTTP/1.1 101 x\r\n" + String(repeating: "a: b\r\n", count: 20_000), by: 9999)
        }
        #expect(throws: UpgradeReader.Malformed.self) { try read("HTTP/1.1 x\r\n\r\n", by: 100) }
    }
}

// With its type, which the compiler takes a minute to find.
private let rejectedHandshakes: [(String, HandshakeViolation)] = [
    ("HTTP/1.0 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\(HandshakeTests.accept)\r\n", .notUpgraded),
    ("HTTP/1.1 101 x\r\nConnection: upgrade\r\n\(HandshakeTests.accept)\r\n", .notUpgraded),
    ("HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: close\r\n\(HandshakeTests.accept)\r\n", .notUpgraded),
    ("HTTP/1.1 101 x\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\(HandshakeTests.accept)\r\n", .notUpgraded),
    ("HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n", .wrongAccept),
    ("HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: x\r\n", .wrongAccept),
    (HandshakeTests.validHead + HandshakeTests.accept + "\r\n", .wrongAccept),
    (HandshakeTests.validHead + "Sec-WebSocket-Protocol: x\r\n", .unexpectedSubprotocol("x")),
    (HandshakeTests.validHead + "Sec-WebSocket-Extensions: permessage-deflate\r\n", .invalidExtension("permessage-deflate")),
    (HandshakeTests.validHead + "Sec-WebSocket-Extensions: a b\r\n", .invalidExtension("a b")),
]
