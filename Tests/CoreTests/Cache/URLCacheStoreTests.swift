// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct URLCacheStoreTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func store(memory: Int = 1 << 20, disk: Int = 0) -> URLCacheStore {
        URLCacheStore(cache: URLCache(memoryCapacity: memory, diskCapacity: disk, diskPath: directory.url.path))
    }

    private func put(_ body: String, for request: TransferRequest, in store: URLCacheStore, headers: HTTPHeaders = [:]) throws {
        let cacheRequest = CacheRequest(method: .get, headers: request.headers, mode: .protocolRules)
        let received = StorageRules.Received(statusCode: 200, headers: headers, requestTime: 1_000_000, responseTime: 1_000_001)
        let head = try #require(StorageRules.head(of: received, url: request.cacheURL, request: cacheRequest))
        let proposed = try #require(store.proposal(head, Data(body.utf8)))
        store.store(proposed, proposed: proposed, for: request)
    }

    /// The body that the request selects, of any age.
    private func body(_ request: TransferRequest, in store: URLCacheStore) -> String? {
        let found = store.find(request)
        let cacheRequest = CacheRequest(method: .get, headers: request.headers, mode: .storedOnly)
        guard case .serve(let index, _, _, _, _) = CacheRules.decide(cacheRequest, found.heads, now: 2_000_000) else { return nil }
        return found[index].body().map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        "URLs are distinguished by all their parts, in memory and on disk",
        arguments: [
            ("http://example.org/a", "https://example.org/a"), ("http://example.org/a?b=1", "http://example.org/a?b=2"),
            ("http://example.org/a?", "http://example.org/a"), ("http://example.org/a", "http://example.org:8080/a"),
            ("http://example.org/a", "http://example.org/A"), ("http://example.org/%3F", "http://example.org/?"),
        ])
    func keys(_ first: String, _ second: String) throws {
        for store in [store(), store(memory: 0, disk: 1 << 20)] {
            try put("1", for: TransferRequest(url: first), in: store)
            #expect(body(TransferRequest(url: first), in: store) == "1")
            #expect(body(TransferRequest(url: second), in: store) == nil)
            try put("2", for: TransferRequest(url: second), in: store)
            #expect(body(TransferRequest(url: second), in: store) == "2")
            #expect(body(TransferRequest(url: first), in: store) != "2")
            store.cache.removeAllCachedResponses()
        }
    }

    @Test("responses for URLs of any length and characters are stored on disk") func longURLs() throws {
        let store = store(memory: 0, disk: 1 << 20)
        for url in ["http://example.org/\(String(repeating: "x", count: 2000))", "http://example.org/%C3%BF%C3%BF/~~~???"] {
            try put("1", for: TransferRequest(url: url), in: store)
            #expect(body(TransferRequest(url: url), in: store) == "1")
        }
    }

    @Test("the fragment is not part of the cache key") func fragments() throws {
        let store = store()
        try put("1", for: TransferRequest(url: "http://example.org/a#b"), in: store)
        #expect(body(TransferRequest(url: "http://example.org/a#c"), in: store) == "1")
    }

    @Test("times and header fields are stored, on disk too") func metadata() throws {
        let store = store(memory: 0, disk: 1 << 20)
        let request = TransferRequest(url: "http://example.org/a?b")
        try put("1", for: request, in: store, headers: ["ETag": "\"x\"", "X": "é, ü"])
        let head = try #require(store.find(request).heads.first)
        #expect(head.headers["ETag"] == "\"x\"" && head.headers["X"] == "é, ü")
        #expect(head.requestTime == 1_000_000 && head.responseTime == 1_000_001)
    }

    @Test("a response with Vary is used for requests with the same fields") func varying() throws {
        let store = store()
        let url = "http://example.org/"
        try put("1", for: TransferRequest(url: url, headers: ["Accept": "a", "X": "1"]), in: store, headers: ["Vary": "accept, Cookie"])
        #expect(body(TransferRequest(url: url, headers: ["accept": "a", "X": "2"]), in: store) == "1")
        #expect(body(TransferRequest(url: url, headers: ["Accept": "b"]), in: store) == nil)
        #expect(body(TransferRequest(url: url, headers: ["Accept": "a", "Cookie": "c"]), in: store) == nil)
    }

    @Test("responses that the program stores itself are found, and it can remove ours") func programsOwn() throws {
        let store = store()
        for text in ["http://example.org/own", "http://example.org/own?query"] {
            let url = try text.asURL()
            let response = try #require(
                HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: ["Cache-Control": "max-age=60"]))
            store.cache.storeCachedResponse(CachedURLResponse(response: response, data: Data("own".utf8)), for: URLRequest(url: url))
            #expect(body(TransferRequest(url: text), in: store) == "own")
            // Its age is unknown.
            let now = Date().timeIntervalSince1970
            #expect(try #require(store.find(TransferRequest(url: text)).heads.first).remaining(at: now) < 0)
        }
        try put("1", for: TransferRequest(url: "http://example.org/ours"), in: store)
        let ours = URLRequest(url: try "http://example.org/ours".asURL())
        #expect(store.cache.cachedResponse(for: ours)?.data == Data("1".utf8))
        store.cache.removeCachedResponse(for: ours)
        #expect(body(TransferRequest(url: "http://example.org/ours"), in: store) == nil)
    }

    @Test("a session finds and removes cached responses by the whole URL") func session() async throws {
        var configuration = SessionConfiguration()
        configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let mock = MockTransport { .response(200, [:], $0.url) }
        let manager = SessionManager(configuration: configuration, transport: mock)
        let requests = try ["http://mock/a?1", "http://mock/a?2"].map { try URLRequest(url: $0, method: .get) }
        for request in requests { _ = await manager.request(request).serializingData().response }
        let session = manager.session
        #expect(requests.map { session.cachedResponse(for: $0)?.data } == requests.map { Data(($0.url?.absoluteString ?? "").utf8) })
        session.removeCachedResponse(for: requests[0])
        #expect(requests.map { session.cachedResponse(for: $0) == nil } == [true, false])
    }

    @Test("a removed response is not found") func removal() throws {
        let store = store(disk: 1 << 20)
        for url in ["http://example.org/a", "http://example.org/a?b"] {
            try put("1", for: TransferRequest(url: url), in: store)
            store.remove(url)
            #expect(body(TransferRequest(url: url), in: store) == nil)
        }
    }

    @Test("a validated response is updated only where it still is, and stays as the program has chosen it") func updates() throws {
        let store = store()
        let request = TransferRequest(url: "http://example.org/a")
        try put("1", for: request, in: store, headers: ["ETag": "\"1\"", "Cache-Control": "max-age=60"])
        let proposed = try #require(store.cached(request.url))
        let chosen = CachedURLResponse(
            response: proposed.response, data: proposed.data, userInfo: ["own": "kept"], storagePolicy: .allowedInMemoryOnly)
        store.store(chosen, proposed: proposed, for: request)
        let old = store.find(request)[0]
        let received = StorageRules.Received(
            statusCode: 304, headers: ["ETag": "\"1\"", "X": "new"], requestTime: 1_000_100, responseTime: 1_000_101)
        let head = try #require(StorageRules.updated(old.head, by: received, request: request.headers))
        store.update(old, with: head, for: request)
        let updated = try #require(store.cached(request.url))
        #expect(updated.storagePolicy == .allowedInMemoryOnly && updated.userInfo?["own"] as? String == "kept")
        #expect(store.find(request).heads.map { $0.headers["X"] } == ["new"] && store.find(request).heads[0].responseTime == 1_000_101)
        // Another one has taken its place, or it was removed.
        try put("2", for: request, in: store, headers: ["ETag": "\"2\"", "Cache-Control": "max-age=60"])
        store.update(old, with: head, for: request)
        #expect(body(request, in: store) == "2")
        store.remove(request.url)
        store.update(old, with: head, for: request)
        #expect(store.find(request).heads.isEmpty)
    }

    @Test("a full cache evicts responses that were stored twice") func eviction() throws {
        let store = store(memory: 20_000)
        for number in 0..<200 {
            try put(String(repeating: "x", count: 900), for: TransferRequest(url: "http://example.org/\(number % 7)"), in: store)
            try put(String(repeating: "y", count: 900), for: TransferRequest(url: "http://example.org/\(number)"), in: store)
        }
        #expect(body(TransferRequest(url: "http://example.org/199"), in: store)?.first == "y")
        #expect(store.cache.currentMemoryUsage <= 20_000)
    }
}
