// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import CurlewURLLoading
import Dispatch
import Testing

@testable import CurlewCore

/// A cache whose lookups wait for a signal each.
private final class SlowCache: URLCache, @unchecked Sendable {  // what is added is
    let gate = DispatchSemaphore(value: 0)
    let asked = Inbox<Void>()

    override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        asked.put(())
        gate.wait()
        return super.cachedResponse(for: request)
    }
}

@Suite(.timeLimit(.minutes(1))) struct CachingTransportTests {
    private let cache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil)
    private let url = "http://mock/a"

    private func manager(_ mock: MockTransport, _ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        SessionManager(mock: mock) {
            $0.urlCache = cache
            change(&$0)
        }
    }

    private func load(
        _ manager: SessionManager, _ policy: URLRequest.CachePolicy = .useProtocolCachePolicy, url: String = "http://mock/a",
        headers: HTTPHeaders = [:]
    ) async throws -> DataResponse<String> {
        var request = try URLRequest(url: url, method: .get, headers: headers)
        request.cachePolicy = policy
        return await manager.request(request).serializingString().response
    }

    /// A transport whose bodies are the number of the request.
    private func counting(_ status: Int = 200, _ headers: HTTPHeaders) -> MockTransport {
        let count = Lock(0)
        return MockTransport { request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if request.headers["If-None-Match"] == "\"same\"" { return .response(304, ["ETag": "\"same\"", "X": "\(number)"]) }
            return .response(status, headers, "\(number)")
        }
    }

    @Test(
        "the cache policy decides whether a stored response is served",
        arguments: ["max-age=3600", "public", "private", "max-age=0", "no-cache", "no-store"])
    func policies(_ cacheControl: String) async throws {
        let mock = counting(200, ["Cache-Control": cacheControl])
        let manager = manager(mock)
        let stores = cacheControl != "no-store"
        let isFresh = cacheControl == "max-age=3600"
        #expect(try await load(manager, .reloadIgnoringLocalCacheData).value == "1")
        #expect(try await load(manager).value == (isFresh ? "1" : "2"))
        let last = isFresh ? "1" : "2"
        if stores {
            #expect(try await load(manager, .returnCacheDataElseLoad).value == last)
            #expect(try await load(manager, .returnCacheDataDontLoad).value == last)
        } else {
            #expect(try await load(manager, .returnCacheDataElseLoad).value == "3")
            let error = try await load(manager, .returnCacheDataDontLoad).error as? CurlewError
            #expect(error?.urlError?.code == .resourceUnavailable)
        }
        let before = mock.started.count
        #expect(try await load(manager, .reloadIgnoringLocalCacheData).value == "\(before + 1)")
        #expect(try await load(manager, .reloadRevalidatingCacheData).value == "\(before + 2)")
    }

    @Test("metrics report whether a response came from the cache") func metrics() async throws {
        let manager = manager(counting(200, ["Cache-Control": "max-age=60", "X": "y"]))
        let first = try await load(manager)
        let second = try await load(manager)
        #expect(first.metrics.last?.isFromCache == false)
        #expect(second.metrics.last?.isFromCache == true)
        #expect(second.response?.allHeaderFields["X"] as? String == "y")
        #expect(second.value == "1")
    }

    @Test("a stale response is revalidated, and its fields are updated") func confirmation() async throws {
        let mock = counting(200, ["Cache-Control": "max-age=0", "ETag": "\"same\"", "X": "0"])
        let manager = manager(mock)
        #expect(try await load(manager).value == "1")
        let second = try await load(manager)
        #expect(second.value == "1")
        #expect(second.response?.statusCode == 200)
        #expect(second.response?.allHeaderFields["X"] as? String == "2")
        #expect(second.metrics.last?.isFromCache == true)
        #expect(mock.started.all.map { $0.request.headers["If-None-Match"] } == [nil, "\"same\""])
        #expect(try await load(manager, .returnCacheDataDontLoad).response?.allHeaderFields["X"] as? String == "2")
    }

    @Test("reloadRevalidatingCacheData revalidates fresh responses, too") func revalidation() async throws {
        let mock = counting(200, ["Cache-Control": "max-age=60", "ETag": "\"same\""])
        let manager = manager(mock)
        _ = try await load(manager)
        #expect(try await load(manager, .reloadRevalidatingCacheData).value == "1")
        #expect(mock.started.count == 2)
    }

    @Test("a 304 that answers the request's own conditions does not confirm the stored response") func ownConditions() async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(200, ["Last-Modified": "Wed, 01 Nov 2023 10:00:00 GMT"], "old"), .response(304, ["ETag": "\"mine\""]),
        ])
        let manager = manager(mock)
        #expect(try await load(manager).value == "old")
        let response = try await load(manager, .reloadRevalidatingCacheData, headers: ["If-None-Match": "\"mine\""])
        #expect(response.response?.statusCode == 304)
        #expect(mock.started.all.last?.request.headers["If-Modified-Since"] == nil)
    }

    @Test("a 200 to a revalidation replaces the stored response") func replacement() async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(200, ["ETag": "\"a\""], "old"), .response(200, ["ETag": "\"b\""], "new"), .response(304, ["ETag": "\"b\""]),
        ])
        let manager = manager(mock)
        #expect(try await load(manager).value == "old")
        #expect(try await load(manager).value == "new")
        #expect(try await load(manager).value == "new")
        #expect(mock.started.all.last?.request.headers["If-None-Match"] == "\"b\"")
    }

    @Test("a 304 with another ETag reloads the response") func strangeConfirmation() async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(200, ["ETag": "\"a\""], "old"), .response(304, ["ETag": "\"b\""]), .response(200, ["ETag": "\"b\""], "new"),
        ])
        let manager = manager(mock)
        _ = try await load(manager)
        #expect(try await load(manager).value == "new")
        #expect(mock.started.all.map { $0.request.headers["If-None-Match"] } == [nil, "\"a\"", nil])
    }

    @Test("a request with its own conditions gets the 304") func usersCondition() async throws {
        let manager = manager(counting(200, ["Cache-Control": "max-age=60", "ETag": "\"same\""]))
        _ = try await load(manager)
        #expect(try await load(manager, headers: ["If-None-Match": "\"same\""]).response?.statusCode == 304)
    }

    @Test(
        "responses that must not be stored, large ones, and those of URLs with a password bypass the cache",
        arguments: [
            (["Cache-Control": "no-store"], "1", "http://mock/a"), ([:], String(repeating: "x", count: 300_000), "http://mock/a"),
            ([:], "1", "http://user:password@mock/a"),
        ] as [(HTTPHeaders, String, String)])
    func passing(_ headers: HTTPHeaders, _ body: String, _ url: String) async throws {
        let mock = MockTransport.answering(200, ["Cache-Control": "max-age=60"], body)
        let manager = manager(mock)
        _ = try await load(manager, url: url, headers: headers)
        #expect(try await load(manager, url: url, headers: headers).value == body)
        #expect(mock.started.count == 2)
        #expect(try await load(manager, .returnCacheDataDontLoad, url: url, headers: headers).error != nil)
        #expect(mock.started.count == 2)
    }

    @Test("a truncated body is not stored") func brokenBody() async throws {
        let mock = MockTransport.answering(inTurn: [
            [.head(200, ["Cache-Control": "max-age=60"]), .bytes(Data("half".utf8)), .complete(CurlewError.failure(.connectionLost))],
            .response(200, [:], "whole"),
        ])
        let manager = manager(mock)
        #expect(try await load(manager).error != nil)
        #expect(try await load(manager).value == "whole")
    }

    @Test("a successful unsafe request invalidates the stored response", arguments: [HTTPMethod.post, .put, .delete, .patch])
    func invalidation(_ method: HTTPMethod) async throws {
        let mock = counting(200, ["Cache-Control": "max-age=60", "Content-Location": "/b"])
        let manager = manager(mock)
        _ = try await load(manager)
        _ = try await load(manager, url: "http://mock/b")
        _ = await manager.request(url, method: method).serializingData().response
        #expect(try await load(manager).value == "4")
        #expect(try await load(manager, url: "http://mock/b").value == "5")
    }

    @Test("a 304 that an unsafe request has overtaken does not bring back what that has removed") func overtaken() async throws {
        let mock = MockTransport()
        let manager = manager(mock)
        func start(_ method: HTTPMethod = .get, _ headers: HTTPHeaders = [:]) -> Task<String?, Never> {
            Task { await manager.request("http://mock/a", method: method, headers: headers).serializingString().response.value }
        }
        let first = start()
        await mock.started[0].respond(200, ["Cache-Control": "max-age=0", "ETag": "\"1\""], "old")
        #expect(await first.value == "old")
        let conditional = start(.get, ["If-None-Match": "\"1\""])
        let exchange = await mock.started[1]
        let change = start(.post)
        await mock.started[2].respond(200, [:], "changed")
        #expect(await change.value == "changed")
        exchange.respond(304, ["Cache-Control": "max-age=60", "ETag": "\"1\""])
        _ = await conditional.value
        let last = start()
        await mock.started[3].respond(200, [:], "new")
        #expect(await last.value == "new")
    }

    @Test("a safe or failed request does not invalidate the stored response", arguments: [HTTPMethod.head, .post])
    func noInvalidation(_ method: HTTPMethod) async throws {
        let mock = MockTransport { request in
            request.method == .get ? .response(200, ["Cache-Control": "max-age=60"], "1") : .response(method == .head ? 200 : 500)
        }
        let manager = manager(mock)
        _ = try await load(manager)
        _ = await manager.request(url, method: method).serializingData().response
        _ = try await load(manager)
        // HEAD is served from the stored response.
        #expect(mock.started.count == (method == .head ? 1 : 2))
    }

    @Test("the delegate decides what is stored, which may be nothing") func willCache() async throws {
        let manager = manager(counting(200, ["Cache-Control": "max-age=60"]))
        let delegate = manager.delegate
        delegate.dataTaskWillCacheResponse = { _, task, proposed, completion in
            completion(
                task.originalRequest?.url?.path == "/none"
                    ? nil : CachedURLResponse(response: proposed.response, data: Data("changed".utf8), storagePolicy: .allowed))
        }
        #expect(try await load(manager, url: "http://mock/none").value == "1")
        #expect(try await load(manager, url: "http://mock/none").value == "2")
        #expect(try await load(manager).value == "3")
        #expect(try await load(manager).value == "changed")
        delegate.dataTaskWillCacheResponse = { _, _, proposed, completion in
            DispatchQueue.global().async { completion(proposed) }
        }
        #expect(try await load(manager, url: "http://mock/later").value == "4")
        #expect(try await load(manager, url: "http://mock/later").value == "4")
    }

    @Test("a stale response is validated before it is served if the delegate decides what is stored", arguments: [true, false])
    func decidedValidation(_ stores: Bool) async throws {
        let clock = VirtualClock()
        let mock = counting(200, ["Cache-Control": "max-age=60, stale-while-revalidate=60"])
        let manager = manager(mock) { $0.clock = clock }
        #expect(try await load(manager).value == "1")
        await clock.advance(by: .seconds(61))
        let asked = Inbox<Data>()
        manager.delegate.dataTaskWillCacheResponse = { _, _, proposed, completion in
            asked.put(proposed.data)
            completion(
                stores ? CachedURLResponse(response: proposed.response, data: Data("changed".utf8), storagePolicy: .allowed) : nil)
        }
        let validated = try await load(manager)
        #expect(validated.value == "2" && validated.metrics.last?.cacheReason == .stale && asked.all == [Data("2".utf8)])
        // Without the new response the old one is still stored, and validated again.
        #expect(try await load(manager).value == (stores ? "changed" : "3"))
        manager.delegate.dataTaskWillCacheResponse = nil
        if stores { await clock.advance(by: .seconds(61)) }
        let stale = try await load(manager)
        #expect(stale.value == (stores ? "changed" : "1") && stale.metrics.last?.cacheReason == .staleWhileRevalidate)
        let last = Data((stores ? "3" : "4").utf8)
        let key = URLRequest(url: try #require(URL(string: url)))
        #expect(await eventually { cache.cachedResponse(for: key)?.data == last })
    }

    @Test("a request whose delegate never decides can be cancelled") func neverDecided() async throws {
        let mock = counting(200, ["Cache-Control": "max-age=60"])
        let manager = manager(mock)
        let asked = Inbox<Void>()
        manager.delegate.dataTaskWillCacheResponse = { _, _, _, _ in asked.put(()) }
        let request = manager.request(url)
        async let response = request.serializingString().response
        _ = await asked[0]
        request.cancel()
        #expect(await response.error != nil)
    }

    @Test("a stored response is delivered with backpressure") func pauses() async throws {
        let body = String(repeating: "0123456789", count: 15_000)
        let mock = MockTransport.answering(200, ["Cache-Control": "max-age=60"], body)
        let manager = manager(mock)
        _ = try await load(manager)
        let request = manager.streamRequest(url)
        var received = Data()
        for try await piece in request.bodyStream() { received.append(piece) }
        #expect(received == Data(body.utf8))
        #expect(mock.started.count == 1)
    }

    @Test("a lookup can be suspended, cancelled or invalidated") func control() async throws {
        let cache = SlowCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let manager = manager(counting(200, ["Cache-Control": "max-age=60"])) { $0.urlCache = cache }
        cache.gate.signal()
        _ = try await load(manager)
        let suspended = manager.request(url)
        suspended.suspend()
        let cancelled = manager.request(url)
        let cancelledOnTheWay = manager.request(url)
        cancelled.cancel()
        _ = await cache.asked.first(2)
        cancelledOnTheWay.cancel()
        cache.gate.signal()
        for request in [cancelled, cancelledOnTheWay] {
            guard case .cancelled = await request.serializingString().response.error as? CurlewError else {
                Issue.record("the request was not cancelled")
                return
            }
        }
        suspended.resume()
        #expect(await suspended.serializingString().response.value == "1")
        let last = manager.request(url)
        _ = await cache.asked.first(3)
        manager.invalidateAndCancel()
        cache.gate.signal()
        guard case .sessionInvalidated = await last.serializingString().response.error as? CurlewError else {
            Issue.record("the request did not fail with the session")
            return
        }
    }

    @Test("a redirect and its target are served from the cache") func redirects() async throws {
        let mock = MockTransport { request in
            request.url == "http://mock/a"
                ? .response(301, ["Location": "/b", "Cache-Control": "max-age=60"]) : .response(200, ["Cache-Control": "max-age=60"], "b")
        }
        let manager = manager(mock)
        _ = try await load(manager)
        let second = try await load(manager)
        #expect(second.value == "b")
        #expect(second.response?.url?.path == "/b")
        #expect(mock.started.count == 2)
    }

    @Test("cookies are stored from the network and from a 304, not from a stored response") func cookies() async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(200, ["Set-Cookie": "a=1", "ETag": "\"a\"", "Cache-Control": "max-age=0"], "1"),
            .response(304, ["Set-Cookie": "a=2", "ETag": "\"a\"", "Cache-Control": "max-age=60"]),
        ])
        let storage = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
        // Requests with other cookies of the session do not share.
        let url = try #require(URL(string: "http://mock/"))
        func set(_ value: Int) {
            let cookies = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": "a=\(value)"], for: url)
            storage.setCookies(cookies, for: url, mainDocumentURL: nil)
        }
        set(0)
        let manager = manager(mock) { $0.cookieStorage = storage }
        _ = try await load(manager)
        #expect(storage.cookies?.map(\.value) == ["1"])
        #expect(try await load(manager).value == "1")
        #expect(storage.cookies?.map(\.value) == ["2"])
        set(3)
        #expect(try await load(manager).value == "1")
        #expect(storage.cookies?.map(\.value) == ["3"])
    }

    @Test("cookies of an error are stored although a stored response takes its place") func cookiesOfErrors() async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(200, ["ETag": "\"a\"", "Cache-Control": "max-age=0, stale-if-error=60"], "1"),
            .response(503, ["Set-Cookie": "a=1"]),
        ])
        let storage = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
        let manager = manager(mock) { $0.cookieStorage = storage }
        _ = try await load(manager)
        let second = try await load(manager)
        #expect(second.value == "1" && second.response?.statusCode == 200)
        #expect(storage.cookies?.map(\.value) == ["1"])
    }

    @Test("a session without a cache serves no cached response") func noCache() async throws {
        let mock = counting(200, ["Cache-Control": "max-age=60"])
        let manager = SessionManager(mock: mock)
        #expect(try await load(manager, .returnCacheDataElseLoad).value == "1")
        let error = try await load(manager, .returnCacheDataDontLoad).error as? CurlewError
        #expect(error?.urlError?.code == .resourceUnavailable)
        #expect(mock.started.count == 1)
        let strict = SessionManager(mock: mock) { $0.cachePolicy = .returnCacheDataDontLoad }
        #expect(await strict.request(url).serializingString().response.error != nil)
        #expect(try await load(strict, .reloadIgnoringLocalCacheData).value == "2")
    }

    @Test("the session's policy applies to requests without their own") func sessionPolicy() async throws {
        let mock = counting(200, ["Cache-Control": "public"])
        let manager = manager(mock) { $0.cachePolicy = .returnCacheDataElseLoad }
        _ = await manager.request(url).serializingString().response
        #expect(await manager.request(url).serializingString().response.value == "1")
        #expect(try await load(manager, .reloadIgnoringLocalAndRemoteCacheData).value == "2")
        #expect(mock.started.all.last?.request.headers["Cache-Control"] == "no-cache")
    }

    @Test("a download is served from the cache, but not stored") func downloads() async throws {
        let mock = counting(200, ["Cache-Control": "max-age=60"])
        let manager = manager(mock)
        for _ in 0..<2 { _ = await manager.download(url).serializingData().response }
        #expect(mock.started.count == 2)
        #expect(try await load(manager).value == "3")
        #expect(await manager.download(url).serializingData().response.value == Data("3".utf8))
    }
}
