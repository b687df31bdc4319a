// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CurlewOperations

@Suite struct OperationLifecycleTests {
    typealias Event = @Sendable (inout OperationLifecycle) -> OperationLifecycle.Action

    struct Case: Sendable, CustomStringConvertible {
        let name: String
        let events: [Event]
        let state: OperationState
        let action: OperationLifecycle.Action

        var description: String { name }
    }

    static let start: Event = { $0.start() }
    static let pause: Event = { $0.pause() }
    static let resume: Event = { $0.resume() }
    static let cancel: Event = { $0.cancel() }
    static let finish: Event = {
        _ = $0.beginFinishing()
        $0.finish()
        return .none
    }

    static let cases = [
        Case(name: "ready, start", events: [start], state: .executing, action: .begin),
        Case(name: "ready, pause", events: [pause], state: .paused, action: .none),
        Case(name: "ready, resume", events: [resume], state: .ready, action: .none),
        Case(name: "ready, cancel", events: [cancel], state: .ready, action: .none),
        Case(name: "ready, cancel, start", events: [cancel, start], state: .ready, action: .finishCancelled),
        Case(name: "ready, cancel, pause", events: [cancel, pause], state: .ready, action: .none),
        Case(name: "ready, cancel, pause, start", events: [cancel, pause, start], state: .ready, action: .finishCancelled),
        Case(name: "executing, start", events: [start, start], state: .executing, action: .none),
        Case(name: "executing, pause", events: [start, pause], state: .paused, action: .stop),
        Case(name: "executing, resume", events: [start, resume], state: .executing, action: .none),
        Case(name: "executing, cancel", events: [start, cancel], state: .executing, action: .finishCancelled),
        Case(name: "executing, cancel, cancel", events: [start, cancel, cancel], state: .executing, action: .none),
        Case(name: "executing, cancel, pause", events: [start, cancel, pause], state: .executing, action: .none),
        Case(name: "paused, pause", events: [pause, pause], state: .paused, action: .none),
        Case(name: "paused, resume", events: [pause, resume], state: .ready, action: .none),
        Case(name: "paused, start", events: [pause, start], state: .paused, action: .none),
        Case(name: "paused before its queue's start, resume", events: [pause, start, resume], state: .executing, action: .begin),
        Case(name: "paused, cancel", events: [pause, cancel], state: .ready, action: .none),
        Case(name: "paused, cancel, start", events: [pause, cancel, start], state: .ready, action: .finishCancelled),
        Case(name: "paused after its start, resume", events: [start, pause, resume], state: .executing, action: .begin),
        Case(name: "paused after its start, cancel", events: [start, pause, cancel], state: .paused, action: .finishCancelled),
        Case(name: "finished, start", events: [start, finish, start], state: .finished, action: .none),
        Case(name: "finished, pause", events: [start, finish, pause], state: .finished, action: .none),
        Case(name: "finished, resume", events: [start, finish, resume], state: .finished, action: .none),
        Case(name: "finished, cancel", events: [start, finish, cancel], state: .finished, action: .none),
    ]

    @Test("events that do not apply to a state change nothing", arguments: cases)
    func transitions(_ item: Case) {
        var lifecycle = OperationLifecycle()
        var action = OperationLifecycle.Action.none
        for event in item.events { action = event(&lifecycle) }
        #expect(lifecycle.state == item.state)
        #expect(action == item.action)
    }

    @Test("the states have AFNetworking's raw values")
    func numbers() {
        #expect([OperationState.paused, .ready, .executing, .finished].map(\.rawValue) == [-1, 1, 2, 3])
    }
}
