// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewWebSocket

func makeServer(
    answer: @escaping @Sendable (ServerRequest) -> String? = { _ in nil },
    fields: @escaping @Sendable (ServerRequest) -> [String] = { _ in [] }, _ script: @escaping WebSocketServer.Script
) throws -> WebSocketServer {
    try WebSocketServer(accept: { WebSocketHandshake.accept(for: $0) }, answer: answer, fields: fields, script: script)
}

func makeEchoServer() throws -> WebSocketServer {
    try makeServer { try $0.echo() }
}

/// Makes a server that accepts permessage-deflate, and echoes messages compressed as they were received.
func makeDeflateServer(_ parameters: String = "") throws -> WebSocketServer {
    try makeServer(fields: { _ in ["Sec-WebSocket-Extensions: permessage-deflate\(parameters)"] }) { try $0.echo() }
}

/// Returns the error that the operation throws.
func failure<R>(of operation: () async throws -> R) async -> (any Error)? {
    do {
        _ = try await operation()
        return nil
    } catch {
        return error
    }
}

/// A clock whose time advances only when a test says so.
final class TestClock: Clock, Sendable {
    struct Instant: InstantProtocol {
        var offset: Duration

        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.offset < rhs.offset }
    }

    private struct State: Sendable {
        var now = Instant(offset: .zero)
        /// The deadlines of the sleeping tasks.
        var deadlines: [Instant] = []
    }

    private let state = Watched(State())

    var now: Instant { state.update { $0.now } }
    var minimumResolution: Duration { .nanoseconds(1) }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        state.update { $0.deadlines.append(deadline) }
        defer {
            state.update { state in state.deadlines.firstIndex(of: deadline).map { _ = state.deadlines.remove(at: $0) } }
        }
        try await state.wait { $0.now >= deadline ? () : nil }
    }

    /// Waits until a task sleeps until the given offset from the start, and advances the time to it.
    func pass(to offset: Duration) async throws {
        let instant = Instant(offset: offset)
        try await state.wait { $0.deadlines.contains(instant) ? () : nil }
        state.update { $0.now = max($0.now, instant) }
    }
}
