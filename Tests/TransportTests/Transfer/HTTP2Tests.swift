// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// Ends of HTTP/2 streams, reported as over HTTP/1.1: if the peer gives up, the connection is lost; if it violates the protocol, it is not.
@Suite(.timeLimit(.minutes(1)), .enabled(if: CurlInfo.current.supportsHTTP2)) struct HTTP2Tests {
    /// How a server ends a response.
    enum Ending: Sendable, CustomTestStringConvertible {
        case reset(UInt32)
        case close
        case goAwayAndClose(UInt32)

        var testDescription: String { "\(self)" }
    }

    private static func run(_ ending: Ending, inBody: Bool) async throws -> RecordingObserver.Record {
        let seen = Gate()
        let server = try HTTP2Server { connection in
            let request = try connection.frames { $0.kind == 1 }
            guard let stream = request.last?.stream else { return }
            if inBody {
                try connection.send(.head(200, stream: stream), .data(Data("hello".utf8), stream: stream))
                // Not before libcurl has received the data: it discards what it reads together with the end.
                _ = seen.wait(timeout: .seconds(20))
            }
            switch ending {
            case .reset(let code): try connection.send(.reset(code, stream: stream))
            case .goAwayAndClose(let code): try connection.send(.goAway(last: stream, code))
            case .close: break
            }
            if case .reset = ending { connection.waitUntilClosed() }
        }
        var request = TransferRequest(url: server.url("/"), method: .post)
        request.options.httpVersion = .http2PriorKnowledge
        request.options.proxy = .none
        let observer = RecordingObserver(onBytes: { _ in
            seen.open()
            return .proceed
        })
        return await CurlTransport().run(request, observer: observer)
    }

    @Test(
        "a stream abandoned by the peer is a lost connection",
        arguments: [.close, .goAwayAndClose(0), .goAwayAndClose(2), .reset(2), .reset(8), .reset(11)] as [Ending], [true, false])
    func lost(ending: Ending, inBody: Bool) async throws {
        let end = try await Self.run(ending, inBody: inBody)
        #expect(end.failure?.kind == .connectionLost, "\(String(describing: end.error))")
        #expect(end.body == (inBody ? Data("hello".utf8) : Data()))
    }

    @Test("a stream that ends because of a protocol error is a violation", arguments: [1, 3, 6, 9] as [UInt32], [true, false])
    func violation(code: UInt32, inBody: Bool) async throws {
        #expect(try await Self.run(.reset(code), inBody: inBody).failure?.kind == .protocolViolation)
    }

    @Test("invalid frames are a violation, not a lost connection")
    func garbage() async throws {
        let server = try HTTP2Server { connection in
            _ = try connection.frames { $0.kind == 1 }
            try connection.send(raw: Data((0..<100).flatMap { _ in [0xDE, 0xAD, 0xBE, 0xEF] as [UInt8] }))
        }
        var request = TransferRequest(url: server.url("/"))
        request.options.httpVersion = .http2PriorKnowledge
        request.options.proxy = .none
        let end = await CurlTransport().run(request)
        #expect(end.failure?.kind == .protocolViolation, "\(String(describing: end.error))")
    }

    @Test(
        "a body truncated by an early response does not look complete",
        arguments: [(307, nil), (307, 0), (307, 5), (413, 0), (413, 5)] as [(Int, Int?)], [nil, 10] as [Int64?])
    func earlyResponse(_ response: (status: Int, length: Int?), bodyLength: Int64?) async throws {
        let isCut = Lock<Bool?>(nil)
        let server = try HTTP2Server { connection in
            guard let stream = try connection.frames(until: { $0.kind == 0 }).last?.stream else { return }
            let length = response.length ?? 0
            try connection.send(.head(response.status, length: response.length, ends: length == 0, stream: stream))
            if length > 0 { try connection.send(.data(Data(count: length), ends: true, stream: stream)) }
            let rest = try connection.frames { $0.kind == 3 || $0.endsStream }
            isCut.withLock { $0 = rest.last.map { $0.kind == 3 } ?? true }
        }
        // Further bytes are announced, or possible, and don't arrive.
        var request = TransferRequest(url: server.url("/"), method: .post, body: FedBody([.bytes(Data("hello".utf8))], length: bodyLength))
        request.options.httpVersion = .http2PriorKnowledge
        request.options.proxy = .none
        request.options.totalTimeout = .seconds(10)
        let transport = CurlTransport()
        let end = await transport.run(request)
        #expect(end.error == nil, "\(String(describing: end.error))")
        #expect(end.head?.statusCode == response.status && end.body.count == response.length ?? 0)
        transport.shutDown()
        // A truncated body of known length is recognizable.
        guard bodyLength == nil || CurlInfo.current.hasReliableHTTP2 else { return }
        #expect(ProcessProbe.settles { isCut.withLock { $0 == true } })
    }
}
