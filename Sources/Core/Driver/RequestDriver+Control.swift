// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// What the user of a request and its session do while it runs.

extension RequestDriver {
    /// The wait for a handler after a transfer has completed, and for a reader of a body that is too long for memory.
    static let handlerWait = Duration.milliseconds(100)

    /// The current attempt's task.
    var task: SessionTask? { state.withLock { $0.task } }

    // MARK: Starting and stopping

    // The calls of the monitors are queued inside of the lock of the change that they are about, before its effects: so they come in the
    // order of the changes, if several threads make some, and before the events of a transfer that is started or cancelled.

    /// The user has resumed the request, and with it its task, if there is one.
    func resumedByUser(_ request: Request) {
        func notify() {
            if session.isMonitored(.control) { session.notifyMonitors(of: request, .control) { $0.requestDidResume(request) } }
        }
        let task = state.withLock { state in
            state.isResumed = true
            state.isSuspended = false
            if state.attempt.startTime == nil { state.attempt.startTime = CFAbsoluteTime.now }
            if state.task == nil { notify() }
            return state.task
        }
        task?.resume(noting: notify)
    }

    /// The user has suspended the request, and with it its task, if there is one.
    func suspendedByUser(_ request: Request) {
        func notify() {
            if session.isMonitored(.control) { session.notifyMonitors(of: request, .control) { $0.requestDidSuspend(request) } }
        }
        let (task, manager) = state.withLock { state in
            state.isSuspended = true
            // A suspended request may never finish: only one that is awaited keeps its session.
            let manager = state.isAwaited ? nil : state.manager
            if manager != nil { state.manager = nil }
            if state.task == nil { notify() }
            return (state.task, manager)
        }
        task?.suspend(noting: notify)
        withExtendedLifetime(manager) {}
    }

    /// Starts the first task if the user has resumed the request before it had one.
    func startDeferred(_ task: SessionTask, of request: Request, by manager: SessionManager) {
        let startsAtOnce = manager.startRequestsImmediately
        let starts = state.withLock { state in
            // Other threads may have suspended or cancelled it since it has the task.
            guard startsAtOnce || state.isResumed, !state.isSuspended, !state.lifecycle.isCancelled else { return false }
            if state.attempt.startTime == nil { state.attempt.startTime = CFAbsoluteTime.now }
            if session.isMonitored(.control) { session.notifyMonitors(of: request, .control) { $0.requestDidResume(request) } }
            return true
        }
        if starts {
            resume(task)
        } else if !session.isOpen, task.claimUnstarted() {
            // The session was invalidated before this task existed, so that nothing else would complete it.
            task.completeUnstarted(with: session.endError)
        }
    }

    /// Starts a task unless the request was suspended while it had none. Repeats if that changes concurrently.
    func resume(_ task: SessionTask) {
        while !state.withLock({ $0.isSuspended }) {
            task.resume()
            guard state.withLock({ $0.isSuspended }) else { return }
            task.suspend()
        }
    }

    /// The user has cancelled the request: cancels the task or, between two attempts, the request.
    func cancelledByUser(_ request: Request) {
        let effects = state.withLock { state in
            if session.isMonitored(.control) { session.notifyMonitors(of: request, .control) { $0.requestDidCancel(request) } }
            return state.cancel()
        }
        perform(effects, of: request)
    }

    func perform(_ cancellation: RequestState.CancelEffects, of request: Request) {
        switch cancellation.action {
        case .none: break
        case .cancelTask: cancellation.task?.cancel()
        case .endWait: withExtendedLifetime(cancellation.waiting) { end(request, with: CurlewError.cancelled) }
        case .endValidation: cancellation.validation?(CurlewError.cancelled)
        }
    }

    /// Whether a retrier may decide after an error: never after a cancellation or the end of the session.
    func isRetriable(after error: any Error) -> Bool {
        if case CurlewError.cancelled = error { return false }
        if case CurlewError.sessionShutDown = error { return false }
        return !state.withLock({ $0.lifecycle.isCancelled }) && !session.isInvalidated
    }

    /// Whether a request may be retried: never after it was cancelled.
    func mayRetry(_ request: Request, after error: any Error) -> Bool {
        isRetriable(after: error) && (request.isRepeatable || mayRenewBody(of: request)) && body.holdForRetry()
    }

    /// Asks the session's gate for a retry, unless a policy has refused the last attempt, which so was none: then the wait is noted.
    func mayTryAgain(_ request: Request, after delay: TimeInterval) -> Bool {
        let isRefused = state.withLock { state -> Bool in
            guard state.isRefused else { return false }
            state.refusals.count += 1
            state.refusals.delay += delay
            return true
        }
        return isRefused || session.configuration.retryGate?.permitsRetry(of: request) ?? true
    }

    /// Ends a request that no retrier decides about. If its deadline has passed while its attempt failed, the deadline is why.
    func endWithoutRetry(_ request: Request, after error: any Error) {
        let isLate = state.withLock { $0.deadlineFailure != nil }
        if case CurlewError.transferFailed(let failure) = error, failure.kind == .deadline { return finish(request) }
        if isLate { end(request, with: CurlewError.cancelled) } else { finish(request) }
    }

    /// The redirect policy: the request's own, or else the session's.
    var redirects: RedirectPolicy { settings?.options.redirects ?? session.configuration.redirects }

    /// The decision for which a completion waits is not needed any more: the task is being cancelled.
    func abandonDecision() {
        let (request, outcome, waiting) = state.withLock { state -> (Request?, TransferCompletion?, AnyObject?) in
            guard let outcome = state.pendingDecision.abandon() else { return (nil, nil, nil) }
            return (state.request, outcome, state.stopWaiting())
        }
        guard let request, let outcome else { return }
        withExtendedLifetime(waiting) {
            proceed(request, after: TransferCompletion(error: cancellation, metrics: outcome.metrics))
        }
    }

    /// The session is invalidated: ends a request that waits between two attempts, which the transport does not know.
    func sessionEnded() {
        let (request, waiting) = state.withLock { state -> (Request?, AnyObject?) in
            guard state.lifecycle.stage == .betweenAttempts, let waiting = state.stopWaiting() else { return (nil, nil) }
            return (state.request, waiting)
        }
        if let request { withExtendedLifetime(waiting) { end(request, with: session.endError) } }
    }

    /// Why a task is being cancelled: by its session, or else by the user.
    var cancellation: CurlewError { session.isInvalidated ? session.endError : .cancelled }

    /// Notifies the session's monitors of a response.
    func notifyMonitors(of head: ResponseHead, _ task: SessionTask) {
        guard let request = state.withLock({ $0.request }), let transfer = task.currentTransfer else { return }
        session.notifyMonitors(of: request, .responses) { monitor in
            if let response = ResponseContext(transfer: transfer, head: head).response { monitor.request(request, didReceive: response) }
        }
    }

    /// Reports the completion of an attempt to the session's monitors.
    func reportCompletion(of request: Request) {
        let (error, task, isReported) = state.withLock { ($0.attempt.error, $0.task, $0.lifecycle.isAttemptReported) }
        guard !isReported, let task else { return }
        let delivered = error.map { session.delivered($0) }
        session.notifyMonitors(of: request, .attempts) { $0.request(request, didComplete: task, with: delivered) }
    }

    /// Notes why the request fails; the first reason counts.
    func fail(_ error: any Error) {
        let error = (error as? BodyFailure).map { $0.transferFailure(url: task?.currentTransfer?.url ?? "") } ?? error
        state.withLock { $0.fail($0.explained(error, $0.request)) }
    }

    // MARK: Handlers

    /// Adds a handler after the others.
    func addHandler(_ handler: @escaping @Sendable () -> Void, to request: Request) {
        let (action, attachment, manager) = state.withLock { state in
            // A request with handlers does not keep its session, unless it is awaited as well.
            let manager = state.isAwaited ? nil : state.manager
            if manager != nil { state.manager = nil }
            let (action, attachment) = state.attach(to: request) { $0.add(handler) }
            return (action, attachment, manager)
        }
        // Released after unlocking: that may end the session, and the request with it.
        withExtendedLifetime(manager) {}
        attachment?.attached(.handler)
        if action == .conclude { conclude(request) }
    }

    /// Adds a waiter, which is called when the request finishes, or at once if it has.
    func addWaiter(_ waiter: RequestState.Waiter, to request: Request) {
        let (hasFinished, action, attachment) = state.withLock { state -> (Bool, RequestLifecycle.Action, AttachmentWait?) in
            let (action, attachment) = state.attach(to: request) { if $0.lifecycle.stage != .finished { $0.add(waiter) } }
            // It was released with the first handler. A request that was not started may never finish, and so does not keep it.
            if state.manager == nil, state.attempt.startTime != nil, state.lifecycle.stage != .finished, body.retainsManager {
                state.manager = sessionDelegate.manager
            }
            return (state.lifecycle.stage == .finished, action, attachment)
        }
        if hasFinished { waiter.call() }
        attachment?.attached([.handler, .awaiter])
        if action == .conclude { conclude(request) }
    }

    // MARK: Waiting

    /// Resumes a wait for something that was attached to the request.
    func attached(_ attachment: AttachmentWait.Attachments) {
        state.withLock { $0.attachment }?.attached(attachment)
    }

    /// Waits until one of these is attached, or the limit has passed; returns `false` if one is attached already.
    ///
    /// - Parameter number: identifies the decision for which to wait; without that decision the closure is never called.
    func wait(
        for awaited: AttachmentWait.Attachments, atMost limit: Duration? = nil, while number: Int? = nil,
        _ next: @escaping @Sendable (AttachmentWait.Attachments) -> Void
    ) -> Bool {
        let step = WaitingStep(in: state, next)
        let continuation = StepContinuation(step)
        let mustWait = state.withLock { state in
            guard state.attachments.isDisjoint(with: awaited) else { return false }
            guard number.map({ state.pendingDecision.isPending($0) }) ?? true else { return true }
            state.waiting = step
            state.attachment = AttachmentWait(awaited: awaited, continuation: continuation)
            return true
        }
        guard mustWait else { return false }
        // Checked after registering, because readers are attached under another lock.
        if awaited.contains(.reader), isRead { continuation(.reader) }
        if let limit { session.systemTimers.start(after: limit) { continuation(.nothing) } }
        return true
    }

    /// Waits for something between two attempts, or before the first.
    ///
    /// - Returns: the continuation; `nil` if the request was cancelled or its session invalidated, which ends it here.
    func waitForAttempt<Answer: Sendable>(
        of request: Request, _ next: @escaping @Sendable (Answer) -> Void
    ) -> StepContinuation<Answer>? {
        let step = WaitingStep(in: state, next)
        let number = state.withLock { state in
            // A request that waits for its first task has no number yet.
            if state.number == 0 { state.number = session.makeTaskNumber() }
            return state.number
        }
        // Entered before the wait can end: a cancellation removes the request.
        sessionDelegate.enter(request, as: number)
        let isWanted = state.withLock { state in
            guard state.lifecycle.waitForAttempt() else { return false }
            state.request = request
            state.waiting = step
            return true
        }
        guard isWanted else {
            end(request, with: CurlewError.cancelled)
            return nil
        }
        // Checked after registering, so that a concurrent invalidation is seen here or in `sessionEnded()`.
        if session.isInvalidated {
            sessionEnded()
            return nil
        }
        return StepContinuation(step)
    }

    /// Waits for an asynchronous validation, which the cancellation of the request ends.
    func waitForValidation(_ next: @escaping @Sendable ((any Error)?) -> Void) -> StepContinuation<(any Error)?> {
        let step = WaitingStep(in: state, next)
        let continuation = StepContinuation(step)
        let isCancelled = state.withLock { state in
            state.waiting = step
            state.validation = continuation
            return state.lifecycle.isCancelled
        }
        if isCancelled { continuation(CurlewError.cancelled) }
        return continuation
    }

    /// Waits for a user's answer about a response, as long as the decision with this number is pending.
    func wait<Answer: Sendable>(while number: Int, _ next: @escaping @Sendable (Answer) -> Void) -> StepContinuation<Answer> {
        let step = WaitingStep(in: state, next)
        state.withLock { if $0.pendingDecision.isPending(number) { $0.waiting = step } }
        return StepContinuation(step)
    }
}

// MARK: - TransferObserver

extension RequestDriver: TransferObserver {
    func transfer(_ id: Int, didSend count: Int64) {
        let notify = closures { $0.taskDidSendBodyData }
        guard notify != nil || sentBody != nil, let task = state.withLock({ $0.number == id ? $0.task : nil }) else { return }
        let body = task.currentTransfer?.body
        if notify == nil || ownClosures != nil { sentBody?.sent(count, of: body) }
        guard let notify else { return }
        // The count restarts when the request is sent again.
        let piece = state.withLock { state in
            defer { state.attempt.sent = count }
            state.noteBodySent()
            return count >= state.attempt.sent ? count - state.attempt.sent : count
        }
        session.queue.async { [self] in inContext { notify(session, task, piece, count, body?.length ?? -1) } }
    }
}

// MARK: - StreamTransferObserver

extension RequestDriver: StreamTransferObserver {
    func stream(_ id: Int, didOpen metrics: TransferMetrics) {
        guard state.withLock({ $0.number == id }) else { return }
        (body as? RawConnection)?.opened(metrics)
    }

    func stream(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        transfer(id, didReceive: bytes)
    }

    func streamDidEndReceiving(_ id: Int) {
        (body as? RawConnection)?.endReceiving()
    }

    func stream(_ id: Int, didSend count: Int64) {
        (body as? RawConnection)?.sent(count)
    }

    func stream(_ id: Int, didComplete outcome: TransferCompletion) {
        transfer(id, didComplete: outcome)
    }
}

extension RequestDriver: RawConnection.Link {
    func resumeReceiving() {
        task?.resumeReceiving()
    }

    func send(_ bytes: Data, endOfStream: Bool) -> Bool {
        guard let task else { return false }
        task.send(bytes, endOfStream: endOfStream)
        return true
    }

    func cancelTask() {
        task?.cancel()
    }

    func describing(_ error: any Error) -> any Error {
        state.withLock { $0.request }.map { describing(error, of: $0) } ?? error
    }

    func asksRetrier(about request: Request, after error: any Error) -> Bool {
        guard request.retrier(before: sessionDelegate.retrier) != nil, sessionDelegate.manager != nil else { return false }
        return isRetriable(after: state.withLock { $0.attempt.error } ?? error)
    }
}

// MARK: - CacheDecider

extension RequestDriver: CacheDecider {
    /// Whether there is a closure to call.
    var decidesAboutCaching: Bool { body is DataReceiver && closures { $0.dataTaskWillCacheResponse != nil } }

    /// Calls the delegate's closure on the session's queue, if there is one; for data and upload requests only.
    func decide(aboutCaching proposed: CachedURLResponse, decided: @escaping @Sendable (CachedURLResponse?) -> Void) {
        guard let closure = closures({ $0.dataTaskWillCacheResponse }), body is DataReceiver, let task else {
            return decided(proposed)
        }
        session.queue.async { [self] in inContext { closure(session, task, proposed, decided) } }
    }
}
