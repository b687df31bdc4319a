// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewOperations
import CurlewTestSupport
import Testing

/// Options, deadlines and interceptors of operations.
@Suite(.timeLimit(.minutes(1))) struct OperationOptionsTests {
    private typealias Adapter = CurlewCore.Adapter
    private typealias Retrier = CurlewCore.Retrier

    private let gate = Gate()

    private func makeServer() throws -> LoopbackServer {
        try LoopbackServer { [gate] request, connection in
            if request.path.hasPrefix("/held") { connection.wait(until: gate) }
            return .ok(request.header("X-Adapted") ?? "none")
        }
    }

    private func kind(_ operation: URLConnectionOperation) -> TransferFailure.Kind? {
        guard case CurlewError.transferFailed(let failure)? = (operation.error as? URLError)?.userInfo[NSUnderlyingErrorKey] as? CurlewError
        else { return nil }
        return failure.kind
    }

    private static let adapter = Adapter { request in
        var request = request
        request.setValue("1", forHTTPHeaderField: "X-Adapted")
        return request
    }

    private func finish(_ operation: URLConnectionOperation, in queue: OperationQueue = makeQueue()) async {
        queue.addOperation(operation)
        await operation.reach(.finished)
    }

    @Test("the module shows the caches and cookies of its sessions' configurations") func exports() {
        var configuration = SessionConfiguration()
        configuration.cache = ResponseCache.memory()
        configuration.cookies = CookieStore()
        #expect(configuration.cache != nil && configuration.cookies != nil)
    }

    @Test("the deadline of an operation's options counts from its start") func deadline() async throws {
        defer { gate.open() }
        let server = try makeServer()
        let operation = try URLConnectionOperation.make(server.url("/held"))
        operation.requestOptions = RequestOptions(deadline: .milliseconds(250))
        await finish(operation)
        #expect(operation.urlErrorCode == .timedOut)
        #expect(kind(operation) == .deadline)
        #expect((operation.duplicate()).requestOptions?.deadline == .milliseconds(250))
    }

    @Test("the caller's deadline is captured where an operation is created or started") func caller() async throws {
        defer { gate.open() }
        let server = try makeServer()
        let created = try await withDeadline(.seconds(1)) { try URLConnectionOperation.make(server.url("/held")) }
        await finish(created)
        #expect(kind(created) == .deadline)
        let started = try URLConnectionOperation.make(server.url("/held"))
        await withDeadline(.seconds(1)) { started.start() }
        await started.reach(.finished)
        #expect(kind(started) == .deadline)
        #expect(server.requestCount == 2)
    }

    @Test("an operation that waits in its queue, or is paused, past its deadline fails without a request") func late() async throws {
        let server = try makeServer()
        let operation = try await withDeadline(.milliseconds(50)) { try URLConnectionOperation.make(server.url("/a")) }
        let queue = makeQueue()
        queue.isSuspended = true
        queue.addOperation(operation)
        try await Task.sleep(for: .milliseconds(100))
        queue.isSuspended = false
        await operation.reach(.finished)
        #expect(kind(operation) == .deadline)
        let paused = try URLConnectionOperation.make(server.url("/held"))
        // Long enough to be sent on a busy machine.
        paused.requestOptions = RequestOptions(deadline: .seconds(2))
        queue.addOperation(paused)
        #expect(await server.waitForRequests(1))
        paused.pause()
        try await Task.sleep(for: .milliseconds(2_050))
        gate.open()
        paused.resume()
        await paused.reach(.finished)
        #expect(kind(paused) == .deadline)
        #expect(server.requestCount == 1)
    }

    @Test("timeouts and an asynchronous adapter of the options reach the request") func options() async throws {
        defer { gate.open() }
        let server = try makeServer()
        let operation = try URLConnectionOperation.make(server.url("/held"))
        let adapter = Adapter { request async throws in
            await Task.yield()
            return try Self.adapter.adapt(request)
        }
        operation.requestOptions = RequestOptions(idleTimeout: .seconds(1), interceptor: adapter)
        await finish(operation)
        #expect(kind(operation) == .idleTimeout)
        #expect(server.requests.first?.header("X-Adapted") == "1")
    }

    @Test("a retried request is still that of its operation, with its closures") func retry() async throws {
        let count = Lock(0)
        let server = try LoopbackServer { request, connection in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number < 3 {
                connection.close()
                return nil
            }
            return request.path == "/moved" ? .redirect(to: "/there", status: 302) : .ok("there")
        }
        let asked = Log<UInt>()
        let retrier = Retrier { _, request, _, completion in
            asked.append(request.retryCount)
            completion(request.retryCount < 5, 0)
        }
        let operation = try URLConnectionOperation.make(server.url("/moved"))
        operation.requestOptions = RequestOptions(deadline: .seconds(30), interceptor: retrier)
        let redirects = Log<String>()
        operation.setRedirectResponseBlock { _, request, response in
            if response != nil { redirects.append(request.url?.path ?? "") }
            return request
        }
        await finish(operation)
        #expect(operation.responseString == "there", "\(String(describing: operation.error))")
        #expect(redirects.elements == ["/there"])
        #expect(asked.elements.count >= 1)
    }

    @Test("an error whose body is lost before its first byte does not count once its request is retried")
    func retriedAfterAnError() async throws {
        let count = Lock(0)
        let server = try LoopbackServer { _, connection in
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard number == 1 else { return .ok("there") }
            try connection.send(raw: "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 100\r\n\r\n")
            connection.close()
            return nil
        }
        let directory = try TemporaryDirectory()
        let operation = try HTTPRequestOperation.make(server.url("/"))
        operation.outputFile = directory.file("body")
        operation.requestOptions = RequestOptions(
            interceptor: Retrier { _, request, _, completion in completion(request.retryCount < 5, 0) })
        await finish(operation)
        #expect(operation.response?.statusCode == 200 && operation.error == nil)
        #expect(server.requests.count == 2)
        #expect(try contents(of: directory) == ["body"])
        #expect((try? Data(contentsOf: directory.file("body"))) == Data("there".utf8))
    }

    @Test("cancelling ends the delay before a retry") func cancelled() async throws {
        let server = try LoopbackServer { _, connection in
            connection.reset()
            return nil
        }
        let asked = Log<Int>()
        let operation = try URLConnectionOperation.make(server.url("/"))
        operation.requestOptions = RequestOptions(
            interceptor: Retrier { _, _, _, completion in
                completion(true, 600)
                asked.append(1)
            })
        makeQueue().addOperation(operation)
        await asked.wait(for: 1)
        operation.cancel()
        await operation.reach(.finished)
        #expect(operation.urlErrorCode == .cancelled)
    }

    @Test("the manager's options, and those of its makers") func manager() async throws {
        defer { gate.open() }
        let server = try makeServer()
        let manager = HTTPRequestOperationManager(baseURL: server.url, session: makeSession())
        manager.responseSerializer = HTTPResponseSerializer()
        manager.completionQueue = callbackQueue
        manager.requestOptions = RequestOptions(deadline: .seconds(30), interceptor: Self.adapter, name: "manager")
        let plain = try #require(manager.get("a"))
        await plain.reach(.finished)
        #expect(plain.responseString == "1")
        #expect(plain.requestOptions?.name == "manager")
        var options = RequestOptions(name: "own")
        options.idleTimeout = .seconds(1)
        let second = Adapter { request in
            var request = request
            request.setValue((request.value(forHTTPHeaderField: "X-Adapted") ?? "first") + " own", forHTTPHeaderField: "X-Own")
            return request
        }
        let own = try #require(manager.put("held", interceptor: second, options: options))
        await own.reach(.finished)
        #expect(kind(own) == .idleTimeout)
        #expect(own.requestOptions?.name == "own" && own.requestOptions?.deadline == .seconds(30))
        let received = server.requests.last
        #expect(received?.method == "PUT" && received?.header("X-Own") == "first own" && received?.header("X-Adapted") == "1")
        let late = try #require(manager.post("held", parameters: ["a": "b"], options: RequestOptions(deadline: .milliseconds(200))))
        await late.reach(.finished)
        #expect(kind(late) == .deadline)
        #expect((manager.duplicate()).requestOptions?.name == "manager")
    }
}
