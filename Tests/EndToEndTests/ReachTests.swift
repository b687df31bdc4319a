// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewWebSocket
import Testing

/// Unix domain sockets and names in sessions: redirects, retries, caches, options of requests.
@Suite(.timeLimit(.minutes(1))) struct ReachTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func makeManager(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = callbackQueue
        configuration.proxy = .none
        change(&configuration)
        return SessionManager(configuration: configuration)
    }

    private static func redirect(to location: String) -> ServerResponse {
        ServerResponse(status: 302, headers: [ServerField("Location", location)], body: .data(Data()))
    }

    /// A server on a socket that redirects to another origin, back to its own, and within it.
    private func makeServer(_ other: String) throws -> LoopbackServer {
        try LoopbackServer(unixSocketPath: directory.file("api.sock").path) { request, _ in
            switch request.path {
            case "/away": Self.redirect(to: other)
            case "/within": Self.redirect(to: "/here")
            default: .ok("socket \(request.path)")
            }
        }
    }

    @Test(arguments: [false, true], [false, true])
    func `a redirect to another origin leaves the socket, and one back to it uses it again`(_ isPerRequest: Bool, _ asks: Bool) async throws
    {
        let tcp = try LoopbackServer { request, _ in
            request.path == "/back" ? Self.redirect(to: "http://docker/back") : .ok("TCP \(request.path)")
        }
        for (path, target, expected) in [
            ("/within", "", "socket /here"), ("/away", tcp.url("/there"), "TCP /there"), ("/away", tcp.url("/back"), "socket /back"),
        ] {
            let server = try makeServer(target)
            defer { server.stop() }
            let manager = makeManager { if !isPerRequest { $0.unixSocketPath = server.unixSocketPath } }
            if asks {
                manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, request, completion in completion(request) }
            }
            var options = RequestOptions()
            if isPerRequest { options.unixSocketPath = server.unixSocketPath }
            let response = await manager.request("http://docker\(path)", options: options).serializingString().response
            #expect(response.value == expected)
            manager.session.invalidateAndCancel()
        }
    }

    @Test func `requests of one session use their own sockets and names, and the others TCP`() async throws {
        let tcp = try LoopbackServer { _, _ in .ok("TCP") }
        let server = try makeServer("")
        let manager = makeManager()
        defer { manager.session.invalidateAndCancel() }
        var overSocket = RequestOptions()
        overSocket.unixSocketPath = server.unixSocketPath
        var named = RequestOptions()
        named.resolve = ["service.invalid": ["127.0.0.1"]]
        var moved = RequestOptions()
        moved.connectTo = ["service.invalid:80": "127.0.0.1:\(tcp.port)"]
        var asked = RequestOptions()
        asked.resolver = HostResolver { _, _ in ["127.0.0.1"] }
        for _ in 0..<2 {
            #expect(await manager.request(tcp.url("/"), options: overSocket).serializingString().response.value == "socket /")
            #expect(await manager.request(tcp.url("/")).serializingString().response.value == "TCP")
            let url = "http://service.invalid:\(tcp.port)/"
            #expect(await manager.request(url, options: named).serializingString().response.value == "TCP")
            #expect(await manager.request(url, options: asked).serializingString().response.value == "TCP")
            #expect(await manager.request("http://service.invalid/", options: moved).serializingString().response.value == "TCP")
            #expect(await manager.request(url).serializingString().response.error?.transferFailure?.kind == .nameResolution)
        }
    }

    @Test func `options of a request are filled from those of its service`() {
        var outer = RequestOptions()
        outer.unixSocketPath = "/outer"
        outer.resolve = ["a": ["::1"]]
        var inner = RequestOptions()
        inner.unixSocketPath = "/inner"
        let filled = inner.filled(from: outer)
        #expect(filled.unixSocketPath == "/inner" && filled.resolve == ["a": ["::1"]])
        #expect(RequestOptions().filled(from: outer).unixSocketPath == "/outer")
    }

    @Test func `responses over a socket are neither stored nor taken from the cache`() async throws {
        let fields = [ServerField("Cache-Control", "max-age=3600")]
        let server = try LoopbackServer(unixSocketPath: directory.file("cached.sock").path) { _, _ in
            ServerResponse(status: 200, headers: fields, body: .data(Data("socket".utf8)))
        }
        let tcp = try LoopbackServer { _, _ in ServerResponse(status: 200, headers: fields, body: .data(Data("TCP".utf8))) }
        let manager = makeManager { $0.cache = .memory() }
        defer { manager.session.invalidateAndCancel() }
        var options = RequestOptions()
        options.unixSocketPath = server.unixSocketPath
        for _ in 0..<2 {
            #expect(await manager.request(tcp.url("/"), options: options).serializingString().response.value == "socket")
            #expect(await manager.request(tcp.url("/")).serializingString().response.value == "TCP")
        }
        #expect(server.requestCount == 2 && tcp.requestCount == 1)
    }

    @Test func `the command of curl names the socket`() async throws {
        let server = try makeServer("")
        let manager = makeManager { $0.unixSocketPath = server.unixSocketPath }
        defer { manager.session.invalidateAndCancel() }
        let request = manager.request("http://docker/")
        _ = await request.serializingString().response
        #expect(request.cURLDescription().contains("--unix-socket"))
    }

    @Test func `a retry uses the socket too`() async throws {
        let attempts = Lock(0)
        let server = try LoopbackServer(unixSocketPath: directory.file("flaky.sock").path) { _, connection in
            guard
                attempts.withLock({
                    $0 += 1; return $0
                }) < 3
            else { return .ok("third") }
            connection.close()
            return nil
        }
        let manager = makeManager { $0.unixSocketPath = server.unixSocketPath }
        defer { manager.session.invalidateAndCancel() }
        let policy = RetryPolicy(retryLimit: 5, exponentialBackoffScale: 0.001)
        let response = await manager.request("http://docker/", interceptor: policy).serializingString().response
        #expect(response.value == "third")
    }

    @Test func `a raw connection and a WebSocket use the socket of their options, and name it if no server listens`() async throws {
        let manager = makeManager()
        defer { manager.session.invalidateAndCancel() }
        let path = directory.file("missing.sock").path
        let options = RequestOptions(unixSocketPath: path)
        let raw = await #expect(throws: CurlewError.self) {
            try await manager.stream(withHostName: "docker", port: 80, options: options).waitUntilCompleted()
        }
        let webSocket = await #expect(throws: CurlewError.self) { try await manager.webSocket("ws://docker/", options: options).open() }
        for error in [raw, webSocket] {
            guard case .transferFailed(let failure)? = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
            #expect(failure.kind == .connect && failure.message == "connect \(path): no such file or directory")
        }
    }

    @Test func `a deadline counts while a resolver runs`() async {
        let cancelled = Gate()
        let manager = makeManager {
            $0.resolver = HostResolver { _, _ in
                try await withTaskCancellationHandler {
                    try await Task.sleep(for: .seconds(3600))
                    return []
                } onCancel: {
                    cancelled.open()
                }
            }
        }
        defer { manager.session.invalidateAndCancel() }
        let options = RequestOptions(deadline: .seconds(1))
        let response = await manager.request("http://service.invalid/", options: options).serializingString().response
        #expect(response.error?.transferFailure?.kind == .deadline)
        #expect(await cancelled.wait())
    }

    @Test func `additional authorities are trusted by a session and by its policies`() async throws {
        let authority = try CertificateAuthority()
        let server = try LoopbackServer(tls: ServerTLS(try authority.issue())) { _, _ in .ok("secure") }
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        configuration.tls.additionalAuthorities = try CertificateAuthorities(authority.certificate)
        let policy = ServerTrustPolicy.customEvaluation { trust, _ in trust.isValid(forHost: trust.host) }
        for policies in [nil, ServerTrustPolicyManager(policies: ["localhost": policy])] {
            let manager = SessionManager(configuration: configuration, serverTrustPolicyManager: policies)
            #expect(await manager.request(server.url("/")).serializingString().response.value == "secure")
            manager.session.invalidateAndCancel()
        }
    }
}
