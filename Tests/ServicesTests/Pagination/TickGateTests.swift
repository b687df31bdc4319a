// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

@testable import CurlewServices

private struct TickError: Error {}

@Suite(.timeLimit(.minutes(1)))
struct TickGateTests {
    @Test func ticksThatEndBeforeTheWaitEndIt() async throws {
        let gate = TickGate()
        gate.open()
        gate.tick()
        gate.end(with: nil)
        #expect(try await gate.wait())
        gate.open()
        #expect(try await !gate.wait())
    }

    @Test func anErrorOfTheTicksFollowsTheTickBeforeIt() async throws {
        let gate = TickGate()
        gate.open()
        gate.tick()
        gate.end(with: TickError())
        #expect(try await gate.wait())
        gate.open()
        await #expect(throws: TickError.self) { _ = try await gate.wait() }
    }

    @Test func ticksBeforeThePageAreIgnored() async throws {
        let gate = TickGate()
        gate.tick()
        gate.open()
        gate.end(with: nil)
        #expect(try await !gate.wait())
    }
}
