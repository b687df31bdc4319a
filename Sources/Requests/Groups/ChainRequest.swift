// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// Is told how a chain ended, on the callback queue, before its blocks. All methods have defaults, as those of ``RequestDelegate``.
public protocol ChainRequestDelegate: AnyObject, Sendable {
    /// The chain has ended with a success. Optional.
    func chainRequestFinished(_ chainRequest: ChainRequest)
    /// The chain has ended with the failure of a step. Optional: by default the method with the request is called, if there is one.
    func chainRequestFailed(_ chainRequest: ChainRequest, failedStep: ChainStep)
    /// The chain has ended with the failure of a request, ``ChainRequest/failedRequest``. Optional; not called where the method with the
    /// step is implemented.
    func chainRequestFailed(_ chainRequest: ChainRequest, failedBaseRequest: BaseRequest)
}

/// What a chain does at a time.
public enum ChainStep: Sendable {
    /// A request.
    case request(BaseRequest)
    /// Several requests at once.
    case batch(BatchRequest)
    /// Another chain.
    case chain(ChainRequest)

    /// The request; `nil` for a group.
    public var request: BaseRequest? {
        if case .request(let request) = self { request } else { nil }
    }
    /// The batch, if it is one.
    public var batch: BatchRequest? {
        if case .batch(let batch) = self { batch } else { nil }
    }
    /// Why it has failed; `nil` if it has not.
    public var error: (any Error)? { runnable.endingError }

    /// The request by which it has succeeded.
    fileprivate var succeededRequest: BaseRequest? {
        switch self {
        case .request(let request): request
        case .batch(let batch): batch.requestArray.last
        case .chain(let chain): chain.succeedRequest
        }
    }

    /// The request by which it has failed.
    fileprivate var failedRequest: BaseRequest? {
        switch self {
        case .request(let request): request
        case .batch(let batch): batch.failedRequest
        case .chain(let chain): chain.failedRequest
        }
    }

    var runnable: any WaitableRequest {
        switch self {
        case .request(let request): request
        case .batch(let batch): batch
        case .chain(let chain): chain
        }
    }
}

/// Steps one after the other: requests, batches, other chains.
///
/// A step begins when the one before it is over, and its callback has run, which may add steps that depend on what it has brought: so A,
/// then B and C at once, then D of what both have said, is a chain of three steps. When there are no more steps, ``requestBuilder`` is asked
/// for another.
///
/// By default the first failure ends it. It ends like its last step: one that goes on past failures (``stoppedOnFailure`` false) has succeeded if the last step
/// has. Without steps it succeeds. A step that is stopped by itself counts as failed.
public final class ChainRequest: RequestGroup, @unchecked Sendable {  // what it adds is behind a lock
    /// Is given the chain when it is over.
    public typealias CompletionBlock = @Sendable (ChainRequest) -> Void
    /// Is given the chain, and the step that has succeeded.
    public typealias StepBlock = @Sendable (ChainRequest, ChainStep) -> Void
    /// Makes the next step of the last one, `nil` at the start; `nil` for the end.
    public typealias Builder = @Sendable (ChainRequest, ChainStep?) -> ChainStep?

    private struct Link {
        let step: ChainStep
        let callback: StepBlock?
        /// Whether it was added on the way, to the newest start only.
        var isPassing = false
    }

    private struct Progress {
        var links: [Link] = []
        /// What is left of the newest start.
        var rest: [Link] = []
        /// Whether the newest start takes further steps.
        var isOpen = false
        var current: ChainStep?
        var hasBegun = false
        var last: ChainStep?
        var succeeded: ChainStep?
        var failed: ChainStep?
        // Noted when the step ended, as a batch or chain may be a step once more.
        var succeededRequest: BaseRequest?
        var failedRequest: BaseRequest?
        var failure: (any Error)?
        var requestInterval: Double = 0
        var stoppedOnFailure = true
        var stoppedOnSuccess = false
        var builder: Builder?
        weak var delegate: (any ChainRequestDelegate)?
    }

    private let progress = Lock(Progress())

    /// Makes a chain without steps.
    public override init() { super.init() }

    // MARK: Steps

    /// Adds a step behind the others; while the chain runs, to this run only.
    ///
    /// - Parameter callback: runs on the callback queue when the step has succeeded, before the next one begins.
    public func addStep(_ step: ChainStep, callback: StepBlock? = nil) {
        progress.withLock { progress in
            guard progress.isOpen else { return progress.links.append(Link(step: step, callback: callback)) }
            progress.rest.append(Link(step: step, callback: callback))
            progress.links.append(Link(step: step, callback: nil, isPassing: true))
        }
    }

    /// Adds a request as a step.
    public func addRequest(_ request: BaseRequest, callback: (@Sendable (ChainRequest, BaseRequest) -> Void)? = nil) {
        addStep(.request(request)) { chain, _ in callback?(chain, request) }
    }

    /// Adds a batch as a step: all of its requests at once.
    public func addBatch(_ batch: BatchRequest, callback: (@Sendable (ChainRequest, BatchRequest) -> Void)? = nil) {
        addStep(.batch(batch)) { chain, _ in callback?(chain, batch) }
    }

    /// The steps in the order in which they were added, those included that were added on the way to the newest start, which the next one
    /// does without. Those of the ``requestBuilder`` are not kept.
    public var steps: [ChainStep] { progress.withLock { $0.links.map(\.step) } }
    /// The requests among them.
    public var requestArray: [BaseRequest] { steps.compactMap(\.request) }

    // MARK: Rules

    /// How long it waits before each step but the first, in seconds; 0 by default.
    public var requestInterval: Double {
        get { progress.withLock { $0.requestInterval } }
        set { progress.withLock { $0.requestInterval = newValue } }
    }

    /// Whether a failure ends the chain; `true` by default.
    public var stoppedOnFailure: Bool {
        get { progress.withLock { $0.stoppedOnFailure } }
        set { progress.withLock { $0.stoppedOnFailure = newValue } }
    }

    /// Whether a success ends the chain, so that further steps are for failures only; `false` by default.
    public var stoppedOnSuccess: Bool {
        get { progress.withLock { $0.stoppedOnSuccess } }
        set { progress.withLock { $0.stoppedOnSuccess = newValue } }
    }

    /// Makes further steps when those that were added are done: to ask again and again, or another server. `nil` by default. On the callback
    /// queue.
    public var requestBuilder: Builder? {
        get { progress.withLock { $0.builder } }
        set { progress.withLock { $0.builder = newValue } }
    }

    /// Is told of the end; not kept alive. ``RequestGroup/stop()`` sets it to `nil`.
    public var delegate: (any ChainRequestDelegate)? {
        get { progress.withLock { $0.delegate } }
        set { progress.withLock { $0.delegate = newValue } }
    }

    /// Runs when the chain has succeeded, behind the delegate; released then.
    public var successCompletionBlock: CompletionBlock? {
        get { successBlock }
        set { successBlock = Self.block(newValue) }
    }

    /// Runs when the chain has failed, behind the delegate; released then.
    public var failureCompletionBlock: CompletionBlock? {
        get { failureBlock }
        set { failureBlock = Self.block(newValue) }
    }

    /// Sets both blocks.
    public func setCompletionBlock(success: CompletionBlock?, failure: CompletionBlock?) {
        setBlocks(success: Self.block(success), failure: Self.block(failure))
    }

    private static func block(_ block: CompletionBlock?) -> Block? {
        guard let block else { return nil }
        return { group in
            if let group = group as? ChainRequest { block(group) }
        }
    }

    // MARK: What it brought

    /// The step that has succeeded last; `nil` if none has.
    public var succeedStep: ChainStep? { progress.withLock { $0.succeeded } }
    /// The step that has failed last; `nil` if none has.
    public var failedStep: ChainStep? { progress.withLock { $0.failed } }
    /// The request that has succeeded last, of a batch the last one in its order; `nil` if none has. A failure after it leaves it.
    public var succeedRequest: BaseRequest? { progress.withLock { $0.succeededRequest } }
    /// The request that has failed last, of a batch the first that did; `nil` if none has. A success after it leaves it.
    public var failedRequest: BaseRequest? { progress.withLock { $0.failedRequest } }

    // MARK: RequestGroup

    override var firstAgent: RequestAgent? {
        switch progress.withLock({ $0.links.first ?? $0.rest.first })?.step {
        case .request(let request)?: request.agent
        case .batch(let batch)?: batch.agent
        case .chain(let chain)?: chain.agent
        case nil: nil
        }
    }
    override var endingError: (any Error)? { progress.withLock { $0.failure } }
    override func clearDelegate() { delegate = nil }

    override func tellDelegate(_ ending: RequestEnding) {
        if ending == .succeeded {
            delegate?.chainRequestFinished(self)
        } else if let failedStep {
            delegate?.chainRequestFailed(self, failedStep: failedStep)
        }
    }

    override func begin(_ run: Int) {
        progress.withLock { progress in
            progress.links.removeAll { $0.isPassing }
            progress.rest = progress.links
            (progress.isOpen, progress.hasBegun) = (true, false)
            (progress.current, progress.last, progress.succeeded, progress.failed) = (nil, nil, nil, nil)
            (progress.succeededRequest, progress.failedRequest, progress.failure) = (nil, nil, nil)
        }
        onQueue(run) { self.next(run, after: .succeeded) }
    }

    /// Begins the next step, or ends like the last one; on the callback queue.
    private func next(_ run: Int, after ending: RequestEnding) {
        let (builder, last, hasRest) = progress.withLock { ($0.builder, $0.last, !$0.rest.isEmpty) }
        if !hasRest, let step = builder?(self, last) { progress.withLock { $0.rest.append(Link(step: step, callback: nil)) } }
        guard isRunning(run) else { return }
        let (link, wait) = progress.withLock { progress -> (Link?, Double) in
            guard !progress.rest.isEmpty else {
                progress.isOpen = false
                return (nil, 0)
            }
            defer { progress.hasBegun = true }
            return (progress.rest.removeFirst(), progress.hasBegun ? progress.requestInterval : 0)
        }
        guard let link else { return conclude(run, ending) }
        guard wait > 0 else { return perform(link, run) }
        agent.clock.schedule(wait, agent.configuration.callbackQueue) {
            if self.isRunning(run) { self.perform(link, run) }
        }
    }

    private func perform(_ link: Link, _ run: Int) {
        progress.withLock { $0.current = link.step }
        link.step.runnable.start { ending in self.onQueue(run) { self.stepEnded(link, ending, run) } }
    }

    private func stepEnded(_ link: Link, _ ending: RequestEnding, _ run: Int) {
        let hasSucceeded = ending == .succeeded
        let step = link.step
        let request = hasSucceeded ? step.succeededRequest : step.failedRequest
        let failure = hasSucceeded ? nil : step.error
        let isOver = progress.withLock { progress in
            progress.current = nil
            progress.last = step
            if hasSucceeded {
                progress.succeeded = step
                progress.succeededRequest = request ?? progress.succeededRequest
            } else {
                (progress.failed, progress.failure) = (step, failure)
                progress.failedRequest = request ?? progress.failedRequest
            }
            return hasSucceeded ? progress.stoppedOnSuccess : progress.stoppedOnFailure
        }
        if hasSucceeded { link.callback?(self, step) }
        guard isRunning(run) else { return }
        if isOver { progress.withLock { $0.isOpen = false } }
        if isOver { conclude(run, hasSucceeded ? .succeeded : .failed) } else { next(run, after: hasSucceeded ? .succeeded : .failed) }
    }

    override func stopRequests() {
        let current = progress.withLock { progress in
            defer {
                progress.current = nil
                progress.rest = []
                progress.isOpen = false
            }
            return progress.current
        }
        current?.runnable.stop()
    }
}

// MARK: - Starting

extension ChainRequest {
    /// Sets both blocks, and starts.
    public func startWithCompletionBlock(success: CompletionBlock? = nil, failure: CompletionBlock? = nil) {
        setCompletionBlock(success: success, failure: failure)
        start()
    }

    /// Sets one block for both ends, and starts.
    public func startWithCompletion(_ completion: CompletionBlock?) {
        startWithCompletionBlock(success: completion, failure: completion)
    }

    /// Sets both blocks, has the others called as by an accessory, each once, and starts.
    public func start(
        willStart: RequestEventAccessory.Block? = nil, willStop: RequestEventAccessory.Block? = nil, success: CompletionBlock? = nil,
        failure: CompletionBlock? = nil, didStop: RequestEventAccessory.Block? = nil
    ) {
        addEventAccessory(willStart, willStop, didStop)
        startWithCompletionBlock(success: success, failure: failure)
    }

    /// Starts when all that were started like this before are over: one runs at a time, in the whole process. Does not block.
    ///
    /// - Parameters:
    ///   - filter: asked when its turn has come; `false` leaves the chain out, with no callback.
    ///   - completion: runs at either end.
    public func startSynchronously(filter: (@Sendable () -> Bool)? = nil, completion: CompletionBlock? = nil) {
        startSynchronously(filter: filter, success: completion, failure: completion)
    }

    /// The same with a block for each end.
    public func startSynchronously(filter: (@Sendable () -> Bool)? = nil, success: CompletionBlock?, failure: CompletionBlock?) {
        startInTurn(filter, success: Self.block(success), failure: Self.block(failure))
    }

    /// Starts, and waits for the end. Callbacks run before. Of a chain that runs already, its end is waited for.
    ///
    /// Cancelling the waiting task stops the chain.
    ///
    /// - Returns: the step that has succeeded last; `nil` of a chain without steps.
    /// - Throws: why the last step has failed; `CancellationError` when it was stopped.
    @discardableResult
    public func response() async throws -> ChainStep? {
        try await successfulEnding()
        return succeedStep
    }
}
