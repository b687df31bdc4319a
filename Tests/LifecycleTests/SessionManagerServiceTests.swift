// SPDX-License-Identifier: Apache-2.0
#if Lifecycle
import CurlewHTTP
import CurlewLifecycle
import CurlewSessionTestSupport
import CurlewTestSupport
import Logging
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

@Suite(.timeLimit(.minutes(2))) struct SessionManagerServiceTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer.standard()
    }

    @Test("the service runs until it is shut down, and lets requests in flight finish") func gracefully() async throws {
        let manager = makeManager()
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await SessionManagerService(manager, gracePeriod: .seconds(60)).run() }
                #expect(try await manager.request(server.url("/json")).validate().serializingData().value.count == 60)
                let request = manager.request(server.url("/delay/200")).validate()
                #expect(await server.waitForRequests(2))
                trigger.triggerGracefulShutdown()
                #expect(try await request.serializingString().value == "Waited")
                try await group.waitForAll()
            }
        }
        #expect(await isShutDown(manager))
    }

    @Test("requests are cancelled after the grace period") func graceIsOver() async throws {
        let manager = makeManager()
        let request = manager.request(server.url("/silent"))
        #expect(await server.waitForRequests(1))
        await testGracefulShutdown { trigger in
            trigger.triggerGracefulShutdown()
            await SessionManagerService(manager, gracePeriod: .milliseconds(100)).run()
        }
        guard case CurlewError.sessionShutDown? = await request.serializingData().response.error else { return #expect(Bool(false)) }
    }

    @Test("a cancelled service cancels the requests and returns") func cancelled() async throws {
        let manager = makeManager()
        let request = manager.request(server.url("/silent"))
        #expect(await server.waitForRequests(1))
        let service = Task { await SessionManagerService(manager, gracePeriod: .seconds(3_600)).run() }
        service.cancel()
        await service.value
        guard case CurlewError.sessionShutDown? = await request.serializingData().response.error else { return #expect(Bool(false)) }
    }

    @Test("a service group shuts the manager down after the services listed behind it") func order() async throws {
        let manager = makeManager()
        let worker = Worker(manager: manager, url: server.url("/delay/200"))
        let group = ServiceGroup(
            services: [SessionManagerService(manager, gracePeriod: .zero), worker], logger: Logger(label: "test"))
        async let end: Void = group.run()
        #expect(await server.waitForRequests(1))
        await group.triggerGracefulShutdown()
        try await end
        #expect(await worker.results.first() == "Waited")
        #expect(await isShutDown(manager))
    }

    /// Finishes its work by itself when it is shut down.
    private struct Worker: Service {
        let manager: SessionManager
        let url: String
        let results = Log<String>()

        func run() async throws {
            let request = manager.request(url)
            try await gracefulShutdown()
            results.append(try await request.serializingString().value)
        }
    }

    @Test("a worker with 200 requests in flight ends on SIGTERM: what finishes in time does, the rest is cancelled, nothing remains")
    func terminated() async throws {
        let count = 200
        let directory = try TemporaryDirectory()
        let gate = Gate()
        let server = try LoopbackServer { request, connection in
            switch request.path {
            case "/later":
                connection.wait(until: gate)
                return .ok("done")
            case "/never":
                connection.waitUntilClosed()
                return nil
            default: return .ok("{}")
            }
        }
        let worker = try Probe.startWorker(server.url(""), "\(count)", directory.url.path)
        #expect(await gate.arrivals(count / 2))
        #expect(await server.waitForRequests(count + 1))
        worker.terminate()
        #expect(await worker.readLine() == "terminating=1")
        gate.open()
        let report = await Probe.Report(worker)
        #expect(report.status == 0)
        #expect(report["finished"] == count / 2)
        #expect(report["shutDown"] == count / 2)
        #expect(report["failed"] == 0)
        #expect(report["sockets"] == 0)
        #expect(report["threads"] == 0)
        #expect(await server.waitForConnectionsToClose())
        // One in ten of them is a download that finished.
        #expect(try contents(of: directory).count == count / 10)
    }

    private func isShutDown(_ manager: SessionManager) async -> Bool {
        let error = await manager.request(server.url("/json")).serializingData().response.error
        if case CurlewError.sessionShutDown? = error { return true }
        return false
    }
}
#endif
