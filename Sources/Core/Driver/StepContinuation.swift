// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Continues a step of a request that waits: for an adapter, a retrier, a delay, a handler, or a user's decision.
///
/// Thread-safe. Only the first call counts, and none if the request has ended the wait: it was cancelled, has failed, or is in another
/// attempt. Users get this value and nothing else: it retains neither the request nor its delegate, so that a closure that is never called
/// leaks nothing.
struct StepContinuation<Answer: Sendable>: Sendable {
    private final class Reference: @unchecked Sendable {  // set once, and then only read: reading a weak reference is atomic
        weak var step: WaitingStep<Answer>?

        init(_ step: WaitingStep<Answer>) { self.step = step }
    }

    private let reference: Reference

    init(_ step: WaitingStep<Answer>) {
        reference = Reference(step)
    }

    /// Whether the request still waits.
    var isPending: Bool { reference.step?.isPending ?? false }

    func callAsFunction(_ answer: Answer) {
        reference.step?.resume(answer)
    }
}

extension StepContinuation where Answer == Void {
    func callAsFunction() {
        self(())
    }
}

/// A waiting step, and the closure that continues it. Retained only by its request, and only while that waits.
final class WaitingStep<Answer: Sendable>: Sendable {
    private let state: Lock<RequestState>
    private let body: @Sendable (Answer) -> Void

    init(in state: Lock<RequestState>, _ body: @escaping @Sendable (Answer) -> Void) {
        self.state = state
        self.body = body
    }

    var isPending: Bool { state.withLock { $0.waiting === self } }

    func resume(_ answer: Answer) {
        // The request has one waiting step at a time: a call for another one is late.
        let isPending = state.withLock { state in
            guard state.waiting === self else { return false }
            state.waiting = nil
            return true
        }
        if isPending { body(answer) }
    }
}
