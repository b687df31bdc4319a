// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct VirtualClockTests {
    private let url = "https://api.example.org/"

    /// Retries after the given seconds, and then no more.
    private func retrier(_ delays: Double...) -> Retrier {
        Retrier { _, request, _ async in
            request.retryCount < delays.count ? .retry(after: .seconds(delays[Int(request.retryCount)])) : .doNotRetry
        }
    }

    @Test("delays before retries take no time, and pass on the clock") func retries() async throws {
        let clock = VirtualClock(.automatic)
        let manager = SessionManager(
            mock: .failure(.connect), .failure(.connect), .text("ok"), clock: clock, interceptor: retrier(60, 3600))
        let start = ContinuousClock.now
        #expect(try await manager.request(url).serializingString().value == "ok")
        #expect(clock.elapsed == .seconds(3660))
        #expect(start.duration(to: .now) < .seconds(20))
    }

    @Test("the same request a hundred times, the same times") func deterministic() async throws {
        for _ in 1...100 {
            let clock = VirtualClock(.automatic)
            let mock = MockTransport(
                .failure(.connect).delayed(by: .seconds(1)), .failure(.connect).delayed(by: .seconds(2)),
                .text("ok").delayed(by: .seconds(3)),
                clock: clock)
            let manager = SessionManager(mock: mock, interceptor: retrier(10, 20))
            #expect(try await manager.request(url).serializingString().value == "ok")
            #expect(clock.elapsed == .seconds(36))
        }
    }

    @Test("time passes by hand, through all retries that it reaches") func advance() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.failure(.connect), .failure(.connect), .failure(.connect), .text("ok"), clock: clock)
        let manager = SessionManager(mock: mock, interceptor: retrier(1, 2, 4))
        async let text = manager.request(url).serializingString().value
        try await mock.waitForRequests(1)
        await clock.advance(by: .milliseconds(999))
        #expect(mock.requests.count == 1)
        await clock.advance(by: .milliseconds(1))
        #expect(mock.requests.count == 2)
        await clock.advance(by: .seconds(6))
        #expect(mock.requests.count == 4)
        #expect(try await text == "ok")
        #expect(clock.elapsed == .seconds(7))
    }

    @Test("a deadline ends a stalled request and a delayed one; a retry after it is not waited for")
    func deadlines() async throws {
        for (responses, delays) in [
            ([MockResponse.stalled], []), ([.text("late").delayed(by: .seconds(11))], []), ([.failure(.connect)], [4.0, 8.0]),
        ] {
            let clock = VirtualClock(.automatic)
            let mock = MockTransport(responses[0], clock: clock)
            let manager = SessionManager(
                mock: mock,
                interceptor: Retrier { _, request, _ async in
                    request.retryCount < delays.count ? .retry(after: .seconds(delays[Int(request.retryCount)])) : .doNotRetry
                })
            let error = await manager.request(url, options: RequestOptions(deadline: .seconds(10))).serializingData().response.error
            guard case CurlewError.transferFailed(let failure)? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(failure.kind == (delays.isEmpty ? .deadline : .connect))
            #expect(clock.elapsed == .seconds(delays.isEmpty ? 10 : 4))
            #expect(mock.requests.count == max(1, delays.count))
        }
    }

    @Test("a request that is being handed to its transport holds time up") func starting() async throws {
        let clock = VirtualClock(.automatic)
        let transport = ScriptedTransport(clock: clock) { _ in
            // A jump of the clock would be to the deadline, soon.
            let end = ContinuousClock.now + .milliseconds(100)
            while clock.elapsed == .zero, ContinuousClock.now < end { Thread.sleep(forTimeInterval: 0.001) }
            return .response(200, [:], "ok")
        }
        var configuration = SessionConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "callbacks")
        configuration.virtualClock = clock
        let manager = SessionManager(configuration: configuration, transport: transport)
        #expect(try await manager.request(url, options: RequestOptions(deadline: .seconds(10))).serializingString().value == "ok")
        #expect(clock.elapsed == .zero)
    }

    @Test("a response before the deadline is one") func inTime() async throws {
        let clock = VirtualClock(.automatic)
        let manager = SessionManager(mock: .text("ok").delayed(by: .seconds(9)), clock: clock)
        #expect(try await manager.request(url, options: RequestOptions(deadline: .seconds(10))).serializingString().value == "ok")
        #expect(clock.elapsed == .seconds(9))
    }

    @Test("withDeadline counts on the clock that runs it, over several requests") func withDeadlines() async throws {
        let clock = VirtualClock(.automatic)
        let manager = SessionManager(mock: .text("ok").delayed(by: .seconds(4)), clock: clock)
        await clock.run {
            await withDeadline(.seconds(10)) {
                #expect(Deadline.current?.remaining == .seconds(10))
                for expected in ["ok", "ok", nil] {
                    #expect(await manager.request(url).serializingString().response.value == expected)
                }
                #expect(Deadline.current?.hasPassed == true)
            }
        }
        #expect(clock.elapsed == .seconds(10))
        #expect(Deadline.after(.seconds(1)).remaining > .zero)
    }

    @Test("pieces come at their times") func pieces() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.text("0123456789").inPieces(of: 5, every: .seconds(1)), clock: clock)
        let manager = SessionManager(mock: mock)
        var iterator = manager.streamRequest(url).bodyStream().makeAsyncIterator()
        try await mock.waitForRequests(1)
        await clock.advance(by: .seconds(1))
        #expect(try await iterator.next() == Data("01234".utf8))
        await clock.advance(by: .seconds(1))
        #expect(try await iterator.next() == Data("56789".utf8))
        #expect(try await iterator.next() == nil)
    }

    @Test("a suspended request does not hold time up") func suspended() async throws {
        let clock = VirtualClock()
        let manager = SessionManager(mock: .text("ok"), clock: clock)
        manager.startRequestsImmediately = false
        let request = manager.request(url)
        await clock.advance(by: .seconds(5))
        request.resume()
        request.suspend()
        await clock.advance(by: .seconds(5))
        #expect(clock.elapsed == .seconds(10))
        request.cancel()
    }

    @Test("the grace period of a shutdown passes on the clock") func shutdown() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(.stalled, clock: clock)
        let manager = SessionManager(mock: mock)
        async let response = manager.request(url).serializingData().response
        try await mock.waitForRequests(1)
        async let end: Void = manager.shutdown(gracePeriod: .seconds(3600))
        // Its wait begins in another task.
        #expect(await eventually { clock.waitCount > 0 })
        await clock.advance(by: .seconds(3600))
        await end
        guard case CurlewError.sessionShutDown? = await response.error else {
            Issue.record("not shut down")
            return
        }
    }

    @Test("sleeps end in the order of their times, or are cancelled") func sleeps() async throws {
        let clock = VirtualClock()
        let log = Log<Int>()
        let tasks = [3, 1, 2].map { seconds in
            Task {
                try await clock.sleep(for: .seconds(seconds))
                log.append(seconds)
            }
        }
        let cancelled = Task { try await clock.sleep(for: .seconds(1)) }
        #expect(await eventually { clock.waitCount == 4 })
        cancelled.cancel()
        let result = await cancelled.result
        #expect(throws: CancellationError.self) { try result.get() }
        #expect(clock.waitCount == 3)
        for count in 1...3 {
            await clock.advance(by: .seconds(1))
            await log.wait(for: count)
        }
        #expect(log.elements == [1, 2, 3])
        for task in tasks { try await task.value }
        try await clock.sleep(until: clock.now)
    }

    @Test("a network does not hold up time that is advanced, and stops time that passes by itself") func network() async throws {
        let gate = Gate()
        let server = try LoopbackServer { request, connection in
            guard request.path == "/silent" else { return .status(503) }
            connection.wait(until: gate)
            return .ok("ok")
        }
        defer { server.stop() }
        for mode in [VirtualClock.Mode.manual, .automatic] {
            let clock = VirtualClock(mode)
            var configuration = SessionConfiguration()
            configuration.proxy = .none
            configuration.virtualClock = clock
            let manager = SessionManager(configuration: configuration, interceptor: retrier(60))
            if mode == .automatic { gate.open() }
            let options = RequestOptions(deadline: .seconds(100))
            async let response = manager.request(server.url("/silent"), options: options).serializingString().response
            if mode == .manual {
                #expect(await gate.arrivals(1))
                await clock.advance(by: .seconds(100))
                #expect(await response.error != nil)
            } else {
                #expect(await response.value == "ok")
                #expect(clock.elapsed == .zero)
                _ = await manager.request(server.url("/503")).validate().serializingData().response
                #expect(clock.elapsed == .seconds(60))
            }
        }
    }

    @Test("a cancelled request leaves nothing that holds time up") func cancelled() async throws {
        let clock = VirtualClock(.automatic)
        let mock = MockTransport(.text("late").delayed(by: .seconds(5)), clock: clock)
        let manager = SessionManager(mock: mock)
        manager.startRequestsImmediately = false
        let request = manager.request(url)
        request.cancel()
        #expect(await request.serializingData().response.error != nil)
        #expect(clock.elapsed == .zero && clock.waitCount == 0)
        await clock.advance(by: .seconds(1))
        #expect(clock.elapsed == .seconds(1))
    }
}
