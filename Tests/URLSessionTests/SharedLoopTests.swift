// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewURLSession
import Testing

@testable import CurlewCore
@testable import CurlewTransport

/// What sessions cost, and that they are apart though they share a loop.
@Suite(.serialized, .timeLimit(.minutes(3))) struct SharedLoopTests {
    private static func session(_ change: (URLSessionConfiguration) -> Void = { _ in }) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.curlew.proxy = .none
        change(configuration)
        return URLSession(configuration: configuration)
    }

    private static func url(_ server: LoopbackServer, _ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

    /// The transport whose threads a session shares.
    private static func loop(of session: URLSession) -> CurlTransport? {
        (session.curlew.session.eventLoop as? SharedTransport)?.shared
    }

    /// Whether the process has no more descriptors and threads than before, but for those of suites that run in parallel.
    private static func isAsBefore(_ descriptors: Int?, _ threads: Int?, more: Int = 30) -> Bool {
        guard let descriptors, let threads else { return true }
        return ProcessProbe.settles(timeout: .seconds(20)) {
            (ProcessProbe.openDescriptorCount ?? 0) < descriptors + more && (ProcessProbe.threadCount ?? 0) < threads + more
        }
    }

    // U2.6, U3.10
    @Test func `a thousand sessions have one loop, and leave no thread and no descriptor behind`() async throws {
        // Each request has a connection of its own, which ends with it.
        let server = try LoopbackServer(recording: false) { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Connection", "close")], body: .data(Data("12345".utf8)))
        }
        defer { server.stop() }
        let url = try Self.url(server, "/")
        let (descriptors, threads) = (ProcessProbe.openDescriptorCount, ProcessProbe.threadCount)
        weak var loop: CurlTransport?
        do {
            // With different limits, as libraries have them.
            let sessions = (0..<1_000).map { index in Self.session { $0.httpMaximumConnectionsPerHost = 1 + index % 7 } }
            loop = Self.loop(of: sessions[0])
            #expect(loop?.mailboxes.count == 1)
            #expect(sessions.allSatisfy { Self.loop(of: $0) === loop })
            #expect(Self.isAsBefore(descriptors, threads))
            var sizes: [Int] = []
            for start in stride(from: 0, to: 1_000, by: 20) {
                sizes += try await withThrowingTaskGroup(of: Int.self) { group in
                    for session in sessions[start..<start + 20] { group.addTask { try await session.data(from: url).0.count } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
            }
            #expect(sizes == Array(repeating: 5, count: 1_000))
            #expect(server.connectionCount == 1_000)
            // Idle sessions cost no descriptor, and their loop is one thread.
            #expect(Self.isAsBefore(descriptors, threads))
            withExtendedLifetime(sessions) {}
        }
        #expect(await eventually { loop == nil })
        #expect(Self.isAsBefore(descriptors, threads))
    }

    // U2.6
    @Test func `a thousand sessions made, used and released one after the other leave nothing behind`() async throws {
        let server = try LoopbackServer.standard(recording: false)
        defer { server.stop() }
        let url = try Self.url(server, "/bytes/5")
        let (descriptors, threads) = (ProcessProbe.openDescriptorCount, ProcessProbe.threadCount)
        let count = TestLength.value(1_000, short: 200)
        for _ in 0..<count { #expect(try await Self.session().data(from: url).0.count == 5) }
        #expect(await server.waitForConnectionsToClose())
        #expect(server.connectionCount == count)
        #expect(Self.isAsBefore(descriptors, threads))
    }

    // U2.6
    @Test func `the connections of many idle sessions are bounded`() async throws {
        let server = try LoopbackServer.standard(recording: false)
        defer { server.stop() }
        let url = try Self.url(server, "/bytes/5")
        let sessions = (0..<300).map { _ in Self.session() }
        for session in sessions { #expect(try await session.data(from: url).0.count == 5) }
        #expect(await eventually { server.openConnections <= PoolSchedule.mostIdle })
        withExtendedLifetime(sessions) {}
    }

    // U2.6
    @Test func `two sessions never share a connection`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let url = try Self.url(server, "/bytes/5")
        let (first, second) = (Self.session(), Self.session())
        for _ in 0..<3 {
            for session in [first, second] { #expect(try await session.data(from: url).0.count == 5) }
        }
        #expect(server.requests.map(\.connection) == [1, 2, 1, 2, 1, 2])
        for session in [first, second] {
            let statistics = await session.curlew.connectionStatistics()
            #expect(statistics.connections.idle == 1 && statistics.opened == 1 && statistics.reused == 2)
        }
        await first.flush()
        #expect(await eventually { server.openConnections == 1 })
        for session in [first, second] { #expect(try await session.data(from: url).0.count == 5) }
        #expect(server.requests.suffix(2).map(\.connection) == [3, 2])
    }

    // U2.6
    @Test func `the blocked requests of one session do not hold up another one`() async throws {
        let gate = Gate()
        let server = try LoopbackServer { request, connection in
            if request.path == "/held" { connection.wait(until: gate) }
            return .ok("12345")
        }
        defer {
            gate.open()
            server.stop()
        }
        let (first, second) = (Self.session(), Self.session())
        let held = try Self.url(server, "/held")
        let ends = Log<Bool>()
        for _ in 0..<8 { first.dataTask(with: held) { _, _, error in ends.append(error == nil) }.resume() }
        // The limit of a session.
        #expect(await gate.arrivals(6))
        #expect(try await second.data(from: Self.url(server, "/")).0.count == 5)
        #expect(gate.arrived == 6 && ends.count == 0)
        gate.open()
        await ends.wait(for: 8)
        #expect(ends.elements.allSatisfy { $0 })
    }

    // U2.6, U2.1
    @Test func `invalidating a session cancels its tasks, and leaves those of another one`() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("12345")
        }
        defer {
            gate.open()
            server.stop()
        }
        let url = try Self.url(server, "/")
        let (first, second) = (Self.session(), Self.session())
        let (cancelled, kept) = (Log<URLError.Code?>(), Log<Int>())
        for _ in 0..<9 { first.dataTask(with: url) { _, _, error in cancelled.append((error as? URLError)?.code) }.resume() }
        for _ in 0..<3 { second.dataTask(with: url) { data, _, _ in kept.append(data?.count ?? -1) }.resume() }
        #expect(await gate.arrivals(9))
        first.invalidateAndCancel()
        await cancelled.wait(for: 9)
        #expect(cancelled.elements == Array(repeating: .cancelled, count: 9))
        await first.curlew.session.transport.waitUntilShutDown()
        #expect(kept.count == 0)
        gate.open()
        await kept.wait(for: 3)
        #expect(kept.elements == [5, 5, 5])
        #expect(try await second.data(from: url).0.count == 5)
    }

    // U2.6
    @Test func `a session whose monitors follow connections has a loop of its own`() async throws {
        final class Monitor: EventMonitor {
            let kinds = Log<ConnectionEvent.Kind>()
            var monitoredEvents: MonitoredEvents { .connections }
            func connectionDidChange(_ event: ConnectionEvent) { kinds.append(event.kind) }
        }
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let (monitor, other) = (Monitor(), Self.session())
        let session = Self.session { $0.curlew.eventMonitors = [monitor] }
        #expect(session.curlew.session.eventLoop is CurlTransport)
        for session in [other, session] { #expect(try await session.data(from: Self.url(server, "/bytes/5")).0.count == 5) }
        await monitor.kinds.wait(for: 2)
        #expect(monitor.kinds.elements == [.opened, .becameIdle])
    }

    // U2.6
    @Test func `a session with several loops has them for itself`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let sessions = [1, 3, 1, 3].map { loops in Self.session { $0.curlew.loops = loops } }
        let loops = sessions.map(Self.loop)
        #expect(loops[0] != nil && loops[0] === loops[2] && loops[1] == nil && loops[3] == nil)
        for session in sessions { #expect(try await session.data(from: Self.url(server, "/bytes/5")).0.count == 5) }
        #expect(server.connectionCount == 4)
    }

    // U2.6
    @Test func `the manager of a session opens connections ahead, and runs tasks on the loop`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let session = Self.session()
        #expect(try await session.curlew.prewarm(server.url("/"), count: 9) == 6)
        #expect(await session.curlew.connectionStatistics().connections.idle == 6)
        let executor = try #require(session.curlew.taskExecutor)
        let url = try Self.url(server, "/bytes/5")
        let count = try await withTaskExecutorPreference(executor) { try await session.data(from: url).0.count }
        #expect(count == 5)
        // The server may not have accepted all of them yet.
        #expect(await eventually { server.connectionCount >= 6 })
        #expect(server.connectionCount == 6)
    }

    // U3.10
    @Test func `ten thousand tasks of a session leak nothing`() async throws {
        let server = try LoopbackServer.standard(recording: false)
        defer { server.stop() }
        let (session, url) = (Self.session(), try Self.url(server, "/bytes/1000"))
        func load(_ count: Int) async throws -> Int {
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        var bytes = 0
                        for _ in 0..<count / 20 { bytes += try await session.data(from: url).0.count }
                        return bytes
                    }
                }
                return try await group.reduce(0, +)
            }
        }
        #expect(try await load(1_000) == 1_000_000)
        let (descriptors, threads, memory) = (ProcessProbe.openDescriptorCount, ProcessProbe.threadCount, ProcessProbe.residentBytes)
        // Under a sanitizer, where ten thousand take a minute, fewer.
        let count = TestLength.value(10_000, short: 1_000)
        #expect(try await load(count) == count * 1_000)
        #expect(await session.allTasks.isEmpty)
        #expect(Self.isAsBefore(descriptors, threads))
        #expect(server.connectionCount <= 6)
        // Not under a sanitizer, which keeps released memory. A task with its request that stayed would be over 100 MiB; the rest is what an
        // allocator keeps.
        guard !TestLength.isShort, let memory else { return }
        #expect(ProcessProbe.residentBytes.map { $0 < memory + (64 << 20) } ?? true)
    }
}
