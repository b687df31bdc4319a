// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The task in which a request's asynchronous code runs: adapters, retriers, validations and decisions of all its attempts.
///
/// Created on the thread of the call that creates the request, so that the code has the caller's task-local values and priority. A request
/// without asynchronous code has none. The task ends with the request, which cancels a step that is still running, or after its first step
/// if no other is to be expected: waking it only to end costs as much as a step. Thread-safe.
final class AsyncSteps: Sendable {
    typealias Step = @Sendable () async -> Void
    /// What the first attempt's adapter has made of the request.
    typealias Answer = Result<AdaptableRequest, any Error>

    fileprivate struct State {
        var task: Task<Void, Never>?
        var waiting: [Step] = []
        /// Continues the task, which has no step to run.
        var idle: UnsafeContinuation<Step?, Never>?
        /// Whether the task waits for steps after those that it has.
        var stays: Bool
        var hasEnded = false
        /// The first step's answer, and who waits for it.
        var answer: Answer?
        var waiter: StepContinuation<Answer>?
        /// Whether the request has ended, so that a step that is running has to be cancelled.
        var isCancelled = false
    }

    private let state: Lock<State>

    /// - Parameter stays: whether other steps than the first are to be expected.
    init(stays: Bool) {
        state = Lock(State(stays: stays))
    }

    /// Creates the task with its code, which runs on the caller's thread until it suspends, where the system supports that.
    ///
    /// The code ends with ``runOthers()``, unless ``endsNow()``.
    func begin(with body: @escaping @Sendable () async -> Void) {
        let task: Task<Void, Never>
        if #available(macOS 26.0, iOS 26.0, watchOS 26.0, tvOS 26.0, visionOS 26.0, *) {
            task = Task.immediate(operation: body)
        } else {
            task = Task(operation: body)
        }
        let isCancelled = state.withLock { state in
            state.task = state.hasEnded ? nil : task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    /// Ends the task if it has no other step to run; returns whether it ends.
    func endsNow() -> Bool { state.withLock { $0.endsNow() } }

    /// Runs the steps, up to the end of the task.
    func runOthers() async {
        while let step = await next() { await step() }
    }

    /// Lets the task wait for further steps; `false` if it has ended.
    func stay() -> Bool {
        state.withLock { state in
            state.stays = true
            return !state.hasEnded
        }
    }

    /// Runs a step after those before it; returns `false` if the task has ended.
    func run(_ step: @escaping Step) -> Bool {
        let (isTaken, idle) = state.withLock { state -> (Bool, UnsafeContinuation<Step?, Never>?) in
            guard !state.hasEnded else { return (false, nil) }
            guard let idle = state.idle else {
                state.waiting.append(step)
                return (true, nil)
            }
            state.idle = nil
            return (true, idle)
        }
        idle?.resume(returning: step)
        return isTaken
    }

    // MARK: The first step

    /// The answer of the first attempt's adapter; `nil` as long as there is none.
    var answer: Answer? { state.withLock { $0.answer } }

    /// The first attempt's adapter has answered.
    func give(_ answer: Answer) {
        let waiter = state.withLock { state in
            state.answer = answer
            return state.waiter
        }
        waiter?(answer)
    }

    /// Calls `continuation` with the answer of the first attempt's adapter, as soon as there is one.
    func callWithAnswer(_ continuation: StepContinuation<Answer>) {
        let answer = state.withLock { state in
            state.waiter = continuation
            return state.answer
        }
        if let answer { continuation(answer) }
    }

    // MARK: Its end

    /// Ends the task, and cancels a step that is running.
    func end() {
        let (task, idle) = state.withLock { state in
            defer {
                state.end()
                state.isCancelled = true
            }
            return (state.task, state.idle)
        }
        if let idle { idle.resume(returning: nil) } else { task?.cancel() }
    }

    private nonisolated(nonsending) func next() async -> Step? {
        if let next = state.withLock({ $0.next() }) { return next }
        return await withUnsafeContinuation { continuation in
            let next = state.withLock { state in
                let next = state.next()
                if next == nil { state.idle = continuation }
                return next
            }
            if let next { continuation.resume(returning: next) }
        }
    }
}

extension AsyncSteps.State {
    /// The next step, `.some(nil)` for the end of the task; `nil` if it has to wait.
    fileprivate mutating func next() -> AsyncSteps.Step?? {
        if hasEnded { return .some(nil) }
        if !waiting.isEmpty { return waiting.removeFirst() }
        return endsNow() ? .some(nil) : nil
    }

    fileprivate mutating func endsNow() -> Bool {
        if !hasEnded, !stays, waiting.isEmpty { end() }
        return hasEnded
    }

    fileprivate mutating func end() {
        (task, waiting, idle, hasEnded) = (nil, [], nil, true)
    }
}

extension RequestDriver {
    /// Creates the request's task if it has none, for steps to come. On the thread of the call that creates the request, or adds
    /// asynchronous code to it.
    func beginSteps() {
        beginSteps(AsyncSteps(stays: true), orElse: { $0.stay() }, with: { await $0.runOthers() })
    }

    /// Creates the request's task, with its code, unless there is one that takes part in another way. Does nothing once the request has
    /// finished, which ends no task any more.
    func beginSteps(
        _ steps: AsyncSteps, orElse takesPart: (AsyncSteps) -> Bool, with body: @escaping @Sendable (AsyncSteps) async -> Void
    ) {
        while true {
            let (isFinished, old) = state.withLock { state -> (Bool, AsyncSteps?) in
                defer { if state.steps == nil, state.lifecycle.stage != .finished { state.steps = steps } }
                return (state.lifecycle.stage == .finished, state.steps)
            }
            if isFinished { return }
            guard let old else { return steps.begin { await body(steps) } }
            if takesPart(old) { return }
            // Another task takes the place of one that has ended.
            state.withLock { state in
                if state.steps === old { state.steps = nil }
            }
        }
    }

    /// Runs asynchronous code of the user in the request's task, after what runs there already.
    ///
    /// A request that was created before such code was added gets its task here, with the context of its caller but for the task-local
    /// values that no ``ContextCarrier`` carries.
    func runAsync(_ step: @escaping AsyncSteps.Step) {
        if let steps = state.withLock({ $0.steps }), steps.run(step) { return }
        inContext {
            beginSteps(AsyncSteps(stays: true), orElse: { $0.run(step) }) { steps in
                await step()
                await steps.runOthers()
            }
        }
    }
}
