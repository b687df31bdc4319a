// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// What ends a stream of HTTP/2, told as it would be over HTTP/1.1: the peer that gives up is a lost connection, the one that breaks rules is
/// none.
@Suite(.timeLimit(.minutes(1)), .enabled(if: CurlInfo.current.supportsHTTP2)) struct HTTP2Tests {
    /// How a server ends what it has begun.
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
                // Not before libcurl has taken what there is: it drops what it reads along with an end.
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
        return await EventLoop().run(request, observer: observer)
    }

    @Test(
        "a stream that the peer gives up is a lost connection",
        arguments: [.close, .goAwayAndClose(0), .goAwayAndClose(2), .reset(2), .reset(8), .reset(11)] as [Ending], [true, false])
    func lost(ending: Ending, inBody: Bool) async throws {
        let end = try await Self.run(ending, inBody: inBody)
        #expect(end.failure?.kind == .connectionLost, "\(String(describing: end.error))")
        #expect(end.body == (inBody ? Data("hello".utf8) : Data()))
    }

    @Test("a stream that ends because a rule was broken is a violation", arguments: [1, 3, 6, 9] as [UInt32], [true, false])
    func violation(code: UInt32, inBody: Bool) async throws {
        #expect(try await Self.run(.reset(code), inBody: inBody).failure?.kind == .protocolViolation)
    }

    @Test("frames that are none are a violation, not a lost connection")
    func garbage() async throws {
        let server = try HTTP2Server { connection in
            _ = try connection.frames { $0.kind == 1 }
            try connection.send(raw: Data((0..<100).flatMap { _ in [0xDE, 0xAD, 0xBE, 0xEF] as [UInt8] }))
        }
        var request = TransferRequest(url: server.url("/"))
        request.options.httpVersion = .http2PriorKnowledge
        request.options.proxy = .none
        let end = await EventLoop().run(request)
        #expect(end.failure?.kind == .protocolViolation, "\(String(describing: end.error))")
    }
}
