// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Serialized, because each test uses the whole machine.
@Suite(.serialized, .timeLimit(.minutes(10))) struct StressTests {
    private static let inFlight = 256

    @Test("many awaited requests, 256 in flight") func awaited() async throws {
        let server = try LoopbackServer.standard(recording: false)
        let manager = makeManager { $0.maximumConnectionsPerHost = Self.inFlight }
        let url = server.url("/bytes/1024")
        let start = ContinuousClock.now
        let perTask = Scale.requests / Self.inFlight
        let extra = Scale.requests % Self.inFlight
        let succeeded = await withTaskGroup(of: Int.self) { group in
            for index in 0..<Self.inFlight {
                group.addTask {
                    var succeeded = 0
                    for _ in 0..<perTask + (index < extra ? 1 : 0) {
                        let response = await manager.request(url).validate().serializingData().response
                        succeeded += response.value?.count == 1024 ? 1 : 0
                    }
                    return succeeded
                }
            }
            return await group.reduce(0, +)
        }
        print("\(Scale.requests) requests awaited, \(Self.inFlight) in flight: \(start.duration(to: .now))")
        #expect(succeeded == Scale.requests)
        #expect(server.requestCount == Scale.requests)
        #expect(server.connectionCount <= Self.inFlight)
    }

    @Test("many requests with closures, 256 in flight") func closures() async throws {
        let server = try LoopbackServer.standard(recording: false)
        let manager = makeManager { $0.maximumConnectionsPerHost = Self.inFlight }
        let round = ClosureRound(manager: manager, url: server.url("/bytes/1024"), count: Scale.requests)
        let start = ContinuousClock.now
        for _ in 0..<Self.inFlight { round.next() }
        await round.ended.wait(for: 1)
        print("\(Scale.requests) requests with closures, \(Self.inFlight) in flight: \(start.duration(to: .now))")
        #expect(round.succeeded.withLock { $0 } == Scale.requests)
        #expect(server.requestCount == Scale.requests)
    }

    @Test("more concurrent requests than connections are allowed") func moreThanConnections() async throws {
        let server = try LoopbackServer.standard(recording: false)
        let manager = makeManager { $0.maximumConnectionsPerHost = 4 }
        let succeeded = Log<Bool>()
        for _ in 0..<1_000 { manager.request(server.url("/bytes/10")).response { succeeded.append($0.error == nil) } }
        await succeeded.wait(for: 1_000)
        #expect(succeeded.elements.allSatisfy { $0 })
        #expect(server.connectionCount <= 4)
    }

    /// The server responds immediately, so that the response may arrive at any point of the chain.
    @Test("no chained call is lost") func chained() async throws {
        let server = try LoopbackServer.standard(recording: false)
        let manager = makeManager()
        let url = server.url("/bytes/100")
        let (validated, progressed, handled, order) = (Lock(0), Lock(Set<Int>()), Lock(0), Lock(0))
        let start = ContinuousClock.now
        var done = 0
        while done < Scale.requests {
            // A few at a time: the next request is often created while the response to the last one is being sent.
            let batch = min(8, Scale.requests - done)
            let ended = Log<Void>()
            for index in done..<done + batch {
                let isValidated = Lock(false)
                manager.request(url)
                    .validate { _, _, data in
                        validated.withLock { $0 += data?.count == 100 ? 1 : 0 }
                        isValidated.withLock { $0 = true }
                        return .success
                    }
                    .downloadProgress { _ in progressed.withLock { _ = $0.insert(index) } }
                    .responseData { response in
                        handled.withLock { $0 += response.value?.count == 100 ? 1 : 0 }
                        order.withLock { $0 += isValidated.withLock { $0 } ? 1 : 0 }
                        ended.append(())
                    }
            }
            await ended.wait(for: batch)
            done += batch
        }
        callbackQueue.sync {}
        print("\(Scale.requests) chained requests at no latency: \(start.duration(to: .now))")
        #expect(validated.withLock { $0 } == Scale.requests)
        #expect(handled.withLock { $0 } == Scale.requests)
        #expect(order.withLock { $0 } == Scale.requests)
        #expect(progressed.withLock { $0.count } == Scale.requests)
    }

    @Test("sessions are created, used and released in 8 threads") func sessions() async throws {
        let server = try LoopbackServer.standard(recording: false)
        let start = ContinuousClock.now
        let report = try await Probe.run("sessions", server.url(""), "\(Scale.sessions)")
        #expect(report.status == 0)
        let expected = try #require(report["expected"])
        print(
            "\(Scale.sessions) sessions in 8 threads: \(start.duration(to: .now)), \(expected) handlers, threads "
                + "\(report["threadsBefore"] ?? -1) → \(report["threadsAfter"] ?? -1), descriptors "
                + "\(report["descriptorsBefore"] ?? -1) → \(report["descriptorsAfter"] ?? -1), peak \((report["peak"] ?? 0) >> 20) MiB")
        #expect(expected > Scale.sessions)
        #expect(report["called"] == expected)
        #expect(report["once"] == expected)
        #expect(try #require(report["objects"]) > 2 * Scale.sessions)
        #expect(report["alive"] == 0)
        #expect(try #require(report["threadsAfter"]) <= #require(report["threadsBefore"]))
        #expect(try #require(report["descriptorsAfter"]) <= #require(report["descriptorsBefore"]))
        #expect(await server.waitForConnectionsToClose())
    }
}

/// Requests each of which creates the next one in its handler.
private final class ClosureRound: Sendable {
    let succeeded = Lock(0)
    let ended = Log<Void>()
    private let manager: SessionManager
    private let url: String
    private let count: Int
    private let started = Lock(0)
    private let handled = Lock(0)

    init(manager: SessionManager, url: String, count: Int) {
        self.manager = manager
        self.url = url
        self.count = count
    }

    func next() {
        let mayStart = started.withLock { started in
            guard started < count else { return false }
            started += 1
            return true
        }
        guard mayStart else { return }
        manager.request(url).validate().responseData { [self] response in
            succeeded.withLock { $0 += response.value?.count == 1024 ? 1 : 0 }
            next()
            let isLast = handled.withLock { handled in
                handled += 1
                return handled == count
            }
            if isLast { ended.append(()) }
        }
    }
}
