// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Deadlines of requests and of tasks, and the other options of a single request.
@Suite(.timeLimit(.minutes(3))) struct DeadlineTests {
    private typealias Adapter = CurlewCore.Adapter
    private typealias Retrier = CurlewCore.Retrier

    /// Retries a request so many times, at once.
    private static func retrying(_ count: UInt) -> Retrier {
        Retrier { _, request, _, completion in completion(request.retryCount < count, 0) }
    }

    private static func failure(_ error: (any Error)?) -> TransferFailure? {
        if case CurlewError.transferFailed(let failure)? = error { failure } else { nil }
    }

    @Test("a deadline ends a transfer; the error names the attempt and the phase")
    func transfer() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, _ in
            gate.wait()
            return .ok("late")
        }
        defer { gate.open() }
        let manager = makeManager()
        let request = manager.request(
            server.url("/"), interceptor: Self.retrying(5), options: RequestOptions(deadline: .seconds(1), name: "GET /"))
        let start = ContinuousClock.now
        let error = await request.serializingData().response.error
        let failure = try #require(Self.failure(error), "\(String(describing: error))")
        #expect(failure.kind == .deadline)
        #expect(failure.phase == .waiting)
        #expect(failure.message.contains("attempt 1"))
        #expect(failure.isTimeout)
        #expect(start.duration(to: .now) >= .milliseconds(990))
        #expect(request.retryCount == 0)
        #expect(request.name == "GET /")
    }

    @Test("a retry that would begin after the deadline is not waited for")
    func delay() async throws {
        let server = try LoopbackServer { _, _ in ServerResponse(status: 503) }
        let manager = makeManager()
        let request = manager.request(
            server.url("/"), interceptor: Retrier { _, _, _, completion in completion(true, 60) },
            options: RequestOptions(deadline: .seconds(50))
        ).validate()
        guard case CurlewError.responseValidationFailed(.unacceptableStatusCode(503), _)? = await request.serializingData().response.error
        else { return #expect(Bool(false)) }
        #expect(request.retryCount == 0 && server.requestCount == 1)
    }

    @Test("a deadline ends the wait for an adapter, and for an asynchronous validation")
    func userCode() async throws {
        let server = try LoopbackServer { _, _ in .ok("x") }
        let manager = makeManager()
        let options = RequestOptions(deadline: .milliseconds(200))
        let adapted = manager.request(
            server.url("/"),
            interceptor: Adapter { request async throws in
                try await Task.sleep(for: .seconds(60))
                return request
            }, options: options)
        let first = Self.failure(await adapted.serializingData().response.error)
        #expect(first?.kind == .deadline)
        #expect(first?.phase == .preparing)
        #expect(server.requestCount == 0)
        let validated = manager.request(server.url("/"), options: RequestOptions(deadline: .seconds(1))).validate { _, _, _ async throws in
            try await Task.sleep(for: .seconds(60))
            return .success
        }
        let second = Self.failure(await validated.serializingData().response.error)
        #expect(second?.kind == .deadline)
        #expect(second?.phase == .concluding)
    }

    @Test("a deadline that has passed sends nothing, and asks no retrier")
    func passed() async throws {
        let server = try LoopbackServer { _, _ in .ok("x") }
        let manager = makeManager()
        let asked = Log<Int>()
        let retrier = Retrier { _, _, _, completion in
            asked.append(1)
            completion(true, 0)
        }
        let request = manager.request(server.url("/"), interceptor: retrier, options: RequestOptions(deadline: .zero))
        #expect(Self.failure(await request.serializingData().response.error)?.kind == .deadline)
        let handled = Log<Bool>()
        _ = await withDeadline(.zero) {
            manager.download(server.url("/"), interceptor: retrier).validate().response {
                handled.append(Self.failure($0.error)?.kind == .deadline)
            }
        }
        #expect(await handled.first() == true)
        #expect(server.requestCount == 0)
        #expect(asked.elements.isEmpty)
    }

    @Test("deadlines nest: the earlier one counts, for child tasks too; uploads, downloads and streamed bodies")
    func nesting() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, _ in
            gate.wait()
            return .ok("late")
        }
        defer { gate.open() }
        let manager = makeManager()
        let start = ContinuousClock.now
        let kinds = await withDeadline(.milliseconds(400)) {
            await withDeadline(.seconds(60)) {
                async let data = manager.request(server.url("/"), options: RequestOptions(deadline: .seconds(50))).serializingData()
                    .response.error
                async let upload = manager.upload(Data("x".utf8), to: server.url("/")).serializingData().response.error
                async let download = manager.download(server.url("/")).serializingData().response.error
                var streamed: (any Error)?
                do {
                    for try await _ in manager.streamRequest(server.url("/")).bodyStream() {}
                } catch {
                    streamed = error
                }
                return await [data, upload, download, streamed].map { Self.failure($0)?.kind }
            }
        }
        #expect(kinds == [.deadline, .deadline, .deadline, .deadline])
        #expect(start.duration(to: .now) < .seconds(30))
        #expect(Deadline.current == nil)
    }

    @Test("the remaining time goes to the request's own origin only, with each attempt")
    func header() async throws {
        let other = try LoopbackServer { request, _ in .ok(request.header("X-Deadline") ?? "none") }
        let server = try LoopbackServer { request, _ in
            if request.path == "/away" { return .redirect(to: other.url("/"), status: 302) }
            return .ok(request.header("X-Deadline") ?? "none")
        }
        let manager = makeManager()
        var options = RequestOptions(deadline: .seconds(100))
        options.deadlineHeader = "X-Deadline"
        let value = try await manager.request(server.url("/"), options: options).serializingString().value
        let seconds = try #require(Double(value))
        #expect(seconds > 50 && seconds <= 100)
        #expect(value.split(separator: ".").last?.count == 3)
        #expect(try await manager.request(server.url("/away"), options: options).serializingString().value == "none")
    }

    @Test("1,000 requests under random latency, retries and queueing end by their deadlines")
    func many() async throws {
        let gate = Gate()
        let server = try LoopbackServer { request, _ in
            // A latency by the request's number, as in the query; every ninth has no response before all have ended.
            let number = Int(request.query("n") ?? "") ?? 0
            if number % 9 == 4 { gate.wait() } else { usleep(UInt32(number * 7919 % 40) * 1000) }
            return number % 5 == 0 ? ServerResponse(status: 503) : .ok("x")
        }
        defer { gate.open() }
        let manager = makeManager { $0.maximumConnectionsPerHost = 16 }
        manager.retrier = Retrier { _, request, _, completion in completion(request.retryCount < 3, 0.02) }
        let late = await withTaskGroup(of: (Duration, Bool).self) { group in
            for number in 0..<1000 {
                group.addTask {
                    // Some have the time to end before.
                    let deadline = Duration.milliseconds(number % 9 == 0 ? 30_000 : 50 + number * 31 % 900)
                    let start = ContinuousClock.now
                    let request = manager.request(server.url("/?n=\(number)"), options: RequestOptions(deadline: deadline)).validate()
                    let error = await request.serializingData().response.error
                    return (start.duration(to: .now) - deadline, Self.failure(error)?.kind == .deadline)
                }
            }
            return await group.reduce(into: [(Duration, Bool)]()) { $0.append($1) }
        }
        #expect(late.count == 1000)
        #expect(late.filter(\.1).count >= 1000 / 9)
        #expect(late.contains { !$0.1 })
        // The loop's own lateness is 20 ms; this includes the time for which the machine runs other tasks and, under a sanitizer, the
        // thousand themselves.
        let worst = late.map(\.0).max() ?? .zero
        #expect(worst < .seconds(10), "the latest was \(worst) late")
    }

    // MARK: Other options

    @Test("idle and total timeouts, the largest body and the redirect policy are the request's own")
    func others() async throws {
        let gate = Gate()
        let server = try LoopbackServer { request, _ in
            if request.path == "/slow" { gate.wait() }
            if request.path == "/away" { return .redirect(to: "/", status: 302) }
            return .ok("0123456789")
        }
        defer { gate.open() }
        let manager = makeManager()
        let idle = await manager.request(server.url("/slow"), options: RequestOptions(idleTimeout: .milliseconds(100))).serializingData()
            .response.error
        #expect(Self.failure(idle)?.kind == .idleTimeout)
        let total = await manager.request(server.url("/slow"), options: RequestOptions(totalTimeout: .milliseconds(100))).serializingData()
            .response.error
        #expect(Self.failure(total)?.kind == .totalTimeout)
        var options = RequestOptions()
        options.maximumBodySize = 5
        #expect(Self.failure(await manager.request(server.url("/"), options: options).serializingData().response.error)?.kind == .tooLarge)
        var unfollowed = RequestOptions()
        var redirects = RedirectPolicy()
        redirects.limit = 0
        unfollowed.redirects = redirects
        #expect(await manager.request(server.url("/away"), options: unfollowed).serializingData().response.response?.statusCode == 302)
        var addresses = RequestOptions()
        addresses.addresses = .publicOnly
        let refused = await manager.request(server.url("/"), options: addresses).serializingData().response.error
        #expect(Self.failure(refused)?.kind == .addressNotAllowed)
        var urgent = RequestOptions(name: "GET /")
        urgent.priority = 0
        urgent.userInfo["tenant"] = "blue"
        let request = manager.request(server.url("/"), options: urgent)
        #expect(await request.serializingData().response.request?.value(forHTTPHeaderField: "Priority") == "u=0")
        #expect(request.options.userInfo["tenant"] as? String == "blue")
        #expect(request.session.configuration.idleTimeout == .seconds(60))
    }

    // MARK: The lifetime of awaited requests

    @Test("an awaited request keeps its session, with adapters and retriers")
    func awaited() async throws {
        let server = try LoopbackServer.standard()
        func interceptedManager() -> SessionManager {
            let manager = makeManager()
            manager.interceptor = Interceptor(
                adapter: Adapter { request async in
                    await Task.yield()
                    return request
                }, retrier: Self.retrying(3))
            return manager
        }
        #expect(try await makeManager().request(server.url("/json")).serializingData().value.isEmpty == false)
        let value = try await interceptedManager().request(server.url("/flaky?fail=2")).validate().serializingString().value
        #expect(value == "Attempt 3")
        var count = 0
        for try await piece in makeManager().streamRequest(server.url("/bytes/100000")).bodyStream() { count += piece.count }
        #expect(count == 100_000)
    }

    @Test("a released manager ends requests that have only closures, and the session ends after the last awaited request")
    func closures() async throws {
        let gate = Gate()
        let server = try LoopbackServer { request, _ in
            if request.path == "/slow" { gate.wait() }
            return .ok("x")
        }
        let errors = Log<Bool>()
        var manager: SessionManager? = makeManager()
        manager?.request(server.url("/slow")).response { response in
            if case CurlewError.sessionInvalidated? = response.error { errors.append(true) } else { errors.append(false) }
        }
        manager = nil
        #expect(await errors.first() == true)
        weak var weakManager: SessionManager?
        do {
            let manager = makeManager()
            weakManager = manager
            let task = manager.request(server.url("/slow")).serializingData()
            gate.open()
            _ = try await task.value
        }
        #expect(await eventually { weakManager == nil })
    }

    @Test("a cancelled task gets CancellationError, a cancelled request CurlewError.cancelled")
    func cancellation() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, _ in
            gate.wait()
            return .ok("x")
        }
        defer { gate.open() }
        let manager = makeManager()
        let task = Task { try await manager.request(server.url("/")).serializingData().value }
        #expect(await server.waitForRequests(1))
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let request = manager.request(server.url("/"))
        let value = Task { try await request.serializingData().value }
        #expect(await server.waitForRequests(2))
        request.cancel()
        do {
            _ = try await value.value
            Issue.record("not cancelled")
        } catch CurlewError.cancelled {}
    }
}
