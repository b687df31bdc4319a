// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The stream that a closure gave for a body that is sent again.
struct NewBodyStream: @unchecked Sendable {  // handed over: the closure keeps no use of it
    let value: InputStream?
}

extension PendingResponse {
    /// Makes the body of a follow-up ready for being sent again: rewinds it, or replaces the request's own stream with one that the closure
    /// gives. Calls `done` on the session's queue.
    func renewBody(of transfer: TransferRequest, done: @escaping @Sendable (Bool) -> Void) {
        // The body may be another attempt's by now.
        guard isPending else { return }
        guard let body = transfer.body, !body.rewind() else { return done(true) }
        // A stream of an adapter or a redirect closure took the upload's place: the closure would give the upload's bytes for it.
        guard let body = body as? StreamBody, body === request.streamBody else { return done(false) }
        let stream = wait { (stream: NewBodyStream) in done(body.restart(with: stream.value)) }
        driver.sessionDelegate.askForStream(for: task, in: session, stream)
    }
}

extension SessionDelegate {
    /// Whether a closure gives a request's stream again.
    func mayRenewBody(of request: Request) -> Bool {
        request.streamBody != nil
            && closures.withLock { $0.taskNeedNewBodyStream != nil }
    }

    /// Asks the closure for a new stream. On the session's queue, where the answer is continued with, too.
    func askForStream(for task: SessionTask, in session: Session, _ stream: StepContinuation<NewBodyStream>) {
        guard let closure = closures.withLock({ $0.taskNeedNewBodyStream }) else { return stream(NewBodyStream(value: nil)) }
        closure(session, task) { value in
            let newStream = NewBodyStream(value: value)
            session.queue.async { stream(newStream) }
        }
    }
}
