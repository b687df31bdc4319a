// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewURLLoading
import Testing

@Suite(.timeLimit(.minutes(2))) struct ShutdownTests {
    private let server: LoopbackServer
    private let directory: TemporaryDirectory

    init() throws {
        server = try LoopbackServer.standard()
        directory = try TemporaryDirectory()
    }

    private func makeManager(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        CurlewSessionTestSupport.makeManager {
            $0.temporaryDirectory = directory.url
            change(&$0)
        }
    }

    private func error(of request: DataRequest) async -> (any Error)? {
        await request.serializingData().response.error
    }

    /// Returns when the shutdown has begun, and new requests are refused.
    private func isRefusing(_ manager: SessionManager) async -> Bool {
        let start = ContinuousClock.now
        while start.duration(to: .now) < .seconds(10) {
            let request = manager.request("http://127.0.0.1:1/")
            if await error(of: request)?.isSessionShutDown == true { return request.task == nil }
        }
        return false
    }

    /// The directory in `/proc` of the thread on which a session's transfers run, which exists as long as the thread.
    private func loopThread(of manager: SessionManager) async throws -> String {
        let executor = try #require(manager.taskExecutor)
        return try await Task(executorPreference: executor) {
            "/proc/" + (try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self"))
        }.value
    }

    /// Whether the thread with this directory has ended: `pthread_join` returns a moment before the kernel removes its entry.
    private func hasEnded(_ thread: String) async -> Bool {
        await eventually { !FileManager.default.fileExists(atPath: thread) }
    }

    // MARK: In flight

    @Test("requests in flight finish, new ones are refused, and the thread and its connections end") func finish() async throws {
        let manager = makeManager()
        let thread = try await loopThread(of: manager)
        #expect(FileManager.default.fileExists(atPath: thread))
        let requests = (0..<20).map { _ in manager.request(server.url("/delay/300")).validate() }
        #expect(await server.waitForRequests(20))
        async let end: Void = manager.shutdown(gracePeriod: .seconds(60))
        #expect(await isRefusing(manager))
        for request in requests { #expect(await error(of: request) == nil) }
        await end
        #expect(await hasEnded(thread))
        #expect(await server.waitForConnectionsToClose())
        #expect(server.requestCount == 20)
        #expect(await error(of: manager.request(server.url("/json")))?.isSessionShutDown == true)
    }

    @Test("retries, their delays and redirects of requests in flight take place") func followUps() async throws {
        let attempts = Lock(0)
        let server = try LoopbackServer { request, connection in
            guard connection.pause(for: .milliseconds(100)) else { return nil }
            switch request.path {
            case "/first": return .redirect(to: "/second", status: 302)
            case "/second":
                let attempt = attempts.withLock { attempts in
                    attempts += 1
                    return attempts
                }
                return attempt < 3 ? .status(503) : .ok("done")
            default: return .status(404)
            }
        }
        let manager = makeManager()
        manager.retrier = Retrier.attempts(5, delay: 0.1)
        let request = manager.request(server.url("/first")).validate()
        #expect(await server.waitForRequests(1))
        await manager.shutdown(gracePeriod: .seconds(60))
        let response = await request.serializingString().response
        #expect(response.value == "done")
        #expect(request.retryCount == 2)
    }

    @Test("a shutdown that has nothing to wait for returns at once") func idle() async throws {
        await makeManager().shutdown(gracePeriod: .seconds(60))
        let manager = makeManager()
        #expect(await error(of: manager.request(server.url("/json"))) == nil)
        await manager.shutdown(gracePeriod: .seconds(60))
        #expect(await server.waitForConnectionsToClose())
    }

    // MARK: The grace period

    @Test("what is in flight after the grace period fails, and nothing remains of it", arguments: [Duration.milliseconds(200), .zero])
    func graceIsOver(_ period: Duration) async throws {
        let manager = makeManager()
        let retries = Lock(0)
        manager.retrier = Retrier { _, _, completion in
            retries.withLock { $0 += 1 }
            completion(true, 0)
        }
        let thread = try await loopThread(of: manager)
        let silent = manager.request(server.url("/silent"))
        let file = directory.file("file")
        let download = manager.download(server.url("/drip?n=100000&ms=5"), to: file)
        let upload = manager.upload(InputStream(data: Data(count: 100_000)), to: server.url("/silent"))
        let stream = manager.stream(withHostName: "127.0.0.1", port: server.port)
        stream.resume()
        #expect(await server.waitForRequests(3))
        #expect(await eventually { (download.task?.countOfBytesReceived ?? 0) > 0 })
        let start = ContinuousClock.now
        await manager.shutdown(gracePeriod: period)
        #expect(start.duration(to: .now) >= period)
        #expect(try contents(of: directory) == [])
        #expect(await hasEnded(thread))
        #expect(await error(of: silent)?.isSessionShutDown == true)
        #expect(await error(of: upload)?.isSessionShutDown == true)
        #expect(await download.serializingURL().response.error?.isSessionShutDown == true)
        await #expect { for try await _ in stream.bytes() {} } throws: { $0.isSessionShutDown }
        #expect(retries.withLock { $0 } == 0)
    }

    @Test("the end of the grace period ends delays before retries") func delayed() async throws {
        let manager = makeManager()
        manager.retrier = Retrier.attempts(1, delay: 3_600)
        let request = manager.request(server.url("/status/503")).validate()
        #expect(await server.waitForRequests(1))
        async let end: Void = manager.shutdown(gracePeriod: .milliseconds(100))
        #expect(await error(of: request) != nil)
        await end
        #expect(server.requestCount == 1)
    }

    @Test("cancelling the task that waits ends the grace period") func cancelled() async throws {
        let manager = makeManager()
        let request = manager.request(server.url("/silent"))
        #expect(await server.waitForRequests(1))
        let waiting = Task { await manager.shutdown(gracePeriod: .seconds(3_600)) }
        #expect(await isRefusing(manager))
        #expect(request.task?.state == .running)
        waiting.cancel()
        await waiting.value
        #expect(request.task?.state == .completed)
        #expect(await error(of: request)?.isSessionShutDown == true)
    }

    @Test("all calls return at the same end, which is that of the shortest grace period") func several() async throws {
        let manager = makeManager()
        let request = manager.request(server.url("/silent"))
        #expect(await server.waitForRequests(1))
        await withTaskGroup(of: TaskState.self) { group in
            for seconds in [3_600, 1, 7_200, 3_600] {
                group.addTask {
                    await manager.shutdown(gracePeriod: .milliseconds(seconds == 1 ? 200 : seconds * 1000))
                    return request.task?.state == .completed ? .ended : .running
                }
            }
            for await state in group { #expect(state == .ended) }
        }
        await manager.shutdown(gracePeriod: .seconds(3_600))
        await manager.shutdown(gracePeriod: .zero)
        await manager.shutdown(gracePeriod: .seconds(-1))
        #expect(await error(of: request)?.isSessionShutDown == true)
    }

    private enum TaskState {
        case running
        case ended
    }

    // MARK: States of requests and sessions

    @Test("a request that was not started fails, and one that is suspended may still finish") func notStarted() async throws {
        let manager = makeManager()
        let suspended = manager.request(server.url("/drip?n=30&ms=10"))
        #expect(await server.waitForRequests(1))
        suspended.suspend()
        manager.startRequestsImmediately = false
        let unstarted = manager.request(server.url("/json"))
        let waiting = Task { await manager.shutdown(gracePeriod: .seconds(3_600)) }
        #expect(await error(of: unstarted)?.isSessionShutDown == true)
        suspended.resume()
        #expect(await error(of: suspended) == nil)
        await waiting.value
        #expect(server.requestCount == 1)
    }

    @Test("a suspended request fails after the grace period") func suspended() async throws {
        let manager = makeManager()
        let request = manager.request(server.url("/drip?n=100000&ms=10"))
        #expect(await server.waitForRequests(1))
        request.suspend()
        await manager.shutdown(gracePeriod: .milliseconds(100))
        #expect(await error(of: request)?.isSessionShutDown == true)
    }

    @Test("the shutdown of a session that was invalidated waits for its end") func invalidatedBefore() async throws {
        let manager = makeManager()
        let thread = try await loopThread(of: manager)
        let request = manager.request(server.url("/silent"))
        #expect(await server.waitForRequests(1))
        manager.invalidateAndCancel()
        await manager.shutdown(gracePeriod: .seconds(3_600))
        #expect(await hasEnded(thread))
        #expect(await error(of: request)?.isSessionInvalidated == true)
        #expect(await error(of: manager.request(server.url("/json")))?.isSessionInvalidated == true)
    }

    @Test("invalidating a session ends its shutdown") func invalidatedMeanwhile() async throws {
        let manager = makeManager()
        let request = manager.request(server.url("/silent"))
        #expect(await server.waitForRequests(1))
        let waiting = Task { await manager.shutdown(gracePeriod: .seconds(3_600)) }
        #expect(await isRefusing(manager))
        manager.invalidateAndCancel()
        await waiting.value
        #expect(await error(of: request)?.isSessionInvalidated == true)
    }

    @Test("the shutdown retains the manager, and nothing does after it") func released() async throws {
        var manager: SessionManager? = makeManager()
        weak let released = manager
        weak let session = manager?.session
        let request = try #require(manager?.request(server.url("/delay/200")))
        #expect(await server.waitForRequests(1))
        let waiting = Task { [manager] in await manager?.shutdown(gracePeriod: .seconds(60)) }
        manager = nil
        await waiting.value
        #expect(await error(of: request) == nil)
        #expect(await eventually { released == nil })
        withExtendedLifetime(request) { #expect(session != nil) }
    }

    @Test("a task on the event loop's thread can await the shutdown") func executor() async throws {
        let manager = makeManager()
        let executor = try #require(manager.taskExecutor)
        let request = manager.request(server.url("/delay/200"))
        #expect(await server.waitForRequests(1))
        let result = await withTaskExecutorPreference(executor) {
            await manager.shutdown(gracePeriod: .seconds(60))
            return await error(of: request)
        }
        #expect(result == nil)
    }

    @Test("requests that the cache or a protocol class serves end, too") func wrapped() async throws {
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let manager = makeManager {
            $0.urlCache = cache
            $0.protocolClasses = [SilentProtocol.self]
        }
        let thread = try await loopThread(of: manager)
        let requests = ["/silent", "http://silent.invalid/"].map { manager.request($0.hasPrefix("/") ? server.url($0) : $0) }
        #expect(await server.waitForRequests(1))
        await manager.shutdown(gracePeriod: .milliseconds(50))
        for request in requests { #expect(await error(of: request)?.isSessionShutDown == true) }
        #expect(await hasEnded(thread))
    }

    @Test("requests that are created while the session is shut down finish or fail, and none is left") func race() async throws {
        for _ in 0..<20 {
            let manager = makeManager()
            let errors = await withTaskGroup(of: (any Error)?.self) { group in
                for _ in 0..<30 { group.addTask { await error(of: manager.request(server.url("/json"))) } }
                group.addTask {
                    await manager.shutdown(gracePeriod: .seconds(60))
                    return nil
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            for error in errors.compactMap({ $0 }) { #expect(error.isSessionShutDown, "\(error)") }
        }
        #expect(await server.waitForConnectionsToClose())
    }
}

/// Accepts requests to one host, and never responds.
private final class SilentProtocol: URLProtocol {
    override static func canInit(with request: URLRequest) -> Bool { request.url?.host == "silent.invalid" }
    override static func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    override func startLoading() {}
    override func stopLoading() {}
}
