// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewEvents
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Options, deadlines and interceptors of event streams.
@Suite(.timeLimit(.minutes(1))) struct EventStreamOptionsTests {
    private typealias Adapter = CurlewCore.Adapter
    private typealias Retrier = CurlewCore.Retrier

    private let manager = makeManager()

    private static func kind(_ error: (any Error)?) -> TransferFailure.Kind? {
        if case CurlewError.transferFailed(let failure)? = error { failure.kind } else { nil }
    }

    /// Reads a stream to its end; returns the number of events and the error.
    private func read(_ stream: EventStream) async -> (count: Int, error: (any Error)?) {
        var count = 0
        do {
            for try await _ in stream { count += 1 }
            return (count, nil)
        } catch {
            return (count, error)
        }
    }

    private func configuration(after delay: Duration) -> EventStreamConfiguration {
        var configuration = EventStreamConfiguration()
        configuration.reconnectionTime = delay
        configuration.maximumDelay = .seconds(600)
        return configuration
    }

    /// A server whose responses have one event, and stay open if a gate is given.
    private func makeServer(_ gate: Gate? = nil) throws -> LoopbackServer {
        try LoopbackServer { _, connection in
            guard let gate else { return .ok("data: 1\n\n", type: "text/event-stream") }
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
            connection.wait(until: gate)
            connection.keepAlive = false
            return nil
        }
    }

    @Test("a deadline is absolute over all reconnections and their waits") func reconnections() async throws {
        let server = try makeServer()
        let stream = manager.eventStream(
            server.url("/"), configuration: configuration(after: .milliseconds(20)), options: RequestOptions(deadline: .milliseconds(1_500))
        )
        let start = ContinuousClock.now
        let (count, error) = await read(stream)
        #expect(Self.kind(error) == .deadline, "\(String(describing: error))")
        #expect(count > 1)
        #expect(server.requestCount > 1)
        #expect(start.duration(to: .now) >= .milliseconds(1_490))
        #expect(start.duration(to: .now) < .seconds(30))
    }

    @Test("a deadline ends a wait for a reconnection that is longer") func wait() async throws {
        let server = try makeServer()
        let stream = manager.eventStream(
            server.url("/"), configuration: configuration(after: .seconds(300)), options: RequestOptions(deadline: .milliseconds(1_500)))
        let (count, error) = await read(stream)
        #expect(Self.kind(error) == .deadline, "\(String(describing: error))")
        #expect(count == 1)
        #expect(server.requestCount == 1)
    }

    @Test("the caller's deadline ends an open stream, captured where it is created or where it is read") func caller() async throws {
        let gate = Gate()
        defer { gate.open() }
        let server = try makeServer(gate)
        let created = await withDeadline(.milliseconds(1_500)) { manager.eventStream(server.url("/")) }
        let first = await read(created)
        #expect(first.count == 1 && Self.kind(first.error) == .deadline, "\(first)")
        let stream = manager.eventStream(server.url("/"))
        let second = await withDeadline(.milliseconds(1_500)) { await read(stream) }
        #expect(second.count == 1 && Self.kind(second.error) == .deadline, "\(second)")
    }

    @Test("a deadline around a call of next() ends it, also while it reconnects", arguments: [false, true])
    func called(isOpen: Bool) async throws {
        let gate = Gate()
        defer { gate.open() }
        let server = try makeServer(isOpen ? gate : nil)
        var events = manager.eventStream(server.url("/"), configuration: configuration(after: .milliseconds(20))).makeAsyncIterator()
        let error = await withDeadline(.milliseconds(300)) { () async -> (any Error)? in
            do {
                while try await events.next() != nil {}
                return nil
            } catch {
                return error
            }
        }
        #expect(Self.kind(error) == .deadline, "\(String(describing: error))")
        #expect(try await events.next() == nil)
    }

    @Test("the idle timeout of the options applies to a connection, and its adapter sees the request") func options() async throws {
        let gate = Gate()
        defer { gate.open() }
        let server = try makeServer(gate)
        var options = RequestOptions(idleTimeout: .milliseconds(1_500), name: "GET /events")
        options.interceptor = Adapter { request in
            var request = request
            request.setValue("1", forHTTPHeaderField: "X-Adapted")
            return request
        }
        var configuration = EventStreamConfiguration()
        configuration.reconnection = .never
        let (count, error) = await read(manager.eventStream(server.url("/"), configuration: configuration, options: options))
        #expect(count == 1 && Self.kind(error) == .idleTimeout, "\(String(describing: error))")
        #expect(server.requests.map { $0.header("X-Adapted") } == ["1"])
    }

    @Test("an interceptor retries a connection, unless its delay ends after the deadline") func interceptor() async throws {
        let server = try LoopbackServer { request, _ in
            request.header("X-Try") == "3" ? .ok("data: 1\n\n", type: "text/event-stream") : .status(503)
        }
        let tries = Lock(0)
        let adapter = Adapter { request in
            var request = request
            let number = tries.withLock { tries in
                tries += 1
                return tries
            }
            request.setValue("\(number)", forHTTPHeaderField: "X-Try")
            return request
        }
        var configuration = EventStreamConfiguration()
        configuration.reconnection = .never
        let retrier = Retrier { _, _, _, completion in completion(true, 0) }
        let stream = manager.eventStream(
            server.url("/"), configuration: configuration, interceptor: Interceptor(adapters: [adapter], retriers: [retrier]),
            options: RequestOptions(deadline: .seconds(30)))
        let (count, error) = await read(stream)
        #expect(count == 1 && error == nil, "\(String(describing: error))")
        #expect(server.requestCount == 3)
        let late = Retrier { _, _, _, completion in completion(true, 600) }
        let other = manager.eventStream(
            server.url("/"), configuration: configuration, interceptor: late, options: RequestOptions(deadline: .seconds(30)))
        #expect("\(try #require(await read(other).error))".contains("503"))
        #expect(server.requestCount == 4)
    }

    @Test("cancelling the task that reads ends the wait for a reconnection, not with the deadline") func cancelled() async throws {
        let server = try makeServer()
        let waiting = Log<Int>()
        var configuration = configuration(after: .seconds(300))
        configuration.onChange = { if case .waiting = $0 { waiting.append(1) } }
        let stream = manager.eventStream(
            server.url("/"), configuration: configuration, options: RequestOptions(deadline: .seconds(200)))
        let reading = Task { await read(stream).error }
        await waiting.wait(for: 1)
        reading.cancel()
        guard case CurlewError.cancelled? = await reading.value else {
            Issue.record("not cancelled")
            return
        }
    }
}
