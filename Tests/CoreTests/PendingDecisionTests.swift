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

    @Test("without a decision the end takes place at once") func withoutADecisionTheEndTakesPlaceAtOnce() {
        var decision = PendingDecision()
        #expect(isTrue(decision.transferEnded(success)))
        #expect(isTrue(decision.abandon() == nil))
    }

    @Test("a transfer goes on when it was decided") func aTransferGoesOnWhenItWasDecided() {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(decision.decided(number)))
        guard case .resume = decision.applied() else { return #expect(Bool(false), "the transfer was not over") }
        #expect(isTrue(decision.transferEnded(success)))
    }

    @Test("a whole response waits for its decision") func aWholeResponseWaitsForItsDecision() {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(!decision.transferEnded(success)))
        #expect(isTrue(decision.decided(number)))
        guard case .end(let outcome) = decision.applied() else { return #expect(Bool(false), "the transfer was over") }
        #expect(outcome.error == nil)
    }

    @Test("a failure waits for nobody") func aFailureWaitsForNobody() {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(decision.transferEnded(failure)))
        #expect(isTrue(!decision.decided(number)))
    }

    @Test("an end that comes while a decision is applied waits for that", arguments: [true, false])
    func anEndThatComesWhileADecisionIsAppliedWaits(_ isFailure: Bool) {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(decision.decided(number)))
        #expect(isTrue(!decision.transferEnded(isFailure ? failure : success)))
        guard case .end(let outcome) = decision.applied() else { return #expect(Bool(false), "the transfer was over") }
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

    @Test("who gives up gets the end that waited, once") func whoGivesUpGetsTheEndThatWaited() {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(decision.abandon() == nil))
        #expect(isTrue(!decision.transferEnded(success)))
        #expect(isTrue(decision.abandon() != nil))
        #expect(isTrue(decision.abandon() == nil))
        #expect(isTrue(!decision.decided(number)))
    }
}
