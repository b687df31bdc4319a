// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewServices

@Suite(.timeLimit(.minutes(1)))
struct ServiceHookTests {
    /// Records its calls, and supplies the results of requests for `/known`.
    private final class RecordingHook: ServiceHook {
        let notes = Lock<[String]>([])

        func onSchedule<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest) async -> Request.Result? {
            note("schedule \(urlRequest.url?.path ?? "")")
            return urlRequest.url?.path == "/known" ? "known" as? Request.Result : nil
        }

        func onSuccess<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest, result: Request.Result) async {
            note("success \(result)")
        }

        func onFailure<Request: NetworkServiceRequest>(_ request: Request, _ urlRequest: URLRequest?, error: ServiceError) async {
            note("failure \(urlRequest?.url?.path ?? "no request") \(error.name)")
        }

        private func note(_ text: String) { notes.withLock { $0.append(text) } }
    }

    private let hook = RecordingHook()
    private let server: LoopbackServer
    private var service: TestService

    init() throws {
        let count = Lock(0)
        server = try LoopbackServer { request, _ in request.path == "/missing" ? .status(404) : .ok("\(count.next())") }
        service = TestService(server)
        service.hook = hook
    }

    @Test func hookObservesRequestsAndTheirCompletion() async throws {
        defer { server.stop() }
        var service = service
        service.retrierFactory = TestRetrier.factory { _ in true }
        _ = try await TestRequest(routes: "a").schedule(with: service).value
        _ = await TestRequest(routes: "missing").schedule(with: service).result
        _ = await TestRequest(routes: "..").schedule(with: service).result
        #expect(
            hook.notes.withLock { $0 } == [
                "schedule /a", "success 1", "schedule /missing", "failure /missing requestFailed", "failure no request invalidURL",
            ])
    }

    @Test func hookSuppliesAResult() async throws {
        defer { server.stop() }
        let response = TestRequest(routes: "known").schedule(with: service)
        #expect(try await response.value == "known")
        #expect(try await response.header.isEmpty)
        #expect(server.requestCount == 0)
        #expect(hook.notes.withLock { $0 } == ["schedule /known"])
    }

    @Test func `The hook is asked before the first request that is sent, although an attempt before it could not be built`() async throws {
        defer { server.stop() }
        let attempts = Lock(0)
        var service = service
        service.retrierFactory = TestRetrier.factory { _ in true }
        service.makeAsyncHeader = {
            if attempts.next() % 2 == 1 { throw UserError() }
            return [:]
        }
        #expect(try await TestRequest(routes: "known").schedule(with: service).value == "known")
        #expect(server.requestCount == 0)
        #expect(try await TestRequest(routes: "a").schedule(with: service).value == "1")
        #expect(hook.notes.withLock { $0 } == ["schedule /known", "schedule /a", "success 1"])
    }

    // MARK: Cache

    private func value(_ request: TestRequest, _ hook: any ServiceHook) async throws -> String {
        var service = service
        service.hook = hook
        return try await request.schedule(with: service).value
    }

    @Test func cacheSuppliesResultsToEqualGETs() async throws {
        defer { server.stop() }
        let hook = CachingServiceHook()
        let requests = [
            TestRequest(), TestRequest(), TestRequest(query: ["a": 1]), TestRequest(header: ["Authorization": "Bearer x"]),
            TestRequest(method: .post), TestRequest(method: .post), TestRequest(),
        ]
        var values: [String] = []
        for request in requests { values.append(try await value(request, hook)) }
        #expect(values == ["1", "1", "2", "3", "4", "5", "1"])
        hook.removeAll()
        #expect(try await value(TestRequest(), hook) == "6")
    }

    @Test func `A cached result is supplied to services with the same session only, and not where an interceptor decides what is sent`()
        async throws
    {
        defer { server.stop() }
        func service(_ token: String, _ interceptor: (any RequestInterceptor)? = nil) -> TestService {
            var service = self.service
            var configuration = SessionConfiguration()
            configuration.headers = ["Authorization": "Bearer \(token)"]
            service.sessionManager = SessionManager(configuration: configuration, interceptor: interceptor)
            return service
        }
        let hook = CachingServiceHook()
        var (one, other) = (service("a"), service("b"))
        one.hook = hook
        other.hook = hook
        #expect(try await TestRequest().schedule(with: one).value == "1")
        #expect(try await TestRequest().schedule(with: other).value == "2")
        #expect(try await TestRequest().schedule(with: one).value == "1")
        var adapted = service("a", Interceptor())
        adapted.hook = hook
        #expect(try await TestRequest().schedule(with: adapted).value == "3")
        #expect(try await TestRequest().schedule(with: adapted).value == "4")
    }

    private final class Overriding: SessionManager, @unchecked Sendable {}  // adds no state

    enum Unknown: CaseIterable {
        case subclass, closure, closureForConnections, credentialStorage
    }

    @Test(arguments: Unknown.allCases)
    func `Nothing is cached where a challenge's answer or a subclass decides what is sent`(_ unknown: Unknown) async throws {
        defer { server.stop() }
        var service = self.service
        var configuration = SessionConfiguration()
        if unknown == .credentialStorage { configuration.credentialStorage = URLCredentialStorage() }
        let manager = unknown == .subclass ? Overriding() : SessionManager(configuration: configuration)
        if unknown == .closure { manager.delegate.taskDidReceiveChallenge = { _, _, _, done in done(.performDefaultHandling, nil) } }
        if unknown == .closureForConnections {
            manager.delegate.sessionDidReceiveChallenge = { _, _, done in done(.performDefaultHandling, nil) }
        }
        service.sessionManager = manager
        service.hook = CachingServiceHook()
        for number in 1...2 { #expect(try await TestRequest().schedule(with: service).value == "\(number)") }
    }

    @Test func `Nothing is cached whose sender changes during the request`() async throws {
        let hook = CachingServiceHook()
        var urlRequest = URLRequest(url: try "http://127.0.0.1/".asURL())
        urlRequest.httpMethod = "GET"
        let user = Lock("anonymous")
        func send(_ change: String?) async -> String? {
            await CachingServiceHook.$sender.withValue(CachingServiceHook.Sender { user.withLock { $0 } }) {
                if let result = await hook.onSchedule(TestRequest(), urlRequest) { return result }
                if let change { user.withLock { $0 = change } }
                await hook.onSuccess(TestRequest(), urlRequest, result: user.withLock { $0 })
                return nil
            }
        }
        #expect(await send("alice") == nil && hook.count == 0)
        #expect(await send(nil) == nil && hook.count == 1)
        #expect(await send("other") == "alice")
        user.withLock { $0 = "anonymous" }
        #expect(await send(nil) == nil)
        server.stop()
    }

    private struct Guarded: HTTPService {
        var apiURL: any URLConvertible
        var usesSecureProtocol: Bool? = false
        var sessionManager = sharedManager
        var requestOptions: RequestOptions?
        var hook: any ServiceHook
    }

    @Test func `A cached result is not supplied where the options lead to another server`() async throws {
        defer { server.stop() }
        var service = Guarded(apiURL: server.url(""), hook: CachingServiceHook())
        #expect(try await TestRequest().schedule(with: service).value == "1")
        #expect(try await TestRequest().schedule(with: service).value == "1")
        let open = service
        service.requestOptions = RequestOptions(addresses: .publicOnly)
        let guarded = service
        #expect(await serviceError { try await TestRequest().schedule(with: guarded).value } != nil)
        #expect(try await TestRequest().schedule(with: open).value == "1")
    }

    @Test func `A request's options are read once, for the cache and for what is sent`() async throws {
        defer { server.stop() }
        struct Counted: ServiceRequest {
            let reads = Lock(0)
            // What the next read would give leads to no server.
            var requestOptions: RequestOptions? {
                let count = reads.withLock { reads in
                    reads += 1
                    return reads
                }
                return count == 1 ? nil : RequestOptions(addresses: .publicOnly)
            }
            func decode(_ data: Data) throws -> String { String(decoding: data, as: UTF8.self) }
        }
        let service = Guarded(apiURL: server.url(""), hook: CachingServiceHook())
        let request = Counted()
        #expect(try await request.schedule(with: service).value == "1")
        #expect(request.reads.withLock { $0 } == 1)
        #expect(try await Counted().schedule(with: service).value == "1")
    }

    @Test func `Nothing is cached for a hook that is called outside of its task`() async throws {
        defer { server.stop() }
        struct Detached: ServiceHook {
            let hook = CachingServiceHook()
            func onSchedule<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest) async -> Request.Result? {
                await Task.detached { await hook.onSchedule(request, urlRequest) }.value
            }
            func onSuccess<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest, result: Request.Result) async {
                await Task.detached { await hook.onSuccess(request, urlRequest, result: result) }.value
            }
        }
        let hook = Detached()
        #expect(try await value(TestRequest(), hook) == "1")
        #expect(try await value(TestRequest(), hook) == "2")
    }

    @Test func cacheDistinguishesTypes() async throws {
        defer { server.stop() }
        var service = service
        service.hook = CachingServiceHook()
        #expect(try await TestRequest().schedule(with: service).value == "1")
        #expect(try await AnyServiceRequest().schedule(with: service).value == Data("2".utf8))
    }

    @Test func cachedResultsExpire() async throws {
        defer { server.stop() }
        let now = Lock(ContinuousClock.now)
        let hook = CachingServiceHook(ttl: .seconds(60), limit: 10) { now.withLock { $0 } }
        #expect(try await value(TestRequest(), hook) == "1")
        now.withLock { $0 = $0.advanced(by: .seconds(59)) }
        #expect(try await value(TestRequest(), hook) == "1")
        now.withLock { $0 = $0.advanced(by: .seconds(1)) }
        #expect(try await value(TestRequest(), hook) == "2")
        #expect(hook.count == 1)
    }

    @Test func cacheHasALimit() async throws {
        defer { server.stop() }
        let hook = CachingServiceHook(limit: 2)
        for number in [1, 2, 3] { _ = try await value(TestRequest(query: ["a": number]), hook) }
        #expect(hook.count == 2)
        #expect(try await value(TestRequest(query: ["a": 3]), hook) == "3")
        #expect(try await value(TestRequest(query: ["a": 1]), hook) == "4")
    }

    @Test func cacheIsThreadSafe() async throws {
        let hook = CachingServiceHook(limit: 5)
        let url = try "http://127.0.0.1/".asURL()
        await CachingServiceHook.$sender.withValue(CachingServiceHook.Sender { "one" }) {
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<200 {
                    group.addTask {
                        var urlRequest = URLRequest(url: url.appendingPathComponent("\(number % 10)"))
                        urlRequest.httpMethod = "GET"
                        let result = await hook.onSchedule(TestRequest(), urlRequest)
                        #expect(result == nil || result == "\(number % 10)")
                        await hook.onSuccess(TestRequest(), urlRequest, result: "\(number % 10)")
                    }
                }
            }
        }
        #expect(hook.count == 5)
        server.stop()
    }
}
