// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Holds the state of a request's current task, and its handlers until the request is over.
///
/// Handlers wait until ``finish()`` releases them: that is their only release, on every path. Whoever `await`s is resumed at the same
/// moment, without a queue.
open class TaskDelegate: @unchecked Sendable {  // the state is behind a lock
    struct State {
        var lifecycle = RequestLifecycle()
        var decision = PendingDecision()
        var task: SessionTask?
        /// `nil` as long as credentials play no part.
        var authentication: RequestAuthentication?
        var error: (any Error)?
        var head: ResponseHead?
        var context: ResponseContext?
        var validators: [Validator] = []
        var nextValidator = 0
        var transactions: [TransferMetrics] = []
        /// Whether the transfer brought a complete response.
        var hasSucceeded = false
        var retryCount: UInt = 0
        /// Whether the request was told to start, be there a task or not yet.
        var isResumed = false
        /// Whether the request was told to stop for a while: that counts for the task of the next attempt, too.
        var isSuspended = false
        /// Whether monitors and the session's delegate know of the attempt's end: a validation that came late does not end it again.
        var endIsTold = false
        /// Whether monitors know that the request has finished, also if a late validation has it tried again.
        var finishIsTold = false
        /// Waits for the delay before a retry.
        var retryTimer: Timers.Timer?
        /// Whether the request has been among those that wait for a retrier or its delay.
        var hasWaited = false
        var startTime: CFAbsoluteTime?
        var initialResponseTime: CFAbsoluteTime?
        var endTime: CFAbsoluteTime?
        fileprivate var handlers = PendingHandlers()
        fileprivate var waiter: Waiter?
        /// Those that came after the first one, who mostly is alone.
        fileprivate var otherWaiters: [Waiter] = []

        /// Whether a task waits for the end of the request.
        var isAwaited: Bool { waiter != nil }
    }

    /// Who waits for the end of the request, to be called once on whatever thread brings it.
    enum Waiter: Sendable {
        case task(SuspendedTask)
        case closure(@Sendable () -> Void)

        func call() {
            switch self {
            case .task(let task): task.resume()
            case .closure(let closure): closure()
            }
        }
    }

    /// A body that is dropped is read up to this size to keep the connection; a longer one costs more than a new connection does.
    private static let largestBodyToDiscard = 256 * 1024

    // Any thread.
    let state = Lock(State())
    let session: Session
    let sessionDelegate: SessionDelegate
    // The transport's thread, whoever begins an attempt before that, and whoever decides while that waits.
    private var verdict = ResponseVerdict.accept
    private var isDiscarding = false
    private var discarded = 0
    /// How much of a body had left when that was last told.
    private var sent: Int64 = 0

    init(session: Session, sessionDelegate: SessionDelegate) {
        self.session = session
        self.sessionDelegate = sessionDelegate
    }

    // MARK: For users

    /// Runs the request's handlers: one at a time, suspended until the request is over.
    ///
    /// Operations added here run in their order among the handlers. Created with the first handler, or when it is first read.
    public var queue: OperationQueue {
        state.withLock { $0.handlers.operations(isSuspended: $0.lifecycle.stage != .finished) }
    }

    /// The body; `nil` where it is not kept in memory.
    public var data: Data? { nil }

    /// Why the request failed; `nil` as long as it has not.
    public var error: (any Error)? { ownError.map { session.delivered($0) } }

    /// The same as Curlew has it, whatever the session makes of it for its users.
    package var ownError: (any Error)? { state.withLock { $0.error } }

    /// How much of the current transfer's bodies has come and gone. For subclasses.
    var byteCounts: (received: Int64, sent: Int64) { (0, 0) }

    // MARK: Handlers

    /// Adds a handler behind the others; what is to be done then.
    func addHandler(_ handler: @escaping @Sendable () -> Void) -> RequestLifecycle.Action {
        let action = state.withLock { state in
            let action = attach(&state)
            state.handlers.add(handler, isReleased: state.lifecycle.stage == .finished)
            return action
        }
        resultIsWanted()
        return action
    }

    /// Adds somebody who waits for the end; what is to be done then.
    func addWaiter(_ waiter: Waiter) -> RequestLifecycle.Action {
        let (isOver, action) = state.withLock { state in
            let action = attach(&state)
            let isOver = state.lifecycle.stage == .finished
            if !isOver {
                if state.waiter == nil { state.waiter = waiter } else { state.otherWaiters.append(waiter) }
            }
            return (isOver, action)
        }
        if isOver { waiter.call() }
        resultIsWanted()
        endIsAwaited()
        return action
    }

    /// Somebody waits for the end of the request. For subclasses.
    func resultIsWanted() {}

    /// A task waits for the end of the request, so that nothing more is chained to it. For subclasses.
    func endIsAwaited() {}

    private func attach(_ state: inout State) -> RequestLifecycle.Action {
        let action = state.lifecycle.handlerAttached(isUnvalidated: state.nextValidator < state.validators.count)
        // The queue was released for want of handlers; this one waits for the validations that came since.
        if action == .conclude { state.handlers.hold() }
        // Nothing more will be chained to the request that a challenge has to wait for.
        if let challenge = state.authentication?.waitEnded() { session.queue.async(execute: challenge) }
        return action
    }

    /// Releases the handlers and whoever waits. The only place where that is done, and the last thing that happens to a request.
    func finish() {
        let (waiter, others) = state.withLock { state -> (Waiter?, [Waiter]) in
            guard state.lifecycle.finish() else { return (nil, []) }
            if state.endTime == nil { state.endTime = CFAbsoluteTime.now }
            state.endIsTold = true
            defer {
                state.waiter = nil
                if !state.otherWaiters.isEmpty { state.otherWaiters = [] }
            }
            // Inside the lock, where a late validation holds them back again.
            state.handlers.release()
            // Nothing is validated any more, and what a validation captures may hold the request.
            if state.lifecycle.hasHandler { state.forgetValidators() }
            return (state.waiter, state.otherWaiters)
        }
        waiter?.call()
        for waiter in others { waiter.call() }
    }

    // MARK: Attempts

    /// The first task begins.
    func begin(_ task: SessionTask) {
        state.withLock { $0.task = task }
    }

    /// The task of a retry begins; `false` when the request was ended meanwhile.
    func begin(_ task: SessionTask, attempt: Int, isRetry: Bool = true) -> Bool {
        // A concurrent cancellation must not run handlers while the state is being reset.
        guard state.withLock({ $0.lifecycle.beginAttempt(attempt) }) else { return false }
        forgetVerdict()
        sent = 0
        reset()
        return state.withLock { state in
            guard state.lifecycle.retried(attempt) else { return false }
            state.task = task
            state.authentication?.answer = nil
            state.error = nil
            state.head = nil
            state.context = nil
            state.nextValidator = 0
            state.hasSucceeded = false
            if isRetry { state.retryCount += 1 }
            state.startTime = CFAbsoluteTime.now
            state.initialResponseTime = nil
            state.endTime = nil
            state.endIsTold = false
            return true
        }
    }

    /// Holds back what the user has not got yet; `false` when a retry would not give what a first attempt gives. For subclasses.
    func holdForRetry() -> Bool { true }

    /// Forgets what the last attempt brought. For subclasses.
    func reset() {}

    /// The request starts, or could not be made; the task, if there is one.
    ///
    /// - Parameter byUser: whether somebody has said so, and not the manager by itself.
    @discardableResult
    func noteStart(byUser: Bool = false) -> SessionTask? {
        state.withLock { state in
            if byUser {
                state.isResumed = true
                state.isSuspended = false
            }
            if state.startTime == nil { state.startTime = CFAbsoluteTime.now }
            return state.task
        }
    }

    /// Notes why the request fails; the first reason counts.
    func fail(_ error: any Error) {
        state.withLock { state in
            if state.error == nil { state.error = error }
        }
    }

    // MARK: Events of the transport, on its thread

    private func receive(_ head: ResponseHead) -> ReceiveAction {
        let (task, isAuthenticated) = state.withLock { state in
            // Kept in any case: a redirect that is refused is a response, too.
            state.head = head
            return (state.task, state.authentication?.answer != nil)
        }
        if session.isMonitored, let task { sessionDelegate.tellMonitors(of: head, task) }
        guard let task, isAuthenticated || sessionDelegate.mustJudge(head, in: session) else { return accept(head) }
        if !isAuthenticated, let verdict = sessionDelegate.judgeAtOnce(head, of: task, in: session) { return apply(verdict, to: head) }
        let number = state.withLock { $0.decision.begin() }
        let isAwaited: @Sendable () -> Bool = { [weak self] in self?.state.withLock { $0.decision.isAwaited(number) } ?? false }
        sessionDelegate.judge(head, of: task, in: session, isAwaited: isAwaited) { [weak self] verdict in
            self?.decided(verdict, about: head, number)
        }
        return .pause
    }

    /// Does what was decided about a response.
    private func apply(_ verdict: ResponseVerdict, to head: ResponseHead) -> ReceiveAction {
        self.verdict = verdict
        switch verdict {
        case .accept: return accept(head)
        case .becomeDownload:
            do {
                try becomeDownload()
                return accept(head)
            } catch {
                fail(error)
                return .cancel
            }
        case .goOn:
            isDiscarding = true
            return .proceed
        case .refuse: return .cancel
        }
    }

    /// A decision was taken on the session's queue, while the transfer waited; or had ended already, with nothing left to come.
    private func decided(_ verdict: ResponseVerdict, about head: ResponseHead, _ number: Int) {
        guard state.withLock({ $0.decision.decided(number) }) else { return }
        // A request cancelled while the decision is pending fails as cancelled, not with the decision's error.
        let isCancelled = state.withLock { $0.task }?.state == .canceling
        let action = apply(isCancelled ? .refuse(cancellation) : verdict, to: head)
        let (consequence, task) = state.withLock { ($0.decision.applied(), $0.task) }
        guard let task else { return }
        switch (consequence, action) {
        case (.end(let outcome), _): sessionDelegate.proceed(task.taskIdentifier, after: outcome)
        case (.resume, .proceed): task.resumeReceiving()
        // What asked for a pause will take it back.
        case (.resume, .pause): break
        case (.resume, .cancel): task.endTransfer()
        }
    }

    /// The user wants no more: an end that waits for a decision takes place without it.
    func abandonDecision(with error: any Error) {
        let (outcome, task) = state.withLock { ($0.decision.abandon(), $0.task) }
        guard let outcome, let task else { return }
        sessionDelegate.proceed(task.taskIdentifier, after: TransferCompletion(error: error, metrics: outcome.metrics))
    }

    /// Why a task is being cancelled: by its session, or else by the user.
    var cancellation: CurlewError { session.isInvalidated ? .sessionInvalidated : .cancelled }

    private func receive(_ bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        guard isDiscarding else { return accept(bytes) }
        discarded += bytes.count
        return discarded > Self.largestBodyToDiscard ? .cancel : .proceed
    }

    /// The transfer is over: the one that follows instead of an end, if there is one.
    func nextTransfer(after outcome: TransferCompletion) -> NextTransfer? {
        guard case .goOn(var next) = verdict else { return nil }
        let isCutOff = discarded > Self.largestBodyToDiscard
        forgetVerdict()
        // An error ends the task, but for the one by which we cut off a long body.
        guard outcome.error == nil || isCutOff else { return nil }
        next.request = next.request.continuing(after: outcome.metrics.total)
        return next
    }

    /// The response is of no use to whoever was to accept its head: another transfer takes its place. For subclasses, in
    /// ``accept(_:)-(ResponseHead)``; its body may be all of a file and is not read.
    func goOn(with next: TransferRequest) -> ReceiveAction {
        verdict = .goOn(NextTransfer(request: next, reason: .repetition))
        isDiscarding = true
        discarded = Self.largestBodyToDiscard + 1
        return .cancel
    }

    /// Another transfer follows after such an exchange.
    func followed(after outcome: TransferCompletion) {
        state.withLock { state in
            state.transactions.append(outcome.metrics)
            state.noteFirstByte(outcome.metrics)
            state.head = nil
        }
        sent = 0
        exchangeFollows()
    }

    /// The task continues with another transfer. For subclasses.
    func exchangeFollows() {}

    private func forgetVerdict() {
        verdict = .accept
        isDiscarding = false
        discarded = 0
    }

    /// Whether nothing is under way that the end has to wait for. For subclasses.
    var isReadyToEnd: Bool { true }

    /// Calls `body` as soon as nothing is under way any more that the end has to wait for. For subclasses.
    func whenReadyToEnd(_ body: @escaping @Sendable () -> Void) {
        body()
    }

    /// The task is over; what is to be done then.
    func taskEnded(_ outcome: TransferCompletion) -> RequestLifecycle.Action {
        taskWillEnd(outcome)
        return state.withLock { state in
            let wasStarted = state.task?.completed(state.head, outcome.metrics) ?? false
            // What was never started was no exchange.
            if wasStarted { state.transactions.append(outcome.metrics) }
            state.noteFirstByte(outcome.metrics)
            state.endTime = CFAbsoluteTime.now
            state.hasSucceeded = outcome.error == nil
            if case .refuse(let error) = verdict, state.error == nil { state.error = error }
            if state.error == nil { state.error = outcome.error }
            return state.lifecycle.taskEnded()
        }
    }

    /// The task is about to be over. For subclasses.
    func taskWillEnd(_ outcome: TransferCompletion) {}

    /// The body of the response that counts goes to a file for the session's delegate. On the session's queue. For subclasses.
    func becomeDownload() throws {}

    /// The head of the response that counts. For subclasses.
    func accept(_ head: ResponseHead) -> ReceiveAction { .proceed }

    /// A piece of the body of the response that counts. For subclasses.
    func accept(_ bytes: UnsafeRawBufferPointer) -> ReceiveAction { .proceed }

    /// So much of the request's body has left. For subclasses.
    func acceptSent(_ count: Int64) {}

    // MARK: The end

    /// Whether the end of the request has to begin on the session's queue: it may block, or run code of users, validations apart. For
    /// subclasses.
    var mustConcludeOnQueue: Bool { false }

    /// Puts in order what was received, before it is validated. For subclasses; on the session's queue.
    func settle() {}

    /// Brings what was received to where it belongs, once it was validated, or puts it away. For subclasses.
    func deliver() {}

    /// Whether a refused response has left something that is of no use when the request ends with another error. For subclasses.
    var hasLeftovers: Bool { false }

    /// Removes what a refused response has left. For subclasses; on the session's queue.
    func removeLeftovers() {}

    var endIsTold: Bool { state.withLock { $0.endIsTold } }

    /// The next validation to run; `nil` when all have.
    func nextValidator() -> Validator? {
        state.withLock { state in
            guard state.nextValidator < state.validators.count else { return nil }
            defer { state.nextValidator += 1 }
            return state.validators[state.nextValidator]
        }
    }

    /// Runs a validation unless the request has failed already: the first failure counts.
    func run(_ validator: Validator, on request: Request) {
        guard ownError == nil, let error = validator.validate(request) else { return }
        fail(error)
    }

    /// Request and response of the current attempt.
    func context(fallback: @autoclosure () -> URLRequest?) -> ResponseContext {
        if let context = state.withLock({ $0.context }) { return context }
        let request = state.withLock { $0.task }?.currentTransfer == nil ? fallback() : nil
        return state.withLock { state in
            if let context = state.context { return context }
            let context = ResponseContext(transfer: state.task?.currentTransfer, head: state.head, request: request)
            if state.lifecycle.stage == .finished { state.context = context }
            return context
        }
    }

    var metrics: TaskMetrics {
        state.withLock { TaskMetrics(transactionMetrics: $0.transactions, redirectCount: $0.task?.redirectCount ?? 0) }
    }

    /// The times of the request, its serialization being over now.
    func timeline() -> Timeline {
        let (start, initial, end) = state.withLock { ($0.startTime, $0.initialResponseTime, $0.endTime) }
        let now = CFAbsoluteTime.now
        let completed = end ?? now
        let started = start ?? completed
        // Measured by another clock, which does not go on while the machine sleeps.
        let initially = min(max(initial ?? completed, started), completed)
        return Timeline(
            requestStartTime: started, initialResponseTime: initially, requestCompletedTime: completed, serializationCompletedTime: now)
    }
}

// MARK: - TransferObserver

extension TaskDelegate: TransferObserver {
    /// Takes the head of a response: that of a redirect, or the one that counts.
    public func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        receive(head)
    }

    /// Takes a piece of a body.
    public func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        receive(bytes)
    }

    /// Counts what was sent.
    public func transfer(_ id: Int, didSend count: Int64) {
        guard let tell = sessionDelegate.closures.withLock({ $0.taskDidSendBodyData }), let task = state.withLock({ $0.task }) else {
            return acceptSent(count)
        }
        // It begins anew when the request is sent once more.
        let piece = count >= sent ? count - sent : count
        sent = count
        let length = task.currentTransfer?.body?.length ?? -1
        session.queue.async { [session] in tell(session, task, piece, count, length) }
    }

    /// Has the session's delegate go on with another transfer, or bring the request to its end.
    public func transfer(_ id: Int, didComplete outcome: TransferCompletion) {
        sessionDelegate.complete(id, outcome)
    }
}

extension TaskDelegate.State {
    /// Adds a validation, unless the end of the request can't change any more.
    mutating func add(_ validator: Validator) {
        guard lifecycle.stage != .finished || !lifecycle.hasHandler else { return }
        validators.append(validator)
    }

    fileprivate mutating func forgetValidators() {
        validators = []
        nextValidator = 0
    }

    /// Notes the first byte of an attempt, sent or received.
    fileprivate mutating func noteFirstByte(_ metrics: TransferMetrics) {
        if initialResponseTime == nil { initialResponseTime = metrics.firstByteDate?.timeIntervalSinceReferenceDate }
    }
}

extension CFAbsoluteTime {
    /// The time now, in seconds since the first instant of 2001, UTC.
    static var now: CFAbsoluteTime { Date().timeIntervalSinceReferenceDate }
}
