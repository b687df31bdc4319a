// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The task in which a request's asynchronous code runs: adapters, retriers, validations and decisions of all its attempts.
///
/// Created on the thread of the call that creates the request, so that the code has the caller's task-local values and priority. A request
/// without asynchronous code has none. The task ends with the request, which cancels a step that is still running. Thread-safe.
final class AsyncSteps: Sendable {
    typealias Step = @Sendable () async -> Void

    private struct State {
        var task: Task<Void, Never>?
        var waiting: [Step] = []
        /// Continues the task, which has no step to run.
        var idle: UnsafeContinuation<Step?, Never>?
        var hasEnded = false
    }

    private let state = Lock(State())

    /// Creates the task. Runs `first` on the caller's thread until it suspends, where the system supports that.
    func begin(with first: Step?) {
        let body: @Sendable () async -> Void = { [self] in
            if let first { await first() }
            while let step = await next() { await step() }
        }
        let task: Task<Void, Never>
        if #available(macOS 26.0, iOS 26.0, watchOS 26.0, tvOS 26.0, visionOS 26.0, *) {
            task = Task.immediate(operation: body)
        } else {
            task = Task(operation: body)
        }
        let hasEnded = state.withLock { state in
            state.task = state.hasEnded ? nil : task
            return state.hasEnded
        }
        if hasEnded { task.cancel() }
    }

    /// Runs a step after those before it. Does nothing once the request has ended.
    func run(_ step: @escaping Step) {
        let idle = state.withLock { state -> UnsafeContinuation<Step?, Never>? in
            guard !state.hasEnded else { return nil }
            guard let idle = state.idle else {
                state.waiting.append(step)
                return nil
            }
            state.idle = nil
            return idle
        }
        idle?.resume(returning: step)
    }

    /// Ends the task, and cancels a step that is running.
    func end() {
        let (task, idle) = state.withLock { state in
            defer { state = State(hasEnded: true) }
            return (state.task, state.idle)
        }
        if let idle { idle.resume(returning: nil) } else { task?.cancel() }
    }

    private func next() async -> Step? {
        await withUnsafeContinuation { continuation in
            let (mustResume, step) = state.withLock { state -> (Bool, Step?) in
                if state.hasEnded { return (true, nil) }
                if !state.waiting.isEmpty { return (true, state.waiting.removeFirst()) }
                state.idle = continuation
                return (false, nil)
            }
            if mustResume { continuation.resume(returning: step) }
        }
    }
}

extension RequestDriver {
    /// Creates the request's task, with a first step. On the thread of the call that creates the request, or adds asynchronous code to it.
    func beginSteps(with first: AsyncSteps.Step? = nil) {
        let steps = AsyncSteps()
        let old = state.withLock { state -> AsyncSteps? in
            guard let old = state.steps else {
                // A request that has finished ends no task any more.
                if state.lifecycle.stage != .finished { state.steps = steps }
                return nil
            }
            return old
        }
        guard let old else { return steps.begin(with: first) }
        if let first { old.run(first) }
    }

    /// Runs asynchronous code of the user in the request's task, after what runs there already.
    ///
    /// A request that was created before such code was added gets its task here, with the context of its caller but for the task-local
    /// values that no ``ContextCarrier`` carries.
    func runAsync(_ step: @escaping AsyncSteps.Step) {
        if let steps = state.withLock({ $0.steps }) { return steps.run(step) }
        inContext { beginSteps(with: nil) }
        state.withLock { $0.steps }?.run(step)
    }
}
