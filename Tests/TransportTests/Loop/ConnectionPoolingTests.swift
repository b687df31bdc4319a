// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// Connections that are opened ahead, looked at, and closed while they are idle.
@Suite(.timeLimit(.minutes(1))) struct ConnectionPoolingTests {
    private func transport(_ loops: Int = 1, limit: Int? = 64) -> CurlTransport {
        var configuration = TransportConfiguration()
        configuration.loops = loops
        configuration.maximumConnectionsPerHost = limit
        return CurlTransport(configuration: configuration)
    }

    private func prewarm(_ transport: CurlTransport, _ url: String, count: Int, _ options: TransferOptions = TransferOptions()) async throws
        -> Int
    {
        try await transport.prewarm(TransferRequest(url: url, options: options), count: count)
    }

    private func gatedServer(_ gate: Gate) throws -> LoopbackServer {
        try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("done")
        }
    }

    private func origin(_ server: LoopbackServer) -> HTTPOrigin { HTTPOrigin(scheme: "http", host: "127.0.0.1", port: server.port) }

    /// Runs requests at the same time.
    private func run(_ count: Int, on transport: CurlTransport, _ url: String, _ gate: Gate) async {
        let observers = (0..<count).map { _ in RecordingObserver() }
        for observer in observers { transport.start(TransferRequest(url: url), observer: observer) }
        #expect(await gate.arrivals(gate.arrived == 0 ? count : 0))
        gate.open()
        for observer in observers { #expect(await observer.end().error == nil) }
    }

    @Test(arguments: [1, 2]) func `connections opened ahead send nothing, and are those of the requests that follow`(loops: Int)
        async throws
    {
        let gate = Gate()
        let server = try gatedServer(gate)
        let transport = transport(loops)
        #expect(try await prewarm(transport, server.url("/"), count: 4) == 4)
        #expect(ProcessProbe.settles { server.connectionCount == 4 })
        #expect(server.requestCount == 0)
        var statistics = await transport.connectionStatistics()
        #expect(statistics.connections == .init(idle: 4, busy: 0) && statistics.opened == 4 && statistics.reused == 0)
        await run(4, on: transport, server.url("/"), gate)
        #expect(server.connectionCount == 4 && server.requestCount == 4 && server.openConnections == 4)
        statistics = await transport.connectionStatistics()
        #expect(statistics.opened == 4 && statistics.reused == 4 && statistics.closed == 0)
        #expect(statistics.origins == [origin(server): .init(idle: 4, busy: 0)])
    }

    @Test func `connections that are idle already count`() async throws {
        let server = try LoopbackServer.standard()
        let transport = transport()
        #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil)
        #expect(try await prewarm(transport, server.url("/other"), count: 3) == 2)
        #expect(try await prewarm(transport, server.url("/"), count: 3) == 0)
        #expect(try await prewarm(transport, server.url("/"), count: 0) == 0)
        #expect(ProcessProbe.settles { server.connectionCount == 3 })
    }

    @Test(arguments: [1, 3]) func `no more are opened than the host's limit, of which those in use count`(loops: Int) async throws {
        let gate = Gate()
        let server = try gatedServer(gate)
        let transport = transport(loops, limit: 3)
        let observer = RecordingObserver()
        transport.start(TransferRequest(url: server.url("/")), observer: observer)
        #expect(await gate.arrivals(1))
        #expect(try await prewarm(transport, server.url("/"), count: 10) == 2)
        #expect(ProcessProbe.settles { server.connectionCount == 3 })
        #expect(await transport.connectionStatistics().origins == [origin(server): .init(idle: 2, busy: 1)])
        gate.open()
        #expect(await observer.end().error == nil)
    }

    @Test func `a host that can't be reached is an error of its own kind`() async throws {
        let server = try LoopbackServer.standard()
        let url = server.url("/")
        server.stop()
        let transport = transport()
        let error = await #expect(throws: CurlewError.self) { try await prewarm(transport, url, count: 2) }
        guard case .transferFailed(let failure) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(failure.kind == .connect && !failure.requestWasSent)
        #expect(await transport.connectionStatistics().connections.open == 0)
        transport.shutDown()
        await #expect(throws: CurlewError.self) { try await prewarm(transport, url, count: 1) }
    }

    @Test(arguments: [1, 2]) func `idle connections are closed, and those in use are not`(loops: Int) async throws {
        let gate = Gate()
        let server = try gatedServer(gate)
        let quiet = try LoopbackServer.standard()
        let transport = transport(loops)
        #expect(await transport.closeIdleConnections() == 0)
        let observer = RecordingObserver()
        transport.start(TransferRequest(url: server.url("/")), observer: observer)
        #expect(await gate.arrivals(1))
        #expect(try await prewarm(transport, quiet.url("/"), count: 5) == 5)
        #expect(ProcessProbe.settles { quiet.connectionCount == 5 })
        #expect(await transport.closeIdleConnections() == 5)
        #expect(await quiet.waitForConnectionsToClose())
        let statistics = await transport.connectionStatistics()
        #expect(statistics.connections == .init(idle: 0, busy: 1) && statistics.closed == 5)
        // libcurl may still have them: a request that can't be repeated must not be sent on one.
        for _ in 1...3 {
            let request = TransferRequest(url: quiet.url("/echo"), method: .post, body: DataBody(Data("order".utf8)))
            #expect(await transport.run(request).error == nil)
        }
        #expect(quiet.requestCount == 3)
        gate.open()
        #expect(await observer.end().error == nil)
        #expect(await transport.closeIdleConnections() > 0)
        #expect(await server.waitForConnectionsToClose())
        #expect(await quiet.waitForConnectionsToClose())
        #expect(await transport.run(TransferRequest(url: quiet.url("/json"))).error == nil)
    }

    @Test func `connections that are closed while idle are reported as unused, once`() async throws {
        let server = try LoopbackServer.standard()
        let gate = Gate()
        let busy = try gatedServer(gate)
        let events = Log<ConnectionEvent>()
        let transport = transport()
        transport.observeConnections { events.append($0) }
        let observer = RecordingObserver()
        transport.start(TransferRequest(url: busy.url("/")), observer: observer)
        #expect(await gate.arrivals(1))
        #expect(try await prewarm(transport, server.url("/"), count: 1) == 1)
        #expect(await transport.closeIdleConnections() == 1)
        gate.open()
        #expect(await observer.end().error == nil)
        transport.shutDown()
        await transport.waitUntilShutDown()
        let kinds = events.elements.map { "\($0.connection) \($0.kind)" }
        #expect(kinds.count == 6, "\(kinds)")
        #expect(events.elements.filter { $0.connection == 2 }.map(\.kind) == [.opened, .becameIdle, .closed(.unused)], "\(kinds)")
    }

    @Test(.enabled(if: Servers.hasNginx, "needs the nginx of scripts/servers"), arguments: [false, true])
    func `TLS connections are opened ahead, too`(overHTTP2: Bool) async throws {
        let servers = try Servers.nginx()
        var options = TransferOptions()
        options.proxy = .none
        let transport = transport()
        let url = (overHTTP2 ? servers.tls : servers.tlsHTTP1) + "/"
        await #expect(throws: CurlewError.self) { try await prewarm(transport, url, count: 2, options) }
        options.tls.certificateAuthorityFile = servers.authorities
        let isShared = overHTTP2 && CurlInfo.current.hasReliableHTTP2
        #expect(try await prewarm(transport, url, count: 2, options) == (isShared ? 1 : 2))
        #expect(await transport.run(TransferRequest(url: url, options: options)).error == nil)
        let statistics = await transport.connectionStatistics()
        #expect(statistics.reused == 1 && statistics.opened == (isShared ? 1 : 2))
    }

    @Test(.enabled(if: if_nametoindex("lo") != 0, "needs the interface lo"), arguments: ["lo", "127.0.0.1"])
    func `a transfer takes no connection over another interface`(_ bound: String) async throws {
        let server = try LoopbackServer { _, _ in .ok("done") }
        let transport = transport()
        func run(over interface: String?) async -> RecordingObserver.Record {
            var request = TransferRequest(url: server.url("/"))
            request.options.interface = interface
            return await transport.run(request)
        }
        // libcurl 8.14.1 compares interfaces only if they are set without the prefix "if!".
        for connections in [1, 2, 2] {
            #expect(await run(over: connections == 1 ? nil : bound).error == nil)
            #expect(server.connectionCount == connections)
            for missing in ["missing0", "192.0.2.7"] {
                #expect(await run(over: missing).failure?.kind == .connect)
                #expect(server.connectionCount == connections)
            }
        }
    }
}
