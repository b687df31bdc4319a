// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport
import CurlewURLLoading
import Testing

@Suite(.timeLimit(.minutes(2))) struct CacheTests {
    private let server: LoopbackServer
    private let cache = URLCache(memoryCapacity: 50 << 20, diskCapacity: 0, diskPath: nil)

    /// Where the second request's response came from: the cache, the server, or nowhere.
    enum Answer: Sendable {
        case cached, loaded, none
    }

    init() throws {
        let count = Lock(0)
        server = try LoopbackServer { request, _ in
            let number = count.withLock { count -> Int in
                count += 1
                return count
            }
            let tag = "\"\(request.query("tag") ?? "")\""
            if request.query("tag") != nil, request.header("If-None-Match") == tag {
                return .status(304, headers: [ServerField("ETag", tag), ServerField("X-Confirmed", "yes")])
            }
            var headers = request.query.filter { $0.name != "tag" }
            if request.query("tag") != nil { headers.append(ServerField("ETag", tag)) }
            headers.append(ServerField("X-Number", "\(number)"))
            return ServerResponse(status: 200, headers: headers, body: .data(Data("answer \(number)".utf8)))
        }
    }

    private func manager(_ cache: URLCache? = nil, _ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = cache ?? self.cache
        configuration.connectionProxyDictionary = [:]
        var own = SessionConfiguration(configuration)
        own.callbackQueue = callbackQueue
        change(&own)
        return SessionManager(configuration: own)
    }

    private func load(_ manager: SessionManager, _ query: String, _ policy: URLRequest.CachePolicy = .useProtocolCachePolicy) async throws
        -> DataResponse<String>
    {
        var request = try URLRequest(url: server.url("/answer?" + query), method: .get)
        request.cachePolicy = policy
        return await manager.request(request).serializingString().response
    }

    private static let public_ = "Cache-Control=public"
    private static let private_ = "Cache-Control=private"
    private static let fresh = "Cache-Control=max-age%3D3600"
    private static let stale = "Cache-Control=max-age%3D0"
    private static let noCache = "Cache-Control=no-cache"
    private static let noStore = "Cache-Control=no-store"
    private static let expires = "Expires=Fri,+01+Jan+2100+00:00:00+GMT"
    private static let expired = "Expires=Thu,+01+Jan+1970+00:00:00+GMT"

    @Test(
        "a response comes from the cache where its fields and the policy allow it",
        arguments: [
            (URLRequest.CachePolicy.useProtocolCachePolicy, [fresh, expires], [public_, private_, stale, noCache, noStore, expired], []),
            (.reloadIgnoringLocalCacheData, [], [public_, private_, fresh, stale, noCache, noStore, expires, expired], []),
            (.returnCacheDataElseLoad, [public_, private_, fresh, stale, noCache, expires, expired], [noStore], []),
            (.returnCacheDataDontLoad, [public_, private_, fresh, stale, noCache, expires, expired], [], [noStore]),
            (.reloadRevalidatingCacheData, [], [public_, private_, fresh, stale, noCache, noStore, expires, expired], []),
        ] as [(URLRequest.CachePolicy, [String], [String], [String])])
    func policies(_ policy: URLRequest.CachePolicy, _ cached: [String], _ loaded: [String], _ none: [String]) async throws {
        let manager = manager()
        let cases = cached.map { ($0, Answer.cached) } + loaded.map { ($0, .loaded) } + none.map { ($0, .none) }
        for (query, expected) in cases {
            let first = try await load(manager, query, .reloadIgnoringLocalCacheData)
            let second = try await load(manager, query, policy)
            #expect(first.value != nil)
            switch expected {
            case .cached:
                #expect(second.value == first.value, "\(query)")
                #expect(second.response?.allHeaderFields["X-Number"] as? String == first.response?.allHeaderFields["X-Number"] as? String)
            case .loaded: #expect(second.value != first.value && second.error == nil, "\(query)")
            case .none:
                #expect((second.error as? CurlewError)?.urlError?.code == .resourceUnavailable, "\(query)")
                #expect(second.response == nil)
            }
            #expect(second.metrics.last?.isFromCache == (expected == .cached))
        }
    }

    @Test("a stale response is revalidated by its ETag") func confirmation() async throws {
        let manager = manager()
        let query = Self.stale + "&tag=v1"
        let first = try await load(manager, query)
        let second = try await load(manager, query)
        #expect(second.value == first.value)
        #expect(second.response?.statusCode == 200)
        #expect(second.response?.allHeaderFields["X-Confirmed"] as? String == "yes")
        #expect(second.metrics.last?.isFromCache == true)
        #expect(second.metrics.last?.remotePort == server.port)
        #expect(server.requests.map { $0.header("If-None-Match") } == [nil, "\"v1\""])
    }

    @Test("another session finds the response on disk") func disk() async throws {
        let directory = try TemporaryDirectory()
        let first = try await load(
            manager(URLCache(memoryCapacity: 0, diskCapacity: 50 << 20, diskPath: directory.url.path)), Self.fresh)
        let second = try await load(
            manager(URLCache(memoryCapacity: 0, diskCapacity: 50 << 20, diskPath: directory.url.path)), Self.fresh)
        #expect(first.value == "answer 1")
        #expect(second.value == "answer 1")
        #expect(server.requestCount == 1)
    }

    @Test("a coded body is decoded once") func coding() async throws {
        let coded = try LoopbackServer { _, _ in
            ServerResponse(
                status: 200, headers: [ServerField("Content-Encoding", "gzip"), ServerField("Cache-Control", "max-age=60")],
                body: .data(StoredDeflate.gzip(Data("text".utf8))))
        }
        let manager = manager()
        for _ in 0..<2 { #expect(await manager.request(coded.url("/")).serializingString().response.value == "text") }
        #expect(coded.requestCount == 1)
    }

    @Test("many concurrent requests get complete responses") func concurrency() async throws {
        let manager = manager()
        let bodies = try await withThrowingTaskGroup(of: String?.self) { group in
            for number in 0..<100 { group.addTask { try await self.load(manager, Self.fresh + "&X-N=\(number % 5)").value } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(bodies.allSatisfy { $0?.hasPrefix("answer ") == true })
        let before = server.requestCount
        for number in 0..<5 { _ = try await load(manager, Self.fresh + "&X-N=\(number)") }
        #expect(server.requestCount == before)
    }

    @Test("the session's closure decides what is cached") func willCacheResponse() async throws {
        let manager = manager()
        let asked = Log<String>()
        manager.delegate.dataTaskWillCacheResponse = { _, _, proposed, completion in
            asked.append(String(decoding: proposed.data, as: UTF8.self))
            completion(nil)
        }
        #expect(try await load(manager, Self.fresh).value == "answer 1")
        #expect(try await load(manager, Self.fresh).value == "answer 2")
        #expect(asked.elements == ["answer 1", "answer 2"])
    }
}
