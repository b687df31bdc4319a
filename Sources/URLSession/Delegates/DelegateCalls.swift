// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewURLLoading

/// The calls of a session's delegates: the task's first and, where that does not implement a method, the session's.
///
/// Which methods a delegate implements is known only by calling them: the defaults of the protocols note that they were called. Each default
/// of an `async` form is called once for a type, so that no task is created for what a type does not implement.
///
/// Only the default of the delegate and method that is called here counts: a delegate may pass its calls on to one that implements less.
final class DelegateCalls: Sendable {
    /// The methods with a decision, and the one that is called on the program's thread.
    enum Decision: Hashable {
        case creation
        case sessionChallenge
        case taskChallenge
        case redirection
        case bodyStream
        case response
        case caching
        case delayedRequest
    }

    private struct Method: Hashable {
        let type: ObjectIdentifier
        let decision: Decision
    }

    private struct State {
        /// The delegate whose method without a decision is being called.
        var notified: ObjectIdentifier?
        /// Whether the default of that method was called.
        var hasReachedDefault = false
        /// The call that is being made.
        var current: DelegateCall?
        /// What types are known not to implement.
        var defaults: Set<Method> = []
    }

    private let state = Lock(State())

    // MARK: Events

    /// Calls `body` with one delegate after the other, until one implements what it calls. On the delegate queue.
    func notify<Delegate>(_ delegates: [Delegate], _ body: (Delegate) -> Void) {
        for delegate in delegates {
            let object = ObjectIdentifier(delegate as AnyObject)
            state.withLock { ($0.notified, $0.hasReachedDefault) = (object, false) }
            body(delegate)
            guard state.withLock({ $0.hasReachedDefault }) else { return }
        }
    }

    fileprivate func noteDefault(of delegate: ObjectIdentifier) {
        state.withLock { if $0.notified == delegate { $0.hasReachedDefault = true } }
    }

    // MARK: Decisions

    /// A delegate that may decide, and the call of its method.
    struct Asked<Answer: Sendable> {
        let object: AnyObject
        let decision: Decision
        let call: @Sendable (_ completion: @escaping @Sendable (Answer) -> Void) -> Void
    }

    /// Asks one delegate after the other until one decides; `nil` if none does, and if it is too late. On the delegate queue.
    ///
    /// - Parameters:
    ///   - task: the task after whose last call none is asked, also if one has passed its call on meanwhile; `nil` if others wait for the
    ///     decision, too.
    ///   - queue: where further delegates are asked.
    ///   - answered: called once, on any thread.
    func ask<Answer: Sendable>(
        _ asked: ArraySlice<Asked<Answer>>, about task: URLSessionTask?, on queue: DelegateQueue,
        _ answered: @escaping @Sendable (Answer?) -> Void
    ) {
        if let task, task.isOver { return answered(nil) }
        let next = asked.drop { isDefault($0.decision, of: $0.object) }
        guard let first = next.first else { return answered(nil) }
        let method = Method(type: ObjectIdentifier(type(of: first.object)), decision: first.decision)
        // Not a slice, which would retain the delegate that is asked now.
        let others = Shown(Array(next.dropFirst()))
        // A program may keep a completion after it has called it: what belongs to the task is released with the first call.
        let waiting = Lock<(@Sendable (Answer?) -> Void)?>(answered)
        let call = DelegateCall(ObjectIdentifier(first.object), first.decision) { [self] in
            state.withLock { _ = $0.defaults.insert(method) }
            guard let answered = waiting.withLock({ $0.take() }) else { return }
            queue.schedule { self.ask(others.value[...], about: task, on: queue, answered) }
        }
        state.withLock { $0.current = call }
        first.call { answer in
            if call.end() { waiting.withLock { $0.take() }?(answer) }
        }
        state.withLock { $0.current = nil }
    }

    /// Has the `async` form of a method answer, for the default of the one with a handler.
    func askAsync<Answer: Sendable>(
        _ delegate: any URLSessionDelegate, _ decision: Decision, _ body: @escaping @Sendable () async -> Answer,
        answered: @escaping @Sendable (Answer) -> Void
    ) {
        let object = ObjectIdentifier(delegate)
        let call = state.withLock { $0.current?.isAbout(object, decision) == true ? $0.current.take() : nil }
        Task {
            let probe = DelegateCall.Probe(object, decision)
            let answer = await DelegateCall.$probe.withValue(probe, operation: body)
            if let call, probe.hasReachedDefault { call.passOn() } else { answered(answer) }
        }
    }

    private func isDefault(_ decision: Decision, of delegate: AnyObject) -> Bool {
        let method = Method(type: ObjectIdentifier(type(of: delegate)), decision: decision)
        return state.withLock { $0.defaults.contains(method) }
    }
}

/// A call of a delegate's method that is to answer.
final class DelegateCall: Sendable {
    /// Notes whether the default of a delegate's `async` form was called, or of its method for new tasks.
    final class Probe: Sendable {
        private let delegate: ObjectIdentifier
        private let decision: DelegateCalls.Decision
        private let state = Lock(false)

        init(_ delegate: ObjectIdentifier, _ decision: DelegateCalls.Decision) {
            (self.delegate, self.decision) = (delegate, decision)
        }

        var hasReachedDefault: Bool { state.withLock { $0 } }

        fileprivate func note(_ delegate: ObjectIdentifier, _ decision: DelegateCalls.Decision) {
            guard delegate == self.delegate, decision == self.decision else { return }
            state.withLock { $0 = true }
        }
    }

    @TaskLocal static var probe: Probe?

    private let delegate: ObjectIdentifier
    private let decision: DelegateCalls.Decision
    private let next: Lock<(@Sendable () -> Void)?>

    /// - Parameter next: asks the next delegate.
    init(_ delegate: ObjectIdentifier, _ decision: DelegateCalls.Decision, _ next: @escaping @Sendable () -> Void) {
        (self.delegate, self.decision) = (delegate, decision)
        self.next = Lock(next)
    }

    /// Whether it is the call of a delegate's method, and not one from which that is called.
    fileprivate func isAbout(_ delegate: ObjectIdentifier, _ decision: DelegateCalls.Decision) -> Bool {
        delegate == self.delegate && decision == self.decision
    }

    /// Ends the call; `false` if it has ended.
    func end() -> Bool { takeNext() != nil }

    /// Has the next delegate answer.
    fileprivate func passOn() { takeNext()?() }

    private func takeNext() -> (@Sendable () -> Void)? { next.withLock { $0.take() } }

    /// Notes that a delegate's default of a method without a decision was called.
    static func noteDefault(of delegate: any URLSessionDelegate, in session: URLSession) {
        session.calls.noteDefault(of: ObjectIdentifier(delegate))
    }

    /// Notes that a delegate's default of an `async` form was called, or of its method for new tasks.
    static func noteDefault(of delegate: any URLSessionDelegate, _ decision: DelegateCalls.Decision) {
        probe?.note(ObjectIdentifier(delegate), decision)
    }

    /// Calls a delegate's method for new tasks, on this thread; returns whether it has one.
    static func hasNoted(_ task: URLSessionTask, _ delegate: any URLSessionTaskDelegate) -> Bool {
        let probe = Probe(ObjectIdentifier(delegate), .creation)
        $probe.withValue(probe) { delegate.urlSession(task.session, didCreateTask: task) }
        return !probe.hasReachedDefault
    }
}

/// A value that its receiver does not change, or that is handed on with its ownership.
struct Shown<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
