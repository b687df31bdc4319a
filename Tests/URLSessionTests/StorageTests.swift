// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewURLSession
import Testing

// U1.3
@Suite(.timeLimit(.minutes(1))) struct StorageTests {
    private func cacheable() throws -> LoopbackServer {
        try LoopbackServer { request, _ in
            let fields = [ServerField("Cache-Control", "max-age=100"), ServerField("Content-Type", "text/plain")]
            return ServerResponse(status: 200, headers: fields, body: .data(Data(request.target.utf8)))
        }
    }

    private func session() -> URLSession { URLSession(configuration: .ephemeral) }

    private func data(_ stored: CachedURLResponse?) -> String? { stored.map { String(decoding: $0.data, as: UTF8.self) } }

    // MARK: URLCache

    @Test func `what a session has stored is found by its task, also for URLs that differ in their query`() async throws {
        let server = try cacheable()
        defer { server.stop() }
        let session = session()
        let cache = try #require(session.configuration.urlCache)
        var tasks: [URLSessionDataTask] = []
        for query in ["a=1", "a=2"] {
            let url = try #require(URL(string: server.url("/x?\(query)")))
            _ = try await session.data(from: url)
            tasks.append(session.dataTask(with: url))
        }
        #expect(data(await cache.cachedResponse(for: tasks[0])) == "/x?a=1")
        #expect(data(await cache.cachedResponse(for: tasks[1])) == "/x?a=2")
        let called = Inbox<String?>()
        cache.getCachedResponse(for: tasks[1]) { called.put($0.map { String(decoding: $0.data, as: UTF8.self) }) }
        #expect(await called[0] == "/x?a=2")
        cache.removeCachedResponse(for: tasks[0])
        #expect(await cache.cachedResponse(for: tasks[0]) == nil)
        #expect(data(await cache.cachedResponse(for: tasks[1])) == "/x?a=2")
        for task in tasks { task.cancel() }
    }

    @Test func `a response that is stored for a task is the session's, without a request`() async throws {
        let server = try cacheable()
        defer { server.stop() }
        let session = session()
        let cache = try #require(session.configuration.urlCache)
        let url = try #require(URL(string: server.url("/stored?b=1")))
        let task = session.dataTask(with: url)
        let fields = ["Cache-Control": "max-age=100", "Date": "Mon, 01 Jan 2035 00:00:00 GMT"]
        let response = try #require(HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields))
        cache.storeCachedResponse(CachedURLResponse(response: response, data: Data("own".utf8)), for: task)
        #expect(data(await cache.cachedResponse(for: task)) == "own")
        var request = URLRequest(url: url)
        request.cachePolicy = .returnCacheDataElseLoad
        #expect(try await session.data(for: request).0 == Data("own".utf8))
        #expect(server.requestCount == 0)
        // One that was made with another URL, as after a redirect.
        let other = session.dataTask(with: try #require(URL(string: server.url("/other"))))
        cache.storeCachedResponse(CachedURLResponse(response: response, data: Data("moved".utf8)), for: other)
        #expect(data(await cache.cachedResponse(for: other)) == "moved")
        #expect(data(await cache.cachedResponse(for: task)) == "own")
        task.cancel()
        other.cancel()
    }

    // MARK: URLCredentialStorage

    @Test func `credentials are stored and found by tasks, for equal spaces`() async throws {
        let storage = URLCredentialStorage()
        let task = session().dataTask(with: try #require(URL(string: "http://h/")))
        defer { task.cancel() }
        func space() -> URLProtectionSpace {
            URLProtectionSpace(
                host: "h", port: 80, protocol: NSURLProtectionSpaceHTTP, realm: "r",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        }
        let first = URLCredential(user: "a", password: "1", persistence: .forSession)
        let second = URLCredential(user: "b", password: "2", persistence: .forSession)
        #expect(await storage.credentials(for: space(), task: task) == nil)
        storage.set(first, for: space(), task: task)
        storage.setDefaultCredential(second, for: space(), task: task)
        #expect(await storage.credentials(for: space(), task: task)?.mapValues { $0.password } == ["a": "1", "b": "2"])
        #expect(await storage.defaultCredential(for: space(), task: task)?.user == "b")
        #expect(storage.allCredentials.count == 1)
        let called = Inbox<[String]>()
        storage.getCredentials(for: space(), task: task) { called.put(($0 ?? [:]).keys.sorted()) }
        storage.getDefaultCredential(for: space(), task: task) { called.put([$0?.user ?? ""]) }
        #expect(Set(await called.first(2)) == [["a", "b"], ["b"]])
        storage.remove(first, for: space(), task: task)
        storage.remove(second, for: space(), options: [NSURLCredentialStorageRemoveSynchronizableCredentials: true], task: task)
        #expect(await storage.credentials(for: space(), task: task) == nil)
        #expect(await storage.defaultCredential(for: space(), task: task) == nil)
    }

    @Test func `a credential that is stored for a task answers the session's challenge`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let session = session()
        let storage = try #require(session.configuration.urlCredentialStorage)
        let url = try #require(URL(string: server.url("/auth-basic?user=u&password=p")))
        let refused = try #require(try await session.data(from: url).1 as? HTTPURLResponse)
        #expect(refused.statusCode == 401)
        let realm = refused.value(forHTTPHeaderField: "WWW-Authenticate")?.split(separator: "\"").dropFirst().first.map(String.init)
        let task = session.dataTask(with: url)
        defer { task.cancel() }
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: server.port, protocol: NSURLProtectionSpaceHTTP, realm: realm,
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        storage.setDefaultCredential(URLCredential(user: "u", password: "p", persistence: .forSession), for: space, task: task)
        #expect((try await session.data(from: url).1 as? HTTPURLResponse)?.statusCode == 200)
    }

    // MARK: HTTPCookieStorage

    private func cookie(_ name: String, domain: String, path: String = "/") throws -> HTTPCookie {
        try #require(HTTPCookie(properties: [.name: name, .value: "1", .domain: domain, .path: path]))
    }

    @Test func `cookies are stored for the host of a task, and found for its path`() async throws {
        let session = session()
        let storage = try #require(session.configuration.httpCookieStorage)
        let task = session.dataTask(with: try #require(URL(string: "http://www.example.com/deep/page")))
        let other = session.dataTask(with: try #require(URL(string: "http://www.example.com/")))
        storage.storeCookies(
            [
                try cookie("host", domain: "www.example.com"), try cookie("domain", domain: ".example.com"),
                try cookie("deep", domain: "www.example.com", path: "/deep"), try cookie("foreign", domain: "example.org"),
            ], for: task)
        #expect(await storage.cookies(for: task)?.map(\.name).first == "deep")
        #expect(Set(await storage.cookies(for: task)?.map(\.name) ?? []) == ["deep", "host", "domain"])
        let called = Inbox<Set<String>>()
        storage.getCookiesFor(other) { called.put(Set(($0 ?? []).map(\.name))) }
        #expect(await called[0] == ["host", "domain"])
        #expect(storage.cookies?.contains { $0.name == "foreign" } == false)
        storage.cookieAcceptPolicy = .never
        storage.storeCookies([try cookie("late", domain: "www.example.com")], for: task)
        #expect(storage.cookies?.contains { $0.name == "late" } == false)
        task.cancel()
        other.cancel()
    }

    @Test func `a cookie that is stored for a task is sent, and one of the server's is found`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let session = session()
        let storage = try #require(session.configuration.httpCookieStorage)
        let url = try #require(URL(string: server.url("/cookies/set?theirs=2")))
        _ = try await session.data(from: url)
        let task = session.dataTask(with: url)
        defer { task.cancel() }
        #expect(await storage.cookies(for: task)?.map(\.name) == ["theirs"])
        storage.storeCookies([try cookie("ours", domain: "127.0.0.1")], for: task)
        _ = try await session.data(from: url)
        let sent = try #require(server.requests.last?.headers(named: "Cookie").joined(separator: "; "))
        #expect(sent.contains("ours=1") && sent.contains("theirs=2"))
    }
}
