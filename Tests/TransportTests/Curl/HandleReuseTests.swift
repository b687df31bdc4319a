// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// Handles keep the options of an ordinary request for the next one like it.
@Suite(.timeLimit(.minutes(1))) struct HandleReuseTests {
    private let server: LoopbackServer
    private let transport = CurlTransport()
    private let options = PreparedOptions(TransferOptions())

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func request(_ method: HTTPMethod = .get, _ headers: HTTPHeaders = [:], body: (any BodySource)? = nil) -> TransferRequest {
        TransferRequest(url: server.url("/echo"), method: method, headers: headers, body: body, prepared: options)
    }

    /// Runs requests one after the other, so that all use the same handle, and returns what the server received of each.
    private func replies(to requests: TransferRequest...) async throws -> [EchoReply] {
        var replies: [EchoReply] = []
        for request in requests {
            let end = await transport.run(request)
            #expect(end.error == nil)
            replies.append(try JSONDecoder().decode(EchoReply.self, from: end.body))
        }
        return replies
    }

    @Test("header fields of earlier requests are not sent") func headerFields() async throws {
        let seen = try await replies(
            to: request(), request(.get, ["X-A": "1"]), request(.get, ["X-A": "1"]), request(.get, ["X-B": "2"]), request())
        #expect(seen.map { $0.header("X-A") } == [nil, "1", "1", nil, nil])
        #expect(seen.map { $0.header("X-B") } == [nil, nil, nil, "2", nil])
        #expect(seen.allSatisfy { $0.header("Accept-Encoding") == ContentDecoder.accepted })
    }

    @Test("nor values that are only canonically equivalent") func equivalentValues() async throws {
        let values = ["caf\u{E9}", "cafe\u{301}", "\u{212A}ATE", "KATE"]
        let seen = try await replies(
            to: request(.get, ["X-A": values[0]]), request(.get, ["X-A": values[1]]), request(.get, ["X-A": values[2]]),
            request(.get, ["X-A": values[3]]))
        #expect(seen.map { $0.header("X-A").map { Array($0.utf8) } } == values.map { Array($0.utf8) })
    }

    @Test("methods and bodies of earlier requests are not sent") func methodsAndBodies() async throws {
        let body = DataBody(Data("body".utf8))
        let seen = try await replies(
            to: request(), request(.post, body: body), request(), request(.delete), request(), request(.put), request())
        #expect(seen.map(\.method) == ["GET", "POST", "GET", "DELETE", "GET", "PUT", "GET"])
        #expect(seen.map(\.bodyLength) == [0, 4, 0, 0, 0, 0, 0])
        #expect(seen.allSatisfy { $0.header("Expect") == nil })
    }

    @Test("other options replace earlier ones") func otherOptions() async throws {
        var raw = request()
        raw.options.decodesContent = false
        let seen = try await replies(to: request(), raw, request(), raw)
        #expect(seen.map { $0.header("Accept-Encoding") } == [ContentDecoder.accepted, nil, ContentDecoder.accepted, nil])
    }

    @Test("a failure does not reuse an earlier message") func failureMessages() async throws {
        let closed = TransferRequest(url: "http://127.0.0.1:1/", method: .get, headers: [:], body: nil, prepared: options)
        let first = await transport.run(closed)
        #expect(first.failure?.kind == .connect)
        let second = await transport.run(request())
        #expect(second.error == nil)
        let third = await transport.run(closed)
        // The number of milliseconds varies.
        let messages = [first, third].map { $0.failure?.message.replacing(/after \d+ ms/, with: "") }
        #expect(messages[0] == messages[1] && messages[0]?.contains("127.0.0.1") == true)
    }
}
