// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import CurlewURLLoading
import Dispatch
import Foundation
import Testing

@testable import CurlewCore

/// What sessions do with stores of cookies and of hosts with HSTS.
@Suite(.timeLimit(.minutes(1))) struct HostStoresTests {
    private let mock = MockTransport()

    private func makeManager(
        interceptor: (any RequestInterceptor)? = nil, _ change: (inout SessionConfiguration) -> Void
    ) -> SessionManager {
        SessionManager(mock: mock, interceptor: interceptor, change)
    }

    private var sent: [String] { mock.requests.map { "\($0.url) \($0.headers["Cookie"] ?? "-")" } }

    // MARK: Cookies

    @Test(
        "cookies of a store are sent, with redirects, retries and repeats with credentials, and to their host only",
        arguments: [false, true])
    func cookies(inFile: Bool) async throws {
        let directory = try TemporaryDirectory()
        let store = inFile ? CookieStore.file(directory.file("cookies.txt")) : .memory
        let manager = makeManager(interceptor: RetryPolicy(retryLimit: 1, exponentialBackoffBase: 2, exponentialBackoffScale: 0)) {
            $0.cookies = store
            // One given as well does not count.
            $0.cookieStorage = URLSessionConfiguration.ephemeral.httpCookieStorage
        }
        mock.enqueue(
            .redirect(to: "https://a.test/next").header("Set-Cookie", "a=1; Path=/; Max-Age=1000"),
            .status(503).header("Set-Cookie", "b=2; Path=/; Max-Age=1000"),
            .redirect(to: "https://a.test/next"),
            .status(401).header("WWW-Authenticate", "Basic realm=\"x\"").header("Set-Cookie", "c=3; Path=/; Secure"),
            .redirect(to: "https://b.test/"), .text("done"))
        let text = try await manager.request("https://a.test/").authenticate(user: "u", password: "p").validate().serializingString().value
        #expect(text == "done")
        #expect(
            sent == [
                "https://a.test/ -", "https://a.test/next a=1", "https://a.test/ a=1; b=2", "https://a.test/next a=1; b=2",
                "https://a.test/next a=1; b=2; c=3", "https://b.test/ -",
            ])
        #expect(try store.cookies().map(\.name) == ["a", "b", "c"])
        if inFile { #expect(try CookieStore.file(directory.file("cookies.txt")).cookies().map(\.name) == ["a", "b"]) }
    }

    @Test("a file that another process changes counts with the next request") func changedFile() async throws {
        let directory = try TemporaryDirectory()
        let manager = makeManager { $0.cookies = .file(directory.file("cookies.txt")) }
        mock.stub(nil, .any, respond: .text("x"))
        _ = await manager.request("https://a.test/").serializingData().response
        let expiry = Date(timeIntervalSinceNow: 1000)
        try CookieStore.file(directory.file("cookies.txt")).set(Cookie(name: "n", value: "1", domain: "a.test", expirationDate: expiry))
        _ = await manager.request("https://a.test/").serializingData().response
        #expect(sent == ["https://a.test/ -", "https://a.test/ n=1"])
    }

    @Test("a file that can't be used fails no request") func unusableFile() async throws {
        let directory = try TemporaryDirectory()
        let (store, hosts) = (CookieStore.file(directory.url), HSTSStore.file(directory.url))
        let manager = makeManager {
            $0.cookies = store
            $0.hsts = hosts
        }
        mock.enqueue(.text("x").header("Set-Cookie", "a=1").header("Strict-Transport-Security", "max-age=100"), .text("y"))
        for url in ["https://a.test/", "http://a.test/"] {
            #expect(await manager.request(url).serializingData().response.error == nil)
        }
        #expect(sent == ["https://a.test/ -", "https://a.test/ a=1"])
        #expect(store.lastError != nil && hosts.lastError != nil)
    }

    @Test("requests that handle no cookies, and sessions that accept or send none") func policies() async throws {
        let store = CookieStore.memory
        mock.stub(nil, .any, respond: MockResponse.text("x").header("Set-Cookie", "a=1"))
        var request = try URLRequest(url: "https://a.test/", method: .get)
        request.httpShouldHandleCookies = false
        _ = await makeManager { $0.cookies = store }.request(request).serializingData().response
        let other = MockTransport(.text("x").header("Set-Cookie", "a=1"))
        let refusing = SessionManager(mock: other) {
            $0.cookies = store
            $0.cookieAcceptPolicy = .never
        }
        _ = await refusing.request("https://a.test/").serializingData().response
        #expect(try store.cookies().isEmpty)
        try store.set(Cookie(name: "a", value: "1", domain: "a.test"))
        let third = MockTransport(.text("x"))
        let silent = SessionManager(mock: third) {
            $0.cookies = store
            $0.sendsCookies = false
        }
        _ = await silent.request("https://a.test/").serializingData().response
        #expect(third.requests.map { $0.headers["Cookie"] } == [nil])
    }

    @Test("SameSite counts for requests that belong to a document") func sameSite() async throws {
        let store = CookieStore.memory
        for (name, value) in [("s", Cookie.SameSite.strict), ("l", .lax), ("n", Cookie.SameSite.none)] {
            try store.set(Cookie(name: name, value: "1", domain: "a.test", sameSite: value))
        }
        let manager = makeManager { $0.cookies = store }
        mock.stub(nil, .any, respond: .text("x"))
        for document in [nil, "https://www.a.test/", "https://b.test/", "http://a.test/"] {
            var request = try URLRequest(url: "https://a.test/", method: .get)
            request.mainDocumentURL = document.flatMap { URL(string: $0) }
            _ = await manager.request(request).serializingData().response
        }
        #expect(mock.requests.map { $0.headers["Cookie"] } == ["s=1; l=1; n=1", "s=1; l=1; n=1", "n=1", "n=1"])
    }

    @Test("a request that is cancelled, or suspended, before the file was read ends, or goes on") func control() async throws {
        let directory = try TemporaryDirectory()
        let manager = makeManager {
            $0.cookies = .file(directory.file("cookies.txt"))
            $0.hsts = .file(directory.file("hsts"))
        }
        mock.stub(nil, .any, respond: .text("x"))
        let gate = DispatchSemaphore(value: 0)
        manager.session.queue.async { gate.wait() }
        let cancelled = manager.request("https://a.test/1")
        let suspended = manager.request("https://a.test/")
        cancelled.cancel()
        suspended.suspend()
        gate.signal()
        guard case CurlewError.cancelled? = await cancelled.serializingData().response.error else {
            Issue.record("not cancelled")
            return
        }
        #expect(!mock.requests.contains { $0.url.hasSuffix("/1") })
        suspended.resume()
        #expect(await suspended.serializingString().response.value == "x")
        let late = DispatchSemaphore(value: 0)
        manager.session.queue.async { late.wait() }
        let ended = manager.request("https://a.test/")
        manager.session.invalidateAndCancel()
        late.signal()
        #expect(await ended.serializingData().response.error != nil)
    }

    // MARK: HSTS

    private let hosts = HSTSStore.memory

    private func know(_ host: String, subdomains: Bool = false) throws {
        try hosts.set(HSTSHost(host: host, includesSubdomains: subdomains, expirationDate: .distantFuture))
    }

    @Test("a field that comes over TLS has the next request use it, one that does not is ignored") func noting() async throws {
        let monitor = ExchangeLog()
        let manager = makeManager {
            $0.hsts = hosts
            $0.eventMonitors = [monitor]
        }
        mock.stub(nil, .any, respond: MockResponse.text("x").header("Strict-Transport-Security", "max-age=1000; includeSubDomains"))
        for url in ["http://a.test/", "http://a.test/", "https://a.test/", "http://a.test:80/", "http://x.a.test:8080/", "http://b.test/"] {
            let response = await manager.request(url).serializingData().response
            #expect(response.response?.url?.absoluteString == mock.requests.last?.url)
        }
        let urls = [
            "http://a.test/", "http://a.test/", "https://a.test/", "https://a.test:443/", "https://x.a.test:8080/", "http://b.test/",
        ]
        #expect(mock.requests.map(\.url) == urls)
        await monitor.exchanges.wait(for: urls.count)
        #expect(monitor.exchanges.elements.map(\.isUpgradedByHSTS) == [false, false, false, true, true, false])
        #expect(try hosts.hosts().map(\.host) == ["a.test", "x.a.test"])
    }

    @Test("max-age=0 has the host forgotten, only the first field counts, and addresses are never known") func forgetting() async throws {
        let manager = makeManager { $0.hsts = hosts }
        try know("a.test")
        let field = "Strict-Transport-Security"
        mock.enqueue(.text("x").header(field, "nonsense"), .text("x").header(field, "max-age=0"), .text("x").header(field, "max-age=100"))
        for url in ["https://a.test/", "https://a.test/", "https://1.2.3.4/"] {
            _ = await manager.request(url).serializingData().response
            #expect(hosts.knows("a.test") == (mock.requests.count == 1))
        }
        #expect(try hosts.hosts().isEmpty)
    }

    @Test("every exchange is upgraded: redirects, which are no downgrade, with credentials of the origin, and retries") func followUps()
        async throws
    {
        try know("a.test")
        try know("b.test", subdomains: true)
        let manager = makeManager(interceptor: RetryPolicy(retryLimit: 1, exponentialBackoffBase: 2, exponentialBackoffScale: 0)) {
            $0.hsts = hosts
        }
        mock.enqueue(
            .redirect(to: "http://a.test/2"), .redirect(to: "/3"), .redirect(to: "http://www.b.test:80/"), .status(503), .text("done"))
        let request = manager.request("http://a.test/1", headers: ["Authorization": "x"])
        #expect(try await request.validate().serializingString().value == "done")
        #expect(
            mock.requests.map(\.url) == [
                "https://a.test/1", "https://a.test/2", "https://a.test/3", "https://www.b.test:443/", "https://a.test/1",
            ])
        #expect(mock.requests.map { $0.headers["Authorization"] } == ["x", "x", "x", nil, "x"])
        #expect(request.task?.currentRequest?.url?.absoluteString == "https://a.test/1")
        #expect(request.task?.originalRequest?.url?.absoluteString == "http://a.test/1")
    }

    @Test("a redirect to plain HTTP of an unknown host is still refused") func downgrade() async throws {
        try know("a.test")
        let manager = makeManager { $0.hsts = hosts }
        mock.enqueue(.redirect(to: "http://b.test/"))
        let error = await manager.request("http://a.test/").serializingData().response.error
        guard case CurlewError.redirectFailed(.insecureDowngrade, _)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("secure cookies belong to the upgraded request") func secureCookies() async throws {
        try know("a.test")
        let manager = makeManager {
            $0.hsts = hosts
            $0.cookies = .memory
        }
        mock.stub(nil, .any, respond: MockResponse.text("x").header("Set-Cookie", "__Host-a=1; Secure; Path=/"))
        for _ in 0..<2 { _ = await manager.request("http://a.test/").serializingData().response }
        #expect(sent == ["https://a.test/ -", "https://a.test/ __Host-a=1"])
    }

    @Test("a deadline's field is sent to the upgraded origin") func deadline() async throws {
        try know("a.test")
        let manager = makeManager { $0.hsts = hosts }
        mock.stub(nil, .any, respond: .text("x"))
        var options = RequestOptions()
        options.deadline = .seconds(100)
        options.deadlineHeader = "X-Deadline"
        _ = await manager.request("http://a.test/", options: options).serializingData().response
        #expect(mock.requests.map { $0.headers["X-Deadline"] != nil } == [true])
    }

    @Test("a host whose trust was not evaluated is not noted, and the exemption ends for one that is known") func trust() async throws {
        let unverified = makeManager {
            $0.hsts = hosts
            $0.tls.verifiesServer = false
        }
        mock.stub(nil, .any, respond: MockResponse.text("x").header("Strict-Transport-Security", "max-age=1000"))
        _ = await unverified.request("https://a.test/").serializingData().response
        #expect(!hosts.knows("a.test"))
        #expect(mock.requests.last?.options.tls.verifiesServer == false)
        try know("a.test")
        _ = await unverified.request("https://a.test/").serializingData().response
        #expect(mock.requests.last?.options.tls.verifiesServer == true)
        _ = await unverified.request("https://b.test/").serializingData().response
        #expect(mock.requests.last?.options.tls.verifiesServer == false && !hosts.knows("b.test"))
    }

    @Test("a trust policy that disables evaluation does not count for a known host, one that pins does", arguments: [true, false])
    func policies(disables: Bool) async throws {
        let policy = disables ? ServerTrustPolicy.disableEvaluation : .customEvaluation { _, _ in true }
        try know("a.test")
        let mock = MockTransport(.text("x").header("Strict-Transport-Security", "max-age=1000"))
        var configuration = SessionConfiguration()
        configuration.hsts = hosts
        configuration.callbackQueue = DispatchQueue(label: "test")
        let manager = SessionManager(
            configuration: configuration,
            serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["a.test": policy, "b.test": policy]),
            transport: mock)
        for url in ["https://a.test/", "https://b.test/", "https://c.test/"] { _ = await manager.request(url).serializingData().response }
        #expect(mock.requests.map(\.options.tls.verifiesServer) == [disables, false, true])
        #expect(try hosts.hosts().map(\.host) == ["a.test", "c.test"])
    }

    @Test("a response from the cache notes nothing") func cached() async throws {
        let manager = makeManager {
            $0.hsts = hosts
            $0.cache = .memory()
        }
        mock.stub(
            nil, .any,
            respond: MockResponse.text("x").header("Cache-Control", "max-age=100").header("Strict-Transport-Security", "max-age=1000"))
        for _ in 0..<2 {
            let response = await manager.request("https://a.test/").serializingData().response
            #expect(hosts.knows("a.test") == !response.metrics.isFromCache)
            try hosts.removeAll()
        }
        #expect(mock.requests.count == 1)
    }

    @Test("the field of a 304 to the cache counts, and of an error in whose place a stored response is served", arguments: [304, 503])
    func consumed(_ status: Int) async throws {
        let field = "Strict-Transport-Security"
        let manager = makeManager {
            $0.hsts = hosts
            $0.cache = .memory()
        }
        let stored = MockResponse.text("x").header("Cache-Control", "max-age=0, stale-if-error=1000").header("ETag", "\"1\"")
        mock.enqueue(
            stored.header(field, "max-age=1000"), .status(status).header("ETag", "\"1\""),
            .status(status).header("ETag", "\"1\"").header(field, "max-age=2000"),
            .status(status).header("ETag", "\"1\"").header(field, "max-age=0"))
        // What is stored does not count again.
        for isKnown in [true, false, true, false] {
            if mock.requests.count == 1 { try hosts.removeAll() }
            #expect(try await manager.request("https://a.test/").serializingString().value == "x")
            #expect(hosts.knows("a.test") == isKnown)
        }
        #expect(mock.requests.count == 4)
    }

    @Test("without the store the field is ignored") func off() async throws {
        let manager = makeManager { _ in }
        mock.stub(nil, .any, respond: MockResponse.text("x").header("Strict-Transport-Security", "max-age=1000"))
        for url in ["https://a.test/", "http://a.test/"] { _ = await manager.request(url).serializingData().response }
        #expect(mock.requests.map(\.url) == ["https://a.test/", "http://a.test/"])
    }

    @Test("hosts in a file are known to other sessions") func hostsInFile() async throws {
        let directory = try TemporaryDirectory()
        mock.stub(nil, .any, respond: MockResponse.text("x").header("Strict-Transport-Security", "max-age=1000"))
        let manager = makeManager { $0.hsts = .file(directory.file("hsts")) }
        _ = await manager.request("https://a.test/").serializingData().response
        let other = MockTransport(.text("x"))
        let second = SessionManager(mock: other) { $0.hsts = .file(directory.file("hsts")) }
        _ = await second.request("http://a.test/").serializingData().response
        #expect(other.requests.map(\.url) == ["https://a.test/"])
    }

    @Test("configurations are equal if they share the stores, and show them only as there") func configurations() {
        var first = SessionConfiguration()
        (first.cookies, first.hsts) = (.memory, hosts)
        let second = first
        #expect(second.cookies === first.cookies && second.hsts === hosts)
        first.cookies = nil
        #expect(first.cookies == nil && second.cookies != nil)
    }
}

private final class ExchangeLog: EventMonitor {
    let exchanges = Log<OutgoingExchange>()
    var monitoredEvents: MonitoredEvents { .exchanges }

    func request(_ request: Request, didCompleteExchange exchange: OutgoingExchange, with completion: ExchangeCompletion) {
        exchanges.append(exchange)
    }
}
