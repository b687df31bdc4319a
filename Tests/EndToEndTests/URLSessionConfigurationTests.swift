// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewURLLoading
import Testing

@Suite(.timeLimit(.minutes(2))) struct URLSessionConfigurationTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func manager(_ change: (URLSessionConfiguration) -> Void = { _ in }) -> SessionManager {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = [:]
        change(configuration)
        return SessionManager(configuration: configuration)
    }

    @Test("additional header fields are sent unless the request has its own") func headers() async throws {
        let manager = manager { $0.httpAdditionalHeaders = ["X-Session": 1, "X-Both": "session"] }
        let reply = try await manager.echo(server.url("/echo"), headers: ["x-both": "request"])
        #expect(reply.header("X-Session") == "1")
        #expect(reply.header("X-Both") == "request")
    }

    @Test("the request timeout applies between bytes") func requestTimeout() async {
        let manager = manager { $0.timeoutIntervalForRequest = 1 }
        let error = await manager.request(server.url("/silent")).serializingData().response.error
        #expect(error?.transferFailure?.kind == .idleTimeout)
        #expect((error as? CurlewError)?.urlError?.code == .timedOut)
        #expect(await manager.request(server.url("/drip?n=15&ms=100")).serializingData().response.error == nil)
    }

    @Test("the resource timeout applies to the whole transfer") func resourceTimeout() async {
        let manager = manager { $0.timeoutIntervalForResource = 0.4 }
        let error = await manager.request(server.url("/drip?n=1000&ms=20")).serializingData().response.error
        #expect(error?.transferFailure?.kind == .totalTimeout)
    }

    @Test("cookies are stored in the configuration's storage and read from it") func cookies() async throws {
        let storage = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
        let manager = manager { $0.httpCookieStorage = storage }
        _ = await manager.request(server.url("/cookies/set?a=1")).serializingData().response
        #expect(storage.cookies?.map(\.name) == ["a"])
        #expect(await manager.request(server.url("/cookies")).serializingString().response.value == #"{"a":"1"}"#)
        let silent = self.manager {
            $0.httpCookieStorage = storage
            $0.httpShouldSetCookies = false
        }
        #expect(await silent.request(server.url("/cookies")).serializingString().response.value == "{}")
        let refusing = self.manager {
            $0.httpCookieStorage = storage
            $0.httpCookieAcceptPolicy = .never
        }
        _ = await refusing.request(server.url("/cookies/set?b=1")).serializingData().response
        #expect(storage.cookies?.map(\.name) == ["a"])
    }

    @Test("the configuration's cache is used according to its policy") func cache() async {
        let url = server.url("/headers?Cache-Control=max-age%3D60")
        let caching = manager()
        for _ in 0..<2 { _ = await caching.request(url).serializingData().response }
        #expect(server.requestCount == 1)
        let reloading = manager {
            $0.urlCache = caching.session.configuration.urlCache
            $0.requestCachePolicy = .reloadIgnoringLocalCacheData
        }
        _ = await reloading.request(url).serializingData().response
        #expect(server.requestCount == 2)
        let without = manager { $0.urlCache = nil }
        for _ in 0..<2 { _ = await without.request(url).serializingData().response }
        #expect(server.requestCount == 4)
    }

    @Test("the number of connections per host is limited") func connections() async throws {
        let busy = Lock((now: 0, most: 0))
        let server = try LoopbackServer { _, connection in
            busy.withLock { busy in
                busy.now += 1
                busy.most = max(busy.most, busy.now)
            }
            defer { busy.withLock { $0.now -= 1 } }
            _ = connection.pause(for: .milliseconds(20))
            return .ok("")
        }
        let manager = manager { $0.httpMaximumConnectionsPerHost = 2 }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<12 { group.addTask { _ = await manager.request(server.url("/")).serializingData().response } }
        }
        #expect(server.requestCount == 12)
        #expect(busy.withLock { $0.most } <= 2)
        #expect(server.connectionCount <= 2)
    }

    @Test("requests use the proxy dictionary, except for its exceptions") func proxy() async throws {
        let proxy = try LoopbackServer { request, _ in .ok(request.target) }
        let manager = manager {
            $0.connectionProxyDictionary = [
                "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": proxy.port, "ExceptionsList": ["127.0.0.1"],
            ]
        }
        let url = "http://example.invalid/path?a=b"
        #expect(await manager.request(url).serializingString().response.value == url)
        #expect(await manager.request(server.url("/json")).serializingData().response.response?.statusCode == 200)
        #expect(proxy.requestCount == 1)
        let error = await manager.request("https://example.invalid/").serializingData().response.error
        #expect(error?.transferFailure?.kind == .nameResolution)
        #expect(proxy.requestCount == 1)
    }

    @Test(
        "the interface is used and must exist",
        arguments: [
            ("lo", nil), ("127.0.0.1", nil), ("nosuchinterface0", TransferFailure.Kind.connect), ("192.0.2.7", .connect),
            ("localhost", .connect), ("a\0b", .configuration), ("", .configuration),
        ])
    func interface(_ name: String, _ kind: TransferFailure.Kind?) async {
        let manager = makeManager { $0.interface = name }
        let response = await manager.request(server.url("/json")).serializingData().response
        #expect(response.error?.transferFailure?.kind == kind)
        if kind == nil { #expect(response.metrics.last?.localAddress == "127.0.0.1") }
    }
}
