// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Drives a request from its first attempt to its handlers; it reads from top to bottom.
///
/// The transport reports to the driver and not to the session's delegate, because looking up the request for each piece of a download
/// costs more than libcurl does.
///
/// Every event, from the user, the transport or a timer, changes the state under the lock, and the resulting action is performed after
/// unlocking, on the event's thread: steps are called in place until one has to wait. A wait is a ``StepContinuation``, or the move to the
/// session's queue, where users' code runs and files are opened and moved.
final class RequestDriver: Sendable {
    /// The kinds of attempts.
    enum AttemptKind {
        case first
        /// The first, after its adapter had to wait.
        case deferredFirst
        case retry
    }

    let session: Session
    let sessionDelegate: SessionDelegate
    let body: any BodyReceiver
    /// The body of an upload; `nil` for other requests.
    let sentBody: SentBody?
    /// The request's own interceptor and options; `nil` if it has neither.
    let settings: RequestSettings?
    /// Signs the exchanges; `nil` for none.
    let signer: (any ExchangeSigner)?
    /// Whether there is a signer. A property, as to ask an optional existential is to copy it, and each exchange asks.
    let isSigned: Bool
    /// What the session's context carriers have captured; `nil` for nothing.
    let context: CapturedContext?
    let state = Lock(RequestState())

    /// On the thread of the call that creates the request.
    init(
        session: Session, sessionDelegate: SessionDelegate, body: any BodyReceiver, sentBody: SentBody? = nil, settings: RequestSettings?
    ) {
        self.session = session
        self.sessionDelegate = sessionDelegate
        self.body = body
        self.sentBody = sentBody
        self.settings = settings
        // Asked without options where there are none, as an optional of them is copied with all of its parts.
        signer = settings == nil ? session.configuration.signer : session.signer(for: settings?.options)
        isSigned = signer != nil
        context = session.carriesContext ? CapturedContext(session.contextCarriers) : nil
    }

    // MARK: - An attempt begins

    /// Creates the request's first task, and starts it unless the user does that. On the caller's thread.
    func start(_ request: Request, by manager: SessionManager) {
        if let refusal = session.refusal { return notMade(.first, request, because: refusal) }
        if body.retainsManager, manager.startRequestsImmediately { state.withLock { $0.manager = manager } }
        // An asynchronous adapter begins the task itself.
        if manager.needsTask(request), manager.effectiveAdapter(of: request)?.asyncAdapter == nil { beginSteps() }
        guard beginDeadline() else { return notMade(.first, request, because: CurlewError.cancelled) }
        attempt(.first, of: request, by: manager)
    }

    func attempt(_ kind: AttemptKind, of request: Request, by manager: SessionManager) {
        guard let adapter = manager.effectiveAdapter(of: request) else { return attempt(kind, of: request, by: manager) { nil } }
        if let waiting = adapter.asyncAdapter { return awaitAdapter(waiting, for: kind, of: request, by: manager) }
        attempt(kind, of: request, by: manager) { try adapter.adapted(request.original.get().original) }
    }

    private func attempt(
        _ kind: AttemptKind, of request: Request, by manager: SessionManager, _ adapted: () throws -> AdaptableRequest?
    ) {
        do {
            let task = try inContext { () throws in try manager.makeTask(for: request, adapted: adapted()) }
            begin(kind, task, of: request, by: manager)
        } catch let pending as PendingAdaptation {
            prepare(pending, for: kind, of: request, by: manager)
        } catch {
            notMade(kind, request, because: error)
        }
    }

    func begin(_ kind: AttemptKind, _ task: SessionTask, of request: Request, by manager: SessionManager) {
        if kind == .retry {
            body.reset()
            if let sentBody { sentBody.reset(after: request.task?.currentTransfer?.body) }
        }
        // Entered before the task can complete: its completion removes the request.
        sessionDelegate.enter(request, as: task.taskIdentifier)
        let (last, hasBegun) = state.withLock { state in
            let (last, hasBegun) = (state.number, state.begin(task, of: request, isRetry: kind == .retry))
            // Queued inside of the lock, as other threads can act on the task from now on.
            if hasBegun, session.isMonitored(.attempts) {
                session.notifyMonitors(of: request, .attempts) { $0.request(request, didCreate: task) }
            }
            return (last, hasBegun)
        }
        guard hasBegun else {
            sessionDelegate.remove(task.taskIdentifier)
            return end(request, with: CurlewError.cancelled)
        }
        if last != 0 { sessionDelegate.remove(last) }
        switch kind {
        case .first where manager.startRequestsImmediately: request.resume()
        case .first, .deferredFirst: startDeferred(task, of: request, by: manager)
        case .retry: resume(task)
        }
    }

    /// Fails the first attempt with the error, which the retriers see if an adapter has failed. A retry ends the request with it.
    func notMade(_ kind: AttemptKind, _ request: Request, because error: any Error) {
        guard !state.withLock({ $0.lifecycle.isCancelled }) else { return end(request, with: CurlewError.cancelled) }
        guard kind != .retry else { return end(request, with: error) }
        state.withLock { state in
            state.lifecycle.firstAttemptFailed()
            if state.attempt.startTime == nil { state.attempt.startTime = CFAbsoluteTime.now }
            state.fail(error)
        }
        complete(request, TransferCompletion(error: error, metrics: TransferMetrics()))
    }

    // MARK: - Its transfer runs

    // On the transport's thread, but for decisions, which may take the session's queue. How the body of an accepted response is received,
    // and its pieces, is in RequestDriver+Body; what users and the session do, and the waits, in RequestDriver+Control.

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        let task = state.withLock { state -> SessionTask? in
            guard state.number == id else { return nil }
            // Set before the decision: a redirect that is refused is a response, too.
            state.attempt.head = head
            return state.task
        }
        guard let task else { return .cancel }
        if session.isMonitored(.responses) { notifyMonitors(of: head, task) }
        switch ResponseRules.decide(about: head, of: task, in: self) {
        case .decided(let decision): return apply(decision, to: head, of: task, isOnQueue: false)
        case .pending(let rules):
            ask(rules, about: head, of: task)
            return .pause
        }
    }

    /// Evaluates the remaining rules on the session's queue.
    private func ask(_ rules: ArraySlice<any ResponseRule.Type>, about head: ResponseHead, of task: SessionTask) {
        let number = state.withLock { $0.pendingDecision.begin() }
        session.queue.async { [self] in
            guard let transfer = task.currentTransfer, let request = state.withLock({ $0.request }) else {
                return decided(.accept, about: head, of: task, number)
            }
            let response = PendingResponse(head: head, transfer: transfer, task: task, request: request, driver: self, number: number)
            ResponseRules.ask(rules, about: response) { self.decided($0, about: head, of: task, number) }
        }
    }

    private func decided(_ decision: ResponseDecision, about head: ResponseHead, of task: SessionTask, _ number: Int) {
        guard state.withLock({ $0.pendingDecision.decided(number) }) else { return }
        // A request cancelled while the decision was pending fails as cancelled, not with the decision's error.
        let isCancelled = task.state == .canceling
        let action = apply(isCancelled ? .fail(cancellation) : decision, to: head, of: task, isOnQueue: true)
        continueTransfer(of: task, with: action)
    }

    private func apply(_ decision: ResponseDecision, to head: ResponseHead, of task: SessionTask, isOnQueue: Bool) -> ReceiveAction {
        switch decision {
        case .accept: return accept(head, of: task, isOnQueue: isOnQueue)
        case .becomeDownload:
            do {
                try (body as? DataReceiver)?.becomeDownload(in: session.configuration.temporaryDirectory)
                listeners(of: task)?.becameDownload?()
                return accept(head, of: task, isOnQueue: isOnQueue)
            } catch {
                fail(error)
                return .cancel
            }
        case .followUp, .fail:
            var body: DiscardedBody?
            if case .followUp = decision { body = DiscardedBody(announced: head.bodyLength(toHead: task.isHead)) }
            state.withLock { [body] state in
                state.attempt.decision = decision
                state.attempt.discarded = body
            }
            return body?.isCutOff == false ? .proceed : .cancel
        }
    }

    /// The transfer, which waited for a decision on the session's queue, is resumed, or has completed in the meantime.
    func continueTransfer(of task: SessionTask, with action: ReceiveAction) {
        let (next, request) = state.withLock { ($0.pendingDecision.applied(), $0.request) }
        switch (next, action) {
        case (.complete(let outcome), _): if let request { proceed(request, after: outcome) }
        case (.resume, .proceed): task.resumeReceiving()
        // The step that caused the pause resumes the transfer.
        case (.resume, .pause): break
        case (.resume, .cancel): task.endTransfer()
        }
    }

    // MARK: - It completes

    // An outcome is passed on as it is unless it has an error: to explain or keep it means to copy it with all its metrics.

    func transfer(_ id: Int, didComplete outcome: TransferCompletion) {
        if outcome.error == nil { completed(id, outcome) } else { completed(id, session.explained(outcome)) }
    }

    /// The transfer has completed with an outcome that says all of its error.
    func completed(_ id: Int, _ outcome: TransferCompletion) {
        if session.reportsExchanges { reportExchange(id, outcome) }
        if recordsExchanges { recordExchangeEnd(id) }
        let (request, isReady, waiting) = state.withLock { state -> (Request?, Bool, AnyObject?) in
            guard state.number == id, let request = state.request else { return (nil, false, nil) }
            let isReady = state.pendingDecision.transferCompleted(outcome)
            // A step that waits for something during the transfer is late now.
            return (request, isReady, isReady ? state.stopWaiting() : nil)
        }
        guard let request else { return }
        if isReady { return withExtendedLifetime(waiting) { proceed(request, after: outcome) } }
        // A cancellation in the meantime has found no completion that waits.
        if session.isInvalidated || request.task?.state == .canceling { abandonDecision() }
    }

    /// Sends the follow-up in the same task, if there is one, or else completes the attempt.
    func proceed(_ request: Request, after outcome: TransferCompletion) {
        // Checked first: an optional follow-up is as large as a follow-up, so that returning `nil` would copy as much.
        guard state.withLock({ $0.isFollowed }), let followUp = state.withLock({ $0.takeFollowUp(after: outcome) }) else {
            return complete(request, outcome)
        }
        guard let task = request.task, task.take(followUp) else {
            fail(cancellation)
            return complete(request, outcome)
        }
        state.withLock { state in
            state.noteTransaction(outcome.metrics)
            state.noteFirstByte(outcome.metrics)
            state.attempt.head = nil
            state.attempt.protocolResponse = nil
            state.attempt.sent = 0
        }
        sentBody?.followUp(with: followUp.request.body)
        if session.isMonitored(.responses), let next = followUp.request.urlRequest {
            session.notifyMonitors(of: request, .responses) { $0.request(request, willContinueWith: next) }
        }
        task.start(followUp, after: outcome)
    }

    /// The attempt has completed.
    func complete(_ request: Request, _ outcome: TransferCompletion) {
        guard let error = outcome.error else { return noteCompletion(of: request, outcome) }
        let (isCancelled, failure) = state.withLock { ($0.lifecycle.isCancelled, $0.deadlineFailure) }
        // The transport may have failed it just before it learned of the cancellation, which came first for the user.
        let cause = isCancelled ? CurlewError.cancelled : error
        let completion = TransferCompletion(error: cause, metrics: outcome.metrics, trailers: outcome.trailers)
        noteCompletion(of: request, completion.explained(by: failure, request))
    }

    /// The attempt has completed, with all that is known of its error: the request is concluded, as soon as it has a handler.
    func noteCompletion(of request: Request, _ outcome: TransferCompletion) {
        do { try body.complete(outcome) } catch { fail(error) }
        if let sentBody { sentBody.complete(outcome, of: request.task?.currentTransfer?.body) }
        let action = state.withLock { state -> RequestLifecycle.Action in
            if case .fail(let error) = state.attempt.decision { state.fail(error) }
            if let error = outcome.error { state.fail(error) }
            // A task that was never started was no exchange.
            if state.task?.completed(state.attempt.head, outcome.metrics, state.attempt.error) == true {
                state.noteTransaction(outcome.metrics)
            }
            state.noteFirstByte(outcome.metrics)
            if !outcome.trailers.isEmpty { state.attempt.trailers = outcome.trailers }
            state.attempt.endTime = CFAbsoluteTime.now
            state.attempt.hasSucceeded = outcome.error == nil
            let action = state.lifecycle.taskCompleted()
            if action == .waitForHandler { waitForHandler(request, &state) }
            return action
        }
        if action == .conclude { conclude(request) }
    }

    /// Waits inside the lock, so that a handler attached from now on ends the wait.
    private func waitForHandler(_ request: Request, _ current: inout RequestState) {
        let step = WaitingStep<Void>(in: state) {
            if self.state.withLock({ $0.lifecycle.waitTimedOut() }) == .conclude { self.conclude(request) }
        }
        current.waiting = step
        let continuation = StepContinuation(step)
        session.systemTimers.start(after: Self.handlerWait) { continuation() }
    }

    // MARK: - The request is concluded

    /// Settles the body, validates the response, and commits the body.
    func conclude(_ request: Request) {
        guard body.concludesOnQueue || sentBody?.hasFile == true else { return validate(request, isOnQueue: false, commits: false) }
        session.queue.async { [self] in
            do { try body.settle(completedAttempt(of: request)) } catch { fail(error) }
            validate(request, isOnQueue: true, commits: true)
        }
    }

    /// Validates the response, commits the body, and finishes or retries the request.
    ///
    /// - Parameters:
    ///   - isOnQueue: whether this is the session's queue, on which users' validators and decoders run.
    ///   - commits: whether the body was settled.
    func validate(_ request: Request, isOnQueue: Bool, commits: Bool) {
        while let (validator, decodes) = state.withLock({ state in
            state.takeValidator().map { ($0, !state.refusalDecoders.isEmpty) }
        }) {
            if case .awaited(let validation) = validator {
                guard !state.withLock({ $0.attempt.error != nil }) else { continue }
                return awaitValidation(validation, of: request, commits: commits)
            }
            guard isOnQueue || !validator.isCustom && !decodes else {
                return session.queue.async { [self] in
                    run(validator, on: request)
                    validate(request, isOnQueue: true, commits: commits)
                }
            }
            run(validator, on: request)
        }
        if commits {
            do { try body.commit(completedAttempt(of: request)) } catch { fail(error) }
        }
        let failure = failure(of: request)
        if session.isMonitored(.attempts) { reportCompletion(of: request) }
        if let failure { considerRetry(of: request, after: failure) } else { finish(request) }
    }

    /// Runs a validator unless the request has failed: the first failure counts.
    private func run(_ validator: Validator, on request: Request) {
        guard state.withLock({ $0.attempt.error == nil }), let error = inContext({ validator.validate(request) }) else { return }
        // Now, because the file of a refused download is removed next.
        fail(describing(error, of: request))
    }

    // MARK: - It ends

    /// Ends a request that will not be retried with an error that replaces the one of its last attempt.
    func end(_ request: Request, with error: any Error) {
        let error = describing(error, of: request)
        let timer = state.withLock { state in
            defer { state.retryTimer = nil }
            state.attempt.error = state.explained(error, request)
            return state.retryTimer
        }
        if let timer { session.timers.cancel(timer) }
        guard body.isDiscardable else { return finish(request) }
        session.queue.async { [self] in
            body.discard()
            finish(request)
        }
    }

    /// Reports the end, and releases the handlers.
    func finish(_ request: Request) {
        guard let notify = closures({ $0.taskDidComplete }),
            let (task, error) = state.withLock({ state in state.task.map { ($0, state.attempt.error) } }),
            !state.withLock({ $0.lifecycle.isAttemptReported })
        else { return release(request) }
        session.queue.async { [self] in
            inContext { notify(session, task, error.map { session.delivered($0) }) }
            release(request)
        }
    }

    /// Releases the handlers (``RequestState/finish()``) and resumes the awaiting tasks: the only place where that happens, and the last thing
    /// that happens to a request.
    private func release(_ request: Request) {
        sentBody?.finish()
        let (number, isReopened, timer) = state.withLock { ($0.number, $0.lifecycle.isReopened, $0.deadline?.timer) }
        if let timer { session.timers.cancel(timer) }
        // Before the handlers run, which may release everything.
        if number != 0 { sessionDelegate.take(number) }
        defer { if number != 0 { sessionDelegate.endWasReported() } }
        switch state.withLock({ $0.finish() }) {
        case .finishedBefore: return
        case .unvalidated:
            // A validator was added in the meantime.
            sessionDelegate.enter(request, as: number)
            return conclude(request)
        case .finished(let ended):
            ended.steps?.end()
            body.requestDidFinish(request)
            ended.callWaiters()
            settings?.options.ownership?.end()
            if let manager = ended.manager { session.release(manager) }
        }
        if !isReopened { reportEnd(of: request) }
    }
}
