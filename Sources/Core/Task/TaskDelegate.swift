// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Holds the state of a request's current task, and its handlers until the request is over.
///
/// Handlers are operations of a queue that is suspended until ``finish()`` releases it: that is its only release, on every path. Whoever
/// `await`s is resumed at the same moment, without a queue.
open class TaskDelegate: @unchecked Sendable {  // the state is behind a lock
    /// A redirect on its way.
    enum Redirect {
        case none
        /// The response's body is of no interest: this many bytes of it have come.
        case following(TransferRequest, discarded: Int)
        case refused(CurlewError)
    }

    struct State {
        var lifecycle = RequestLifecycle()
        var task: SessionTask?
        var error: (any Error)?
        var head: ResponseHead?
        var context: ResponseContext?
        var validators: [Validator] = []
        var nextValidator = 0
        var transactions: [TransferMetrics] = []
        /// Whether the transfer brought a complete response.
        var hasSucceeded = false
        var retryCount: UInt = 0
        var startTime: CFAbsoluteTime?
        var initialResponseTime: CFAbsoluteTime?
        var endTime: CFAbsoluteTime?
        fileprivate var queue: OperationQueue?
        fileprivate var waiters: [@Sendable () -> Void] = []
    }

    /// A redirect's body up to this size is read to keep the connection; a longer one costs more than a new connection does.
    private static let largestBodyToDiscard = 256 * 1024

    // Any thread.
    let state = Lock(State())
    let session: Session
    private let sessionDelegate: SessionDelegate
    // The transport's thread, and whoever begins an attempt before that.
    private var redirect = Redirect.none
    private var isDiscarding = false

    init(session: Session, sessionDelegate: SessionDelegate) {
        self.session = session
        self.sessionDelegate = sessionDelegate
    }

    // MARK: For users

    /// Runs the request's handlers: one at a time, suspended until the request is over.
    ///
    /// Operations added here run in their order among the handlers. Made when first asked for.
    public var queue: OperationQueue {
        state.withLock { handlerQueue(&$0) }
    }

    /// The body; `nil` where it is not kept in memory.
    public var data: Data? { nil }

    /// Why the request failed; `nil` as long as it has not.
    public var error: (any Error)? { state.withLock { $0.error } }

    // MARK: Handlers

    private func handlerQueue(_ state: inout State) -> OperationQueue {
        if let queue = state.queue { return queue }
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        queue.qualityOfService = .utility
        queue.isSuspended = state.lifecycle.stage != .finished
        state.queue = queue
        return queue
    }

    /// Adds a handler behind the others; what is to be done then.
    func addHandler(_ handler: @escaping @Sendable () -> Void) -> RequestLifecycle.Action {
        let (queue, action) = state.withLock { state in
            let action = attach(&state)
            return (handlerQueue(&state), action)
        }
        queue.addOperation(handler)
        resultIsWanted()
        return action
    }

    /// Adds somebody who waits for the end, to be called once on whatever thread brings it; what is to be done then.
    func addWaiter(_ waiter: @escaping @Sendable () -> Void) -> RequestLifecycle.Action {
        let (isOver, action) = state.withLock { state in
            let action = attach(&state)
            let isOver = state.lifecycle.stage == .finished
            if !isOver { state.waiters.append(waiter) }
            return (isOver, action)
        }
        if isOver { waiter() }
        resultIsWanted()
        return action
    }

    /// Somebody waits for the end of the request. For subclasses.
    func resultIsWanted() {}

    private func attach(_ state: inout State) -> RequestLifecycle.Action {
        let action = state.lifecycle.handlerAttached(isUnvalidated: state.nextValidator < state.validators.count)
        // The queue was released for want of handlers; this one waits for the validations that came since.
        if action == .conclude { state.queue?.isSuspended = true }
        return action
    }

    /// Releases the handlers and whoever waits. The only place where that is done, and the last thing that happens to a request.
    func finish() {
        let waiters = state.withLock { state -> [@Sendable () -> Void] in
            guard state.lifecycle.finish() else { return [] }
            if state.endTime == nil { state.endTime = CFAbsoluteTime.now }
            defer { state.waiters = [] }
            // Inside the lock, where a late validation suspends it again.
            state.queue?.isSuspended = false
            return state.waiters
        }
        for waiter in waiters { waiter() }
    }

    // MARK: Attempts

    /// The first task begins.
    func begin(_ task: SessionTask) {
        state.withLock { $0.task = task }
    }

    /// The task of a retry begins; `false` when the request was ended meanwhile.
    func begin(_ task: SessionTask, attempt: Int) -> Bool {
        let isWanted = state.withLock { state in
            guard state.lifecycle.retried(attempt) else { return false }
            state.task = task
            state.error = nil
            state.head = nil
            state.context = nil
            state.nextValidator = 0
            state.hasSucceeded = false
            state.retryCount += 1
            state.startTime = CFAbsoluteTime.now
            state.initialResponseTime = nil
            state.endTime = nil
            return true
        }
        guard isWanted else { return false }
        redirect = .none
        isDiscarding = false
        reset()
        return true
    }

    /// Holds back what the user has not got yet; `false` when a retry would not give what a first attempt gives. For subclasses.
    func holdForRetry() -> Bool { true }

    /// Forgets what the last attempt brought. For subclasses.
    func reset() {}

    func noteStart() {
        state.withLock { state in
            if state.startTime == nil { state.startTime = CFAbsoluteTime.now }
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
        let task = state.withLock { state in
            state.noteByte()
            // Kept in any case: a redirect that is refused is a response, too.
            state.head = head
            return state.task
        }
        guard head.isRedirect, let task, let transfer = task.currentTransfer else { return accept(head) }
        do throws(CurlewError) {
            let redirects = session.configuration.redirects
            guard let next = try redirects.next(after: transfer, head, hops: task.redirectCount) else { return accept(head) }
            redirect = .following(next, discarded: 0)
            isDiscarding = true
            return .proceed
        } catch {
            redirect = .refused(error)
            return .cancel
        }
    }

    private func receive(_ bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        guard isDiscarding, case .following(let next, let discarded) = redirect else { return accept(bytes) }
        redirect = .following(next, discarded: discarded + bytes.count)
        return discarded + bytes.count > Self.largestBodyToDiscard ? .cancel : .proceed
    }

    /// The transfer is over: the redirect to follow instead of ending, if there is one.
    func redirectToFollow(after outcome: TransferOutcome) -> TransferRequest? {
        guard case .following(let next, let discarded) = redirect else { return nil }
        redirect = .none
        isDiscarding = false
        // An error ends the task, but for the one by which we cut off a long body.
        guard outcome.error == nil || discarded > Self.largestBodyToDiscard else { return nil }
        return next.continuing(after: outcome.metrics.total)
    }

    /// A redirect was followed after such an exchange.
    func redirected(after outcome: TransferOutcome) {
        state.withLock { state in
            state.transactions.append(outcome.metrics)
            state.head = nil
        }
    }

    /// Calls `body` as soon as nothing is under way any more that the end has to wait for. For subclasses.
    func whenReadyToEnd(_ body: @escaping @Sendable () -> Void) {
        body()
    }

    /// The task is over; what is to be done then.
    func taskEnded(_ outcome: TransferOutcome) -> RequestLifecycle.Action {
        taskWillEnd(outcome)
        return state.withLock { state in
            // What was never started was no exchange.
            if state.task?.isStarted == true { state.transactions.append(outcome.metrics) }
            state.endTime = CFAbsoluteTime.now
            state.hasSucceeded = outcome.error == nil
            if case .refused(let error) = redirect, state.error == nil { state.error = error }
            if state.error == nil { state.error = outcome.error }
            state.task?.completed()
            return state.lifecycle.taskEnded()
        }
    }

    /// The task is about to be over. For subclasses.
    func taskWillEnd(_ outcome: TransferOutcome) {}

    /// The head of the response that counts. For subclasses.
    func accept(_ head: ResponseHead) -> ReceiveAction { .proceed }

    /// A piece of the body of the response that counts. For subclasses.
    func accept(_ bytes: UnsafeRawBufferPointer) -> ReceiveAction { .proceed }

    /// So much of the request's body has left. For subclasses.
    func acceptSent(_ count: Int64) {}

    // MARK: The end

    /// Whether the end of the request has to run on the session's queue: it may block, or run code of users.
    var mustConcludeOnQueue: Bool {
        state.withLock { state in
            state.validators[state.nextValidator...].contains { $0.isCustom }
        }
    }

    /// Puts in order what was received, before it is validated. For subclasses; on the session's queue.
    func settle() {}

    /// Brings what was received to where it belongs, once it was validated, or puts it away. For subclasses.
    func deliver() {}

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
        guard error == nil, let error = validator.validate(request) else { return }
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
        return Timeline(
            requestStartTime: start ?? end ?? now, initialResponseTime: initial ?? end ?? now, requestCompletedTime: end ?? now,
            serializationCompletedTime: now)
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
        state.withLock { $0.noteByte() }
        acceptSent(count)
    }

    /// Has the session's delegate follow a redirect, or bring the request to its end.
    public func transfer(_ id: Int, didComplete outcome: TransferOutcome) {
        sessionDelegate.complete(id, outcome)
    }
}

extension TaskDelegate.State {
    /// Notes the first byte of an attempt, sent or received.
    fileprivate mutating func noteByte() {
        if initialResponseTime == nil { initialResponseTime = CFAbsoluteTime.now }
    }
}

extension CFAbsoluteTime {
    /// The time now, in seconds since the first instant of 2001, UTC.
    static var now: CFAbsoluteTime { Date().timeIntervalSinceReferenceDate }
}
