// SPDX-License-Identifier: Apache-2.0
import CurlewResilience
import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct CircuitBreakerTests {
    private static func call(
        _ state: inout CircuitBreakerState, _ verdict: CircuitBreaker.Verdict, took: Duration = .zero, at now: Duration = .zero,
        random: Double = 0
    ) -> CircuitBreaker.Phase? {
        guard case .admitted(let ticket) = state.admit(at: now).admission else { return nil }
        return state.record(verdict, ticket, took: took, at: now, random: random)?.to
    }

    private static func breaker(_ change: (inout CircuitBreaker) -> Void = { _ in }) -> CircuitBreakerState {
        var breaker = CircuitBreaker(minimumCalls: 4, window: .count(4), openDuration: .seconds(10), trialCalls: 2)
        change(&breaker)
        return CircuitBreakerState(breaker)
    }

    @Test("99 failures do not open a breaker with the defaults, and the 100th does") func minimumOfCalls() {
        var state = CircuitBreakerState(CircuitBreaker())
        for _ in 0..<99 { #expect(Self.call(&state, .failure) == nil) }
        #expect(state.phase == .closed)
        #expect(Self.call(&state, .failure) == .open)
    }

    @Test("half of the calls failing opens it, fewer do not") func rate() {
        var state = Self.breaker()
        for verdict in [CircuitBreaker.Verdict.success, .success, .success, .failure] { #expect(Self.call(&state, verdict) == nil) }
        // The window slides: the last four are two successes and two failures.
        #expect(Self.call(&state, .failure) == .open)
    }

    @Test("slow calls open it by a rate of their own") func slowCalls() {
        var state = Self.breaker { $0.slowCallDuration = .seconds(1) }
        for _ in 0..<3 { #expect(Self.call(&state, .success, took: .seconds(1)) == nil) }
        #expect(Self.call(&state, .success, took: .seconds(2)) == .open)
    }

    @Test("open, it refuses with the time until the next trial, lengthened by the jitter") func refusal() {
        var state = Self.breaker()
        for _ in 0..<4 { _ = Self.call(&state, .failure, at: .seconds(1), random: 1) }
        #expect(state.admit(at: .seconds(4)).admission == .refused(retryAfter: .seconds(9)))
    }

    @Test("a jitter that is no number lengthens nothing", arguments: [(.nan, 1), (0.2, .nan)] as [(Double, Double)])
    func noNumber(jitter: Double, random: Double) {
        var state = Self.breaker { $0.jitter = jitter }
        for _ in 0..<4 { _ = Self.call(&state, .failure, at: .seconds(1), random: random) }
        #expect(state.admit(at: .seconds(4)).admission == .refused(retryAfter: .seconds(7)))
    }

    @Test("half-open, it sends the trials and no more; if they succeed it closes") func trials() {
        var state = Self.breaker()
        for _ in 0..<4 { _ = Self.call(&state, .failure) }
        let (first, change) = state.admit(at: .seconds(10))
        #expect(change?.to == .halfOpen)
        let (second, _) = state.admit(at: .seconds(10))
        #expect(state.admit(at: .seconds(10)).admission == .refused(retryAfter: nil))
        guard case .admitted(let one) = first, case .admitted(let two) = second else { return #expect(Bool(false), "trials were refused") }
        // A trial that tells nothing gives its place back.
        #expect(state.record(.ignored, one, took: .zero, at: .seconds(10), random: 0) == nil)
        #expect(Self.call(&state, .success, at: .seconds(11)) == nil)
        #expect(state.record(.success, two, took: .zero, at: .seconds(11), random: 0)?.to == .closed)
        for _ in 0..<3 { #expect(Self.call(&state, .failure, at: .seconds(12)) == nil) }
    }

    @Test("failed trials open it again, and calls of an earlier phase do not count") func failedTrials() {
        var state = Self.breaker()
        guard case .admitted(let old) = state.admit(at: .zero).admission else { return #expect(Bool(false), "it is closed") }
        for _ in 0..<4 { _ = Self.call(&state, .failure) }
        #expect(state.record(.failure, old, took: .zero, at: .seconds(1), random: 0) == nil)
        #expect(Self.call(&state, .failure, at: .seconds(10)) == nil)
        #expect(Self.call(&state, .failure, at: .seconds(10)) == .open)
        #expect(state.opensUntil == .seconds(20))
    }

    @Test("a window of time forgets what is older") func timeWindow() {
        var state = Self.breaker { $0.window = .time(.seconds(10)) }
        for _ in 0..<3 { #expect(Self.call(&state, .failure, at: .zero) == nil) }
        #expect(Self.call(&state, .failure, at: .seconds(60)) == nil)
        for _ in 0..<2 { #expect(Self.call(&state, .failure, at: .seconds(61)) == nil) }
        #expect(Self.call(&state, .failure, at: .seconds(62)) == .open)
    }

    @Test("statuses and errors count as documented") func verdicts() {
        func verdict(_ status: Int?, _ error: (any Error)? = nil) -> CircuitBreaker.Verdict {
            CircuitBreaker.defaultVerdict(PolicyOutcome(statusCode: status, error: error))
        }
        #expect([200, 404, 429, 501].allSatisfy { verdict($0) == .success })
        #expect([500, 502, 503, 504].allSatisfy { verdict($0) == .failure })
        #expect(verdict(nil, CurlewError.cancelled) == .ignored)
        let lost = TransferFailure(kind: .connectionLost, url: "http://example.org/", phase: .waiting, message: "lost")
        #expect(verdict(nil, CurlewError.transferFailed(lost)) == .failure)
    }

    @Test("what other processes publish opens it and ends its pause") func shared() {
        var state = Self.breaker()
        #expect(state.open(for: .seconds(5), at: .seconds(1))?.to == .open)
        #expect(state.open(for: .seconds(50), at: .seconds(2)) == nil)
        #expect(state.admit(at: .seconds(3)).admission == .refused(retryAfter: .seconds(3)))
        state.endPause(at: .seconds(4))
        #expect(state.admit(at: .seconds(4)).change?.to == .halfOpen)
    }

    @Test("a verdict of the user's own counts for statuses that are no failure by default, and the other way round") func verdicts() async {
        var breaker = CircuitBreaker(minimumCalls: 1, window: .count(1))
        breaker.classify = { $0.statusCode == 200 ? .failure : .success }
        let manager = SessionManager(mock: MockTransport(.status(500), .status(501), .status(200))) { [breaker] in
            $0.use(Resilience(breaker: breaker))
        }
        func status() async -> Int? { await manager.request("https://example.org/a").serializingData().response.response?.statusCode }
        for expected in [500, 501, 200, nil] { #expect(await status() == expected) }
    }

    @Test("a host whose name begins like that of another one has a group of its own") func groups() async throws {
        let manager = SessionManager(mock: .status(500)) { $0.use(Resilience(breaker: CircuitBreaker(minimumCalls: 1, window: .count(1)))) }
        func status(_ url: String) async -> Int? { await manager.request(url).serializingData().response.response?.statusCode }
        #expect(await status("https://example.org/a") == 500)
        #expect(await status("https://example.org/b") == nil)
        for other in ["https://example.org.test/a", "https://example.org:444/", "http://example.org/", "https://example.or/"] {
            #expect(await status(other) == 500)
            #expect(await status(other) == nil)
        }
        #expect(await status("https://EXAMPLE.org") == nil)
    }
}
