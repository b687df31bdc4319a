// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

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
