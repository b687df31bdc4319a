// SPDX-License-Identifier: Apache-2.0
import CurlewResilience
import CurlewTestSupport
import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct SharedTransferTests {
    private let url = "https://api.example.org/large"

    @Test("a suspended member has the whole body later, and does not hold the others up") func suspended() async throws {
        let clock = VirtualClock()
        let body = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0) })
        let mock = MockTransport(.data(body).delayed(by: .seconds(1)), clock: clock)
        let manager = SessionManager(mock: mock) { configuration in
            var coalescing = Coalescing()
            coalescing.bufferSize = 8 << 20
            configuration.use(Resilience(coalescing: coalescing))
        }
        let slow = manager.request(url)
        let fast = manager.request(url)
        slow.suspend()
        async let first = fast.serializingData().value
        try await mock.waitForRequests(1)
        await clock.advance(by: .seconds(1))
        #expect(try await first == body)
        slow.resume()
        #expect(try await slow.serializingData().value == body)
        #expect(mock.requests.count == 1)
    }

    @Test("the transfer is cancelled with its last member, and a new request gets one of its own") func cancelled() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.text("ok").delayed(by: .seconds(1)), clock: clock)
        let manager = SessionManager(mock: mock) { $0.use(Resilience(coalescing: Coalescing())) }
        let members = [manager.request(url), manager.request(url)]
        try await mock.waitForRequests(1)
        for member in members { member.cancel() }
        for member in members { await #expect(throws: CurlewError.self) { try await member.serializingData().value } }
        let next = manager.request(url)
        async let value = next.serializingString().value
        try await mock.waitForRequests(2)
        await clock.advance(by: .seconds(1))
        #expect(try await value == "ok")
    }

    @Test("a second attempt leaves its place, so that later requests find one") func places() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(clock: clock)
        let manager = SessionManager(mock: mock) {
            $0.use(
                Resilience(
                    concurrency: ConcurrencyLimiter(.fixed(2), queueLimit: 0), hedging: Hedging(after: .fixed(.seconds(1)), extra: 1)))
        }
        for round in 1...5 {
            mock.enqueue(.text("slow").delayed(by: .seconds(10)), .text("fast"))
            let request = manager.request(url)
            async let value = request.serializingString().value
            try await mock.waitForRequests(2 * round - 1)
            await clock.advance(by: .seconds(1))
            #expect(try await value == "fast")
        }
        #expect(mock.requests.count == 10)
    }
}
