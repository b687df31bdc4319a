// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// The steps of a request that wait for users' asynchronous code.

extension RequestDriver {
    /// Waits for an asynchronous adapter.
    func awaitAdapter(_ adapter: any AsyncRequestAdapter, for kind: AttemptKind, of request: Request, by manager: SessionManager) {
        let next = kind == .retry ? AttemptKind.retry : .deferredFirst
        let made: StepContinuation<Result<SessionTask, any Error>>? = waitForAttempt(of: request) { [weak manager] result in
            guard let manager else { return self.end(request, with: self.session.endError) }
            switch result {
            case .success(let task): self.begin(next, task, of: request, by: manager)
            case .failure(let error): self.notMade(next, request, because: error)
            }
        }
        guard let made else { return }
        let step: AsyncSteps.Step = { [weak manager, queue = session.queue] in
            guard made.isPending, let manager else { return }
            let result: Result<SessionTask, any Error>
            do {
                result = .success(try await manager.makeTask(for: request, awaiting: adapter))
            } catch {
                result = .failure(error)
            }
            if kind == .first { made(result) } else { queue.async { made(result) } }
        }
        if kind == .first { beginSteps(with: step) } else { runAsync(step) }
    }

    /// Waits until the request can be adapted.
    func prepare(_ pending: PendingAdaptation, for kind: AttemptKind, of request: Request, by manager: SessionManager) {
        let next = kind == .retry ? AttemptKind.retry : .deferredFirst
        let prepared: StepContinuation<Result<Void, any Error>>? = waitForAttempt(of: request) { [weak manager] result in
            guard let manager else { return self.end(request, with: self.session.endError) }
            switch result {
            case .success: self.attempt(next, of: request, by: manager)
            case .failure(let error): self.notMade(next, request, because: error)
            }
        }
        guard let prepared else { return }
        let prepare = { @Sendable [weak manager, queue = session.queue] in
            guard prepared.isPending, let manager else { return }
            pending.prepare(manager) { result in queue.async { prepared(result) } }
        }
        if pending.isAsynchronous { runAsync(prepare) } else { session.queue.async { self.inContext(prepare) } }
    }

    /// Waits for an asynchronous validation, and continues with the next validator on the session's queue.
    func awaitValidation(_ validation: @escaping Validator.Awaited, of request: Request, commits: Bool) {
        let validated = waitForValidation { [self] error in
            session.queue.async { [self] in
                if let error { fail(error) }
                validate(request, isOnQueue: true, commits: commits)
            }
        }
        let context = request.context
        guard context.head != nil else { return validated(nil) }
        runAsync { validated(await validation(request, context)) }
    }
}
