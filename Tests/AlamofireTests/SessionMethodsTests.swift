// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

/// What programs call on `manager.session` as on a `URLSession`.
@Suite(.timeLimit(.minutes(1))) struct SessionMethodsTests {
    private let server: LoopbackServer
    private let manager: SessionManager

    init() throws {
        server = try LoopbackServer.standard()
        manager = SessionManager()
    }

    @Test("the tasks that have not completed are listed, and can be cancelled") func tasks() async {
        let requests: [Request] = [
            manager.request(server.url("/silent")), manager.upload(Data(), to: server.url("/silent")),
            manager.download(server.url("/silent")),
        ]
        _ = await manager.request(server.url("/json")).plainResponse()
        let tasks = requests.compactMap(\.task)
        let session = manager.session
        #expect(await outcome { session.getAllTasks(completionHandler: $0) } == tasks)
        let kinds = await outcome { done in session.getTasksWithCompletionHandler { done([$0, $1, $2]) } }
        #expect(kinds == tasks.map { [$0] })

        session.getAllTasks { for task in $0 { task.cancel() } }
        for request in requests {
            #expect(await eventually { request.task?.state == .completed })
            #expect((request.task?.error as? URLError)?.code == .cancelled)
        }
        #expect(await manager.request(server.url("/json")).plainResponse().error == nil)
        #expect(await outcome { session.getAllTasks(completionHandler: $0) }.isEmpty)
    }

    @Test("finishTasksAndInvalidate lets requests finish, and refuses others") func finish() async {
        let (ended, continuation) = AsyncStream<Void>.makeStream()
        manager.delegate.sessionDidBecomeInvalidWithError = { _, _ in continuation.yield() }
        manager.startRequestsImmediately = false
        let request = manager.request(server.url("/json"))
        manager.session.finishTasksAndInvalidate()
        #expect(await manager.request(server.url("/json")).plainResponse().error is URLError)
        request.resume()
        #expect(await request.plainResponse().error == nil)
        #expect(await ended.first { _ in true } != nil)
    }

    @Test("reset empties the configuration's storages, and flush closes idle connections") func reset() async throws {
        let url = try server.url("/json").asURL()
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: 1, protocol: "http", realm: "r", authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        let cookie = try #require(HTTPCookie(properties: [.name: "a", .value: "b", .path: "/", .domain: "127.0.0.1"]))
        let response = try #require(HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil))
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        configuration.httpCookieStorage?.setCookie(cookie)
        configuration.urlCache?.storeCachedResponse(CachedURLResponse(response: response, data: Data([1])), for: URLRequest(url: url))
        configuration.urlCredentialStorage?.set(URLCredential(user: "u", password: "p", persistence: .forSession), for: space)
        let manager = SessionManager(configuration: configuration)
        let session = manager.session
        #expect(await manager.request(server.url("/echo")).plainResponse().error == nil)
        #expect(server.connectionCount == 1)
        #expect(await outcome { (done: @escaping @Sendable (Bool) -> Void) in session.reset { done(true) } })
        #expect(configuration.httpCookieStorage?.cookies?.isEmpty == true)
        #expect(configuration.urlCache?.cachedResponse(for: URLRequest(url: url)) == nil)
        #expect(configuration.urlCredentialStorage?.credentials(for: space)?.isEmpty ?? true)
        #expect(await manager.connectionStatistics().origins.isEmpty)
    }

    @Test("the delegate's queue is one, and runs after what the session's closures have begun") func delegateQueue() async {
        let order = Lock<[String]>([])
        manager.delegate.taskDidComplete = { _, _, _ in order.withLock { $0.append("complete") } }
        #expect(manager.session.delegateQueue === manager.session.delegateQueue)
        #expect(manager.session.delegateQueue.maxConcurrentOperationCount == 1)
        _ = await manager.request(server.url("/json")).plainResponse()
        let session = manager.session
        _ = await outcome { (done: @escaping @Sendable (Bool) -> Void) in
            session.delegateQueue.addOperation {
                order.withLock { $0.append("operation") }
                done(true)
            }
        }
        #expect(order.withLock { $0 } == ["complete", "operation"])
    }
}
