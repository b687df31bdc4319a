// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// Interim responses (RFC 9110, section 15.2), reported as they come.
@Suite(.timeLimit(.minutes(1))) struct InterimResponseTests {
    private func request(_ url: String, method: HTTPMethod = .get) -> TransferRequest {
        var request = TransferRequest(url: url, method: method)
        request.options.proxy = .none
        return request
    }

    @Test("an interim response is reported before the server sends the final one") func inTime() async throws {
        let seen = Gate()
        let server = try LoopbackServer { _, connection in
            try connection.sendInterim(102)
            try connection.sendInterim(103, headers: [ServerField("Link", "</a.css>; rel=preload")])
            return connection.wait(until: seen, timeout: .seconds(20)) ? .ok("ok") : .status(504)
        }
        let observer = RecordingObserver(onInterim: { if $0.statusCode == 103 { seen.open() } })
        let end = await CurlTransport().run(request(server.url("/")), observer: observer)
        #expect(end.head?.statusCode == 200 && end.body == Data("ok".utf8))
        #expect(end.interim.map(\.statusCode) == [102, 103] && end.interim == end.head?.interimResponses)
        #expect(end.interim.last?.value(for: "Link") == "</a.css>; rel=preload" && end.interim.last?.reasonPhrase == "Early Hints")
    }

    @Test("an interim response is reported while the request's body is sent, also if the upload is then cut")
    func duringUpload() async throws {
        let seen = Gate()
        let server = try LoopbackServer(bodies: { _ in .unread }) { _, connection in
            try connection.sendInterim(104, headers: [ServerField("Location", "/uploads/1")])
            connection.wait(until: seen, timeout: .seconds(20))
            connection.close()
            return nil
        }
        var request = request(server.url("/"), method: .post)
        // More than the buffers of both sides hold.
        request.body = DataBody(Data(count: 32 << 20))
        let end = await CurlTransport().run(request, observer: RecordingObserver(onInterim: { _ in seen.open() }))
        #expect(seen.isOpen && end.interim.map(\.statusCode) == [104])
        #expect(end.interim.first?.value(for: "Location") == "/uploads/1")
        #expect(end.head == nil && end.failure?.kind == .connectionLost, "\(String(describing: end.error))")
        #expect(end.sent < 32 << 20)
    }

    @Test("100 Continue is not reported by itself") func expectation() async throws {
        let server = try LoopbackServer { _, connection in
            try connection.sendInterim(103)
            return .ok("ok")
        }
        var request = request(server.url("/"), method: .post)
        request.headers["Expect"] = "100-continue"
        request.body = DataBody(Data("body".utf8))
        let end = await CurlTransport().run(request)
        #expect(end.body == Data("ok".utf8))
        #expect(end.head?.interimResponses.map(\.statusCode) == [100, 103] && end.interim.map(\.statusCode) == [103])
    }

    @Test("101 is a final response") func switching() async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\n\r\n")
            connection.close()
            return nil
        }
        let end = await CurlTransport().run(request(server.url("/")))
        #expect(end.interim.map(\.statusCode) == [103] && end.head?.statusCode ?? 101 == 101)
    }

    @Test("the interim response that exceeds a limit is not reported, and fails the transfer", arguments: [true, false])
    func limits(ofNumber: Bool) async throws {
        let field = ServerField("Link", String(repeating: "x", count: 500))
        let server = try LoopbackServer { _, connection in
            for number in 1...3 { try connection.sendInterim(103, headers: ofNumber || number == 3 ? [field] : []) }
            return .ok("ok")
        }
        var request = request(server.url("/"))
        if ofNumber { request.options.maximumInterimResponses = 2 } else { request.options.maximumHeaderSize = 400 }
        let end = await CurlTransport().run(request)
        #expect(end.interim.map(\.statusCode) == [103, 103])
        #expect(end.head == nil && end.failure?.kind == (ofNumber ? .protocolViolation : .tooLarge))
    }

    @Test("over HTTP/2 too", .enabled(if: CurlInfo.current.supportsHTTP2)) func http2() async throws {
        let seen = Gate()
        let server = try HTTP2Server { connection in
            guard let stream = try connection.frames(until: { $0.kind == 1 }).last?.stream else { return }
            try connection.send(.head(103, stream: stream))
            guard seen.wait(timeout: .seconds(20)) else { return }
            try connection.send(.head(200, stream: stream), .data(Data("ok".utf8), ends: true, stream: stream))
            connection.waitUntilClosed()
        }
        var request = request(server.url("/"))
        request.options.httpVersion = .http2PriorKnowledge
        let transport = CurlTransport()
        let end = await transport.run(request, observer: RecordingObserver(onInterim: { _ in seen.open() }))
        #expect(end.interim.map(\.statusCode) == [103] && end.interim == end.head?.interimResponses)
        #expect(end.body == Data("ok".utf8) && end.error == nil)
        transport.shutDown()
    }
}
