// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// Sessions that share the loop of a transport.
@Suite(.timeLimit(.minutes(1))) struct SharedTransportTests {
    private static func configuration(limit: Int? = 64) -> TransportConfiguration {
        var configuration = TransportConfiguration()
        configuration.maximumConnectionsPerHost = limit
        return configuration
    }

    private static func pair(limit: Int? = 64) -> (SharedTransport, SharedTransport) {
        let configuration = configuration(limit: limit)
        let base = CurlTransport(configuration: configuration)
        return (SharedTransport(base, configuration: configuration), SharedTransport(base, configuration: configuration))
    }

    // U2.6
    @Test func `the key of a host differs from group to group, and that of group 0 is the host's`() {
        let urls = ["http://a.example/", "HTTP://A.example:80/x", "https://a.example/", "http://b.example/", "nonsense"]
        for url in urls { #expect(Transfer.hostKey(of: url, group: 0) == Transfer.hostKey(of: url)) }
        #expect(Transfer.hostKey(of: urls[0], group: 7) == Transfer.hostKey(of: urls[1], group: 7))
        let keys = Set((0..<1_000).flatMap { group in [0, 2, 3].map { Transfer.hostKey(of: urls[$0], group: group) } })
        #expect(keys.count == 3_000)
    }

    // U2.6
    @Test func `a session does not use the connections of another one`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let (first, second) = Self.pair(limit: 1)
        for transport in [first, second, first, second] {
            #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil)
        }
        #expect(server.requests.map(\.connection) == [1, 2, 1, 2])
        for transport in [first, second] {
            let statistics = await transport.connectionStatistics()
            #expect(statistics.connections == ConnectionStatistics.Counts(idle: 1, busy: 0))
            #expect(statistics.opened == 1 && statistics.reused == 1)
        }
    }

    // U2.6
    @Test func `the transfers of one session do not count against the limit of another`() async throws {
        let gate = Gate()
        let server = try LoopbackServer { request, connection in
            if request.path == "/held" { connection.wait(until: gate) }
            return .ok("")
        }
        defer {
            gate.open()
            server.stop()
        }
        let (first, second) = Self.pair(limit: 2)
        let observers = (0..<3).map { _ in RecordingObserver() }
        for observer in observers { first.start(TransferRequest(url: server.url("/held")), observer: observer) }
        #expect(await gate.arrivals(2))
        #expect(await second.run(TransferRequest(url: server.url("/json"))).error == nil)
        #expect(gate.arrived == 2)
        gate.open()
        for observer in observers { #expect(await observer.end().error == nil) }
    }

    // U2.6
    @Test func `sessions with different limits share a loop, and each has its own`() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("")
        }
        defer {
            gate.open()
            server.stop()
        }
        let base = CurlTransport()
        let transports = [1, 3].map { SharedTransport(base, configuration: Self.configuration(limit: $0)) }
        let observers = transports.map { transport in
            (0..<5).map { _ in
                let observer = RecordingObserver()
                transport.start(TransferRequest(url: server.url("/")), observer: observer)
                return observer
            }
        }
        #expect(await gate.arrivals(4))
        var counts: [Int] = []
        for transport in transports { counts.append(await transport.connectionStatistics().connections.busy) }
        #expect(counts == [1, 3])
        gate.open()
        for observer in observers.joined() { #expect(await observer.end().error == nil) }
    }

    // U2.6
    @Test func `the end of a session completes its transfers and streams, and no other's`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        // Streams count against libcurl's own limit, where connections are shared.
        let other = try LoopbackServer.standard()
        defer { other.stop() }
        let (first, second) = Self.pair(limit: 2)
        let url = server.url("/silent")
        // More than the limit, so that some wait.
        let ended = (0..<5).map { _ in RecordingObserver() }
        for observer in ended { first.start(TransferRequest(url: url), observer: observer) }
        let stream = StreamLog()
        first.openStream(StreamTransferRequest(host: "127.0.0.1", port: other.port, isSecure: false), observer: stream)
        let kept = RecordingObserver()
        let handle = second.start(TransferRequest(url: url), observer: kept)
        #expect(await server.waitForRequests(3))
        await stream.opened.wait(for: 1)
        first.shutDown()
        await first.waitUntilShutDown()
        for observer in ended {
            let record = await observer.end()
            #expect(record.isInvalidated && record.completions == 1)
        }
        await stream.ended.wait(for: 1)
        #expect(stream.ended.elements == ["sessionInvalidated"])
        #expect(kept.record.completion == nil)
        #expect(await second.run(TransferRequest(url: server.url("/json"))).error == nil)
        handle.cancel()
        #expect(await kept.end().isCancelled)
    }

    // U2.6
    @Test func `a transfer that is started after the end completes within the start`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let (first, second) = Self.pair()
        #expect(await first.run(TransferRequest(url: server.url("/json"))).error == nil)
        let made = RecordingObserver()
        let handle = first.makeTransfer(TransferRequest(url: server.url("/json")), id: 1, observer: made)
        first.shutDown()
        handle.start()
        #expect(made.record.isInvalidated && made.record.completions == 1)
        let late = RecordingObserver()
        first.start(TransferRequest(url: server.url("/json")), observer: late)
        #expect(late.record.isInvalidated && late.record.completions == 1)
        let stream = StreamLog()
        first.openStream(StreamTransferRequest(host: "127.0.0.1", port: server.port, isSecure: false), observer: stream)
        #expect(stream.ended.elements == ["sessionInvalidated"])
        await first.waitUntilShutDown()
        #expect(server.requestCount == 1)
        #expect(await second.run(TransferRequest(url: server.url("/json"))).error == nil)
    }

    // U2.6
    @Test func `the end of a session closes its connections, and that of the last one the thread`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        weak var base: CurlTransport?
        let transports: [SharedTransport]
        do {
            let made = CurlTransport()
            base = made
            transports = (0..<2).map { _ in SharedTransport(made, configuration: TransportConfiguration()) }
        }
        for transport in transports { #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil) }
        transports[0].shutDown()
        await transports[0].waitUntilShutDown()
        #expect(base != nil)
        #expect(await eventually { server.openConnections == 1 })
        #expect(await transports[0].connectionStatistics() == ConnectionStatistics())
        transports[1].shutDown()
        await transports[1].waitUntilShutDown()
        #expect(base == nil)
        #expect(await server.waitForConnectionsToClose())
    }

    // U2.6
    @Test func `a session is ended by its release, and may never have had a transfer`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let base = CurlTransport()
        let observer = RecordingObserver()
        do {
            let transport = SharedTransport(base, configuration: TransportConfiguration())
            transport.start(TransferRequest(url: server.url("/silent")), observer: observer)
            #expect(await server.waitForRequests(1))
        }
        #expect(await observer.end().isInvalidated)
        let unused = SharedTransport(base, configuration: TransportConfiguration())
        #expect(await unused.closeIdleConnections() == 0)
        unused.shutDown()
        unused.shutDown()
        await unused.waitUntilShutDown()
    }

    // U2.6
    @Test func `idle connections are closed, and opened ahead, for one session only`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let (first, second) = Self.pair(limit: 3)
        for transport in [first, second] { #expect(try await transport.prewarm(TransferRequest(url: server.url("/")), count: 5) == 3) }
        #expect(await eventually { server.connectionCount == 6 && server.openConnections == 6 })
        #expect(await first.closeIdleConnections() == 3)
        #expect(await eventually { server.openConnections == 3 })
        #expect(await second.connectionStatistics().connections.idle == 3)
        #expect(await second.run(TransferRequest(url: server.url("/json"))).completion?.metrics.reusedConnection == true)
    }

    // U2.6
    @Test func `a session does not resume the TLS sessions of another one`() async throws {
        let (tls, authority) = try ServerTLS.throwAway()
        let server = try LoopbackServer(tls: tls) { _, connection in .ok(connection.tls?.isResumed == true ? "resumed" : "new") }
        defer { server.stop() }
        let (first, second) = Self.pair()
        var request = TransferRequest(url: server.url("/"), headers: ["Connection": "close"])
        request.options.tls.certificateAuthorities = authority.certificate
        var bodies: [String] = []
        for transport in [first, second, first, second] {
            bodies.append(String(decoding: await transport.run(request).body, as: UTF8.self))
        }
        #expect(bodies == ["new", "new", "resumed", "resumed"])
    }

    // U2.6
    @Test func `connections over one Unix domain socket are not confused`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("socket").path
        let server = try LoopbackServer(unixSocketPath: path) { _, _ in .ok("") }
        defer { server.stop() }
        let (first, second) = Self.pair()
        var request = TransferRequest(url: "http://localhost/")
        request.options.unixSocketPath = path
        for transport in [first, second, second, first, second] { #expect(await transport.run(request).error == nil) }
        #expect(server.requests.map(\.connection) == [1, 2, 2, 1, 2])
    }

    // U2.6
    @Test func `a session has multi handles while it has connections or transfers`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let base = CurlTransport()
        let transport = SharedTransport(base, configuration: TransportConfiguration())
        func isOpen() async -> Bool { await base.groupPools().first ?? false }
        let start = ContinuousClock.now
        #expect(await transport.run(TransferRequest(url: server.url("/bytes/5?close=1"), headers: ["Connection": "close"])).error == nil)
        // Without a connection, after a second.
        let isStillOpen = await isOpen()
        #expect(isStillOpen || start.duration(to: .now) >= .seconds(1))
        while await isOpen() { await Task.yield() }
        #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil)
        #expect(await isOpen())
        #expect(await transport.run(TransferRequest(url: server.url("/json"))).completion?.metrics.reusedConnection == true)
    }

    // U2.6
    @Test func `of many idle sessions those that were used last keep their connections`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let base = CurlTransport()
        let count = 3 * PoolSchedule.mostIdle
        let transports = (0..<count).map { _ in SharedTransport(base, configuration: TransportConfiguration()) }
        for transport in transports { #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil) }
        #expect(await eventually { server.openConnections <= PoolSchedule.mostIdle })
        #expect(await base.groupPools().count { $0 } == PoolSchedule.mostIdle)
        let last = await transports[count - 1].run(TransferRequest(url: server.url("/json")))
        #expect(last.completion?.metrics.reusedConnection == true)
        let first = await transports[0].run(TransferRequest(url: server.url("/json")))
        #expect(first.completion?.metrics.reusedConnection == false)
    }

    // U2.6
    @Test func `the multi handles of a session close later if a name may still be resolved, its connections at once`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let base = CurlTransport()
        let transport = SharedTransport(base, configuration: TransportConfiguration())
        #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil)
        _ = await base.visit { loop in for group in loop.groups.values { group.resolvesUntil = loop.now + 2_000_000_000 } }
        transport.shutDown()
        await transport.waitUntilShutDown()
        #expect(await base.visit { $0.endedGroups.map { $0.pools != nil } } == [[true]])
        #expect(await server.waitForConnectionsToClose())
        while await base.visit({ $0.endedGroups.count }) != [0] { await Task.yield() }
        let next = SharedTransport(base, configuration: TransportConfiguration())
        #expect(await next.run(TransferRequest(url: server.url("/json"))).error == nil)
    }

    // U2.6, U2.8
    @Test func `a decision on certificates holds for its session, and is forgotten with it`() throws {
        final class Scope: Sendable {}
        let evaluator = TrustEvaluator(scope: Scope()) { _, _ in }
        let requirement = TrustRequirement(.evaluator(evaluator), policy: "p", host: "h", port: 443)
        let leaf = try #require(Certificate(pem: Data(TestCertificates.leaf.utf8)))
        let trust = ServerTrust(host: "h", certificates: [leaf])
        let now = leaf.notAfter - 1_000
        var register = TrustRegister()
        let question = TrustQuestion(requirement: requirement, trust: trust, group: 1)
        let asked = register.wait(for: question, 1)
        let waiting = register.decided(question, number: try #require(asked), isTrusted: true, now: now)
        #expect(waiting == [1])
        #expect(register.decision(on: trust, by: requirement, group: 1, now: now) == nil)
        #expect(register.decision(on: trust, by: requirement, group: 2, now: now) != nil)
        #expect(register.decision(on: trust, by: requirement, now: now) != nil)
        register.forget(group: 2)
        #expect(register.decision(on: trust, by: requirement, group: 1, now: now) == nil)
        register.forget(group: 1)
        #expect(register.decision(on: trust, by: requirement, group: 1, now: now) != nil)
    }
}

extension CurlTransport {
    /// Whether each of the sessions that share the transport has pools, in no particular order.
    fileprivate func groupPools() async -> [Bool] {
        await visit { $0.groups.values.map { $0.pools != nil } }.first ?? []
    }
}

/// Records the events of a stream.
private final class StreamLog: StreamTransferObserver {
    let opened = Log<Int>()
    let ended = Log<String>()

    func stream(_ id: Int, didOpen metrics: TransferMetrics) { opened.append(id) }
    func stream(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { .proceed }
    func streamDidEndReceiving(_ id: Int) {}
    func stream(_ id: Int, didSend count: Int64) {}
    func stream(_ id: Int, didComplete completion: TransferCompletion) {
        if case CurlewError.sessionInvalidated? = completion.error { ended.append("sessionInvalidated") } else { ended.append("other") }
    }
}
