// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Requests and the responses to them, at a ``MockTransport``. Thread-safe.
public final class MockStub: Sendable {
    enum Responses: Sendable {
        /// One after the other, of which the last one repeats.
        case sequence([MockResponse])
        case closure(@Sendable (MockRequest) async throws -> MockResponse)
    }

    let pattern: RequestPattern
    private let responses: Responses
    private let matched = Lock<[MockRequest]>([])

    init(_ pattern: RequestPattern, _ responses: Responses) {
        self.pattern = pattern
        self.responses = responses
    }

    /// The requests that the stub was used for.
    public var requests: [MockRequest] { matched.withLock { $0 } }

    /// Their number.
    public var count: Int { matched.withLock { $0.count } }

    /// Notes a request, and returns the way to the response.
    func use(for request: MockRequest) -> Responses {
        let index = matched.withLock { matched in
            matched.append(request)
            return matched.count - 1
        }
        switch responses {
        case .sequence(let all): return .sequence([all[min(index, all.count - 1)]])
        case .closure: return responses
        }
    }
}

// MARK: - CustomStringConvertible

extension MockStub: CustomStringConvertible {
    /// What it matches, and how often it was used.
    public var description: String { "\(pattern) (used \(count == 1 ? "once" : "\(count) times"))" }
}

/// No stub of a ``MockTransport`` matches a request, or no stored exchange of a `ReplayTransport`.
public struct UnmatchedRequest: Error, Sendable, CustomStringConvertible {
    /// The method and the URL of the request, redacted.
    public let request: String
    /// What there is, a line each, redacted.
    public let candidates: [String]
    /// What the candidates are called: `stub` or `stored exchange`.
    let kind: String

    /// What was asked, and what there is.
    public var description: String {
        guard !candidates.isEmpty else { return "No \(kind) matches \(request): there is none" }
        return "No \(kind) matches \(request). There are:" + candidates.enumerated().map { "\n  \($0 + 1). \($1)" }.joined()
    }
}

/// The stubs of a transport, and the requests that it has received. Thread-safe.
final class StubTable: Sendable {
    private struct State {
        var stubs: [MockStub] = []
        var queue: [MockResponse] = []
        var streams: [(name: String, serve: @Sendable (MockConnection) async throws -> Void)] = []
        var lastNumber = 0
    }

    let requests = Inbox<MockRequest>()
    private let state = Lock(State())

    @discardableResult
    func add(_ stub: MockStub) -> MockStub {
        state.withLock { $0.stubs.append(stub) }
        return stub
    }

    func enqueue(_ responses: [MockResponse]) { state.withLock { $0.queue += responses } }

    func remove(_ stub: MockStub) {
        state.withLock { state in state.stubs.removeAll { $0 === stub } }
    }

    func removeAll() {
        state.withLock { state in
            state.stubs = []
            state.queue = []
        }
    }

    func onStream(_ name: String, _ serve: @escaping @Sendable (MockConnection) async throws -> Void) {
        state.withLock { $0.streams.append((name, serve)) }
    }

    /// Responds to an exchange whose body was received. On the transport's queue.
    func respond(to exchange: ScriptedExchange) {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        var request = MockRequest(number: number, exchange)
        let (queued, stubs) = state.withLock { state in (state.queue.isEmpty ? nil : state.queue.removeFirst(), state.stubs) }
        if let queued {
            request.isMatched = true
            requests.put(request)
            return perform(.sequence([queued]), request, exchange)
        }
        for stub in stubs.reversed() {
            guard let parameters = stub.pattern.parameters(of: request) else { continue }
            request.parameters = parameters
            request.isMatched = true
            requests.put(request)
            return perform(stub.use(for: request), request, exchange)
        }
        requests.put(request)
        let error = UnmatchedRequest(request: request.description, candidates: stubs.map(\.description), kind: "stub")
        exchange.resume(with: [.complete(error)])
    }

    private func perform(_ responses: MockStub.Responses, _ request: MockRequest, _ exchange: ScriptedExchange) {
        switch responses {
        case .sequence(let response): exchange.resume(with: response[0].steps(for: request))
        case .closure(let respond):
            Task {
                do {
                    exchange.resume(with: try await respond(request).steps(for: request))
                } catch {
                    exchange.resume(with: [.complete(error)])
                }
            }
        }
    }

    /// Serves a raw stream, in a task of its own.
    func serve(_ stream: ScriptedStream) {
        let streams = state.withLock { $0.streams }
        let name = "\(stream.request.host):\(stream.request.port)"
        guard let serve = streams.last(where: { $0.name == name || $0.name == "*" })?.serve else {
            let names = streams.map { $0.name.redactedURL }
            return stream.complete(UnmatchedRequest(request: "a stream to \(name)", candidates: names, kind: "stream"))
        }
        let connection = MockConnection(stream)
        Task {
            stream.open()
            do {
                try await serve(connection)
                connection.close()
            } catch {
                connection.fail(error)
            }
        }
    }
}

extension MockRequest {
    fileprivate init(number: Int, _ exchange: ScriptedExchange) {
        let request = exchange.request
        self.init(
            number: number, method: request.method, url: request.url, headers: request.headers, body: exchange.sentBody,
            trailers: request.body?.trailers ?? [:], options: request.options)
    }
}
