// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Knows which request a task belongs to, and brings requests to their end.
///
/// The transport tells a task's ``TaskDelegate`` what happens; how the task ends, it learns here.
///
/// The end of every request is here: validate, ask the retrier, ``TaskDelegate/finish()``.
open class SessionDelegate: @unchecked Sendable {  // everything mutable is behind locks
    /// How long a request whose transfer is over waits for somebody who wants its result.
    static let waitForHandler = Duration.milliseconds(100)

    private struct Owner {
        weak var manager: SessionManager?
        var retrier: (any RequestRetrier)?
    }

    private let requests = Lock(NumberMap<Request>())
    /// Those that wait for the retrier or its delay; they need not have a task.
    private let retrying = Lock<[ObjectIdentifier: Request]>([:])
    private let owner = Lock(Owner())
    let closures = Lock(SessionClosures())

    /// Makes a delegate, to be given to one manager.
    public init() {}

    /// The request that a task belongs to; `nil` for a task that is over, or not of this session. Any thread. Only the session enters and
    /// removes requests.
    open internal(set) subscript(task: SessionTask) -> Request? {
        get { request(task.taskIdentifier) }
        set { requests.withLock { $0[task.taskIdentifier] = newValue } }
    }

    var retrier: (any RequestRetrier)? {
        get { owner.withLock { $0.retrier } }
        set { owner.withLock { $0.retrier = newValue } }
    }

    var manager: SessionManager? {
        get { owner.withLock { $0.manager } }
        set { owner.withLock { $0.manager = newValue } }
    }

    private func request(_ id: Int) -> Request? {
        requests.withLock { $0[id] }
    }

    // MARK: The end of a request

    /// Does what a request's lifecycle asks for.
    func perform(_ action: RequestLifecycle.Action, on request: Request) {
        switch action {
        case .none: break
        case .conclude: conclude(request)
        case .waitForHandler:
            request.session.timers.start(after: Self.waitForHandler) {
                self.perform(request.delegate.state.withLock { $0.lifecycle.waitEnded() }, on: request)
            }
        }
    }

    private func conclude(_ request: Request) {
        guard request.delegate.mustConcludeOnQueue else { return validate(request, isOnQueue: false) }
        request.session.queue.async {
            request.delegate.settle()
            self.validate(request, isOnQueue: true)
        }
    }

    private func validate(_ request: Request, isOnQueue: Bool) {
        while let validator = request.delegate.nextValidator() {
            guard isOnQueue || !validator.isCustom else {
                return request.session.queue.async {
                    request.delegate.run(validator, on: request)
                    self.validate(request, isOnQueue: true)
                }
            }
            request.delegate.run(validator, on: request)
        }
        request.delegate.deliver()
        if request.session.isMonitored, !request.delegate.endIsTold { tellMonitorsOfEnd(of: request) }
        guard request.delegate.ownError != nil, let error = request.delegate.error else { return finish(request) }
        if let pending = error as? PendingAdaptation { return wait(for: pending, of: request) }
        considerRetry(of: request, after: error)
    }

    /// Asks the retriers about a failed request, if there are any and they may be asked.
    private func considerRetry(of request: Request, after error: any Error) {
        guard let retrier = request.retrier(before: retrier), let manager, mayRetry(request) else { return finish(request) }
        ask(retrier, of: manager, about: request, error)
    }

    /// Whether a request may be tried again: never against the will of who cancelled it.
    private func mayRetry(_ request: Request) -> Bool {
        if case CurlewError.cancelled? = request.delegate.ownError { return false }
        guard !request.delegate.state.withLock({ $0.lifecycle.isCancelled }), !request.session.isInvalidated else { return false }
        return (request.isRepeatable || mayRenewBody(of: request)) && request.delegate.holdForRetry()
    }

    private func ask(_ retrier: any RequestRetrier, of manager: SessionManager, about request: Request, _ error: any Error) {
        retrying.withLock { $0[ObjectIdentifier(request)] = request }
        let attempt = request.delegate.state.withLock { state in
            state.hasWaited = true
            return state.lifecycle.beginRetrying()
        }
        guard let attempt else { return finish(request) }
        // One of both sees the other: the session's end this request, or this line that end.
        if request.session.isInvalidated { return endRetrying(request, with: CurlewError.sessionInvalidated) }
        request.session.queue.async {
            guard request.delegate.state.withLock({ $0.lifecycle.isRetrying(attempt) }) else { return }
            // Weak, as the answer may never come, and the delay be long: `retrying` holds the request as long as that matters. Not even
            // the delegate is held: it holds the retrier, which may keep the completion.
            retrier.should(manager, retry: request, with: error) { [weak request] shouldRetry, delay in
                guard let request else { return }
                request.sessionDelegate.retrierAnswered(shouldRetry, delay, on: request, attempt: attempt)
            }
        }
    }

    private func retrierAnswered(_ shouldRetry: Bool, _ delay: TimeInterval, on request: Request, attempt: Int) {
        // Ends the wait under the lock, so that a concurrent cancellation does not finish the request a second time.
        let isInTime = request.delegate.state.withLock { state in
            state.lifecycle.retrierAnswered(attempt) && (shouldRetry || state.lifecycle.retryingEnded())
        }
        guard isInTime else { return }
        guard shouldRetry else { return finish(request) }
        if let error = request.delegate.error {
            request.session.tellMonitors { $0.request(request, willRetryAfter: delay, because: error) }
        }
        let retry: @Sendable () -> Void = { [weak request] in
            if let request { request.sessionDelegate.retry(request, attempt: attempt) }
        }
        guard delay > 0 else { return request.session.queue.async(execute: retry) }
        // `Duration` traps on more than it can hold.
        let timer = request.session.timers.start(after: .seconds(min(delay, 100 * 365 * 86_400)), retry)
        request.delegate.state.withLock { $0.retryTimer = timer }
    }

    /// - Parameter isRetry: whether something was tried before.
    private func retry(_ request: Request, attempt: Int, isRetry: Bool = true) {
        guard request.delegate.state.withLock({ $0.lifecycle.isRetrying(attempt) }) else { return }
        guard let manager, !request.session.isInvalidated else { return endRetrying(request, with: CurlewError.sessionInvalidated) }
        guard request.isRepeatable || !mayRenewBody(of: request) else {
            return renewBody(of: request) { isRenewed in
                guard isRenewed else { return self.endRetrying(request, with: CurlewError.redirectFailed(reason: .bodyNotRepeatable)) }
                self.start(request, attempt: attempt, by: manager, isRetry: isRetry)
            }
        }
        start(request, attempt: attempt, by: manager, isRetry: isRetry)
    }

    /// Starts the next attempt.
    private func start(_ request: Request, attempt: Int, by manager: SessionManager, isRetry: Bool) {
        let old = request.task
        do {
            let task = try manager.makeTask(for: request)
            // Before anybody can cancel the task: its end has to find the request.
            self[task] = request
            guard request.delegate.begin(task, attempt: attempt, isRetry: isRetry) else {
                self[task] = nil
                // Cancelled while the attempt was prepared: it has to be finished here.
                return endRetrying(request, with: CurlewError.cancelled)
            }
            request.streamBody?.endRenewal()
            request.session.tellMonitors { $0.request(request, didCreate: task) }
            forget(request)
            if let old { self[old] = nil }
            if isRetry { resume(task, of: request) } else { resumeFirst(task, of: request, by: manager) }
        } catch let pending as PendingAdaptation {
            prepare(pending, of: request, attempt: attempt, isRetry: isRetry)
        } catch {
            notAdapted(request, because: error, attempt: attempt, isRetry: isRetry)
        }
    }

    /// Starts a task unless the request was suspended while it had none. Repeats if the state changes concurrently.
    private func resume(_ task: SessionTask, of request: Request) {
        while !request.delegate.state.withLock({ $0.isSuspended }) {
            task.resume()
            guard request.delegate.state.withLock({ $0.isSuspended }) else { return }
            task.suspend()
        }
    }

    /// Starts the first task of a request that had to wait for it, as the manager would have done at once.
    private func resumeFirst(_ task: SessionTask, of request: Request, by manager: SessionManager) {
        let (isResumed, isSuspended) = request.delegate.state.withLock { ($0.isResumed, $0.isSuspended) }
        if (manager.startRequestsImmediately || isResumed) && !isSuspended {
            request.delegate.noteStart()
            resume(task, of: request)
            if request.session.isMonitored { request.session.tellMonitors { $0.requestDidResume(request) } }
        } else if request.session.isInvalidated, task.claimUnstarted() {
            task.completeUnstarted(with: CurlewError.sessionInvalidated)
        }
    }

    /// Waits until a request can be adapted for the first time, as for a retrier.
    private func wait(for pending: PendingAdaptation, of request: Request) {
        retrying.withLock { $0[ObjectIdentifier(request)] = request }
        let attempt = request.delegate.state.withLock { state in
            state.hasWaited = true
            // The wait is no failure.
            state.error = nil
            return state.lifecycle.beginRetrying()
        }
        guard let attempt else { return end(request, with: CurlewError.cancelled) }
        prepare(pending, of: request, attempt: attempt, isRetry: false)
    }

    private func prepare(_ pending: PendingAdaptation, of request: Request, attempt: Int, isRetry: Bool) {
        guard let manager, !request.session.isInvalidated else { return endRetrying(request, with: CurlewError.sessionInvalidated) }
        request.session.queue.async {
            pending.prepare(manager) { [weak request] result in
                guard let request else { return }
                request.session.queue.async {
                    request.sessionDelegate.prepared(result, request, attempt: attempt, isRetry: isRetry)
                }
            }
        }
    }

    private func prepared(_ result: Result<Void, any Error>, _ request: Request, attempt: Int, isRetry: Bool) {
        guard case .failure(let error) = result else { return retry(request, attempt: attempt, isRetry: isRetry) }
        notAdapted(request, because: error, attempt: attempt, isRetry: isRetry)
    }

    /// A failure before the first attempt is an adapter's like any other, about which the retriers are asked; in a retry it is the end.
    private func notAdapted(_ request: Request, because error: any Error, attempt: Int, isRetry: Bool) {
        guard !isRetry else { return endRetrying(request, with: error) }
        let isWaiting = request.delegate.state.withLock { state in
            guard state.lifecycle.isRetrying(attempt), state.lifecycle.retryingEnded() else { return false }
            state.error = error
            return true
        }
        if isWaiting { considerRetry(of: request, after: error) }
    }

    /// Ends a request that waits for its retrier or its retry, unless somebody else has done so.
    private func endRetrying(_ request: Request, with error: any Error) {
        if request.delegate.state.withLock({ $0.lifecycle.retryingEnded() }) { end(request, with: error) }
    }

    /// Ends a request that will not be tried again, with another error than the one about which the retrier was asked.
    func end(_ request: Request, with error: any Error) {
        let timer = request.delegate.state.withLock { state in
            defer { state.retryTimer = nil }
            state.error = error
            return state.retryTimer
        }
        if let timer { request.session.timers.cancel(timer) }
        guard request.delegate.hasLeftovers else { return finish(request) }
        request.session.queue.async {
            request.delegate.removeLeftovers()
            self.finish(request)
        }
    }

    /// Tells those who want to know, and ends the request.
    private func finish(_ request: Request) {
        guard let tell = closures.withLock({ $0.taskDidComplete }), let task = request.task, !request.delegate.endIsTold else {
            return release(request)
        }
        request.session.queue.async {
            tell(request.session, task, request.delegate.error)
            self.release(request)
        }
    }

    /// Forgets the request before its handlers run: they may begin another attempt.
    private func release(_ request: Request) {
        let (task, hasWaited, isToldAlready) = request.delegate.state.withLock { state in
            defer { state.finishIsTold = true }
            return (state.task, state.hasWaited, state.finishIsTold)
        }
        if let task { self[task] = nil }
        if hasWaited { forget(request) }
        request.delegate.finish()
        if request.session.isMonitored, !isToldAlready { request.session.tellMonitors { $0.requestDidFinish(request) } }
    }

    private func tellMonitorsOfEnd(of request: Request) {
        guard let task = request.task else { return }
        let error = request.delegate.error
        request.session.tellMonitors { $0.request(request, didComplete: task, with: error) }
    }

    private func tellMonitors(_ request: Request, continuesWith next: NextTransfer) {
        request.session.tellMonitors { monitor in
            if let newRequest = next.request.urlRequest { monitor.request(request, willContinueWith: newRequest) }
        }
    }

    /// The request waits no more.
    private func forget(_ request: Request) {
        retrying.withLock { $0[ObjectIdentifier(request)] = nil }
    }

    // MARK: Ends without a transfer

    /// A request failed before it had a task.
    func failed(_ request: Request, with error: any Error) {
        request.delegate.fail(error)
        perform(request.delegate.taskEnded(TransferOutcome(error: error, metrics: TransferMetrics())), on: request)
    }

    /// The session is over: what the transport does not end, ends here.
    func ended(_ session: Session) {
        if let tell = closures.withLock({ $0.sessionDidBecomeInvalidWithError }) { session.queue.async { tell(session, nil) } }
        for request in retrying.withLock({ Array($0.values) }) { endRetrying(request, with: CurlewError.sessionInvalidated) }
        // The tasks say so at once; their ends, which may be a lot, are not for the thread that lets go of a manager.
        let requests = self.requests.withLock { Array($0.values) }
        let unstarted = requests.compactMap(\.task).filter { $0.invalidate() }
        session.queue.async {
            for task in unstarted { task.completeUnstarted(with: CurlewError.sessionInvalidated) }
            for request in self.requests.withLock({ Array($0.values) }) {
                if let task = request.task, task.claimUnstarted() { task.completeUnstarted(with: CurlewError.sessionInvalidated) }
                request.delegate.abandonDecision(with: CurlewError.sessionInvalidated)
            }
        }
    }

    /// A task's transfer is over; what its response means may still be undecided.
    func complete(_ id: Int, _ outcome: TransferOutcome) {
        guard let request = request(id) else { return }
        if request.delegate.state.withLock({ $0.decision.transferEnded(outcome) }) { return proceed(request, after: outcome) }
        // Whoever gave up meanwhile has not found an end to bring about.
        if request.session.isInvalidated { request.delegate.abandonDecision(with: CurlewError.sessionInvalidated) }
        if request.task?.state == .canceling { request.delegate.abandonDecision(with: CurlewError.cancelled) }
    }

    /// A task's transfer is over, and what its response means is decided.
    func proceed(_ id: Int, after outcome: TransferOutcome) {
        if let request = request(id) { proceed(request, after: outcome) }
    }

    /// Goes on with another transfer, or ends the task.
    private func proceed(_ request: Request, after outcome: TransferOutcome) {
        if let next = request.delegate.nextTransfer(after: outcome) {
            if let task = request.task, task.take(next) {
                request.delegate.followed(after: outcome)
                if request.session.isMonitored { tellMonitors(request, continuesWith: next) }
                return task.start(next)
            }
            request.delegate.fail(request.delegate.cancellation)
        }
        guard request.delegate.isReadyToEnd else {
            return request.delegate.whenReadyToEnd { self.perform(request.delegate.taskEnded(outcome), on: request) }
        }
        perform(request.delegate.taskEnded(outcome), on: request)
    }
}
