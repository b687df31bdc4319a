// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension PendingResponse {
    /// Prepares the body of a follow-up to be sent again: rewinds it, or replaces the request's own stream with one that the closure
    /// returns. Calls `done` on the session's queue.
    func renewBody(of transfer: TransferRequest, done: @escaping @Sendable (Bool) -> Void) {
        // Another attempt may be sending the body by now.
        guard isPending else { return }
        guard let body = transfer.body, !body.rewind() else { return done(true) }
        // The stream is an adapter's or a redirect closure's: for that the closure would return the upload's bytes.
        guard let body = body as? StreamBody, body === request.streamBody else { return done(false) }
        let stream = wait { (stream: NewBodyStream) in done(body.restart(with: stream.value)) }
        driver.inContext { driver.askForStream(for: task, stream) }
    }
}

extension RequestDriver {
    /// Whether a closure returns a new stream for the request.
    func mayRenewBody(of request: Request) -> Bool {
        request.streamBody != nil && closures { $0.taskNeedNewBodyStream != nil }
    }

    /// Calls the closure for a new stream, and continues with its answer. Both on the session's queue.
    func askForStream(for task: SessionTask, _ stream: StepContinuation<NewBodyStream>) {
        session.assertOnQueue()
        guard let closure = closures({ $0.taskNeedNewBodyStream }) else { return stream(NewBodyStream(value: nil)) }
        closure(session, task) { [session] value in
            let newStream = NewBodyStream(value: value)
            session.queue.async { stream(newStream) }
        }
    }
}
