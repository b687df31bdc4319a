// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP

import CurlewResilience
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewRedis

@Suite(.enabled(if: RedisServer.isInstalled), .timeLimit(.minutes(3))) struct SharedLimitTests {
    /// The share of the limit that is taken at least. In a few seconds, a busy machine may take some of the time.
    static let least = TestLength.value(0.9, long: 0.98)

    /// The most permits of a rate of so many a second that processes can have from the first one's begin on: the burst, and those that are
    /// reserved up to 100 milliseconds ahead.
    private func most(of rate: Int, _ nanoseconds: Int) -> Int {
        rate / 50 + Int((Double(rate) * (Double(nanoseconds) / 1e9 + 0.1)).rounded(.up))
    }

    /// The time from the first process's begin to the last one's end, in nanoseconds: it is longer than each one's own.
    private func span(_ reports: [Probe.Report]) throws -> Int {
        let began = try #require(reports.compactMap { $0["began"] }.min())
        return try #require(reports.compactMap { $0["ended"] }.max()) - began
    }

    @Test("ten processes with one limit of 500 a second take 500 a second together, each its share") func shared() async throws {
        let seconds = TestLength.value(5, long: 60)
        let isShared = try await oneOfThree {
            let server = try await RedisServer()
            let fleet = try await Fleet(10, "limit", on: server, "500", "\(seconds)", "1")
            fleet.begin()
            let reports = await fleet.reports()
            let granted = reports.map { $0["granted"] ?? -1 }
            let total = granted.reduce(0, +)
            print("limit: \(total) permits in \(seconds) s, by process \(granted)")
            #expect(total <= most(of: 500, try span(reports)))
            let haveShares = granted.allSatisfy { abs($0 - 50 * seconds) <= 10 * seconds }
            return haveShares && Double(total) >= Double(500 * seconds) * Self.least
        }
        #expect(isShared)
    }

    @Test("ten processes with one rate limiter send 500 requests a second together") func sent() async throws {
        let seconds = TestLength.value(4, long: 60)
        let isReached = try await oneOfThree {
            let server = try await RedisServer()
            let times = Monitor<[Int]>([])
            let host = try LoopbackServer(recording: false) { _, _ in
                let time = Int(MonotonicTime.now())
                times.update { $0.append(time) }
                return .ok("sent")
            }
            let fleet = try await Fleet(10, "send", on: server, host.url("/"), "500", "\(seconds)")
            fleet.begin()
            let reports = await fleet.reports()
            let right = reports.map { $0["right"] ?? -1 }
            let all = times.read { $0.sorted() }
            #expect(right.reduce(0, +) == all.count)
            // From half a second after the first request until half a second before the last: all have begun, and none has ended.
            let first = try #require(all.first) + 500_000_000
            let window = (seconds - 1) * 1_000_000_000
            let total = all.count { $0 >= first && $0 < first + window }
            print("sent: \(total) requests in \(seconds - 1) s, by process \(right)")
            if TestLength.isLong { for count in right { #expect(abs(10 * count - all.count) <= all.count / 5) } }
            // At every request, not in a window: on a busy machine, requests that were delayed before it arrive in it.
            let began = try #require(reports.compactMap { $0["began"] }.min())
            for (index, time) in all.enumerated() where index >= most(of: 500, time - began) {
                Issue.record("\(index + 1) requests in \(time - began) ns")
            }
            return Double(total) >= Double(500 * (seconds - 1)) * Self.least
        }
        #expect(isReached)
    }

    @Test("leases of many permits keep the limit, with few calls") func leased() async throws {
        let isReached = try await oneOfThree {
            let server = try await RedisServer()
            let fleet = try await Fleet(4, "limit", on: server, "20000", "2", "200")
            fleet.begin()
            let reports = await fleet.reports()
            let total = reports.reduce(0) { $0 + ($1["granted"] ?? 0) }
            print("leased: \(total) permits in 2 s")
            #expect(total <= most(of: 20_000, try span(reports)))
            let count = try await calls(server.client())
            return total >= 30_000 && count < total / 20
        }
        #expect(isReached)
    }

    /// Returns whether one of three attempts comes up to what is expected: a machine that holds up the server or a process takes of its time.
    private func oneOfThree(_ attempt: () async throws -> Bool) async throws -> Bool {
        for _ in 0..<3 where try await attempt() { return true }
        return false
    }

    /// How many scripts the server has run.
    private func calls(_ client: RedisClient) async throws -> Int {
        let statistics = try #require(try await client.run(["INFO", "commandstats"]).text)
        let line = try #require(statistics.split(whereSeparator: \.isNewline).first { $0.hasPrefix("cmdstat_evalsha:") })
        return try #require(line.split { !$0.isNumber }.first.flatMap { Int($0) })
    }

    @Test("a request is one script call, and with leases of ten permits a tenth", arguments: [1, 10]) func callsOfRequests(_ lease: Int)
        async throws
    {
        let server = try await RedisServer()
        let client = try server.client()
        let limiter = RateLimiter(
            RateLimit(1_000_000, burst: 1_000), name: "calls", store: RedisRateLimitStore(client), leaseSize: lease)
        let host = try LoopbackServer { _, _ in .ok("sent") }
        let manager = makeManager { $0.use(Resilience(rateLimiter: limiter)) }
        for _ in 0..<100 { #expect(try await manager.request(host.url("/")).validate().serializingString().value == "sent") }
        // The first call finds that the server does not have the script, and a lease may end unused on a machine that is busy.
        #expect((100 / lease...100 / lease + 10).contains(try await calls(client)))
    }

    @Test("a burst is granted at once, and the next permit has to wait") func burst() async throws {
        let server = try await RedisServer()
        let store = RedisRateLimitStore(try server.client())
        let limit = RateLimit(10, per: .seconds(1_000), burst: 5)
        guard case .granted(5, let time) = try await store.acquire(8, of: "burst", limit: limit) else { return #expect(Bool(false)) }
        #expect(time >= .seconds(1))
        guard case .wait(let wait) = try await store.acquire(1, of: "burst", limit: limit) else { return #expect(Bool(false)) }
        #expect(wait > .seconds(80) && wait <= .seconds(100))
        guard case .granted(1, _) = try await store.acquire(1, of: "other", limit: limit) else { return #expect(Bool(false)) }
    }

    @Test("a server that is away, full or paused is an error in time, and the limit works again afterwards") func faults() async throws {
        let server = try await RedisServer()
        let client = try server.client(timeout: .milliseconds(20))
        let store = RedisRateLimitStore(client)
        let limit = RateLimit(1_000_000, burst: 1_000)
        func fails() async -> Bool {
            do { _ = try await store.acquire(1, of: "faults", limit: limit) } catch { return error is RedisError }
            return false
        }
        func recovers() async -> Bool {
            guard await client.becomesReady() else { return false }
            for _ in 0..<1_000 where await !fails() { return true }
            return false
        }
        #expect(await recovers())
        server.send(SIGSTOP)
        let start = ContinuousClock.now
        for _ in 0..<500 { #expect(await fails()) }
        // One timeout, and refusals at once: five hundred timeouts take 10 seconds.
        #expect(start.duration(to: .now) < .seconds(8))
        server.send(SIGCONT)
        #expect(await recovers())
        await server.kill()
        #expect(await eventually { client.refusal != nil })
        #expect(await fails())
        try await server.restart()
        #expect(await recovers())
        let patient = try server.client()
        _ = try await patient.run(["CONFIG", "SET", "maxmemory", "1"])
        #expect(await fails())
        _ = try await patient.run(["CONFIG", "SET", "maxmemory", "0"])
        #expect(await recovers())
        _ = try await patient.run(["SET", .text(client.key("limit1", "faults")), "no number"])
        #expect(await recovers())
    }
}
#endif
