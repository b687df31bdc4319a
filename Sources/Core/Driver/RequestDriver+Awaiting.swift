// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// The steps of a request that wait for users' asynchronous code.

extension RequestDriver {
    /// Waits for an asynchronous adapter.
    func awaitAdapter(_ adapter: any AsyncRequestAdapter, for kind: AttemptKind, of request: Request, by manager: SessionManager) {
        do {
            let original = try request.original.get().original
            guard let seen = try original.adaptable(by: adapter, headersSuffice: adapter.asyncHeaderAdapter != nil) else {
                return makeTask(kind, of: request, by: manager, adapted: nil)
            }
            guard kind != .first else { return awaitFirst(adapter, seen, of: request, by: manager) }
            guard let adapted = waitForAdaptation(of: request, kind, manager) else { return }
            runAsync { [weak manager, queue = session.queue] in
                guard adapted.isPending, let manager else { return }
                let result = await adapter.adapted(seen, for: manager)
                queue.async { adapted(result) }
            }
        } catch {
            notMade(kind, request, because: error)
        }
    }

    /// Runs an asynchronous adapter up to where it suspends, on the caller's thread. If it does not, the request is made at once, like one
    /// whose adapter is synchronous.
    private func awaitFirst(
        _ adapter: any AsyncRequestAdapter, _ seen: AdaptableRequest, of request: Request, by manager: SessionManager
    ) {
        let steps = AsyncSteps(stays: manager.runsMoreSteps(request))
        state.withLock { $0.steps = steps }
        // The end of the session ends the request, and with it the wait. The adapter, which is called with the manager, retains it.
        steps.begin { [weak manager] in
            if let manager { steps.give(await adapter.adapted(seen, for: manager)) }
            if !steps.endsNow() { await steps.runOthers() }
        }
        switch steps.answer {
        case .success(let adapted): makeTask(.first, of: request, by: manager, adapted: adapted)
        case .failure(let error): notMade(.first, request, because: error)
        case nil:
            guard let adapted = waitForAdaptation(of: request, .deferredFirst, manager) else { return }
            steps.callWithAnswer(adapted)
        }
    }

    /// Waits until the request is adapted, and begins the attempt.
    private func waitForAdaptation(
        of request: Request, _ next: AttemptKind, _ manager: SessionManager
    ) -> StepContinuation<AsyncSteps.Answer>? {
        waitForAttempt(of: request) { [weak manager] result in
            guard let manager else { return self.end(request, with: self.session.endError) }
            switch result {
            case .success(let adapted): self.makeTask(next, of: request, by: manager, adapted: adapted)
            case .failure(let error): self.notMade(next, request, because: error)
            }
        }
    }

    /// Begins an attempt of a request that is adapted.
    private func makeTask(_ kind: AttemptKind, of request: Request, by manager: SessionManager, adapted: AdaptableRequest?) {
        do {
            begin(kind, try manager.makeTask(for: request, adapted: adapted), of: request, by: manager)
        } catch {
            notMade(kind, request, because: error)
        }
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
