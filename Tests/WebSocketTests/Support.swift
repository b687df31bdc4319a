// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewWebSocket

/// A manager without proxy, and with a queue of its own.
func makeManager(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
    var configuration = SessionConfiguration()
    configuration.callbackQueue = DispatchQueue(label: "websocket-tests")
    configuration.proxy = .none
    change(&configuration)
    return SessionManager(configuration: configuration)
}

func makeServer(
    answer: @escaping @Sendable (ServerRequest) -> String? = { _ in nil },
    fields: @escaping @Sendable (ServerRequest) -> [String] = { _ in [] }, _ script: @escaping WebSocketServer.Script
) throws -> WebSocketServer {
    try WebSocketServer(accept: { WebSocketHandshake.accept(for: $0) }, answer: answer, fields: fields, script: script)
}

func makeEchoServer() throws -> WebSocketServer {
    try makeServer { try $0.echo() }
}

/// A server that agrees to permessage-deflate, and sends back what it gets, compressed as it came.
func makeDeflateServer(_ parameters: String = "") throws -> WebSocketServer {
    try makeServer(fields: { _ in ["Sec-WebSocket-Extensions: permessage-deflate\(parameters)"] }) { try $0.echo() }
}

/// What the operation throws.
func failure<R>(of operation: () async throws -> R) async -> (any Error)? {
    do {
        _ = try await operation()
        return nil
    } catch {
        return error
    }
}

/// A clock on which time passes when a test says so.
final class TestClock: Clock, Sendable {
    struct Instant: InstantProtocol {
        var offset: Duration

        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.offset < rhs.offset }
    }

    private struct State: Sendable {
        var now = Instant(offset: .zero)
        /// When those who sleep are to wake.
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

    /// Waits until somebody sleeps until that time from the beginning, and lets it come.
    func pass(to offset: Duration) async throws {
        let instant = Instant(offset: offset)
        try await state.wait { $0.deadlines.contains(instant) ? () : nil }
        state.update { $0.now = max($0.now, instant) }
    }
}

/// What servers' threads have noted, for tests that wait for it.
final class Log<Element: Sendable>: Sendable {
    private let state = Watched<[Element]>([])

    var elements: [Element] { state.update { $0 } }

    func append(_ element: Element) {
        state.update { $0.append(element) }
    }

    /// Waits for the first.
    func first() async -> Element? {
        try? await state.wait { $0.first }
    }

    /// Waits until there are so many.
    func wait(for count: Int) async {
        try? await state.wait { $0.count >= count ? () : nil }
    }
}
