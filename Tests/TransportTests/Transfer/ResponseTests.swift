// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct ResponseTests {
    private static func run(_ response: String, method: HTTPMethod = .get, change: (inout TransferRequest) -> Void = { _ in }) async throws
        -> RecordingObserver.Record
    {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: response)
            connection.close()
            return nil
        }
        var request = TransferRequest(url: server.url("/"), method: method)
        change(&request)
        return await CurlTransport().run(request)
    }

    @Test("content codings are decoded", arguments: ["/gzip?n=100000", "/deflate?n=100000", "/gzip?n=0"])
    func decoding(path: String) async throws {
        let server = try LoopbackServer.standard()
        let end = await CurlTransport().run(TransferRequest(url: server.url(path)))
        #expect(end.error == nil)
        #expect(end.body == ServerRoutes.text(count: path.hasSuffix("=0") ? 0 : 100_000))
        #expect(server.requests.first?.header("Accept-Encoding") == ContentDecoder.accepted)
        #expect(try #require(end.completion?.metrics.responseBodyBytes) > Int64(end.body.count))
    }

    @Test("bodies are not decoded if the request's options disable it")
    func noDecoding() async throws {
        let server = try LoopbackServer.standard()
        var options = TransferOptions()
        options.decodesContent = false
        let end = await CurlTransport().run(TransferRequest(url: server.url("/gzip?n=1000"), options: options))
        #expect(end.body.starts(with: [0x1F, 0x8B]))
        #expect(server.requests.first?.header("Accept-Encoding") == nil)
    }

    @Test("a truncated coding is an error, even if the body's length is right")
    func truncatedCoding() async throws {
        let server = try LoopbackServer.standard()
        let end = await CurlTransport().run(TransferRequest(url: server.url("/gzip-truncated?n=1000")))
        #expect(end.failure?.kind == .decoding)
        #expect(!end.body.isEmpty)
    }

    @Test("excessive expansion is an error, unless allowed", arguments: [1, 2])
    func bomb(layers: Int) async throws {
        var bytes = Data(count: 48 << 20)
        for _ in 0..<layers { bytes = try Deflater.compress(bytes, as: .gzip, level: 9) }
        let coding = [String](repeating: "gzip", count: layers).joined(separator: ", ")
        let server = try LoopbackServer { [bytes] _, _ in
            ServerResponse(status: 200, headers: [ServerField("Content-Encoding", coding)], body: .data(bytes))
        }
        let end = await CurlTransport().run(TransferRequest(url: server.url("/")))
        #expect(end.failure?.kind == .tooLarge)
        #expect(end.body.count <= 16 << 20)
        var options = TransferOptions()
        options.maximumExpansion = nil
        let whole = await CurlTransport().run(TransferRequest(url: server.url("/"), options: options))
        #expect(whole.error == nil)
        #expect(whole.body.count == 48 << 20)
    }

    /// A body of three codings that expands to 16 GiB of padding, and decodes to nothing.
    private static func nestedBomb() throws -> Data {
        let member = try Deflater.compress(Data(count: 64 << 20), as: .gzip, level: 9)
        var inner = try Deflater.compress(StoredDeflate.gzip(Data()), as: .gzip, level: 9)
        for _ in 0..<256 { inner += member }
        return try Deflater.compress(inner, as: .gzip, level: 9)
    }

    /// A body in zstd of 32 GiB: blocks of 128 KiB that repeat one byte.
    private static let flatBomb = {
        var bytes = Data([0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58])
        let size = UInt32(128 << 10) << 3 | 1 << 1
        for _ in 0..<(256 << 10) { bytes += [UInt8(size & 0xFF), UInt8(size >> 8 & 0xFF), UInt8(size >> 16), 0] }
        return [UInt8](bytes)
    }()

    private static let bombs = ["gzip, gzip, gzip"] + ContentDecoder.known.filter { $0 == "zstd" || $0 == "br" }

    private static func bombServer(_ coding: String) throws -> LoopbackServer {
        let bytes =
            switch coding {
            case "zstd": Data(flatBomb)
            case "br": Data(BrotliWindows.body(1000))
            default: try nestedBomb()
            }
        return try LoopbackServer { request, _ in
            if request.path == "/" { return .ok("small") }
            if request.path == "/coded" {
                let body = StoredDeflate.gzip(Data("small".utf8))
                return ServerResponse(status: 200, headers: [ServerField("Content-Encoding", "gzip")], body: .data(body))
            }
            return ServerResponse(status: 200, headers: [ServerField("Content-Encoding", coding)], body: .data(bytes))
        }
    }

    @Test("codings that expand without end fail at once, whichever of them does", arguments: bombs)
    func nestedBomb(coding: String) async throws {
        let server = try Self.bombServer(coding)
        let end = await CurlTransport().run(TransferRequest(url: server.url("/bomb")))
        #expect(end.failure?.kind == .tooLarge)
    }

    @Test("a body that takes long to decode leaves the loop to other transfers, and can be cancelled", arguments: bombs)
    func decodingYields(coding: String) async throws {
        let server = try Self.bombServer(coding)
        var options = TransferOptions()
        options.maximumExpansion = nil
        let transport = CurlTransport()
        let bomb = DroppingObserver()
        let transfer = transport.start(TransferRequest(url: server.url("/bomb"), options: options), observer: bomb)
        #expect(await eventually { bomb.hasHead })
        for path in ["/", "/coded", "/", "/coded", "/", "/coded"] {
            let other = await transport.run(TransferRequest(url: server.url(path)))
            #expect(other.body == Data("small".utf8))
        }
        #expect(bomb.completion == nil)
        transfer.cancel()
        #expect(await eventually { bomb.completion != nil })
        guard case .cancelled? = bomb.completion?.error as? CurlewError else {
            Issue.record("\(String(describing: bomb.completion))")
            return
        }
    }

    #if Brotli
    @Test("between two steps that fill a window of brotli, time limits are looked at")
    func longSteps() async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Content-Encoding", "br")], body: .data(Data(BrotliWindows.body(1))))
        }
        let counts = CountingPoller.Counts()
        let transport = CurlTransport(makePoller: { try CountingPoller(counts: counts) })
        // The first piece of a body is what such a step puts out. While one is taken, the other bodies arrive.
        let turns = Lock<[Int]>([])
        let observers = (1...8).map { _ in
            RecordingObserver(onBytes: { _ in
                turns.withLock { $0.append(counts.value.waits) }
                return .cancel
            })
        }
        for observer in observers { transport.start(TransferRequest(url: server.url("/")), observer: observer) }
        for observer in observers { #expect(await observer.end().isCancelled) }
        let steps = Dictionary(grouping: turns.withLock { $0 }) { $0 }.mapValues(\.count)
        #expect(steps.values.reduce(0, +) == observers.count)
        // The limits are looked at between two waits: one step may follow the first, and another one the look.
        #expect(steps.values.allSatisfy { $0 <= 2 }, "\(steps)")
    }
    #endif

    @Test("time limits end a decoding", arguments: bombs)
    func decodingEnds(coding: String) async throws {
        let server = try Self.bombServer(coding)
        var options = TransferOptions()
        options.maximumExpansion = nil
        options.totalTimeout = .milliseconds(200)
        let transport = CurlTransport()
        let bomb = DroppingObserver()
        transport.start(TransferRequest(url: server.url("/bomb"), options: options), observer: bomb)
        #expect(await eventually { bomb.completion != nil })
        guard case .transferFailed(let failure)? = bomb.completion?.error as? CurlewError else {
            Issue.record("\(String(describing: bomb.completion))")
            return
        }
        #expect(failure.kind == .totalTimeout)
    }

    @Test(
        "a body in an unknown coding is delivered undecoded, with its field and announced length",
        arguments: ["none", "Identity", "utf-8", "aws-chunked", "gzip, none", "compress"])
    func unknownCoding(coding: String) async throws {
        let end = try await Self.run("HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nContent-Length: 5\r\n\r\nhello")
        #expect(end.error == nil)
        #expect(end.head?.value(for: "Content-Encoding") == coding)
        #expect(end.head?.expectedBodyLength == 5)
        #expect(end.body == Data("hello".utf8))
        let cut = try await Self.run("HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nContent-Length: 6\r\n\r\nhello")
        #expect(cut.failure?.kind == .connectionLost)
    }

    @Test("an undecoded body has its announced length, and a decoded one another")
    func announcedLength() async throws {
        let server = try LoopbackServer.standard()
        let decoded = await CurlTransport().run(TransferRequest(url: server.url("/gzip?n=1000")))
        #expect(decoded.head?.expectedBodyLength == nil && decoded.body.count == 1000)
        var options = TransferOptions()
        options.decodesContent = false
        let end = await CurlTransport().run(TransferRequest(url: server.url("/gzip?n=1000"), options: options))
        #expect(end.head?.expectedBodyLength == Int64(end.body.count))
    }

    @Test("two Content-Encoding fields form one list")
    func twoCodingFields() async throws {
        let fields = "Content-Encoding: gzip\r\nContent-Encoding: none\r\n"
        let end = try await Self.run("HTTP/1.1 200 OK\r\n\(fields)Content-Length: 5\r\n\r\nhello")
        #expect(end.body == Data("hello".utf8))
    }

    @Test("a corrupt coding is an error", arguments: ["gzip", "x-gzip", "gzip, gzip"])
    func badCoding(coding: String) async throws {
        let end = try await Self.run("HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nContent-Length: 5\r\n\r\nhello")
        #expect(end.failure?.kind == .decoding)
        #expect(end.body.isEmpty)
    }

    @Test(
        "a coding without a body is ignored",
        arguments: [
            (HTTPMethod.head, 200, "Content-Length: 9"), (.get, 304, "X: 1"), (.get, 200, "Content-Length: 0"), (.get, 204, "X: 1"),
        ])
    func codingWithoutBody(method: HTTPMethod, status: Int, field: String) async throws {
        let end = try await Self.run("HTTP/1.1 \(status) X\r\nContent-Encoding: gzip\r\n\(field)\r\n\r\n", method: method)
        #expect(end.error == nil)
        #expect(end.head?.statusCode == status)
        #expect(end.body.isEmpty)
    }

    @Test(
        "truncated responses",
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Le", TransferFailure.Kind.connectionLost), ("", .connectionLost),
            ("HTTP/1.1 200 OK\r\n", .connectionLost),
            ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", .connectionLost),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", .connectionLost),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n", .protocolViolation),
            ("HTTP/1.1 103 Early Hints\r\n\r\n", .connectionLost),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", .protocolViolation),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nno field\r\n\r\n", .protocolViolation),
        ])
    func cut(response: String, kind: TransferFailure.Kind) async throws {
        let end = try await Self.run(response)
        let failure = try #require(end.failure)
        #expect(failure.kind == kind)
        #expect(failure.requestWasSent)
        #expect(failure.bytesReceived == Int64(end.body.count))
    }

    @Test("bytes that are not HTTP are a violation", arguments: ["garbage\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "{\"json\":true}"])
    func garbage(response: String) async throws {
        #expect(try await Self.run(response).failure?.kind == .protocolViolation)
    }

    @Test("a body without a length ends with the connection")
    func closeDelimited() async throws {
        let end = try await Self.run("HTTP/1.0 200 OK\r\n\r\nhello")
        #expect(end.error == nil)
        #expect(end.body == Data("hello".utf8))
        #expect(end.completion?.metrics.httpVersion == .http1_0)
    }

    @Test("lines that end with a bare line feed, folds and trailers are accepted")
    func lenient() async throws {
        let end = try await Self.run("HTTP/1.1 200 OK\nA: 1\n  2\nTransfer-Encoding: chunked\n\n5\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n")
        #expect(end.error == nil)
        #expect(end.head?.value(for: "A") == "1 2")
        #expect(end.head?.value(for: "X-Trailer") == nil)
        #expect(end.body == Data("hello".utf8))
    }

    @Test("interim responses are skipped, and their heads told with that of the final one")
    func interim() async throws {
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        let end = try await Self.run("HTTP/1.1 102 Processing\r\n\r\n\(hints)HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        let interim = try #require(end.head?.interimResponses)
        #expect(interim.map(\.statusCode) == [102, 103])
        #expect(interim.last?.value(for: "Link") == "x" && interim.last?.reasonPhrase == "Early Hints")
        #expect(end.head?.statusCode == 200)
        #expect(end.head?.value(for: "Link") == nil)
        #expect(end.body == Data("ok".utf8))
    }

    @Test("an endless head is too large, in many lines or in one", arguments: ["X: 0123456789\r\n", "0123456789"])
    func endlessHead(piece: String) async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nX: ")
            let many = String(repeating: piece, count: 1000)
            while connection.pause(for: .zero) { try connection.send(raw: many) }
            return nil
        }
        let end = await CurlTransport().run(TransferRequest(url: server.url("/")))
        #expect(end.failure?.kind == .tooLarge)
        #expect(end.head == nil)
    }

    @Test("the head's limit is the session's", arguments: [(100, false), (1000, true)])
    func headLimit(limit: Int, fits: Bool) async throws {
        let end = try await Self.run("HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 200))\r\nContent-Length: 0\r\n\r\n") {
            $0.options.maximumHeadSize = limit
        }
        #expect(end.failure?.kind == (fits ? nil : .tooLarge))
    }

    @Test(
        "the limits on fields and interim responses are the session's",
        arguments: [(2, 60, 2, .tooLarge), (3, 50, 2, .tooLarge), (3, 60, 1, .protocolViolation), (3, 60, 2, nil)]
            as [(Int, Int, Int, TransferFailure.Kind?)])
    func fieldLimits(count: Int, size: Int, interimResponses: Int, kind: TransferFailure.Kind?) async throws {
        let interim = "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"
        let field = "Field: \(String(repeating: "x", count: 45))\r\n"
        let end = try await Self.run("\(interim)\(interim)HTTP/1.1 200 OK\r\nA: 1\r\n\(field)Content-Length: 0\r\n\r\n") {
            $0.options.maximumHeaderCount = count
            $0.options.maximumHeaderSize = size
            $0.options.maximumInterimResponses = interimResponses
        }
        #expect(end.failure?.kind == kind)
        #expect((end.head == nil) == (kind != nil))
    }

    @Test("by default, a field may have 64 KiB and a head a thousand fields", arguments: [true, false])
    func defaultFieldLimits(fits: Bool) async throws {
        let long = "X: \(String(repeating: "x", count: (64 << 10) - (fits ? 5 : 4)))\r\n"
        let many = String(repeating: "A: 1\r\n", count: fits ? 999 : 1000)
        for fields in [long, many] {
            let end = try await Self.run("HTTP/1.1 200 OK\r\n\(fields)Content-Length: 0\r\n\r\n")
            #expect(end.failure?.kind == (fits ? nil : .tooLarge))
        }
    }

    @Test("a field that libcurl rejects is too large, regardless of the limits", arguments: [(90 << 10, true), (120 << 10, false)])
    func fieldBeyondLibcurl(size: Int, fits: Bool) async throws {
        let end = try await Self.run("HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: size))\r\nContent-Length: 0\r\n\r\n") {
            $0.options.maximumHeaderSize = 1 << 20
        }
        #expect(end.failure?.kind == (fits ? nil : .tooLarge), "\(String(describing: end.failure))")
    }

    @Test(
        "responses without a body",
        arguments: [
            (HTTPMethod.head, "/bytes/1000", 200), (.get, "/status/204", 204), (.get, "/status/304", 304), (.head, "/status/404", 404),
        ])
    func noBody(method: HTTPMethod, path: String, status: Int) async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        for _ in 1...3 {
            let end = await transport.run(TransferRequest(url: server.url(path), method: method))
            #expect(end.error == nil)
            #expect(end.head?.statusCode == status)
            #expect(end.body.isEmpty)
        }
        #expect(server.connectionCount == 1)
    }

    @Test("a reset connection is lost", arguments: ["/reset", "/reset?send=1000"])
    func reset(path: String) async throws {
        let server = try LoopbackServer.standard()
        let end = await CurlTransport().run(TransferRequest(url: server.url(path), method: .post))
        let failure = try #require(end.failure)
        #expect(failure.kind == .connectionLost)
        #expect(failure.requestWasSent)
        #expect(server.requestCount == 1)
    }

    @Test("a path is sent unchanged")
    func path() async throws {
        let server = try LoopbackServer.standard()
        let end = await CurlTransport().run(TransferRequest(url: server.url("/echo/../echo/./a%2Fb?x=[1]")))
        #expect(end.error == nil)
        #expect(server.requests.first?.target == "/echo/../echo/./a%2Fb?x=[1]")
    }

    @Test("a reused handle requests each URL unchanged")
    func laterPaths() async throws {
        let server = try LoopbackServer.standard()
        let other = try LoopbackServer.standard()
        let transport = CurlTransport()
        let targets = ["/echo?a=1", "/echo?a=1", "/echo/../echo", "/echo", "/echo?a=1"]
        for target in targets {
            #expect(await transport.run(TransferRequest(url: server.url(target))).error == nil)
            #expect(await transport.run(TransferRequest(url: other.url(target))).error == nil)
        }
        let failure = try #require(await transport.run(TransferRequest(url: "http://[::1/")).failure)
        #expect(failure.kind == .invalidURL)
        #expect(await transport.run(TransferRequest(url: server.url("/echo?b=2"))).error == nil)
        #expect(server.requests.map(\.target) == targets + ["/echo?b=2"])
        #expect(other.requests.map(\.target) == targets)
    }
}
