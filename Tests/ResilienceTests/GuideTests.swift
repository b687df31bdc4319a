// SPDX-License-Identifier: Apache-2.0
import CurlewResilience
import CurlewTestSupport
import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct GuideTests {
    @Test("every block of the article is compiled, and everything compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Resilience/CurlewResilience.docc/CurlewResilience.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("Guide.swift")) == [])
    }

    @Test("a refusal is told, and its time") func refusal() async throws {
        let breaker = CircuitBreaker(minimumCalls: 1, window: .count(1))
        let manager = SessionManager(mock: .status(500)) { $0.use(Resilience(breaker: breaker)) }
        await #expect(throws: CurlewError.self) { try await load("https://api.example.org/", with: manager) }
        #expect(try await load("https://api.example.org/", with: manager) == nil)
        makeManager().invalidateAndCancel()
    }
}
