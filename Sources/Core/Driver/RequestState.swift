// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The state of a request, behind its driver's lock.
struct RequestState {
    /// The request itself, retained from its start until it has finished.
    var request: Request?
    /// The manager, retained while the request may still be awaited, or is: until the first closure handler is attached, or it has finished.
    var manager: SessionManager?
    /// The task of the request's asynchronous code; `nil` for none.
    var steps: AsyncSteps?
    /// `nil` for a request without a deadline.
    var deadline: RequestDeadline?
    /// Why the request fails, once a deadline has passed: ``deadline``, or that of the response's head.
    var deadlineFailure: DeadlineFailure?
    var lifecycle = RequestLifecycle()
    /// The current attempt's task.
    var task: SessionTask?
    /// The number of the current attempt's task, by which the transport and the session's delegate know the request; 0 for none. A request
    /// that waits for its first task has one, too.
    ///
    /// An event with another number is a late one of an earlier attempt, and is ignored (``SessionTask/taskIdentifier``).
    var number = 0
    var retryCount: UInt = 0
    /// The refusals of policies after which the request was tried again.
    var refusals = Refusals()
    /// The request's number in the process; 0 until it is read.
    var requestID: UInt64 = 0
    /// The number of exchanges that were reported to the session's instruments.
    private var exchangeCount = 0
    /// The exchange that is reported to the session's monitors at its end.
    var reportedExchange: ReportedExchange?
    /// Whether the user has resumed the request, which may not have a task yet.
    var isResumed = false
    /// Whether the user has suspended the request: that counts for the task of the next attempt, too.
    var isSuspended = false

    // MARK: Waiting

    /// The step that waits; `nil` while one is running, or a transfer.
    var waiting: AnyObject?
    /// The wait for a handler or a reader, if that is what ``waiting`` is.
    var attachment: AttachmentWait?
    /// The wait for an asynchronous validation.
    var validation: StepContinuation<(any Error)?>?
    /// The delay before a retry.
    var retryTimer: Timers.Timer?

    // MARK: The current transfer

    /// What a retry begins without.
    var attempt = Attempt()
    /// The interim responses of all exchanges.
    var interim = InterimResponses()
    /// The decision about the response that is pending on the session's queue.
    var pendingDecision = PendingDecision()
    /// Whether a follow-up takes the place of the response.
    var isFollowed: Bool { if case .followUp = attempt.decision { true } else { false } }
    /// Whether the response's body is cut off, as it is too long to be dropped.
    var isCutOff: Bool { isFollowed && attempt.discarded?.isCutOff ?? false }

    /// The state of the current attempt.
    struct Attempt {
        var head: ResponseHead?
        /// The response of the class that loads the request, from before its head is delivered on.
        var protocolResponse: ProtocolResponse?
        /// The decision about the response.
        var decision = ResponseDecision.accept
        /// The body that is dropped; `nil` for one that is received.
        var discarded: DiscardedBody?
        /// The number of bytes of the request's body that were last reported as sent.
        var sent: Int64 = 0
        var error: (any Error)?
        var context: ResponseContext?
        /// The fields that followed the response's body.
        var trailers = HTTPHeaders()
        /// Whether the transfer has received a complete response.
        var hasSucceeded = false
        var startTime: CFAbsoluteTime?
        var initialResponseTime: CFAbsoluteTime?
        var endTime: CFAbsoluteTime?
        /// The index of the validator that runs next.
        fileprivate var nextValidator = 0
    }

    // MARK: The result

    /// The exchanges that were sent, in their order.
    var transactions: [TransferMetrics] { earlierTransactions + [lastTransaction].compactMap { $0 } }
    var transactionCount: Int { earlierTransactions.count + (lastTransaction == nil ? 0 : 1) }
    /// All but the last: most requests have only that one, which then needs no array.
    private var earlierTransactions: [TransferMetrics] = []
    private var lastTransaction: TransferMetrics?

    mutating func noteTransaction(_ metrics: TransferMetrics) {
        if let lastTransaction { earlierTransactions.append(lastTransaction) }
        lastTransaction = metrics
    }

    /// What belongs to each of them, if the request has an owner; else empty.
    var exchanges: [ExchangeRecord] = []
    /// `nil` while the request has neither a credential nor a challenge.
    var authentication: RequestAuthentication?

    // MARK: Validators and handlers

    private(set) var validators: [Validator] = []
    fileprivate var handlers = HandlerQueue()
    private var waiter: Waiter?
    /// All waiters but the first: most requests have only that one.
    private var otherWaiters: [Waiter] = []

    /// A task or a closure that waits until the request has finished; called once, on the thread that finishes it.
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

    /// Whether a task awaits the request.
    var isAwaited: Bool { waiter != nil }

    /// Adds a validator, unless the result of the request can't change any more.
    mutating func add(_ validator: Validator) {
        guard lifecycle.stage != .finished || !lifecycle.hasHandler else { return }
        validators.append(validator)
    }

    /// The next validator to run; `nil` when all have.
    mutating func takeValidator() -> Validator? {
        guard attempt.nextValidator < validators.count else { return nil }
        defer { attempt.nextValidator += 1 }
        return validators[attempt.nextValidator]
    }

    /// The decoders of the attempt's body, if its status is refused.
    var refusalDecoders: [RefusalDecoder] {
        guard let status = attempt.head?.statusCode else { return [] }
        return validators.compactMap { $0.decoder(for: status) }
    }

    /// Notes why the request fails; the first reason counts.
    mutating func fail(_ error: any Error) {
        if attempt.error == nil { attempt.error = error }
    }

    /// Notes the first byte of an attempt, sent or received.
    mutating func noteFirstByte(_ metrics: TransferMetrics) {
        if attempt.initialResponseTime == nil { attempt.initialResponseTime = metrics.firstByteDate?.timeIntervalSinceReferenceDate }
    }

    /// Counts an exchange. Returns its number, from 1.
    mutating func countExchange() -> Int {
        exchangeCount += 1
        return exchangeCount
    }

    // MARK: Refusals

    /// Refusals, and the time for which the request has waited after them, in seconds.
    struct Refusals {
        var count: UInt = 0
        var delay: TimeInterval = 0
    }

    /// The retries so far, without those after refusals, which are no attempts. A refusal counts before its retry does.
    var countedRetries: UInt { retryCount > refusals.count ? retryCount - refusals.count : 0 }

    /// Whether a policy has refused the last attempt.
    var isRefused: Bool {
        if case CurlewError.transferFailed(let failure)? = attempt.error { failure.isRefusal } else { false }
    }

    // MARK: Cancellation

    /// What has to be done to cancel the request, after unlocking.
    struct CancelEffects {
        let action: RequestLifecycle.Cancellation
        let task: SessionTask?
        /// The wait that was ended, to be released.
        let waiting: AnyObject?
        /// Ends the wait for an asynchronous validation.
        let validation: StepContinuation<(any Error)?>?
    }

    /// Cancels the request.
    mutating func cancel() -> CancelEffects {
        let action = lifecycle.cancel(isWaiting: waiting != nil)
        return CancelEffects(
            action: action, task: task, waiting: action == .endWait ? stopWaiting() : nil, validation: validation)
    }

    /// What the request waits for between and around transfers; `nil` during one.
    var phaseOutsideTransfer: TransferFailure.Phase? {
        switch lifecycle.stage {
        case .running: task == nil ? .preparing : nil
        case .betweenAttempts: task == nil ? .preparing : .concluding
        case .completed, .concluding, .finished: .concluding
        }
    }

    /// Returns why the request fails, if it is cancelled because its deadline has passed; otherwise the error itself.
    func explained(_ error: any Error, _ request: Request?) -> any Error {
        guard let failure = deadlineFailure, case CurlewError.cancelled = error else { return error }
        return failure.transferFailure(url: task?.originalTransfer?.url ?? request?.originalURL ?? "", nil)
    }

    // MARK: Events

    /// The task of an attempt takes the place of the last one; returns `false` if the request was cancelled while it was made.
    mutating func begin(_ task: SessionTask, of request: Request, isRetry: Bool) -> Bool {
        guard lifecycle.attemptBegan() else { return false }
        self.request = request
        self.task = task
        number = task.taskIdentifier
        guard isRetry else { return true }
        authentication?.answer = nil
        attempt = Attempt()
        attempt.startTime = CFAbsoluteTime.now
        retryCount += 1
        return true
    }

    /// Takes the follow-up that was decided on, unless the transfer that led to it has failed.
    mutating func takeFollowUp(after outcome: TransferCompletion) -> FollowUp? {
        guard case .followUp(var followUp) = attempt.decision else { return nil }
        let isCutOff = isCutOff
        attempt.decision = .accept
        attempt.discarded = nil
        // A failure ends the task, except the one by which a long body was cut off, and that of decoding a body that is not wanted.
        guard outcome.error == nil || isCutOff || outcome.isUndecodable else { return nil }
        followUp.request = followUp.request.continuing(after: outcome.metrics.total)
        return followUp
    }

    /// Attaches a handler or an awaiting task, which `add` adds.
    ///
    /// - Returns: what is to be done, and the wait that this may end.
    mutating func attach(
        to request: Request, _ add: (inout RequestState) -> Void
    ) -> (RequestLifecycle.Action, AttachmentWait?) {
        let action = lifecycle.handlerAttached(isUnvalidated: attempt.nextValidator < validators.count)
        if action == .conclude {
            self.request = request
            waiting = nil
            // The handlers were released before one was added; this one waits for the validators that were added since.
            handlers.hold()
        }
        add(&self)
        return (action, attachment)
    }

    /// What is attached already, except readers, which the body's receiver has.
    var attachments: AttachmentWait.Attachments {
        var attachments: AttachmentWait.Attachments = lifecycle.hasHandler ? .handler : .nothing
        if isAwaited { attachments.insert(.awaiter) }
        if authentication?.credential != nil { attachments.insert(.credential) }
        return attachments
    }

    /// Ends the wait: a continuation that was handed out has no effect any more. Returns the step, to be released after unlocking.
    mutating func stopWaiting() -> AnyObject? {
        guard let waiting else { return nil }
        self.waiting = nil
        attachment = nil
        validation = nil
        return waiting
    }

    mutating func add(_ handler: @escaping @Sendable () -> Void) {
        handlers.add(handler, isReleased: lifecycle.stage == .finished)
    }

    mutating func add(_ newWaiter: Waiter) {
        if waiter == nil { waiter = newWaiter } else { otherWaiters.append(newWaiter) }
    }

    /// The queue of the handlers, created if there is none.
    mutating func handlerQueue() -> OperationQueue {
        handlers.operations(isSuspended: lifecycle.stage != .finished)
    }

    /// What a request that has finished no longer needs: to be resumed, ended and released after unlocking.
    struct Ended {
        let waiter: Waiter?
        let otherWaiters: [Waiter]
        let steps: AsyncSteps?
        let manager: SessionManager?
        let interim: [InterimReceiver]

        func callWaiters() {
            waiter?.call()
            for waiter in otherWaiters { waiter.call() }
            for receiver in interim { receiver.finish() }
        }
    }

    enum Finish {
        case finished(Ended)
        case finishedBefore
        /// A validator was added since the last one was run, and a handler after it: the response has to be validated first.
        case unvalidated
    }

    /// Releases the handlers, and the reference to the request, which the caller still retains. The caller has to call the waiters.
    mutating func finish() -> Finish {
        if attempt.error == nil, lifecycle.hasHandler, attempt.nextValidator < validators.count, lifecycle.stage != .finished {
            lifecycle.concludeAgain()
            return .unvalidated
        }
        guard lifecycle.finish() else { return .finishedBefore }
        if attempt.endTime == nil { attempt.endTime = CFAbsoluteTime.now }
        waiting = nil
        attachment = nil
        request = nil
        defer {
            waiter = nil
            if !otherWaiters.isEmpty { otherWaiters = [] }
            steps = nil
            manager = nil
            deadline = nil
            deadlineFailure = nil
        }
        handlers.release()
        // No validator runs any more, and what one captures may retain the request.
        if lifecycle.hasHandler {
            validators = []
            attempt.nextValidator = 0
        }
        return .finished(Ended(waiter: waiter, otherWaiters: otherWaiters, steps: steps, manager: manager, interim: interim.finish()))
    }
}

extension TransferCompletion {
    /// Whether the transfer failed because its body could not be decoded.
    fileprivate var isUndecodable: Bool {
        guard case CurlewError.transferFailed(let failure)? = error else { return false }
        return failure.kind == .decoding
    }
}

/// A wait for something to be attached to the request, and what ends it.
struct AttachmentWait: Sendable {
    /// What may be attached to a request.
    struct Attachments: OptionSet, Sendable {
        let rawValue: UInt8

        /// A closure handler.
        static let handler = Attachments(rawValue: 1 << 0)
        /// A task that awaits the result: nothing more will be chained to the request.
        static let awaiter = Attachments(rawValue: 1 << 1)
        /// A reader of the body's pieces.
        static let reader = Attachments(rawValue: 1 << 2)
        static let credential = Attachments(rawValue: 1 << 3)
        /// Nothing: the wait has timed out.
        static let nothing: Attachments = []
    }

    let awaited: Attachments
    let continuation: StepContinuation<Attachments>

    func attached(_ attachment: Attachments) {
        if !awaited.isDisjoint(with: attachment) { continuation(attachment) }
    }
}

extension CFAbsoluteTime {
    /// The time now, in seconds since the first instant of 2001, UTC.
    static var now: CFAbsoluteTime { Date().timeIntervalSinceReferenceDate }
}

extension TransferRequest {
    /// Returns the follow-up with the rest of the total timeout, which limits all exchanges of a task together.
    func continuing(after elapsed: Duration) -> TransferRequest {
        var next = self
        next.options.totalTimeout = options.totalTimeout.map { max($0 - elapsed, .zero) }
        return next
    }
}
