// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Sessions with several event loops: every kind of request, with retries, redirects and cancellations.
@Suite(.timeLimit(.minutes(2))) struct SessionLoopsTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func makeManager(_ loops: Int, limit: Int? = 64, _ monitor: (any EventMonitor)? = nil) -> SessionManager {
        CurlewSessionTestSupport.makeManager {
            $0.loops = loops
            $0.maximumConnectionsPerHost = limit
            $0.temporaryDirectory = directory.url
            if let monitor { $0.eventMonitors = [monitor] }
        }
    }

    /// A server that holds each request until the gate opens.
    private func gatedServer(_ gate: Gate) throws -> LoopbackServer {
        try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("done")
        }
    }

    /// The directories in `/proc` of the threads on which a session's transfers run, which are all started.
    private func loopThreads(of manager: SessionManager) async throws -> [String] {
        var threads: [String] = []
        for executor in manager.taskExecutors {
            threads.append(
                try await Task(executorPreference: executor) {
                    "/proc/" + (try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self"))
                }.value)
        }
        return threads
    }

    /// Whether threads have ended: `pthread_join` returns a moment before the kernel removes their entries.
    private func haveEnded(_ threads: [String]) async -> Bool {
        await eventually { !threads.contains { FileManager.default.fileExists(atPath: $0) } }
    }

    // MARK: Limits

    @Test(arguments: [(2, 1), (2, 3), (3, 2), (5, 4)])
    func `requests of every kind complete once within each host's limit, retried, redirected and cancelled`(loops: Int, limit: Int)
        async throws
    {
        let servers = (try LoopbackServer.standard(recording: false), try LoopbackServer.standard(recording: false))
        let monitor = ConnectionUse()
        let manager = makeManager(loops, limit: limit, monitor)
        let kinds = RequestKinds(manager, servers.0, servers.1, directory)
        var random = SplitMix(state: UInt64(loops * 10 + limit))
        let ends = await withTaskGroup(of: String?.self) { group in
            for index in 0..<200 {
                let delay = index % 4 == 3 ? Int(random.next() % 2_000) : nil
                group.addTask { await kinds.run(index, cancelledAfter: delay) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(ends.count == 200 && ends.allSatisfy { $0 == nil }, "\(ends.compactMap { $0 })")
        #expect(await manager.connectionStatistics().connections.busy == 0)

        // The server counts requests that were cancelled until it has seen the ends of their connections.
        _ = await manager.closeIdleConnections()
        #expect(await servers.0.waitForConnectionsToClose())
        // No place is lost: as many requests as ever are in flight at a time, and no more.
        let before = servers.0.requestCount
        let silent = (0..<limit + 2).map { _ in manager.request(servers.0.url("/silent")) }
        #expect(await servers.0.waitForRequests(before + limit))
        #expect(await manager.connectionStatistics().connections.busy == limit)
        for request in silent { request.cancel() }
        for request in silent { #expect(await request.serializingData().response.error?.isCancelled == true) }
        await manager.shutdown(gracePeriod: .zero)
        for server in [servers.0, servers.1] {
            let use = monitor.use(of: server.port)
            #expect(use.mostInUse <= limit && use.mostOpen <= limit && use.open == 0 && use.inUse == 0, "\(use)")
        }
        #expect(monitor.use(of: servers.0.port).mostInUse == limit)
        let names = try contents(of: directory)
        #expect(names.allSatisfy { $0.hasPrefix("download-") }, "\(names)")
    }

    // MARK: Follow-ups on other loops

    @Test(arguments: RequestKinds.Method.allCases)
    func `a retry runs on another loop than the attempt before if that has less to do`(_ kind: RequestKinds.Method) async throws {
        let attempts = Lock(0)
        let server = try LoopbackServer { request, connection in
            let attempt = attempts.withLock { attempts in
                attempts += 1
                return attempts
            }
            guard attempt == 1 else { return .ok("\(request.body.count) done") }
            if kind == .download { try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart") }
            connection.close()
            return nil
        }
        let echo = try TCPEchoServer()
        let monitor = ConnectionUse()
        let manager = makeManager(2, monitor)
        let decisions = Log<RequestRetryCompletion>()
        manager.retrier = HeldRetrier(decisions: decisions)
        async let text = kind.text(manager, server.url("/"), directory.file("file"))
        guard let decide = await decisions.first() else { return }
        // Connections have the numbers of their loop: odd ones on the first of two, even ones on the second. Streams go to each in turn.
        let first = try #require(monitor.opened.first) % 2
        var streams: [StreamRequest] = []
        for count in 1...4 {
            let stream = manager.stream(withHostName: "127.0.0.1", port: echo.port)
            stream.resume()
            #expect(await eventually { monitor.opened.count == count + 1 })
            streams.append(stream)
        }
        for (stream, number) in zip(streams, monitor.opened.dropFirst()) where number % 2 != first {
            stream.cancel()
            // A stream has given its place back when it has ended, not yet when its connection is reported as closed.
            await #expect(throws: CurlewError.self) { for try await _ in stream.bytes() {} }
        }
        decide(true, 0)
        #expect(await text == (kind == .download || kind == .data ? "0 done" : "5000 done"))
        await manager.shutdown(gracePeriod: .zero)
        #expect(monitor.opened.count == 6 && monitor.opened.last.map { $0 % 2 } == 1 - first)
    }

    @Test(arguments: RequestKinds.Method.allCases)
    func `a redirect leads to the loop with an idle connection to the other host`(_ kind: RequestKinds.Method) async throws {
        let other = try LoopbackServer { request, _ in .ok("\(request.body.count) done") }
        let server = try LoopbackServer { [url = other.url("/")] _, _ in .redirect(to: url, status: 307) }
        let monitor = ConnectionUse()
        let manager = makeManager(2, monitor)
        #expect(await manager.request(other.url("/first")).serializingString().response.value == "0 done")
        for _ in 0..<3 {
            let text = await kind.text(manager, server.url("/"), directory.file("file"))
            #expect(text == (kind == .download || kind == .data ? "0 done" : "5000 done"))
        }
        await manager.shutdown(gracePeriod: .zero)
        #expect(server.connectionCount == 1 && other.connectionCount == 1)
        #expect(server.requestCount == 3 && other.requestCount == 4)
        #expect(monitor.opened.map { $0 % 2 } == [0, 1])
    }

    // MARK: Cancellation

    @Test func `a request that is cancelled while its retry is delayed leaves its place to others`() async throws {
        let server = try LoopbackServer.standard()
        let monitor = ConnectionUse()
        let manager = makeManager(3, limit: 1, monitor)
        manager.retrier = Retrier { request, _, completion in completion(request.retryCount == 0, 3_600) }
        let requests = (0..<6).map { _ in manager.request(server.url("/status/503")).validate() }
        await monitor.delays.wait(for: 6)
        for request in requests { request.cancel() }
        for request in requests {
            #expect(await request.serializingData().response.error?.isCancelled == true)
        }
        #expect(await manager.request(server.url("/json")).serializingData().response.error == nil)
        #expect(server.requestCount == 7 && server.connectionCount == 1)
    }

    @Test func `requests that wait for a place are cancelled and suspended on whichever loop they are`() async throws {
        let gate = Gate()
        let server = try gatedServer(gate)
        let manager = makeManager(3, limit: 2)
        let requests = (0..<30).map { index in manager.upload(Data(count: 100), to: server.url("/\(index)")) }
        #expect(await gate.arrivals(2))
        let statistics = await manager.connectionStatistics()
        #expect(statistics.connections == .init(idle: 0, busy: 2))
        let started = Set(server.requests.map(\.target))
        let waiting = requests.enumerated().filter { !started.contains("/\($0.offset)") }.map(\.element)
        for (index, request) in waiting.enumerated() {
            if index % 3 == 0 { request.suspend() }
            if index % 3 == 1 { request.cancel() }
        }
        for (index, request) in waiting.enumerated() where index % 3 == 1 {
            #expect(await request.serializingData().response.error?.isCancelled == true)
        }
        for (index, request) in waiting.enumerated() where index % 3 == 0 { request.resume() }
        gate.open()
        var finished = 0
        for request in requests {
            let response = await request.serializingString().response
            if response.error?.isCancelled != true { #expect(response.value == "done") }
            finished += response.error == nil ? 1 : 0
        }
        #expect(finished == 21 && server.requestCount == 21)
        #expect(server.connectionCount <= 2)
    }

    // MARK: Shutdown

    @Test func `a shutdown lets requests on all loops finish, those that wait too`() async throws {
        let gate = Gate()
        let server = try gatedServer(gate)
        let flaky = try LoopbackServer.standard()
        let manager = makeManager(3, limit: 4)
        manager.retrier = Retrier.attempts(3, delay: 0.01)
        let threads = try await loopThreads(of: manager)
        #expect(Set(threads).count == 3)
        let requests = (0..<40).map { _ in manager.request(server.url("/")) }
        let retried = (0..<10).map { manager.request(flaky.url("/flaky?fail=2&key=\($0)")).validate() }
        #expect(await gate.arrivals(4))
        // It may take many requests to see that the shutdown has begun, which then are not to be served.
        manager.startRequestsImmediately = false
        async let end: Void = manager.shutdown(gracePeriod: .seconds(60))
        #expect(await eventually { manager.request(server.url("/refused")).task == nil })
        gate.open()
        for request in requests { #expect(await request.serializingString().response.value == "done") }
        for request in retried { #expect(await request.serializingString().response.value == "Attempt 3") }
        await end
        #expect(await haveEnded(threads))
        #expect(await server.waitForConnectionsToClose())
        #expect(await flaky.waitForConnectionsToClose())
        #expect(server.requests.count { $0.path == "/" } == 40)
        #expect(await manager.connectionStatistics() == ConnectionStatistics())
        #expect(await manager.closeIdleConnections() == 0)
    }

    @Test func `a shutdown without grace ends everything on all loops, and sends nothing of what waits`() async throws {
        let gate = Gate()
        let server = try gatedServer(gate)
        let other = try LoopbackServer.standard()
        let monitor = ConnectionUse()
        let manager = makeManager(3, limit: 3, monitor)
        let threads = try await loopThreads(of: manager)
        let requests = (0..<30).map { _ in manager.request(server.url("/")) }
        let download = manager.download(other.url("/drip?n=100000&ms=5"), to: directory.file("file"))
        let upload = manager.upload(InputStream(data: Data(count: 100_000)), to: other.url("/silent"))
        let stream = manager.stream(withHostName: "127.0.0.1", port: other.port)
        stream.resume()
        manager.retrier = Retrier.attempts(1, delay: 3_600)
        let delayed = manager.request(other.url("/status/503")).validate()
        await monitor.delays.wait(for: 1)
        #expect(await gate.arrivals(3))
        #expect(await other.waitForRequests(3))
        #expect(await eventually { (download.task?.countOfBytesReceived ?? 0) > 0 })
        await manager.shutdown(gracePeriod: .zero)
        #expect(await haveEnded(threads))
        #expect(try contents(of: directory) == [])
        for request in requests { #expect(await request.serializingData().response.error?.isSessionShutDown == true) }
        #expect(await download.serializingURL().response.error?.isSessionShutDown == true)
        #expect(await upload.serializingData().response.error?.isSessionShutDown == true)
        #expect(await delayed.serializingData().response.error != nil)
        await #expect { for try await _ in stream.bytes() {} } throws: { $0.isSessionShutDown }
        #expect(gate.arrived == 3 && server.connectionCount == 3)
        #expect(monitor.use(of: server.port).open == 0 && monitor.use(of: other.port).open == 0)
        gate.open()
        #expect(await server.waitForConnectionsToClose())
        #expect(await other.waitForConnectionsToClose())
    }

    @Test func `requests that are created while a session with several loops ends finish or fail, and none is left`() async throws {
        let server = try LoopbackServer.standard(recording: false)
        for round in 0..<10 {
            let manager = makeManager(4, limit: round % 2 == 0 ? 2 : nil)
            let errors = await withTaskGroup(of: (any Error)?.self) { group in
                for _ in 0..<40 {
                    group.addTask { await manager.request(server.url("/json")).serializingData().response.error }
                    group.addTask { await manager.upload(Data(count: 10), to: server.url("/body")).serializingData().response.error }
                }
                group.addTask {
                    if round % 3 == 0 { manager.invalidateAndCancel() }
                    await manager.shutdown(gracePeriod: round % 3 == 1 ? .zero : .seconds(60))
                    return nil
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            for error in errors.compactMap(\.self) { #expect(error.isSessionShutDown || error.isSessionInvalidated, "\(error)") }
        }
        #expect(await server.waitForConnectionsToClose())
    }
}

/// Leaves its decisions to the test.
private struct HeldRetrier: RequestRetrier {
    let decisions: Log<RequestRetryCompletion>

    func should(_ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion) {
        decisions.append(completion)
    }
}

/// Counts the connections of each host, and those in use, as the session reports them.
private final class ConnectionUse: EventMonitor {
    struct Use {
        var open = 0
        var inUse = 0
        var mostOpen = 0
        var mostInUse = 0
    }

    /// The requests whose retry was delayed.
    let delays = Log<UInt>()
    private let uses = Lock<[Int: Use]>([:])
    private let numbers = Lock<[Int]>([])

    var monitoredEvents: MonitoredEvents { [.connections, .retries] }
    /// The numbers of the connections in the order in which they were opened.
    var opened: [Int] { numbers.withLock { $0 } }

    func use(of port: Int) -> Use { uses.withLock { $0[port] ?? Use() } }

    func request(_ request: Request, willRetryAfter delay: TimeInterval, because error: any Error) {
        delays.append(request.retryCount)
    }

    func connectionDidChange(_ event: ConnectionEvent) {
        if event.kind == .opened { numbers.withLock { $0.append(event.connection) } }
        uses.withLock { uses in
            var use = uses[event.origin?.port ?? 0] ?? Use()
            switch event.kind {
            case .opened: (use.open, use.inUse) = (use.open + 1, use.inUse + 1)
            case .reused: use.inUse += event.wasIdle ? 1 : 0
            case .becameIdle: use.inUse -= 1
            case .closed: (use.open, use.inUse) = (use.open - 1, use.inUse - (event.wasIdle ? 0 : 1))
            }
            use.mostOpen = max(use.mostOpen, use.open)
            use.mostInUse = max(use.mostInUse, use.inUse)
            uses[event.origin?.port ?? 0] = use
        }
    }
}
