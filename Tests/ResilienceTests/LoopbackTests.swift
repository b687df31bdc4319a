// SPDX-License-Identifier: Apache-2.0
import CurlewLoopback
import CurlewResilience
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Each policy against a service that has trouble by a script, and the same without it. The figures are those of SCALE.md.
@Suite(.timeLimit(.minutes(1))) struct LoopbackTests {
    private func manager(_ resilience: Resilience, interceptor: (any RequestInterceptor)? = nil) -> SessionManager {
        let manager = makeManager { $0.use(resilience) }
        manager.interceptor = interceptor
        return manager
    }

    /// Sends requests one after the other; returns how many got a 200.
    private func served(_ count: Int, from url: String, by manager: SessionManager) async -> Int {
        var served = 0
        for _ in 0..<count {
            let data = try? await manager.request(url).validate().serializingData().value
            if data != nil { served += 1 }
        }
        return served
    }

    @Test("a dead service gets 10 of 200 requests with a breaker, and all without") func breaker() async throws {
        func reached(_ resilience: Resilience) async throws -> Int {
            let server = try LoopbackServer { _, _ in .status(503) }
            defer { server.stop() }
            #expect(await served(200, from: server.url("/"), by: manager(resilience)) == 0)
            return server.requestCount
        }
        #expect(try await reached(Resilience()) == 200)
        let breaker = CircuitBreaker(minimumCalls: 10, window: .count(10))
        #expect(try await reached(Resilience(breaker: breaker)) == 10)
    }

    @Test("50 requests to a failing service are 200 with three retries, and 60 with a budget of a fifth") func budget() async throws {
        func reached(_ resilience: Resilience) async throws -> Int {
            let server = try LoopbackServer { _, _ in .status(503) }
            defer { server.stop() }
            let retries = RetryPolicy(retryLimit: 3, exponentialBackoffScale: 0)
            #expect(await served(50, from: server.url("/"), by: manager(resilience, interceptor: retries)) == 0)
            return server.requestCount
        }
        #expect(try await reached(Resilience()) == 200)
        let budget = RetryBudget(.share(ratio: 0.2, minimum: 0, window: .seconds(600)))
        #expect(try await reached(Resilience(retryBudget: budget)) == 60)
    }

    @Test("while one response in six hangs, 17 of 20 requests are served, and all with hedging") func hedging() async throws {
        func answered(_ resilience: Resilience) async throws -> (early: Int, reached: Int) {
            let gate = Gate()
            let numbers = Monitor(0)
            let server = try LoopbackServer { _, _ in
                let number = numbers.update { number in
                    number += 1
                    return number
                }
                // A second attempt is never one of these: it follows the first.
                if number.isMultiple(of: 6) { _ = gate.wait() }
                return .ok("ok")
            }
            defer { server.stop() }
            let manager = manager(resilience)
            let early = Monitor(0)
            let url = server.url("/")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 1...20 {
                    let reached = server.requestCount
                    group.addTask {
                        _ = try await manager.request(url).serializingData().value
                        early.update { $0 += 1 }
                    }
                    // One at a time, unless it hangs.
                    #expect(await server.waitForRequests(reached + 1))
                    let hangs = resilience.hedging == nil && number.isMultiple(of: 6)
                    let wanted = resilience.hedging == nil ? number - number / 6 : number
                    if !hangs { #expect(await eventually { early.read { $0 } >= wanted }) }
                }
                let count = early.read { $0 }
                gate.open()
                try await group.waitForAll()
                early.update { $0 = count }
            }
            return (early.read { $0 }, server.requestCount)
        }
        let without = try await answered(Resilience())
        #expect(without.early == 17)
        #expect(without.reached == 20)
        let with = try await answered(Resilience(hedging: Hedging(after: .fixed(.milliseconds(50)), extra: 1)))
        #expect(with.early == 20)
        #expect(with.reached >= 23)
    }

    @Test("a service that allows 50 a second refuses requests of 300 at once, and none of 60 with a limiter") func limiter() async throws {
        func refused(_ count: Int, _ resilience: Resilience) async throws -> Int {
            let allowance = Monitor((tokens: 20.0, time: ContinuousClock.now))
            let server = try LoopbackServer { _, _ in
                allowance.update { state in
                    let now = ContinuousClock.now
                    state.tokens = min(state.tokens + state.time.duration(to: now) / .milliseconds(20), 20)
                    state.time = now
                    guard state.tokens >= 1 else { return .status(429) }
                    state.tokens -= 1
                    return .ok("ok")
                }
            }
            defer { server.stop() }
            let manager = manager(resilience)
            let url = server.url("/")
            let served = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<count {
                    group.addTask { (try? await manager.request(url).validate().serializingData().value) != nil }
                }
                return await group.reduce(0) { $1 ? $0 + 1 : $0 }
            }
            return count - served
        }
        #expect(try await refused(300, Resilience()) > 0)
        // Requests that left apart come together where a thread is held up: not each time.
        var counts: [Int] = []
        repeat {
            counts.append(try await refused(60, Resilience(rateLimiter: RateLimiter(RateLimit(40, burst: 5)))))
        } while counts.last != 0 && counts.count < 3
        #expect(counts.last == 0)
    }
}
