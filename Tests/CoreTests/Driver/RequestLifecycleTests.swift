// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct RequestLifecycleTests {
    typealias Stage = RequestLifecycle.Stage
    typealias Action = RequestLifecycle.Action

    /// A lifecycle brought to a stage in the usual way.
    private static func lifecycle(in stage: Stage, hasHandler: Bool = false) -> RequestLifecycle {
        var lifecycle = RequestLifecycle()
        if hasHandler { _ = lifecycle.handlerAttached(isUnvalidated: false) }
        guard stage != .running else { return lifecycle }
        _ = lifecycle.taskCompleted()
        guard stage != .completed else { return lifecycle }
        _ = lifecycle.waitTimedOut()
        guard stage != .concluding else { return lifecycle }
        if stage == .betweenAttempts { _ = lifecycle.waitForAttempt() } else { _ = lifecycle.finish() }
        return lifecycle
    }

    @Test(
        "the end of a task waits for a handler, and ends nothing twice",
        arguments: [
            (Stage.running, false, Action.waitForHandler, Stage.completed), (.running, true, .conclude, .concluding),
            (.completed, false, .none, .completed), (.concluding, true, .none, .concluding),
            (.betweenAttempts, true, .none, .betweenAttempts), (.finished, true, .none, .finished),
        ])
    func taskEnds(_ stage: Stage, _ hasHandler: Bool, _ action: Action, _ next: Stage) {
        var lifecycle = Self.lifecycle(in: stage, hasHandler: hasHandler)
        #expect(lifecycle.taskCompleted() == action)
        #expect(lifecycle.stage == next)
    }

    @Test(
        "the first handler ends a request that waits for it, and one that was not validated to its end",
        arguments: [
            (Stage.running, false, Action.none), (.completed, false, .conclude), (.concluding, false, .none), (.concluding, true, .none),
            (.betweenAttempts, false, .none), (.finished, false, .none), (.finished, true, .conclude),
        ])
    func handlerComes(_ stage: Stage, _ isUnvalidated: Bool, _ action: Action) {
        var lifecycle = Self.lifecycle(in: stage)
        #expect(lifecycle.handlerAttached(isUnvalidated: isUnvalidated) == action)
        #expect(lifecycle.hasHandler)
    }

    @Test("a second handler does not validate again")
    func secondHandler() {
        var lifecycle = Self.lifecycle(in: .finished, hasHandler: true)
        #expect(lifecycle.handlerAttached(isUnvalidated: true) == .none)
    }

    @Test("waiting ends only where one waits", arguments: [Stage.running, .completed, .concluding, .betweenAttempts, .finished])
    func waitEnds(_ stage: Stage) {
        var lifecycle = Self.lifecycle(in: stage)
        #expect(lifecycle.waitTimedOut() == (stage == .completed ? .conclude : .none))
    }

    @Test(
        "cancelling reaches the task, or ends the request where none runs",
        arguments: [
            (Stage.running, RequestLifecycle.Cancellation.cancelTask, true), (.completed, .none, true),
            (.concluding, .endValidation, true),
            (.betweenAttempts, .endWait, true), (.finished, .none, false),
        ])
    func cancels(_ stage: Stage, _ cancellation: RequestLifecycle.Cancellation, _ isCancelled: Bool) {
        var lifecycle = Self.lifecycle(in: stage)
        #expect(lifecycle.cancel(isWaiting: true) == cancellation)
        #expect(lifecycle.isCancelled == isCancelled)
        let again: RequestLifecycle.Cancellation = stage == .running ? .cancelTask : stage == .concluding ? .endValidation : .none
        #expect(lifecycle.cancel(isWaiting: false) == again)
    }

    @Test("a cancelled request is not retried")
    func cancelledIsNotRetried() {
        var lifecycle = Self.lifecycle(in: .concluding)
        _ = lifecycle.cancel(isWaiting: false)
        #expect(lifecycle.waitForAttempt() == false)
        #expect(lifecycle.finish() == true)
    }

    @Test("a cancellation between two attempts ends a wait, or the attempt that is being made")
    func cancelsBetweenAttempts() {
        var lifecycle = Self.lifecycle(in: .betweenAttempts)
        #expect(lifecycle.cancel(isWaiting: false) == .none)
        #expect(lifecycle.attemptBegan() == false)
        #expect(lifecycle.waitForAttempt() == false)
        #expect(lifecycle.stage == .betweenAttempts)
        #expect(lifecycle.finish() == true)
    }

    @Test("an attempt begins with or without a wait")
    func begins() {
        var lifecycle = RequestLifecycle()
        #expect(lifecycle.attemptBegan() == true)
        #expect(lifecycle.waitForAttempt() == true)
        #expect(lifecycle.waitForAttempt() == true)
        #expect(lifecycle.attemptBegan() == true)
        #expect(lifecycle.stage == .running)
    }

    @Test("a first attempt that could not be made completes like a task")
    func firstAttemptFails() {
        var lifecycle = RequestLifecycle()
        _ = lifecycle.waitForAttempt()
        lifecycle.firstAttemptFailed()
        #expect(lifecycle.taskCompleted() == .waitForHandler)
    }

    @Test("nothing is waited for after the end", arguments: [Stage.completed, .finished])
    func nothingIsAwaitedAtTheEnd(_ stage: Stage) {
        var lifecycle = Self.lifecycle(in: stage)
        #expect(lifecycle.waitForAttempt() == false)
    }

    @Test("a late validation reopens the request; its end is reported again after another attempt only")
    func reopens() {
        var lifecycle = Self.lifecycle(in: .finished)
        #expect(lifecycle.isAttemptReported && !lifecycle.isReopened)
        #expect(lifecycle.handlerAttached(isUnvalidated: true) == .conclude)
        #expect(lifecycle.isAttemptReported && lifecycle.isReopened)
        #expect(lifecycle.waitForAttempt() == true)
        #expect(lifecycle.attemptBegan() == true)
        #expect(!lifecycle.isAttemptReported && lifecycle.isReopened)
    }

    @Test("an attempt that is concluded again is reported once")
    func concludesAgain() {
        var lifecycle = Self.lifecycle(in: .concluding, hasHandler: true)
        #expect(!lifecycle.isAttemptReported)
        lifecycle.concludeAgain()
        #expect(lifecycle.isAttemptReported)
        #expect(lifecycle.stage == .concluding)
    }

    @Test("a request finishes once", arguments: [Stage.running, .completed, .concluding, .betweenAttempts, .finished])
    func finishes(_ stage: Stage) {
        var lifecycle = Self.lifecycle(in: stage)
        #expect(lifecycle.finish() == (stage != .finished))
        #expect(lifecycle.finish() == false)
        #expect(lifecycle.stage == .finished)
    }
}
