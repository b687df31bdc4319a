// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// The connections of a session: opened ahead, counted, closed.
@Suite(.timeLimit(.minutes(1))) struct SessionConnectionsTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func makeManager(_ loops: Int = 1, _ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        CurlewSessionTestSupport.makeManager {
            $0.loops = loops
            change(&$0)
        }
    }

    /// A server that holds each request until the gate opens.
    private func gatedServer(_ gate: Gate, _ path: String? = nil) throws -> LoopbackServer {
        try LoopbackServer(unixSocketPath: path) { request, connection in
            connection.wait(until: gate)
            return .ok(request.body.isEmpty ? "done" : String(decoding: request.body, as: UTF8.self))
        }
    }

    private func origin(_ server: LoopbackServer) -> HTTPOrigin? { HTTPOrigin(url: server.url("/")) }

    @Test(arguments: [1, 2, 3]) func `connections opened ahead are used by requests of every kind, and closed when idle`(loops: Int)
        async throws
    {
        let gate = Gate()
        let server = try gatedServer(gate)
        let manager = makeManager(loops)
        #expect(try await manager.prewarm(server.url("/"), count: 4) == 4)
        #expect(await eventually { server.connectionCount == 4 })
        #expect(server.requestCount == 0)
        var statistics = await manager.connectionStatistics()
        #expect(statistics.origins == [try #require(origin(server)): .init(idle: 4, busy: 0)])
        #expect(statistics.opened == 4 && statistics.reused == 0 && statistics.closed == 0)
        let file = directory.file("file")
        let requests: [Request] = [
            manager.request(server.url("/")), manager.upload(Data(count: 10), to: server.url("/")),
            manager.download(server.url("/"), to: file), manager.streamRequest(server.url("/")),
        ]
        #expect(await gate.arrivals(4))
        statistics = await manager.connectionStatistics()
        #expect(statistics.connections == .init(idle: 0, busy: 4))
        #expect(await manager.closeIdleConnections() == 0)
        gate.open()
        for request in requests {
            if let download = request as? DownloadRequest {
                #expect(await download.serializingURL().response.error == nil)
            } else if let data = request as? DataRequest {
                #expect(await data.serializingData().response.error == nil)
            }
        }
        #expect(server.connectionCount == 4 && server.requestCount == 4)
        statistics = await manager.connectionStatistics()
        #expect(statistics.connections == .init(idle: 4, busy: 0) && statistics.opened == 4 && statistics.reused == 4)
        #expect(await manager.closeIdleConnections() == 4)
        #expect(await server.waitForConnectionsToClose())
        statistics = await manager.connectionStatistics()
        #expect(statistics.connections.open == 0 && statistics.closed == 4 && statistics.origins.isEmpty)
        #expect(await manager.request(server.url("/")).serializingString().response.value == "done")
    }

    @Test(arguments: [1, 3]) func `only what is missing is opened, up to the host's limit`(loops: Int) async throws {
        let gate = Gate()
        let server = try gatedServer(gate)
        let manager = makeManager(loops) { $0.maximumConnectionsPerHost = 5 }
        #expect(try await manager.prewarm(server.url("/"), count: 0) == 0)
        #expect(try await manager.prewarm(server.url("/"), count: -1) == 0)
        #expect(try await manager.prewarm(server.url("/a?b=c")) == 1)
        #expect(try await manager.prewarm(server.url("/"), count: 2) == 1)
        #expect(try await manager.prewarm(server.url("/"), count: 2) == 0)
        let requests = (0..<3).map { _ in manager.request(server.url("/")) }
        #expect(await gate.arrivals(3))
        #expect(try await manager.prewarm(server.url("/"), count: 100) == 2)
        #expect(await eventually { server.connectionCount == 5 })
        #expect(await manager.connectionStatistics().connections == .init(idle: 2, busy: 3))
        #expect(await manager.closeIdleConnections() == 2)
        gate.open()
        for request in requests { #expect(await request.serializingString().response.value == "done") }
    }

    @Test(arguments: [1, 2]) func `each origin is counted, redirects, retries and raw connections included`(loops: Int) async throws {
        let server = try LoopbackServer.standard()
        let other = try LoopbackServer.standard()
        let manager = makeManager(loops)
        manager.retrier = Retrier.attempts(2, delay: 0.001)
        let stream = manager.stream(withHostName: "127.0.0.1", port: other.port)
        stream.resume()
        #expect(await eventually { other.connectionCount == 1 })
        #expect(
            await manager.request(server.url("/redirect-to?url=\(other.url("/flaky?fail=2"))")).validate().serializingString().response
                .value == "Attempt 3")
        var statistics = await manager.connectionStatistics()
        #expect(statistics.origins[try #require(origin(server))] == .init(idle: 1, busy: 0))
        #expect(statistics.origins[try #require(origin(other))]?.idle == 1)
        #expect(statistics.connections == .init(idle: 2, busy: 1))
        #expect(statistics.opened == 3 && statistics.reused == 4)
        stream.cancel()
        await #expect(throws: CurlewError.self) { for try await _ in stream.bytes() {} }
        #expect(await manager.closeIdleConnections() == 2)
        statistics = await manager.connectionStatistics()
        #expect(statistics.connections.open == 0 && statistics.closed == 3)
        #expect(await server.waitForConnectionsToClose())
        #expect(await other.waitForConnectionsToClose())
    }

    @Test func `what can't be opened fails with the reason`() async throws {
        let manager = makeManager(2)
        for url in ["", "no scheme", "mailto:someone", "file:///etc/hosts"] {
            await #expect(throws: CurlewError.self) { try await manager.prewarm(url) }
        }
        let refusing = try StuckListener(.refusing)
        await #expect {
            try await manager.prewarm("http://127.0.0.1:\(refusing.port)/", count: 3)
        } throws: { $0.transferFailure?.kind == .connect }
        await #expect {
            try await manager.prewarm("http://nowhere.invalid/", count: 3)
        } throws: { $0.transferFailure?.kind == .nameResolution }
        #expect(await manager.connectionStatistics().connections.open == 0)
        await manager.shutdown(gracePeriod: .zero)
        await #expect { try await manager.prewarm("http://127.0.0.1:\(refusing.port)/") } throws: { $0.isSessionShutDown }
        let ended = makeManager()
        ended.invalidateAndCancel()
        await #expect { try await ended.prewarm("http://127.0.0.1:\(refusing.port)/") } throws: { $0.isSessionInvalidated }
    }

    @Test(arguments: [1, 2]) func `cancelling the task ends the attempts, and so does the end of the session`(loops: Int) async throws {
        // TCP connects, and TLS waits for ever.
        let silent = try StuckListener(.silent)
        let manager = makeManager(loops)
        let url = "https://127.0.0.1:\(silent.port)/"
        let cancelled = Task { try await manager.prewarm(url, count: 3) }
        cancelled.cancel()
        await #expect { try await cancelled.value } throws: { $0.isCancelled }
        let ended = Task { try await manager.prewarm(url, count: 3) }
        // A look at every loop comes after the start, if that was in time; the session's end is noticed before or after it.
        _ = await manager.connectionStatistics()
        await manager.shutdown(gracePeriod: .zero)
        await #expect { try await ended.value } throws: { $0.isSessionShutDown }
    }

    @Test func `requests of every kind take connections opened ahead over TLS where the host speaks no HTTP/2`() async throws {
        let authority = try CertificateAuthority()
        let server = try LoopbackServer(tls: ServerTLS(try authority.issue())) { _, _ in .ok("secure") }
        let authorities = try CertificateAuthorities(authority.certificate)
        let manager = makeManager { $0.tls.additionalAuthorities = authorities }
        #expect(try await manager.prewarm(server.url("/"), count: 2) == 2)
        for _ in 0..<2 {
            #expect(await manager.streamRequest(server.url("/")).serializingString().response.value == "secure")
            #expect(await manager.request(server.url("/")).serializingString().response.value == "secure")
            let download = manager.download(server.url("/"), to: directory.file("secure"), options: [.removePreviousFile])
            #expect(await download.serializingURL().response.error == nil)
            #expect(await manager.upload(Data(count: 10), to: server.url("/")).serializingString().response.value == "secure")
        }
        let statistics = await manager.connectionStatistics()
        #expect(statistics.connections == .init(idle: 2, busy: 0) && statistics.opened == 2 && statistics.reused == 8)
    }

    @Test func `a trust policy decides on connections that are opened ahead`() async throws {
        let authority = try CertificateAuthority()
        let server = try LoopbackServer(tls: ServerTLS(try authority.issue())) { _, _ in .ok("secure") }
        let accepts = ServerTrustPolicy.customEvaluation { trust, _ in trust.isValid(forHost: trust.host) }
        let refuses = ServerTrustPolicy.customEvaluation { _, _ in false }
        for (policy, isTrusted) in [(accepts, true), (refuses, false)] {
            var configuration = SessionConfiguration()
            configuration.proxy = .none
            configuration.loops = 2
            configuration.tls.additionalAuthorities = try CertificateAuthorities(authority.certificate)
            let manager = SessionManager(
                configuration: configuration, serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["localhost": policy]))
            defer { manager.session.invalidateAndCancel() }
            guard isTrusted else {
                await #expect {
                    try await manager.prewarm(server.url("/"), count: 2)
                } throws: { $0.transferFailure?.kind == .serverCertificate }
                #expect(await manager.connectionStatistics().connections.open == 0)
                continue
            }
            #expect(try await manager.prewarm(server.url("/"), count: 2) == 2)
            #expect(await manager.request(server.url("/")).serializingString().response.value == "secure")
            let statistics = await manager.connectionStatistics()
            // On each loop one more was closed while the policy decided for the first time: libcurl cannot wait.
            #expect(statistics.connections.open == 2 && statistics.closed == statistics.opened - 2 && statistics.reused == 1)
        }
    }

    @Test(arguments: [1, 2]) func `several connections over one Unix domain socket are told apart`(loops: Int) async throws {
        let gate = Gate()
        let server = try gatedServer(gate, directory.file("api.sock").path)
        let manager = makeManager(loops) { $0.unixSocketPath = server.unixSocketPath }
        #expect(try await manager.prewarm("http://docker/", count: 5) == 5)
        #expect(await manager.connectionStatistics().connections == .init(idle: 5, busy: 0))
        let requests = (0..<3).map { manager.upload(Data("\($0)".utf8), to: "http://docker/") }
        #expect(await gate.arrivals(3))
        #expect(await manager.connectionStatistics().connections == .init(idle: 2, busy: 3))
        #expect(await manager.closeIdleConnections() == 2)
        #expect(await manager.connectionStatistics().connections == .init(idle: 0, busy: 3))
        gate.open()
        for (index, request) in requests.enumerated() {
            #expect(await request.serializingString().response.value == "\(index)")
        }
        #expect(server.connectionCount == 5 && server.requestCount == 3)
        #expect(await manager.connectionStatistics().connections == .init(idle: 3, busy: 0))
        #expect(await manager.closeIdleConnections() == 3)
        #expect(await server.waitForConnectionsToClose())
    }
}
