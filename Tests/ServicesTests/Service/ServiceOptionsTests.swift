// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewServices
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@testable import CurlewWebSocket

/// Options, deadlines and interceptors of services, their requests and streams.
@Suite(.timeLimit(.minutes(1))) struct ServiceOptionsTests {
    private typealias Adapter = CurlewCore.Adapter
    private typealias Retrier = CurlewCore.Retrier

    private struct Service: HTTPService {
        var apiURL: any URLConvertible
        var usesSecureProtocol: Bool? = false
        var makeAsyncHeader: @Sendable () async throws -> HTTPHeaders = { [:] }
        var asyncHeader: HTTPHeaders { get async throws { try await makeAsyncHeader() } }
        var sessionManager = sharedManager
        var retrierFactory: any ServiceRetrierFactory = NilServiceRetrier.factory()
        var requestOptions: RequestOptions?
    }

    private struct Get: ServiceRequest {
        typealias Result = String
        var path = "json"
        var routes: HTTPRoute { [path] }
        var requestOptions: RequestOptions?
    }

    private let gate = Gate()

    private func makeServer() throws -> LoopbackServer {
        try LoopbackServer { [gate] request, connection in
            if request.path.hasPrefix("/held") { connection.wait(until: gate) }
            if request.path.hasPrefix("/bad") { return .status(503) }
            return .ok(request.header("X-Adapted") ?? "none")
        }
    }

    private static func adding(_ name: String, _ value: String = "1") -> Adapter {
        Adapter { request in
            var request = request
            request.setValue(value, forHTTPHeaderField: name)
            return request
        }
    }

    private func name(_ request: Get, _ service: Service) async -> String? {
        await serviceError { try await request.schedule(with: service).value }?.name
    }

    private static let soon = RequestOptions(deadline: .milliseconds(250))
    /// Long enough to be sent by a machine that holds up a thread.
    private static let later = RequestOptions(deadline: .seconds(1))

    @Test func theModuleShowsCachesAndCookies() {
        var configuration = SessionConfiguration()
        configuration.cache = ResponseCache.memory()
        configuration.cookies = CookieStore()
        #expect(configuration.cache != nil && configuration.cookies != nil)
    }

    @Test func deadlineEndsARequest() async throws {
        defer { gate.open() }
        let server = try makeServer()
        var service = Service(apiURL: server.url(""))
        let asked = Lock(0)
        service.retrierFactory = TestRetrier.factory(allowsMultipleRetries: true) { _ in
            asked.withLock { $0 += 1 }
            return true
        }
        let start = ContinuousClock.now
        #expect(await name(Get(path: "held", requestOptions: Self.later), service) == "timeout")
        #expect(await withDeadline(.seconds(1)) { await name(Get(path: "held"), service) } == "timeout")
        service.requestOptions = Self.later
        #expect(await name(Get(path: "held"), service) == "timeout")
        #expect(asked.withLock { $0 } == 0)
        #expect(server.requestCount == 3)
        #expect(start.duration(to: .now) < .seconds(30))
    }

    @Test func deadlineCountsOverAttemptsAndTheRetriersDelays() async throws {
        let server = try makeServer()
        var service = Service(apiURL: server.url(""), requestOptions: Self.later)
        service.retrierFactory = TestRetrier.factory(allowsMultipleRetries: true) { _ in
            try? await Task.sleep(for: .milliseconds(20))
            return true
        }
        #expect(await name(Get(path: "bad"), service) == "timeout")
        #expect(server.requestCount > 1)
        service.retrierFactory = TestRetrier.factory { _ in
            try? await Task.sleep(for: .seconds(50))
            return true
        }
        #expect(await name(Get(path: "bad-once"), service) == "timeout")
        #expect(server.requests.count { $0.path == "/bad-once" } == 1)
    }

    @Test func deadlineEndsTheWaitForAHeader() async throws {
        let server = try makeServer()
        var service = Service(apiURL: server.url(""), requestOptions: Self.soon)
        service.makeAsyncHeader = {
            try await Task.sleep(for: .seconds(50))
            return [:]
        }
        #expect(await name(Get(), service) == "timeout")
        #expect(server.requestCount == 0)
    }

    @Test func optionsOfTheRequestTakePrecedence() async throws {
        defer { gate.open() }
        let server = try makeServer()
        var common = RequestOptions(deadline: .seconds(30), interceptor: Self.adding("X-Service"), name: "service")
        common.deadlineHeader = "X-Left"
        let service = Service(apiURL: server.url(""), requestOptions: common)
        #expect(try await Get().schedule(with: service).value == "none")
        let own = RequestOptions(idleTimeout: .seconds(1), interceptor: Self.adding("X-Adapted"))
        #expect(await name(Get(path: "held", requestOptions: own), service) == "timeout")
        let requests = server.requests
        #expect(requests.map { $0.header("X-Service") } == ["1", "1"])
        #expect(requests.map { $0.header("X-Adapted") } == [nil, "1"])
        for request in requests {
            let left = try #require(Double(request.header("X-Left") ?? ""))
            #expect(left > 1 && left <= 30)
        }
    }

    @Test func interceptorRetriesWithinAnAttempt() async throws {
        let count = Lock(0)
        let server = try LoopbackServer { _, connection in
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard number < 3 else { return .ok("third") }
            connection.reset()
            return nil
        }
        let retrier = Retrier { _, request, _, completion in completion(request.retryCount < 5, 0) }
        let request = AnyServiceRequest(url: server.url("/"), requestOptions: RequestOptions(interceptor: retrier))
        #expect(try await request.schedule().value == Data("third".utf8))
        let form = AnyServiceRequest(
            .post, url: server.url("/"), body: HTTPData.JSON(["a": 1]),
            requestOptions: RequestOptions(interceptor: Self.adding("X-Adapted")))
        _ = try await form.schedule(with: AnyHTTPService(at: server.url(""), usesSecureProtocol: false)).value
        #expect(server.requests.last?.header("X-Adapted") == "1")
    }

    @Test func interceptorSeesAStatusThatIsNotAccepted() async throws {
        let count = Lock(0)
        let server = try LoopbackServer { request, _ in
            if request.path == "/json" { return count.next() < 3 ? .status(503) : .ok("third") }
            return ServerResponse(status: 503, body: .data(Data("busy".utf8)))
        }
        let policy = RetryPolicy(retryLimit: 2, exponentialBackoffScale: 0)
        let service = Service(apiURL: server.url(""), requestOptions: RequestOptions(interceptor: policy))
        #expect(try await Get().schedule(with: service).value == "third")
        #expect(server.requestCount == 3)
        // After its last retry the body is that of the last response.
        let error = await serviceError { try await Get(path: "bad").schedule(with: service).value }
        guard case .requestFailed(statusCode: 503, response: Data("busy".utf8), let failed?) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(server.requestCount == 6 && failed.attempt == 3)
        // An accepted status is no failure.
        let accepting = AnyServiceRequest(
            url: server.url("/bad"), usesSecureProtocol: false, acceptedStatusCodes: 200...599, requestOptions: service.requestOptions)
        #expect(try await accepting.schedule(with: service).value == Data("busy".utf8))
        #expect(server.requestCount == 7)
    }

    @Test func cancellationEndsADelayBeforeTheDeadline() async throws {
        let server = try makeServer()
        let asked = Log<Int>()
        var service = Service(apiURL: server.url(""), requestOptions: RequestOptions(deadline: .seconds(50)))
        service.retrierFactory = TestRetrier.factory { _ in
            asked.append(1)
            try? await Task.sleep(for: .seconds(50))
            return true
        }
        let task = Task { [service] in await name(Get(path: "bad"), service) }
        await asked.wait(for: 1)
        task.cancel()
        #expect(await task.value == "cancelled")
    }

    @Test func streamHasADeadlineUntilItIsOpen() async throws {
        let stalled = try makeServer()
        defer { gate.open() }
        let held = AnyServiceStreamRequest(
            url: "ws://127.0.0.1:\(stalled.port)/held", usesSecureProtocol: false, requestOptions: Self.soon)
        let service = Service(apiURL: stalled.url(""), sessionManager: makeManager())
        #expect(await serviceError { try await held.schedule(with: service).close() }?.name == "timeout")
        let server = try WebSocketServer(accept: { WebSocketHandshake.accept(for: $0) }) { try $0.echo() }
        let deadline = Deadline.after(.seconds(1))
        let stream = await withDeadline(deadline) {
            let stream = AnyServiceStreamRequest(
                url: server.url(), usesSecureProtocol: false, requestOptions: RequestOptions(deadline: .seconds(1))
            ).schedule(with: service)
            _ = stream.socket
            return stream
        }
        try await stream.socket.open()
        try await Task.sleep(for: deadline.remaining + .milliseconds(100))
        var results = stream.results.makeAsyncIterator()
        try await stream.send(.text("late"))
        #expect(try await results.next()?.get() == .text("late"))
    }
}
