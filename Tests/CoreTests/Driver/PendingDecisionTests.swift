// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct PendingDecisionTests {
    private let success = TransferOutcome(error: nil, metrics: TransferMetrics())
    private let failure = TransferOutcome(error: CurlewError.cancelled, metrics: TransferMetrics())

    /// `#expect` can't call what changes a value.
    private func isTrue(_ condition: Bool) -> Bool { condition }

    @Test("a completion waits for nothing without a decision") func waitsForNothing() {
        var decision = PendingDecision()
        #expect(isTrue(decision.transferCompleted(success)))
        #expect(isTrue(decision.abandon() == nil))
    }

    @Test("a transfer is resumed by its decision") func isResumedByItsDecision() {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(decision.decided(number)))
        guard case .resume = decision.applied() else { return #expect(Bool(false), "the transfer was not over") }
        #expect(isTrue(decision.transferCompleted(success)))
    }

    @Test("a complete response waits for its decision") func completeResponseWaits() {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(!decision.transferCompleted(success)))
        #expect(isTrue(decision.decided(number)))
        guard case .complete(let outcome) = decision.applied() else { return #expect(Bool(false), "the transfer was over") }
        #expect(outcome.error == nil)
    }

    @Test("a failure does not wait for the decision") func failureDoesNotWait() {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(decision.transferCompleted(failure)))
        #expect(isTrue(!decision.decided(number)))
    }

    @Test("a completion waits for a decision that is being applied", arguments: [true, false])
    func waitsForApplication(_ isFailure: Bool) {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(decision.decided(number)))
        #expect(isTrue(!decision.transferCompleted(isFailure ? failure : success)))
        guard case .complete(let outcome) = decision.applied() else { return #expect(Bool(false), "the transfer was over") }
        #expect((outcome.error != nil) == isFailure)
    }

    @Test("a response that is prepared without a decision holds its completion back", arguments: [true, false])
    func preparation(_ isFailure: Bool) {
        var decision = PendingDecision()
        decision.beginApplying()
        #expect(isTrue(!decision.transferCompleted(isFailure ? failure : success)))
        #expect(isTrue(decision.abandon() == nil))
        guard case .complete(let outcome) = decision.applied() else { return #expect(Bool(false), "the transfer had completed") }
        #expect((outcome.error != nil) == isFailure)
    }

    @Test("one decision counts, and only in its time") func oneDecisionCounts() {
        var decision = PendingDecision()
        let first = decision.begin()
        #expect(isTrue(decision.decided(first)))
        #expect(isTrue(!decision.decided(first)))
        _ = decision.applied()
        #expect(isTrue(!decision.decided(first)))
        let second = decision.begin()
        #expect(isTrue(!decision.decided(first)))
        #expect(isTrue(decision.decided(second)))
    }

    @Test("abandoning a decision returns the completion that waited, once") func abandons() {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(decision.abandon() == nil))
        #expect(isTrue(!decision.transferCompleted(success)))
        #expect(isTrue(decision.abandon() != nil))
        #expect(isTrue(decision.abandon() == nil))
        #expect(isTrue(!decision.decided(number)))
    }
}
