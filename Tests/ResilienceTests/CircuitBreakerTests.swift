// SPDX-License-Identifier: Apache-2.0
import CurlewResilience
import Testing

@Suite struct CircuitBreakerTests {
    private static func call(
        _ state: inout CircuitBreakerState, _ verdict: CircuitBreaker.Verdict, took: Duration = .zero, at now: Duration, random: Double = 0
    ) -> CircuitBreakerState.Change? {
        guard case .admitted(let ticket) = state.admit(at: now).admission else { return nil }
        return state.record(verdict, ticket, took: took, at: now, random: random)
    }

    @Test("99 failures do not open a breaker with the defaults, and the 100th does")
    func minimumOfCalls() {
        var state = CircuitBreakerState(CircuitBreaker())
        for _ in 0..<99 { #expect(Self.call(&state, .failure, at: .zero) == nil) }
        #expect(state.phase == .closed)
        #expect(Self.call(&state, .failure, at: .zero)?.to == .open)
    }
}
