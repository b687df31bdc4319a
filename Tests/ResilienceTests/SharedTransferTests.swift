// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
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

    @Test("the delegate decides for each member what is stored of the response", arguments: [1, 3])
    func deciding(_ count: Int) async throws {
        let session = ScriptedSession(Resilience(coalescing: Coalescing())) {
            $0.urlCache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil)
        }
        let asked = Inbox<Int>()
        session.manager.delegate.dataTaskWillCacheResponse = { _, task, proposed, completion in
            asked.put(task.taskIdentifier)
            // The last one refuses.
            completion(asked.count % count == 0 ? nil : proposed)
        }
        for round in 0..<2 {
            let members = (0..<count).map { _ in session.request() }
            await session.exchange(round).respond(200, ["Cache-Control": "max-age=3600"], "\(round)")
            for member in members { #expect(try await member.serializingString().value == "\(round)") }
        }
        #expect(asked.count == 2 * count && Set(asked.all).count == 2 * count)
    }

    @Test("a stale response is validated before it is served if the delegate decides what is stored") func decidedValidation() async throws
    {
        let session = ScriptedSession(Resilience(coalescing: Coalescing())) {
            $0.urlCache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil)
        }
        let asked = Inbox<Int>()
        session.manager.delegate.dataTaskWillCacheResponse = { _, task, proposed, completion in
            asked.put(task.taskIdentifier)
            completion(proposed)
        }
        for round in 0..<2 {
            let request = session.request()
            await session.exchange(round).respond(200, ["Cache-Control": "max-age=60, stale-while-revalidate=60"], "\(round)")
            #expect(try await request.serializingString().value == "\(round)")
            await session.clock.advance(by: .seconds(61))
        }
        #expect(asked.count == 2)
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
