// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Dispatch
import Testing

@Suite(.timeLimit(.minutes(2))) struct CancellationTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer.standard()
    }

    @Test("a cancelled request runs its handlers once and closes its connection")
    func cancelledRequest() async throws {
        let manager = makeManager()
        let handled = Log<Bool>()
        let request = manager.request(server.url("/silent")).response { handled.append($0.error?.isCancelled == true) }
            .responseData { handled.append($0.error?.isCancelled == true) }
        #expect(await server.waitForRequests(1))
        request.cancel()
        request.cancel()
        await handled.wait(for: 2)
        #expect(await server.waitForConnectionsToClose())
        #expect(handled.elements == [true, true])
        #expect(request.task?.state == .completed)
    }

    @Test("a request that was not started can be cancelled") func notStarted() async throws {
        let manager = makeManager()
        manager.startRequestsImmediately = false
        let request = manager.request(server.url("/json"))
        request.cancel()
        let response = await request.serializingData().response
        #expect(response.error?.isCancelled == true)
        request.resume()
        #expect(server.connectionCount == 0)
    }

    @Test("cancelling a finished request has no effect") func finishedRequest() async throws {
        let manager = makeManager()
        let request = manager.request(server.url("/bytes/10"))
        #expect(await request.serializingData().response.error == nil)
        request.cancel()
        #expect(await request.serializingData().response.value?.count == 10)
    }

    @Test("cancelling the awaiting task cancels the request") func awaitingTask() async throws {
        let manager = makeManager()
        let url = server.url("/silent")
        let task = Task { await manager.request(url).serializingData().response }
        #expect(await server.waitForRequests(1))
        task.cancel()
        #expect(await task.value.error is CancellationError)
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("a task cancelled before it awaits sends nothing more") func taskCancelledBeforehand()
        async throws
    {
        let manager = makeManager()
        manager.startRequestsImmediately = false
        let request = manager.request(server.url("/json"))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await request.serializingData().response
        }
        #expect(await task.value.error is CancellationError)
        #expect(server.connectionCount == 0)
    }

    @Test("releasing the manager ends its requests") func releasedManager() async throws {
        let handled = Log<Bool>()
        weak var manager: SessionManager?
        weak var first: DataRequest?
        do {
            let strong = makeManager()
            manager = strong
            first = strong.request(server.url("/silent")).response { handled.append($0.error?.isSessionInvalidated == true) }
            strong.download(server.url("/silent")).response { handled.append($0.error?.isSessionInvalidated == true) }
            strong.upload(Data(count: 100), to: server.url("/silent")).response { handled.append($0.error?.isSessionInvalidated == true) }
            #expect(await server.waitForRequests(3))
        }
        await handled.wait(for: 3)
        #expect(handled.elements == [true, true, true])
        #expect(manager == nil)
        #expect(await server.waitForConnectionsToClose())
        callbackQueue.sync {}
        #expect(ProcessProbe.settles { first == nil })
    }

    @Test("requests of an invalidated session fail at once") func invalidatedSession() async throws {
        let manager = makeManager()
        manager.invalidateAndCancel()
        #expect(await manager.request(server.url("/json")).serializingData().response.error?.isSessionInvalidated == true)
        #expect(await manager.download(server.url("/json")).serializingURL().response.error?.isSessionInvalidated == true)
        manager.invalidateAndCancel()
        #expect(server.connectionCount == 0)
    }

    @Test("a request made in an invalidated session and never started is released") func neverStartedIsReleased()
        async throws
    {
        weak var request: DataRequest?
        let handled = Log<Bool>()
        do {
            let manager = makeManager()
            manager.startRequestsImmediately = false
            manager.invalidateAndCancel()
            request = manager.request(server.url("/json")).response { handled.append($0.error?.isSessionInvalidated == true) }
        }
        await handled.wait(for: 1)
        #expect(handled.elements == [true])
        callbackQueue.sync {}
        #expect(ProcessProbe.settles { request == nil })
    }

    @Test("the last reference may be released in a handler") func lastReferenceInHandler() async throws {
        let ended = Log<Bool>()
        let url = server.url("/bytes/10")
        for _ in 0..<20 {
            let manager = makeManager()
            manager.request(url).response { response in
                withExtendedLifetime(manager) { ended.append(response.error == nil) }
            }
        }
        await ended.wait(for: 20)
        #expect(ended.elements.allSatisfy { $0 })
        callbackQueue.sync {}
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("a cancelled download leaves no file behind") func cancelledDownload() async throws {
        let manager = makeManager()
        let directory = try TemporaryDirectory()
        let started = Log<Int64>()
        let request = manager.download(server.url("/cut-body?announce=1000000&send=0"), to: directory.file("other"))
        _ = await request.serializingURL().response
        let slow = manager.download(server.url("/drip?n=1000&ms=20"), to: directory.file("file"))
            .downloadProgress { started.append($0.completedUnitCount) }
        await started.wait(for: 1)
        #expect(try contents(of: directory).allSatisfy { $0.hasPrefix(".file.") })
        slow.cancel()
        let response = await slow.serializingURL().response
        #expect(response.error?.isCancelled == true)
        #expect(try contents(of: directory) == [])
    }

    @Test("an upload is cancelled while the server does not read it") func unreadUpload() async throws {
        let gate = Gate()
        let server = try LoopbackServer(bodies: { _ in .unread }) { _, connection in
            connection.wait(until: gate)
            return nil
        }
        let manager = makeManager()
        let request = manager.upload(Data(count: 64 << 20), to: server.url("/"))
        #expect(await gate.arrivals())
        request.cancel()
        let response = await request.serializingData().response
        #expect(response.error?.isCancelled == true)
        // The server reads what the kernel has already accepted before it sees the end of the stream.
        gate.open()
        #expect(await server.waitForConnectionsToClose())
    }

    @Test("cancelling during a redirect ends the request") func duringRedirect() async throws {
        let gate = Gate()
        let server = try LoopbackServer { request, connection in
            guard request.path == "/2" else { return .redirect(to: "/2") }
            connection.wait(until: gate)
            return .ok("late")
        }
        let manager = makeManager()
        let request = manager.request(server.url("/1"))
        #expect(await gate.arrivals())
        request.cancel()
        let response = await request.serializingData().response
        #expect(response.error?.isCancelled == true)
        #expect(response.metrics.transactionMetrics.count == 2)
    }
}
