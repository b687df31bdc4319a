// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct TimeoutTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func failure(of url: String, _ change: (inout SessionConfiguration) -> Void) async throws -> TransferFailure {
        let manager = makeManager(change)
        let response = await manager.request(url).serializingData().response
        let error = try #require(response.error as? CurlewError)
        #expect(error.urlError?.code == .timedOut)
        let failure = try #require(error.transferFailure)
        #expect(failure.isTimeout)
        return failure
    }

    @Test("nothing hangs by default") func defaults() {
        let configuration = SessionConfiguration()
        #expect(configuration.connectTimeout != nil)
        #expect(configuration.idleTimeout != nil)
    }

    @Test("a queued request waits for as long as it takes by default") func noQueueTimeout() async throws {
        #expect(SessionConfiguration().queueTimeout == nil)
        let manager = makeManager {
            $0.maximumConnectionsPerHost = 1
            $0.connectTimeout = .seconds(1)
        }
        let holding = manager.request(server.url("/delay/1500"))
        #expect(await server.waitForRequests(1))
        let waiting = await manager.request(server.url("/json")).serializingData().response
        #expect(waiting.error == nil)
        #expect(server.connectionCount == 1)
        #expect(await holding.serializingData().response.error == nil)
    }

    @Test("a silent server causes the idle timeout, with all else as by default") func silentServer()
        async throws
    {
        let failure = try await failure(of: server.url("/silent")) { $0.idleTimeout = .milliseconds(200) }
        #expect(failure.kind == .idleTimeout)
        #expect(failure.phase == .waiting)
        #expect(failure.requestWasSent)
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("a server that falls silent during the body") func silentBody() async throws {
        let failure = try await failure(of: server.url("/head-only")) { $0.idleTimeout = .seconds(1) }
        #expect(failure.kind == .idleTimeout)
        #expect(failure.phase == .receivingBody)
    }

    @Test("a request's timeoutInterval is its idle timeout") func timeoutInterval() async throws {
        var request = URLRequest(url: try server.url("/silent").asURL())
        request.timeoutInterval = 0.2
        let manager = makeManager()
        let response = await manager.request(request).serializingData().response
        #expect(response.error?.transferFailure?.kind == .idleTimeout)
    }

    @Test("the first-byte timeout applies") func firstByte() async throws {
        let failure = try await failure(of: server.url("/silent")) {
            $0.firstByteTimeout = .milliseconds(200)
            $0.idleTimeout = nil
        }
        #expect(failure.kind == .firstByteTimeout)
        #expect(failure.phase == .waiting)
    }

    @Test("the first-byte timeout does not apply to a slow body") func slowBody() async throws {
        let manager = makeManager { $0.firstByteTimeout = .seconds(1) }
        let text = try await manager.request(server.url("/drip?n=15&ms=100")).serializingString().value
        #expect(text.count == 15)
    }

    @Test("the total timeout applies") func total() async throws {
        let failure = try await failure(of: server.url("/drip?n=1000&ms=20")) { $0.totalTimeout = .milliseconds(400) }
        #expect(failure.kind == .totalTimeout)
    }

    @Test("a slow but steady body does not cause the idle timeout") func steadyBody() async throws {
        let manager = makeManager { $0.idleTimeout = .seconds(1) }
        let text = try await manager.request(server.url("/drip?n=15&ms=100")).serializingString().value
        #expect(text.count == 15)
    }

    @Test("a connection that is not established") func connection() async throws {
        let listener = try StuckListener(.full)
        let failure = try await failure(of: "http://127.0.0.1:\(listener.port)/") { $0.connectTimeout = .milliseconds(300) }
        #expect(failure.kind == .connectTimeout)
        #expect(failure.phase == .connecting)
        #expect(!failure.requestWasSent)
    }

    @Test("a TLS handshake without a response") func handshake() async throws {
        let listener = try StuckListener(.silent)
        let failure = try await failure(of: "https://127.0.0.1:\(listener.port)/") { $0.connectTimeout = .seconds(1) }
        #expect(failure.kind == .connectTimeout)
        #expect(failure.phase == .securing)
        #expect(!failure.requestWasSent)
    }

    @Test("a connection that is never accepted") func unreadConnection() async throws {
        let listener = try StuckListener(.silent)
        let failure = try await failure(of: "http://127.0.0.1:\(listener.port)/") { $0.idleTimeout = .milliseconds(200) }
        #expect(failure.kind == .idleTimeout)
    }

    @Test("no connection to the host becomes available") func queue() async throws {
        let manager = makeManager {
            $0.maximumConnectionsPerHost = 1
            $0.queueTimeout = .seconds(1)
        }
        let holding = manager.request(server.url("/silent"))
        #expect(await server.waitForRequests(1))
        let waiting = await manager.request(server.url("/json")).serializingData().response
        #expect(waiting.error?.transferFailure?.kind == .queueTimeout)
        #expect(waiting.error?.transferFailure?.phase == .queued)
        holding.cancel()
        let later = await manager.request(server.url("/json")).serializingData().response
        #expect(later.error == nil)
    }

    @Test("an upload that the server does not read") func unreadUpload() async throws {
        let server = try LoopbackServer(bodies: { _ in .unread }) { _, connection in
            connection.wait(until: Gate())
            return nil
        }
        let manager = makeManager { $0.idleTimeout = .milliseconds(300) }
        let response = await manager.upload(Data(count: 64 << 20), to: server.url("/")).serializingData().response
        #expect(response.error?.transferFailure?.kind == .idleTimeout)
        #expect(response.error?.transferFailure?.phase == .sending)
    }

    @Test("a reader's time does not count") func slowReader() async throws {
        let manager = makeManager { $0.idleTimeout = .seconds(1) }
        let other = makeManager()
        var count = 0
        for try await piece in manager.streamRequest(server.url("/bytes/20000000")).validate().bodyStream() {
            // Another request is what takes the time.
            if count == 0 { _ = try await other.request(server.url("/delay/1500")).serializingData().value }
            count += piece.count
        }
        #expect(count == 20_000_000)
    }

    @Test("a stalled download leaves no file behind") func stalledDownload() async throws {
        let directory = try TemporaryDirectory()
        let manager = makeManager { $0.idleTimeout = .milliseconds(200) }
        let response = await manager.download(server.url("/drip?n=3&ms=5000"), to: directory.file("file")).serializingURL().response
        #expect(response.error?.transferFailure?.kind == .idleTimeout)
        #expect(try contents(of: directory) == [])
    }
}
