// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct ConnectionTests {
    /// Responds to the first request twice; the second response is sent when the gate opens.
    private static func unsolicitedServer(_ gate: Gate, _ hasSent: Gate) throws -> LoopbackServer {
        try LoopbackServer { request, connection in
            guard request.path == "/first" else { return .ok("good") }
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            connection.wait(until: gate)
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
            hasSent.open()
            return nil
        }
    }

    @Test("an unsolicited response is not delivered to the next request", arguments: [HTTPMethod.get, .post])
    func unasked(method: HTTPMethod) async throws {
        let gate = Gate()
        let hasSent = Gate()
        let server = try Self.unsolicitedServer(gate, hasSent)
        let transport = CurlTransport()
        #expect(await transport.run(TransferRequest(url: server.url("/first"))).body == Data("ok".utf8))
        gate.open()
        #expect(await hasSent.wait())
        let end = await transport.run(TransferRequest(url: server.url("/second"), method: method, body: DataBody(Data("x".utf8))))
        #expect(end.error == nil)
        #expect(end.body == Data("good".utf8))
        #expect(end.completion?.metrics.reusedConnection == false)
        #expect(server.connectionCount == 2)
        #expect(server.requests.count { $0.path == "/second" } == 1)
    }

    @Test("nor is one that arrived while a task blocked the loop's thread, for one request and for two at once", arguments: [1, 2])
    func unaskedBesideTask(requests: Int) async throws {
        let gate = Gate()
        let hasSent = Gate()
        let server = try Self.unsolicitedServer(gate, hasSent)
        let other = try LoopbackServer { _, _ in .ok("other") }
        let transport = CurlTransport()
        let blockUntilSent = { @Sendable in hasSent.wait() }
        await withTaskExecutorPreference(transport.taskExecutor) {
            #expect(await transport.run(TransferRequest(url: server.url("/first"))).body == Data("ok".utf8))
            // Meanwhile the loop polls the first connection, which is idle.
            #expect(await transport.run(TransferRequest(url: other.url("/"))).body == Data("other".utf8))
            gate.open()
            #expect(blockUntilSent())
            let observers = (0..<requests).map { _ in RecordingObserver() }
            for observer in observers {
                transport.start(TransferRequest(url: server.url("/next")), observer: observer)
            }
            for observer in observers { #expect(await observer.end().body == Data("good".utf8)) }
        }
    }

    @Test("a pooled connection that the server has closed is not used")
    func closedWhileIdle() async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            connection.close()
            return nil
        }
        let transport = CurlTransport()
        for _ in 1...10 {
            let end = await transport.run(TransferRequest(url: server.url("/"), method: .post, body: DataBody(Data("x".utf8))))
            #expect(end.error == nil)
            #expect(await server.waitForConnectionsToClose())
        }
        #expect(server.requestCount == 10)
    }

    /// Responds to the first request on a connection, and closes it at the second.
    private static func dyingServer() throws -> LoopbackServer {
        try LoopbackServer { request, connection in
            guard request.sequence > 1 else { return .ok("\(request.connection)") }
            connection.close()
            return nil
        }
    }

    @Test("a POST on a pooled connection that fails is not sent twice", arguments: [true, false])
    func dyingPost(hasBody: Bool) async throws {
        let server = try Self.dyingServer()
        let transport = CurlTransport()
        #expect(await transport.run(TransferRequest(url: server.url("/"))).error == nil)
        let body = hasBody ? DataBody(Data("order".utf8)) : nil
        let end = await transport.run(TransferRequest(url: server.url("/"), method: .post, body: body))
        #expect(end.failure?.kind == .connectionLost)
        #expect(end.failure?.requestWasSent == true)
        #expect(server.requests.count { $0.method == "POST" } == 1)
    }

    @Test("a request that may be repeated is repeated there", arguments: [HTTPMethod.get, .put, .delete, .post])
    func dyingIdempotent(method: HTTPMethod) async throws {
        let server = try Self.dyingServer()
        let transport = CurlTransport()
        #expect(await transport.run(TransferRequest(url: server.url("/"))).error == nil)
        let body = method == .put ? DataBody(Data("order".utf8)) : nil
        let headers: HTTPHeaders = method == .post ? ["Idempotency-Key": "1"] : [:]
        let end = await transport.run(TransferRequest(url: server.url("/"), method: method, headers: headers, body: body))
        #expect(end.error == nil)
        #expect(end.body == Data("2".utf8))
        #expect(server.requests.count { $0.method == method.rawValue } == (method == .get ? 3 : 2))
        if method == .put { #expect(server.requests.last?.body == Data("order".utf8)) }
    }

    @Test("the connection limit of a host holds, first come, first served")
    func limit() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("done")
        }
        var configuration = TransportConfiguration()
        configuration.maximumConnectionsPerHost = 3
        let transport = CurlTransport(configuration: configuration)
        let observers = (0..<20).map { _ in RecordingObserver() }
        for (index, observer) in observers.enumerated() {
            // User info and the case of the host don't affect the limit.
            let user = index % 2 == 0 ? "" : "user\(index):secret@"
            transport.start(TransferRequest(url: "http://\(user)127.0.0.1:\(server.port)/\(index)"), observer: observer)
        }
        #expect(await gate.arrivals(3))
        let other = try LoopbackServer.standard()
        #expect(await transport.run(TransferRequest(url: other.url("/delay/100"))).error == nil)
        #expect(gate.arrived == 3)
        gate.open()
        for observer in observers { #expect(await observer.end().failure == nil) }
        #expect(server.requestCount == 20)
        // Connections are not shared between users, so that some are closed and replaced.
        #expect(observers.allSatisfy { $0.record.completions == 1 })
    }

    @Test("with a single connection, transfers run in order")
    func order() async throws {
        let server = try LoopbackServer.standard()
        var configuration = TransportConfiguration()
        configuration.maximumConnectionsPerHost = 1
        let transport = CurlTransport(configuration: configuration)
        let observers = (0..<50).map { _ in RecordingObserver() }
        for (index, observer) in observers.enumerated() {
            transport.start(TransferRequest(url: server.url("/status/200?\(index)")), observer: observer)
        }
        for observer in observers { #expect(await observer.end().failure == nil) }
        #expect(server.requests.map(\.target) == (0..<50).map { "/status/200?\($0)" })
        #expect(server.connectionCount == 1)
    }

    @Test("many transfers that fail as soon as they are launched do not recurse")
    func failingQueue() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("done")
        }
        var configuration = TransportConfiguration()
        configuration.maximumConnectionsPerHost = 1
        let transport = CurlTransport(configuration: configuration)
        let first = RecordingObserver()
        transport.start(TransferRequest(url: server.url("/")), observer: first)
        let observers = (1...5000).map { _ in RecordingObserver() }
        for observer in observers {
            transport.start(TransferRequest(url: server.url("/"), headers: ["Bad Name": "x"]), observer: observer)
        }
        gate.open()
        #expect(await first.end().error == nil)
        for observer in observers { #expect(await observer.end().error != nil) }
    }

    @Test("a name is resolved, and its resolver's sockets are harmless")
    func localhost() async throws {
        let server = try LoopbackServer.standard()
        for _ in 0..<20 {
            let transport = CurlTransport()
            for _ in 1...3 {
                let end = await transport.run(TransferRequest(url: "http://localhost:\(server.port)/json"))
                #expect(end.error == nil)
                #expect(end.completion?.metrics.remoteAddress == "127.0.0.1")
            }
        }
    }

    @Test("an unknown name is reported as such, and delays no other transfer")
    func unresolvable() async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        let observer = RecordingObserver()
        var options = TransferOptions()
        options.proxy = .none
        transport.start(TransferRequest(url: "http://user:secret@nobody.invalid/", options: options), observer: observer)
        #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil)
        let failure = try #require(await observer.end().failure)
        #expect(failure.kind == .nameResolution)
        #expect(failure.phase == .resolving)
        #expect(!failure.requestWasSent)
        #expect(!"\(failure)".contains("secret"))
    }

    @Test(
        "unreachable hosts and invalid URLs",
        arguments: [
            ("http://user:secret@127.0.0.1:1/", TransferFailure.Kind.connect), ("ftp://user:secret@127.0.0.1/", .unsupportedScheme),
            ("file:///etc/passwd", .unsupportedScheme), ("ws://127.0.0.1/", .unsupportedScheme),
            ("http://user:secret@127.0.0.1:99999/", .invalidURL),
            ("http://", .invalidURL), ("", .invalidURL), ("http://user:secret@a b/", .invalidURL), ("http://127.0.0.1:1/a\0b", .invalidURL),
            ("http://127.0.0.1:1/a\r\nb", .invalidURL),
        ])
    func unreachable(url: String, kind: TransferFailure.Kind) async throws {
        var options = TransferOptions()
        options.proxy = .none
        let failure = try #require(await CurlTransport().run(TransferRequest(url: url, options: options)).failure)
        #expect(failure.kind == kind)
        #expect(!failure.requestWasSent)
        #expect(failure.phase <= .connecting)
        #expect(!"\(failure)".contains("secret"))
        #expect(!"\(CurlewError.transferFailed(failure))".contains("secret"))
    }

    @Test("idle connections beyond the limit are closed")
    func idleLimit() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("done")
        }
        var configuration = TransportConfiguration()
        configuration.maximumIdleConnections = 2
        let transport = CurlTransport(configuration: configuration)
        let observers = (0..<40).map { _ in RecordingObserver() }
        for observer in observers {
            transport.start(TransferRequest(url: server.url("/")), observer: observer)
        }
        #expect(await gate.arrivals(40))
        gate.open()
        for observer in observers { #expect(await observer.end().failure == nil) }
        for _ in 0..<100 { #expect(await transport.run(TransferRequest(url: server.url("/"))).error == nil) }
        #expect(ProcessProbe.settles { server.openConnections <= 4 })
    }

    @Test("with more transfers than fit into one pool, each succeeds, and a pooled connection is reused")
    func manyPools() async throws {
        let gate = Gate()
        let busy = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("done")
        }
        let quiet = try LoopbackServer.standard()
        var configuration = TransportConfiguration()
        configuration.maximumConnectionsPerHost = nil
        let transport = CurlTransport(configuration: configuration)
        let count = 2 * MultiHandle.capacity + 20
        let observers = (0..<count).map { _ in RecordingObserver() }
        for observer in observers { transport.start(TransferRequest(url: busy.url("/")), observer: observer) }
        #expect(await gate.arrivals(count))
        for _ in 0..<20 { #expect(await transport.run(TransferRequest(url: quiet.url("/get"))).error == nil) }
        gate.open()
        for observer in observers { #expect(await observer.end().error == nil) }
        for _ in 0..<20 {
            #expect(await transport.run(TransferRequest(url: quiet.url("/get"))).error == nil)
            #expect(await transport.run(TransferRequest(url: busy.url("/"))).error == nil)
        }
        #expect(quiet.connectionCount == 1)
        #expect(busy.connectionCount == count)
    }

    @Test("a proxy receives the request, except for the listed hosts")
    func proxy() async throws {
        let proxy = try LoopbackServer { request, _ in .ok("via proxy: \(request.target)") }
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        var options = TransferOptions()
        options.proxy = .url("http://127.0.0.1:\(proxy.port)", except: ["127.0.0.1"])
        #expect(
            await transport.run(TransferRequest(url: "http://example.invalid/x", options: options)).body
                == Data("via proxy: http://example.invalid/x".utf8))
        #expect(await transport.run(TransferRequest(url: server.url("/json"), options: options)).head?.statusCode == 200)
        #expect(proxy.requestCount == 1)
    }

    @Test("a proxy that is down is named, without its password", arguments: ["http", "https"])
    func absentProxy(_ scheme: String) async throws {
        let proxy = try LoopbackServer { _, _ in .ok("") }
        let port = proxy.port
        proxy.stop()
        var options = TransferOptions()
        options.proxy = .url("http://user:s3cret@127.0.0.1:\(port)", except: ["direct.invalid"])
        let failure = try #require(
            await CurlTransport().run(TransferRequest(url: "\(scheme)://example.invalid/", options: options)).failure)
        #expect(failure.kind == .connect)
        #expect(failure.message.hasPrefix("The proxy http://127.0.0.1:\(port) could not be reached: "), "\(failure)")
        #expect(!"\(failure)".contains("s3cret"))
        options.proxy = .url("http://proxy.invalid:3128", except: ["direct.invalid"])
        let unknown = try #require(
            await CurlTransport().run(TransferRequest(url: "\(scheme)://example.invalid/", options: options)).failure)
        #expect(
            unknown.kind == .proxy && unknown.message.hasPrefix("The proxy http://proxy.invalid:3128 could not be reached: "), "\(unknown)")
        let direct = try #require(
            await CurlTransport().run(TransferRequest(url: "\(scheme)://direct.invalid/", options: options)).failure)
        #expect(direct.kind == .nameResolution && !direct.message.contains("proxy"), "\(direct)")
    }

    @Test("a proxy of the environment is named as well")
    func absentProxyOfTheEnvironment() throws {
        var settings = ProxySettings(environment: ["https_proxy": "http://u:s3cret@10.0.0.1:3128", "no_proxy": "example.com"])
        func text(_ url: String, _ code: CURLcode) -> String {
            FailedSetUp(url: url, proxy: settings.proxy(for: url, isSecure: true, options: .standard), code: code, message: "refused").text
        }
        #expect(text("https://example.org/", CURLE_COULDNT_CONNECT) == "The proxy http://10.0.0.1:3128 could not be reached: refused")
        #expect(text("https://example.org/", CURLE_OPERATION_TIMEDOUT) == "No connection through the proxy http://10.0.0.1:3128: refused")
        #expect(text("https://example.org/", CURLE_PEER_FAILED_VERIFICATION) == "refused")
        #expect(text("https://api.example.com/", CURLE_COULDNT_CONNECT) == "refused")
        // curl's form without a scheme.
        settings = ProxySettings(environment: ["https_proxy": "u:s3cret@10.0.0.1:3128"])
        #expect(text("https://example.org/", CURLE_COULDNT_CONNECT) == "The proxy 10.0.0.1:3128 could not be reached: refused")
    }

    @Test("a refused tunnel is a proxy failure")
    func refusingProxy() async throws {
        let proxy = try LoopbackServer { _, _ in .status(403) }
        var options = TransferOptions()
        options.proxy = .url("http://127.0.0.1:\(proxy.port)")
        let end = await CurlTransport().run(TransferRequest(url: "https://example.invalid/", options: options))
        #expect(end.failure?.kind == .proxy, "\(String(describing: end.failure))")
        #expect(end.failure?.message.hasPrefix("No connection through the proxy http://127.0.0.1:\(proxy.port): ") == true)
        #expect(end.head == nil)
    }
}
