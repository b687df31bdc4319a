// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

// A task's delegates: its own before the session's.

extension URLSessionTask {
    typealias Answer<Value> = @Sendable (Value) -> Void

    /// The delegates of a kind: the task's own before the session's.
    func delegates<Delegate>(_ kind: Delegate.Type = Delegate.self) -> [Delegate] {
        let own = values.withLock { $0.delegate }
        return [own as? Delegate, session.delegate as? Delegate].compactMap { $0 }
    }

    /// Whether the task or its session has a delegate.
    var hasDelegate: Bool { values.withLock { hasDelegate($0) } }

    func hasDelegate(_ values: Values) -> Bool { values.delegate != nil || session.hasDelegate }

    /// Whether the last calls about the task were made, after which there are no others: a thread that was about to schedule one may have been
    /// overtaken by that which has ended the task.
    var isOver: Bool { values.withLock { $0.isOver } }

    /// Calls a method without a decision, on the delegate queue.
    func notify<Delegate>(_ body: @escaping @Sendable (Delegate, URLSessionTask) -> Void) {
        session.queue.schedule { if !self.isOver { self.notifyNow(body) } }
    }

    /// Calls a method without a decision. On the delegate queue.
    func notifyNow<Delegate>(_ body: (Delegate, URLSessionTask) -> Void) {
        session.calls.notify(delegates(Delegate.self)) { body($0, self) }
    }

    /// Asks the delegates, on the delegate queue; `nil` if none decides, and if it is too late.
    func ask<Delegate, Value: Sendable>(
        _ decision: DelegateCalls.Decision, _ call: @escaping @Sendable (Delegate, URLSessionTask, @escaping Answer<Value>) -> Void,
        answered: @escaping @Sendable (Value?) -> Void
    ) {
        session.queue.schedule { [self] in
            let asked = delegates(Delegate.self).map { delegate -> DelegateCalls.Asked<Value> in
                let shown = Shown(delegate)
                return DelegateCalls.Asked(object: delegate as AnyObject, decision: decision) { call(shown.value, self, $0) }
            }
            session.calls.ask(asked[...], about: self, on: session.queue, answered)
        }
    }
}
