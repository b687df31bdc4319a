// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Adapters, retriers, validations and decisions in `async` form, and the context in which they run.
@Suite(.timeLimit(.minutes(2))) struct AsyncInterceptorTests {
    private typealias Adapter = CurlewCore.Adapter
    private typealias Retrier = CurlewCore.Retrier

    /// Retries a request so many times, at once.
    private static func retrying(_ count: UInt) -> Retrier {
        Retrier { _, request, _, completion in completion(request.retryCount < count, 0) }
    }

    enum Tenant {
        @TaskLocal static var current = "none"
    }

    private struct TenantCarrier: ContextCarrier {
        func capture() -> String? { Tenant.current }
        func restore<Value>(_ tenant: String, around body: () throws -> Value) rethrows -> Value {
            try Tenant.$current.withValue(tenant, operation: body)
        }
    }

    private actor Tokens {
        private var count = 0
        func next() async -> String {
            count += 1
            await Task.yield()
            return "token \(count)"
        }
    }

    private struct TokenAdapter: AsyncRequestAdapter {
        let tokens = Tokens()
        func adapt(_ urlRequest: URLRequest, for manager: SessionManager) async throws -> URLRequest {
            var urlRequest = urlRequest
            urlRequest.setValue(await tokens.next(), forHTTPHeaderField: "X-Token")
            return urlRequest
        }
    }

    private struct TenantHeader: AsyncHeaderAdapter {
        func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String, for manager: SessionManager) async throws {
            headers.update(name: "X-Tenant", value: Tenant.current)
        }
    }

    private struct TwiceRetrier: AsyncRequestRetrier {
        let seen = Log<String>()
        func retry(_ request: Request, for manager: SessionManager, dueTo error: any Error) async throws -> RetryDecision {
            await Task.yield()
            seen.append(Tenant.current)
            return request.retryCount < 2 ? .retry : .doNotRetry(TestError("gave up"))
        }
    }

    private static func headerServer(_ name: String) throws -> LoopbackServer {
        try LoopbackServer { request, _ in
            if request.path == "/refuse" { return ServerResponse(status: 503) }
            return .ok(request.header(name) ?? "-")
        }
    }

    @Test("an asynchronous adapter adapts requests of all kinds, each attempt anew")
    func adapter() async throws {
        let server = try Self.headerServer("X-Token")
        let manager = makeManager()
        manager.interceptor = TokenAdapter()
        #expect(try await manager.request(server.url("/a")).serializingString().value == "token 1")
        #expect(try await manager.upload(Data("x".utf8), to: server.url("/a")).serializingString().value == "token 2")
        #expect(try await manager.download(server.url("/a")).serializingString().value == "token 3")
        let request = manager.request(server.url("/refuse"), interceptor: Self.retrying(2)).validate()
        _ = await request.serializingData().result
        #expect(request.retryCount == 2)
        #expect(request.request?.value(forHTTPHeaderField: "X-Token") == "token 6")
    }

    @Test("adapters compose: the call's, the options', the session's; synchronous and asynchronous ones in their order")
    func order() async throws {
        let server = try Self.headerServer("X-Order")
        @Sendable func adding(_ name: String) -> Adapter {
            Adapter { request in
                var request = request
                request.setValue((request.value(forHTTPHeaderField: "X-Order") ?? "") + name, forHTTPHeaderField: "X-Order")
                return request
            }
        }
        let awaited = Adapter { (request: URLRequest) async throws in
            await Task.yield()
            return try adding("b").adapt(request)
        }
        let manager = makeManager()
        manager.interceptor = Interceptor(adapters: [adding("c"), awaited])
        let options = RequestOptions(interceptor: awaited)
        let value = try await manager.request(server.url("/"), interceptor: adding("a"), options: options).serializingString().value
        #expect(value == "abcb")
    }

    @Test("an asynchronous adapter's error fails the request, and cancellation ends one that waits")
    func errors() async throws {
        let server = try Self.headerServer("X-Token")
        let manager = makeManager()
        let failing = manager.request(server.url("/"), interceptor: Adapter { _ async throws in throw TestError("no token") })
        await #expect(throws: TestError("no token")) { try await failing.serializingData().value }

        let began = Gate()
        let ended = Gate()
        let waiting = manager.request(
            server.url("/"),
            interceptor: Adapter { request async throws in
                began.open()
                defer { ended.open() }
                try await Task.sleep(for: .seconds(60))
                return request
            })
        let task = waiting.serializingData()
        #expect(await began.wait())
        waiting.cancel()
        await #expect(throws: CurlewError.self) { try await task.value }
        #expect(await ended.wait())
        #expect(server.requestCount == 0)
    }

    @Test("an asynchronous retrier decides about each attempt, with the task-local values of the caller")
    func retrier() async throws {
        let server = try Self.headerServer("X-Tenant")
        let manager = makeManager()
        let retrier = TwiceRetrier()
        manager.interceptor = Interceptor(adapters: [TenantHeader()], retriers: [retrier])
        let request = Tenant.$current.withValue("blue") { manager.request(server.url("/refuse")).validate() }
        await #expect(throws: TestError("gave up")) { try await request.serializingData().value }
        #expect(retrier.seen.elements == ["blue", "blue", "blue"])
        #expect(request.request?.value(forHTTPHeaderField: "X-Tenant") == "blue")
    }

    @Test("an asynchronous validation runs in the caller's context, and fails the request by what it throws")
    func validation() async throws {
        let server = try Self.headerServer("X-Tenant")
        let manager = makeManager()
        let seen = Log<String>()
        let request = Tenant.$current.withValue("green") {
            manager.request(server.url("/")).validate { _, response, data async throws in
                await Task.yield()
                seen.append("\(Tenant.current) \(response.statusCode) \(data?.count ?? -1)")
                throw TestError("not valid")
            }.validate { _, _, _ in
                seen.append("skipped")
                return .success
            }
        }
        await #expect(throws: TestError("not valid")) { try await request.serializingData().value }
        #expect(seen.elements == ["green 200 1"])
        let directory = try TemporaryDirectory()
        let file = directory.url.appendingPathComponent("file")
        let download = manager.download(server.url("/"), to: file).validate { _, _, temporary, _ async in
            temporary == nil ? .failure(TestError("no file")) : .success
        }
        #expect(try await download.serializingURL().value == file)
    }

    @Test("cancelling a request ends an asynchronous validation")
    func cancelledValidation() async throws {
        let server = try Self.headerServer("X-Tenant")
        let manager = makeManager()
        let began = Gate()
        let request = manager.request(server.url("/")).validate { _, _, _ async throws in
            began.open()
            try await Task.sleep(for: .seconds(60))
            return .success
        }
        let task = request.serializingData()
        async let result = task.result
        #expect(await began.wait())
        request.cancel()
        guard case .failure(CurlewError.cancelled) = await result else {
            Issue.record("not cancelled: \(await result)")
            return
        }
    }

    @Test("context carriers restore the caller's context around synchronous code, for every attempt")
    func carriers() async throws {
        let server = try Self.headerServer("X-Tenant")
        let seen = Log<String>()
        let monitor = ContextMonitor(seen: seen)
        let manager = makeManager {
            $0.contextCarriers = [TenantCarrier()]
            $0.eventMonitors = [monitor]
        }
        manager.interceptor = Interceptor(
            adapter: Adapter { request in
                seen.append("adapt \(Tenant.current)")
                return request
            },
            retrier: Retrier { _, request, _, completion in
                seen.append("retry \(Tenant.current)")
                completion(request.retryCount < 1, 0)
            })
        let request = Tenant.$current.withValue("red") {
            manager.request(server.url("/refuse")).validate { _, response, _ in
                seen.append("validate \(Tenant.current)")
                return response.statusCode == 200 ? .success : .failure(TestError("refused"))
            }
        }
        _ = await request.serializingData().result
        await seen.wait(for: 8)
        #expect(
            seen.elements.sorted() == [
                "adapt red", "adapt red", "complete red", "complete red", "retry red", "retry red", "validate red", "validate red",
            ])
    }

    @Test("each of several retriers runs in the caller's context")
    func retriers() async throws {
        let server = try Self.headerServer("X-Tenant")
        let seen = Log<String>()
        let manager = makeManager { $0.contextCarriers = [TenantCarrier()] }
        @Sendable func declining(_ name: String) -> Retrier {
            Retrier { _, _, _, completion in
                seen.append("\(name) \(Tenant.current)")
                completion(false, 0)
            }
        }
        manager.retrier = declining("session")
        let request = Tenant.$current.withValue("red") { manager.request(server.url("/refuse"), interceptor: declining("own")).validate() }
        _ = await request.serializingData().result
        #expect(seen.elements == ["own red", "session red"])
    }

    private struct ContextMonitor: EventMonitor {
        let seen: Log<String>
        func request(_ request: Request, didComplete task: SessionTask, with error: (any Error)?) {
            seen.append("complete \(Tenant.current)")
        }
    }

    @Test("an asynchronous redirect decision runs in the caller's context; its error is the request's")
    func redirect() async throws {
        let server = try LoopbackServer.standard()
        let manager = makeManager()
        let seen = Log<String>()
        manager.delegate.onRedirect { request, response, proposed in
            await Task.yield()
            seen.append("\(Tenant.current) \(response.statusCode)")
            return proposed
        }
        let value = await Tenant.$current.withValue("blue") { await manager.request(server.url("/redirect/2")).serializingData().response }
        #expect(value.response?.statusCode == 200)
        #expect(seen.elements == ["blue 302", "blue 302"])
        manager.delegate.onRedirect { _, _, _ in throw TestError("no redirects") }
        await #expect(throws: TestError("no redirects")) {
            try await manager.request(server.url("/redirect/2")).serializingData().value
        }
        manager.delegate.onRedirect(nil)
        #expect(try await manager.request(server.url("/redirect/1")).validate().serializingData().value.isEmpty == false)
    }

    @Test("an asynchronous challenge decision answers with a credential, or rejects")
    func challenge() async throws {
        let server = try LoopbackServer.standard()
        let manager = makeManager()
        manager.delegate.onChallenge { _, challenge in
            await Task.yield()
            return challenge.previousFailureCount == 0
                ? .useCredential(URLCredential(user: "user", password: "secret", persistence: .none)) : .rejectProtectionSpace
        }
        let response = await manager.request(server.url("/auth-basic?user=user&password=secret")).serializingData().response
        #expect(response.response?.statusCode == 200)
        let refused = await manager.request(server.url("/auth-basic?user=user&password=other")).serializingData().response
        #expect(refused.response?.statusCode == 401)
    }
}
