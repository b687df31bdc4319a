// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct PendingDecisionTests {
    private let success = TransferCompletion(error: nil, metrics: TransferMetrics())
    private let failure = TransferCompletion(error: CurlewError.cancelled, metrics: TransferMetrics())

    /// `#expect` can't call what changes a value.
    private func isTrue(_ condition: Bool) -> Bool { condition }

    @Test func `without a decision a completion takes effect at once`() {
        var decision = PendingDecision()
        #expect(isTrue(decision.transferCompleted(success)))
        #expect(isTrue(decision.abandon() == nil))
    }

    @Test func `a transfer continues once it is decided`() {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(decision.decided(number)))
        guard case .resume = decision.applied() else { return #expect(Bool(false), "the transfer was not over") }
        #expect(isTrue(decision.transferCompleted(success)))
    }

    @Test func `a complete response waits for its decision`() {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(!decision.transferCompleted(success)))
        #expect(isTrue(decision.decided(number)))
        guard case .complete(let outcome) = decision.applied() else { return #expect(Bool(false), "the transfer was over") }
        #expect(outcome.error == nil)
    }

    @Test func `a failure does not wait for a decision`() {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(decision.transferCompleted(failure)))
        #expect(isTrue(!decision.decided(number)))
    }

    @Test(arguments: [true, false])
    func `a completion waits while a decision is applied`(_ isFailure: Bool) {
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

    @Test func `one decision counts, and only for its own response`() {
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

    @Test func `abandoning a decision returns the waiting completion, once`() {
        var decision = PendingDecision()
        let number = decision.begin()
        #expect(isTrue(decision.abandon() == nil))
        #expect(isTrue(!decision.transferCompleted(success)))
        #expect(isTrue(decision.abandon() != nil))
        #expect(isTrue(decision.abandon() == nil))
        #expect(isTrue(!decision.decided(number)))
    }
}
