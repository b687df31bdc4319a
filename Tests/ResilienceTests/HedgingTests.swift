// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewResilience

/// What happens to a request that may be sent twice, before its second attempt is due, while two run, and after.
@Suite(.timeLimit(.minutes(1))) struct HedgingTests {
    private static let policies = Resilience(hedging: Hedging(after: .fixed(.seconds(1)), extra: 1))
    private let session = ScriptedSession(Self.policies)

    /// Starts a request, and lets time pass until its second attempt is due.
    private func hedged(_ request: DataRequest, from index: Int = 0, in session: ScriptedSession) async -> [ScriptedExchange] {
        let first = await session.exchange(index)
        await session.clock.advance(by: .seconds(1))
        return [first, await session.exchange(index + 1)]
    }

    // MARK: Before it is due

    @Test("a head before the second attempt is due is the only one, however late the body is") func early() async throws {
        let request = session.request()
        let first = await session.exchange(0)
        await session.clock.advance(by: .milliseconds(999))
        first.perform(.head(200))
        await session.clock.advance(by: .seconds(10))
        first.perform(.bytes(Data("early".utf8)), .complete())
        #expect(try await request.serializingString().value == "early")
        #expect(session.count == 1 && session.events.all.isEmpty)
    }

    @Test("a failure before the second attempt is due fails the request") func earlyFailure() async {
        let request = session.request()
        await session.exchange(0).perform(.complete(CurlewError.failure(.connectionLost)))
        #expect(await fails(request) { failureKind($0) == .connectionLost })
        await session.clock.advance(by: .seconds(10))
        #expect(session.count == 1 && session.events.all.isEmpty)
    }

    @Test("a request that is cancelled before has no second attempt") func cancelledBefore() async {
        let request = session.request()
        let first = await session.exchange(0)
        await session.clock.advance(by: .milliseconds(999))
        request.cancel()
        #expect(await fails(request, isCancelled))
        #expect(first.isOver)
        await session.clock.advance(by: .seconds(10))
        #expect(session.count == 1 && session.events.all.isEmpty)
    }

    @Test("a request that is cancelled while its attempt is started ends, whichever of the two that is", arguments: [1, 2])
    func cancelledWithin(_ attempt: Int) async {
        let requests = Inbox<DataRequest>()
        let starts = Monitor(0)
        session.transport.onStart { _ in
            let number = starts.update { starts in
                starts += 1
                return starts
            }
            if number == attempt { requests.all.first?.cancel() }
        }
        session.manager.startRequestsImmediately = false
        let request = session.request()
        requests.put(request)
        request.resume()
        let first = await session.exchange(0)
        await session.clock.advance(by: .seconds(1))
        #expect(await fails(request, isCancelled))
        #expect(await eventually { first.isOver })
        if attempt == 2 {
            let second = await session.exchange(1)
            #expect(await eventually { second.isOver })
        }
        #expect(session.count == attempt)
        requests.empty()
    }

    @Test("a suspended request has no second attempt, and its first one counts when it is resumed") func suspendedBefore() async throws {
        let request = session.request()
        let first = await session.exchange(0)
        request.suspend()
        await session.clock.advance(by: .seconds(10))
        #expect(session.count == 1 && first.isSuspended)
        request.resume()
        #expect(await eventually { !first.isSuspended })
        first.respond(200, [:], "late")
        #expect(try await request.serializingString().value == "late")
        #expect(session.count == 1 && session.events.all.isEmpty)
    }

    @Test("a request that is suspended, was cancelled or has its response is not sent again") func otherCalls() async throws {
        let requests = (0..<60).map { session.request("\($0)") }
        for index in 0..<50 { await session.exchange(index).perform(.head(200)) }
        requests[55].suspend()
        for index in 0..<50 { requests[index].suspend() }
        requests[57].suspend()
        requests[57].resume()
        requests[58].cancel()
        #expect(await fails(requests[58], isCancelled))
        await session.clock.advance(by: .seconds(1))
        let second = session.transport.started.all.dropFirst(60).map { $0.request.url.suffix(2) }.sorted()
        #expect(second == ["50", "51", "52", "53", "54", "56", "57", "59"])
        for index in requests.indices where index != 58 {
            requests[index].resume()
            let exchange = await session.exchange(index)
            #expect(await eventually { !exchange.isSuspended })
            if index >= 50 { exchange.perform(.head(200)) }
            exchange.perform(.complete())
            #expect(try await requests[index].serializingData().value.isEmpty)
        }
    }

    @Test("each request is sent again when it is due") func together() async throws {
        var requests = (0..<3).map { session.request("\($0)") }
        await session.clock.advance(by: .milliseconds(400))
        requests.append(session.request("3"))
        await session.clock.advance(by: .milliseconds(300))
        requests.append(session.request("4"))
        await session.clock.advance(by: .milliseconds(299))
        #expect(session.count == 5)
        for (time, count) in [(1, 8), (399, 8), (1, 9), (299, 9), (1, 10)] {
            await session.clock.advance(by: .milliseconds(time))
            #expect(session.count == count)
        }
        let urls = session.transport.started.all.dropFirst(5).map { String($0.request.url.suffix(1)) }
        #expect(urls.sorted() == ["0", "1", "2", "3", "4"])
        for (index, url) in urls.enumerated() { await session.exchange(index + 5).respond(200, [:], "second \(url)") }
        for (index, request) in requests.enumerated() { #expect(try await request.serializingString().value == "second \(index)") }
        #expect(session.events.count { $0.action == .hedgeWon } == 5)
        #expect(session.transport.started.all.allSatisfy { $0.isOver })
    }

    @Test("requests that have ended are not sent again, those between them are") func leaving() async throws {
        let requests = (0..<5).map { session.request("\($0)") }
        await session.exchange(2).respond(200, [:], "2")
        await session.exchange(4).respond(200, [:], "4")
        requests[0].cancel()
        #expect(await fails(requests[0], isCancelled))
        for index in [2, 4] { #expect(try await requests[index].serializingString().value == "\(index)") }
        await session.clock.advance(by: .seconds(1))
        #expect(session.transport.started.all.dropFirst(5).map { $0.request.url.suffix(1) }.sorted() == ["1", "3"])
        for index in [5, 6] { await session.exchange(index).respond() }
        for index in [1, 3] { #expect(try await requests[index].serializingData().value.isEmpty) }
    }

    // MARK: While two run

    // A3.1
    @Test("each attempt has a signature of its own") func signed() async throws {
        final class Numbering: ExchangeSigner {
            let identity = "key"
            private let count = Monitor(0)

            func sign(_ exchange: SignableExchange) -> HTTPHeaders {
                ["X-Signature": "\(count.update { count in count += 1; return count })"]
            }
        }
        let attempts = await hedged(session.request(options: RequestOptions(signer: Numbering())), in: session)
        #expect(attempts.map { $0.request.headers["X-Signature"] } == ["1", "2"])
        attempts[1].respond()
    }

    @Test("cancelling a request cancels both of its attempts") func cancelledBoth() async {
        let request = session.request()
        let attempts = await hedged(request, in: session)
        request.cancel()
        #expect(await fails(request, isCancelled))
        #expect(attempts.allSatisfy { $0.isOver })
        #expect(session.events.all.map(\.action) == [.hedged(after: .seconds(1))])
    }

    @Test("suspending a request suspends both of its attempts") func suspendedBoth() async throws {
        let request = session.request()
        let attempts = await hedged(request, in: session)
        request.suspend()
        #expect(await eventually { attempts.allSatisfy { $0.isSuspended } })
        request.resume()
        #expect(await eventually { !attempts.contains { $0.isSuspended } })
        attempts[1].respond(200, [:], "second")
        #expect(try await request.serializingString().value == "second")
        #expect(attempts[0].isOver)
    }

    @Test("a request that is suspended while its second attempt is started suspends that as well") func suspendedWithin() async throws {
        let requests = Inbox<DataRequest>()
        session.transport.onStart { _ in requests.all.first?.suspend() }
        let request = session.request()
        _ = await session.exchange(0)
        requests.put(request)
        let attempts = await hedged(request, in: session)
        #expect(await eventually { attempts.allSatisfy { $0.isSuspended } })
        requests.empty()
        request.resume()
        #expect(await eventually { !attempts.contains { $0.isSuspended } })
        attempts[0].respond(200, [:], "first")
        #expect(try await request.serializingString().value == "first")
        #expect(await eventually { attempts[1].isOver })
    }

    @Test("of two attempts, the interim responses of the one that responds are received, and those before the second", arguments: [0, 1])
    func interim(winner: Int) async throws {
        func step(_ number: Int) -> ScriptedTransport.Step { .interim(ResponseHead(statusCode: 103, headers: ["X-Number": "\(number)"])) }
        let request = session.request()
        let received = Inbox<String>()
        request.onInterimResponse { received.put($0.value(for: "X-Number") ?? "") }
        let first = await session.exchange(0)
        first.perform(step(1))
        #expect(await received.first(1) == ["1"])
        let attempts = await hedged(request, in: session)
        attempts[1].perform(step(12), step(13))
        attempts[0].perform(step(2), step(3))
        attempts[winner].respond(200, [:], "body")
        #expect(try await request.serializingString().value == "body")
        #expect(await received.first(3) == (winner == 0 ? ["1", "2", "3"] : ["1", "12", "13"]))
        #expect(received.count == 3)
    }

    @Test("if both attempts fail, the interim responses of the first are received") func interimOfFailure() async {
        let request = session.request()
        let attempts = await hedged(request, in: session)
        for (attempt, status) in zip(attempts, [103, 102]) {
            attempt.perform(.interim(ResponseHead(statusCode: status)), .complete(CurlewError.failure(.connectionLost)))
        }
        #expect(await fails(request) { failureKind($0) == .connectionLost })
        #expect(await request.interimResponses.reduce(into: []) { $0.append($1.statusCode) } == [103])
    }

    @Test("a first attempt that fails leaves the decision to the second one", arguments: [true, false])
    func firstFails(secondResponds: Bool) async throws {
        let request = session.request()
        let attempts = await hedged(request, in: session)
        attempts[0].perform(.complete(CurlewError.failure(.connectionLost)))
        if secondResponds {
            attempts[1].respond(200, [:], "second")
            #expect(try await request.serializingString().value == "second")
        } else {
            attempts[1].perform(.complete(CurlewError.failure(.idleTimeout)))
            #expect(await fails(request) { failureKind($0) == .connectionLost })
        }
        #expect(session.count == 2)
    }

    @Test("a second attempt that fails leaves the decision to the first one") func secondFails() async throws {
        let request = session.request()
        let attempts = await hedged(request, in: session)
        attempts[1].perform(.complete(CurlewError.failure(.connectionLost)))
        attempts[0].respond(200, [:], "first")
        #expect(try await request.serializingString().value == "first")
    }

    @Test("a reader that is slow pauses and resumes the attempt that has won") func slowReader() async throws {
        let request = session.manager.streamRequest("https://api.example.org/a")
        let attempts = await hedged(request, in: session)
        let piece = Data(repeating: 7, count: 1 << 20)
        attempts[1].perform(.head(200))
        #expect(await eventually { attempts[0].isOver })
        var sent = 0
        while !attempts[1].isPaused, sent < 64 {
            attempts[1].perform(.bytes(piece))
            sent += 1
        }
        #expect(attempts[1].isPaused)
        attempts[1].add([.complete()])
        var received = 0
        for try await bytes in request.bodyStream() { received += bytes.count }
        #expect(received == sent << 20)
    }

    @Test("a body in memory is sent by both attempts, and one that can't be repeated by one only") func bodies() async throws {
        let body = Data("body".utf8)
        let upload = session.manager.upload(body, to: "https://api.example.org/a", method: .put)
        let attempts = await hedged(upload, in: session)
        for attempt in attempts.reversed() { attempt.perform(.sendBody, .head(200), .complete()) }
        #expect(try await upload.serializingData().value.isEmpty)
        #expect(attempts[1].sentBody == body)
        let stream = session.manager.upload(InputStream(data: body), to: "https://api.example.org/a", method: .put)
        let only = await session.exchange(2)
        await session.clock.advance(by: .seconds(10))
        only.perform(.sendBody, .head(200), .complete())
        #expect(try await stream.serializingData().value.isEmpty)
        #expect(session.count == 3)
    }

    // MARK: The session's end

    @Test("a session that ends ends both attempts, and sends no more") func invalidated() async {
        let early = session.request("early")
        let attempts = await hedged(early, in: session)
        let late = session.request("late")
        let third = await session.exchange(2)
        session.manager.invalidateAndCancel()
        for request in [early, late] { #expect(await fails(request, isInvalidated)) }
        #expect((attempts + [third]).allSatisfy { $0.isOver })
        await session.clock.advance(by: .seconds(10))
        #expect(session.count == 3)
    }

    @Test("a session that shuts down lets second attempts be sent until its grace period ends", arguments: [true, false])
    func shutDown(responds: Bool) async throws {
        let request = session.request()
        let first = await session.exchange(0)
        let manager = session.manager
        let end = Task { await manager.shutdown(gracePeriod: .seconds(5)) }
        // One for the second attempt, one for the end of the grace period.
        #expect(await eventually { session.clock.waitCount == 2 })
        await session.clock.advance(by: .seconds(1))
        let second = await session.exchange(1)
        if responds {
            second.respond(200, [:], "second")
            #expect(try await request.serializingString().value == "second")
        } else {
            async let isEnded = fails(request) { if case CurlewError.sessionShutDown = $0 { true } else { false } }
            try await session.clock.advance(toWaitAt: .seconds(5))
            #expect(await isEnded)
        }
        await end.value
        #expect(await eventually { first.isOver && second.isOver })
        #expect(session.count == 2)
    }

    /// Fails with no observer: the alarm of a group whose delay becomes shorter is replaced by an earlier one.
    @Test("an ended session leaves no alarm behind that retains its policies", arguments: [1, 2]) func alarms(_ groups: Int) async throws {
        weak var events: Events?
        let clock = VirtualClock()
        do {
            let policies = Resilience(hedging: Hedging(after: .percentile(0.5), extra: 1))
            let session = ScriptedSession(policies) { $0.virtualClock = clock }
            events = session.events
            for group in 0..<groups {
                let base = "https://host\(group).example.org/"
                /// Sends requests that take that long.
                func send(_ count: Int, _ time: Duration) async throws {
                    let start = session.count
                    let requests = (0..<count).map { _ in session.manager.request(base) }
                    await clock.advance(by: time)
                    for index in start..<(start + count) { await session.exchange(index).respond() }
                    for request in requests { _ = try await request.serializingData().value }
                }
                try await send(20, .seconds(100))
                _ = session.manager.request(base)
                try await send(50, .milliseconds(10))
                _ = session.manager.request(base)
            }
            session.manager.invalidateAndCancel()
        }
        #expect(await eventually { events == nil })
    }

    @Test("the timer of a group outlives the session that has set it, for the others of its configuration") func sharedTimer()
        async throws
    {
        let clock = VirtualClock()
        var configuration = SessionConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "callbacks")
        configuration.virtualClock = clock
        configuration.use(Self.policies)
        let transports = (ScriptedTransport(clock: clock), ScriptedTransport(clock: clock))
        let other = SessionManager(configuration: configuration, transport: transports.1)
        let request: DataRequest
        do {
            let first = SessionManager(configuration: configuration, transport: transports.0)
            let ended = first.request("https://api.example.org/a")
            _ = await transports.0.started[0]
            await clock.advance(by: .milliseconds(400))
            request = other.request("https://api.example.org/a")
            _ = await transports.1.started[0]
            first.invalidateAndCancel()
            #expect(await fails(ended) { _ in true })
        }
        await clock.advance(by: .milliseconds(600))
        #expect((transports.0.started.count, transports.1.started.count) == (1, 1))
        await clock.advance(by: .milliseconds(400))
        await transports.1.started[1].respond(200, [:], "second")
        #expect(try await request.serializingString().value == "second")
    }

    // MARK: Follow-ups and retries

    @Test("a redirect by the second attempt is followed once, by an exchange that may be sent twice itself") func redirected() async throws
    {
        let request = session.request()
        let attempts = await hedged(request, in: session)
        attempts[1].perform(.head(302, ["Location": "/b"]), .complete())
        let next = await session.exchange(2)
        #expect(await eventually { attempts[0].isOver })
        #expect(next.request.url == "https://api.example.org/b")
        await session.clock.advance(by: .seconds(1))
        let again = await session.exchange(3)
        #expect(again.request.url == "https://api.example.org/b")
        next.respond(200, [:], "followed")
        #expect(try await request.serializingString().value == "followed")
        #expect(await eventually { again.isOver })
        #expect(session.count == 4)
    }

    @Test("a retry is an exchange of its own, which may be sent twice") func retried() async throws {
        let session = ScriptedSession(Self.policies, interceptor: RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0))
        let request = session.request().validate()
        async let value = request.serializingString().value
        let attempts = await hedged(request, in: session)
        attempts[0].respond(503)
        let retry = await session.exchange(2)
        #expect(await eventually { attempts[1].isOver })
        await session.clock.advance(by: .seconds(1))
        let last = await session.exchange(3)
        last.respond(200, [:], "retried")
        #expect(try await value == "retried")
        #expect(retry.isOver && session.count == 4)
        #expect(session.events.all.map(\.action) == [.hedged(after: .seconds(1)), .hedged(after: .seconds(1)), .hedgeWon])
    }

    @Test("the request's deadline ends all attempts, or comes before the second one", arguments: [500, 1_500])
    func deadline(_ milliseconds: Int) async {
        let request = session.request(options: RequestOptions(deadline: .milliseconds(milliseconds)))
        _ = await session.exchange(0)
        await session.clock.advance(by: .milliseconds(milliseconds))
        #expect(await fails(request) { failureKind($0) == .deadline })
        #expect(session.count == (milliseconds > 1_000 ? 2 : 1))
        #expect(await eventually { session.transport.started.all.allSatisfy { $0.isOver } })
        await session.clock.advance(by: .seconds(10))
        #expect(session.count == (milliseconds > 1_000 ? 2 : 1))
    }

    // MARK: Other policies

    @Test("a second attempt needs a place and a permit at once, and is refused without") func room() async throws {
        for (limiter, places) in [(nil, ConcurrencyLimiter(.fixed(1))), (RateLimiter(RateLimit(1, per: .seconds(100), burst: 1)), nil)] {
            let session = ScriptedSession(
                Resilience(rateLimiter: limiter, concurrency: places, hedging: Hedging(after: .fixed(.seconds(1)), extra: 1)))
            let request = session.request()
            let first = await session.exchange(0)
            await session.clock.advance(by: .seconds(2))
            #expect(session.count == 1)
            #expect(session.events.all.map(\.action) == [.refused(retryAfter: nil)])
            first.respond(200, [:], "first")
            #expect(try await request.serializingString().value == "first")
        }
    }

    @Test("two attempts are one call of the breaker, and give back both of their places", arguments: [200, 500])
    func held(_ status: Int) async throws {
        let session = ScriptedSession(
            Resilience(
                breaker: CircuitBreaker(minimumCalls: 1, window: .count(1)), concurrency: ConcurrencyLimiter(.fixed(2)),
                hedging: Hedging(after: .fixed(.seconds(1)), extra: 1)))
        let request = session.request()
        let attempts = await hedged(request, in: session)
        let other = status == 200 ? session.request("other") : nil
        #expect(session.count == 2)
        attempts[1].respond(status, [:], "second")
        #expect(try await request.serializingString().value == "second")
        #expect(attempts[0].isOver)
        let changes = session.events.all.map(\.action).filter { if case .changed = $0 { true } else { false } }
        #expect(changes == (status == 200 ? [] : [.changed(from: .closed, to: .open)]))
        guard let other else { return }
        await session.exchange(2).respond(200, [:], "other")
        #expect(try await other.serializingString().value == "other")
    }

    @Test("at most the share of requests is sent twice that the policy allows") func budget() async throws {
        let session = ScriptedSession(Resilience(hedging: Hedging(after: .fixed(.seconds(1)), extra: 0.1)))
        let requests = (0..<30).map { session.request("\($0)") }
        await session.clock.advance(by: .seconds(1))
        #expect(session.count == 33)
        #expect(session.events.count { $0.action == .hedged(after: .seconds(1)) } == 3)
        #expect(session.events.count { $0.policy == .hedging && $0.action == .refused(retryAfter: nil) } == 27)
        for index in 0..<30 { await session.exchange(index).respond() }
        for request in requests { #expect(try await request.serializingData().value.isEmpty) }
    }

    @Test("a second attempt that the policy's share does not allow takes no permit") func unusedPermit() async throws {
        let limiter = RateLimiter(RateLimit(2, per: .seconds(1_000), burst: 2), maximumWait: .zero)
        let session = ScriptedSession(Resilience(rateLimiter: limiter, hedging: Hedging(after: .fixed(.seconds(1)), extra: 0)))
        let first = session.request("first")
        _ = await session.exchange(0)
        await session.clock.advance(by: .seconds(1))
        #expect(session.count == 1 && session.events.all.map(\.policy) == [.hedging])
        let second = session.request("second")
        #expect(await eventually { session.count == 2 || session.events.count { $0.policy == .rateLimiter } > 0 })
        #expect(session.events.count { $0.policy == .rateLimiter } == 0)
        for started in session.transport.started.all { started.respond(200, [:], "ok") }
        #expect(try await first.serializingString().value == "ok")
        #expect(try await second.serializingString().value == "ok")
    }

    @Test("a leased permit that is given back is there again") func leasedPermit() {
        struct Store: RateLimitStore {
            func acquire(_ count: Int, of key: String, limit: RateLimit) async throws -> RateLimitGrant { .wait(.seconds(1)) }
        }
        var state = RateState(RateLimiter(RateLimit(1), store: Store()))
        (state.leased, state.leaseEnd) = (1, .seconds(10))
        var granted: [Bool] = []
        granted.append(state.acquireNow(at: .zero))
        granted.append(state.acquireNow(at: .zero))
        state.giveBack(state.ownPermit)
        granted.append(state.acquireNow(at: .zero))
        #expect(granted == [true, false, true])
        state.leased = .max
        state.giveBack(.leased)
        #expect(state.leased == .max)
    }

    @Test("a percentile does not depend on those asked for before", arguments: 0..<20) func percentiles(_ seed: Int) {
        var random = SplitMix(state: UInt64(seed))
        var (asked, fresh) = (LatencyHistogram(), LatencyHistogram())
        for _ in 0..<1_500 {
            let latency = Duration.microseconds(Int.random(in: 1...1_000_000, using: &random))
            asked.add(latency)
            fresh.add(latency)
            _ = asked.percentile(Double.random(in: 0...1, using: &random))
        }
        for part in [0, 0.01, 0.5, 0.95, 1] {
            var copy = fresh
            #expect(asked.percentile(part) == copy.percentile(part))
        }
    }
}
