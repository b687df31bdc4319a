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
        _ = lifecycle.taskEnded()
        guard stage != .ended else { return lifecycle }
        _ = lifecycle.waitEnded()
        guard stage != .concluding else { return lifecycle }
        if stage == .retrying { _ = lifecycle.beginRetrying() } else { _ = lifecycle.finish() }
        return lifecycle
    }

    @Test(
        "the end of a task waits for a handler, and ends nothing twice",
        arguments: [
            (Stage.running, false, Action.waitForHandler, Stage.ended), (.running, true, .conclude, .concluding),
            (.ended, false, .none, .ended), (.concluding, true, .none, .concluding), (.retrying, true, .none, .retrying),
            (.finished, true, .none, .finished),
        ])
    func taskEnds(_ stage: Stage, _ hasHandler: Bool, _ action: Action, _ next: Stage) {
        var lifecycle = Self.lifecycle(in: stage, hasHandler: hasHandler)
        #expect(lifecycle.taskEnded() == action)
        #expect(lifecycle.stage == next)
    }

    @Test(
        "the first handler ends a request that waits for it, and one that was not validated to its end",
        arguments: [
            (Stage.running, false, Action.none), (.ended, false, .conclude), (.concluding, false, .none), (.concluding, true, .none),
            (.retrying, false, .none), (.finished, false, .none), (.finished, true, .conclude),
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

    @Test("waiting ends only where one waits", arguments: [Stage.running, .ended, .concluding, .retrying, .finished])
    func waitEnds(_ stage: Stage) {
        var lifecycle = Self.lifecycle(in: stage)
        #expect(lifecycle.waitEnded() == (stage == .ended ? .conclude : .none))
    }

    @Test(
        "cancelling reaches the task, or ends the request where none runs",
        arguments: [
            (Stage.running, RequestLifecycle.Cancellation.cancelTask, true), (.ended, .none, true), (.concluding, .none, true),
            (.retrying, .end, true), (.finished, .none, false),
        ])
    func cancels(_ stage: Stage, _ cancellation: RequestLifecycle.Cancellation, _ isCancelled: Bool) {
        var lifecycle = Self.lifecycle(in: stage)
        #expect(lifecycle.cancel() == cancellation)
        #expect(lifecycle.isCancelled == isCancelled)
        #expect(lifecycle.cancel() == (stage == .running ? .cancelTask : .none))
    }

    @Test("a cancelled request is not tried again")
    func cancelledIsNotRetried() {
        var lifecycle = Self.lifecycle(in: .concluding)
        _ = lifecycle.cancel()
        #expect(lifecycle.beginRetrying() == nil)
        #expect(lifecycle.finish() == true)
    }

    @Test("the retrier's first answer in time counts, no other does")
    func answers() throws {
        var lifecycle = Self.lifecycle(in: .concluding)
        let begun = lifecycle.beginRetrying()
        let first = try #require(begun)
        #expect(lifecycle.retrierAnswered(first) == true)
        #expect(lifecycle.retrierAnswered(first) == false)
        #expect(lifecycle.retried(first) == true)
        #expect(lifecycle.retried(first) == false)
        #expect(lifecycle.stage == .running)
        _ = lifecycle.taskEnded()
        _ = lifecycle.waitEnded()
        let again = lifecycle.beginRetrying()
        let second = try #require(again)
        #expect(lifecycle.retrierAnswered(first) == false)
        #expect(lifecycle.retrierAnswered(second) == true)
    }

    @Test("a retry ends once", arguments: [Stage.running, .ended, .concluding, .retrying, .finished])
    func retryingEnds(_ stage: Stage) {
        var lifecycle = Self.lifecycle(in: stage)
        #expect(lifecycle.retryingEnded() == (stage == .retrying))
        #expect(lifecycle.retryingEnded() == false)
    }

    @Test("a retry begins only behind validation", arguments: [Stage.running, .ended, .retrying, .finished])
    func retryBeginsNowhereElse(_ stage: Stage) {
        var lifecycle = Self.lifecycle(in: stage)
        #expect(lifecycle.beginRetrying() == nil)
    }

    @Test("a request finishes once", arguments: [Stage.running, .ended, .concluding, .retrying, .finished])
    func finishes(_ stage: Stage) {
        var lifecycle = Self.lifecycle(in: stage)
        #expect(lifecycle.finish() == (stage != .finished))
        #expect(lifecycle.finish() == false)
        #expect(lifecycle.stage == .finished)
    }
}
