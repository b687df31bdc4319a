// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// Receives the outcome of a chain, on the callback queue, before its completion blocks.
///
/// All methods have defaults that do nothing. A method that only nearly matches a requirement's signature is a different method and is
/// never called; see ``RequestDelegate``.
public protocol ChainRequestDelegate: AnyObject, Sendable {
    /// Called when the chain has succeeded. Optional.
    func chainRequestFinished(_ chainRequest: ChainRequest)
    /// Called when the chain has failed with the failure of a step. Optional: the default calls the method that takes a request, if there
    /// is one.
    func chainRequestFailed(_ chainRequest: ChainRequest, failedStep: ChainStep)
    /// Called when the chain has failed with the failure of a request, ``ChainRequest/failedRequest``. Optional; not called if the method
    /// that takes a step is implemented.
    func chainRequestFailed(_ chainRequest: ChainRequest, failedBaseRequest: BaseRequest)
}

/// Sequential steps: requests, batches, other chains.
///
/// A step begins after the previous one has finished and its callback has run, which may add steps that depend on its result: A, then B and
/// C concurrently, then D with the results of both, is a chain of three steps. When no steps are left, ``requestBuilder`` is called for
/// another.
///
/// By default the first failure ends the chain. The chain's outcome is that of its last step: with ``stoppedOnFailure`` set to `false` it
/// has succeeded if the last step has. A chain without steps succeeds. A step that is stopped individually counts as failed.
public final class ChainRequest: RequestGroup, CompletableRequest, @unchecked Sendable {  // its own state is behind a lock
    /// Called with the chain when it has finished.
    public typealias CompletionBlock = @Sendable (ChainRequest) -> Void
    /// Called with the chain and the step that has succeeded.
    public typealias StepBlock = @Sendable (ChainRequest, ChainStep) -> Void
    /// Makes the next step from the last one, `nil` at the start; returns `nil` to end the chain.
    public typealias Builder = @Sendable (ChainRequest, ChainStep?) -> ChainStep?

    private struct Link {
        let step: ChainStep
        let callback: StepBlock?
        /// Whether the step was added while the chain ran, and belongs to the newest start only.
        var isTransient = false
    }

    private struct Progress {
        var links: [Link] = []
        /// The number of the newest start.
        var run = 0
        /// Its remaining steps.
        var remaining: [Link] = []
        /// Whether the newest start accepts further steps.
        var isOpen = false
        var current: ChainStep?
        var hasBegun = false
        var last: ChainStep?
        var succeeded: ChainStep?
        var failed: ChainStep?
        // Recorded when the step ends, because a batch or chain may be a step again.
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

    /// Creates a chain without steps.
    public override init() { super.init() }

    // MARK: Steps

    /// Appends a step; while the chain runs, to the current run only.
    ///
    /// - Parameters:
    ///   - step: the step to run after those that were added before.
    ///   - callback: runs on the callback queue when the step has succeeded, before the next one begins.
    public func addStep(_ step: ChainStep, callback: StepBlock? = nil) {
        progress.withLock { progress in
            guard progress.isOpen else { return progress.links.append(Link(step: step, callback: callback)) }
            progress.remaining.append(Link(step: step, callback: callback))
            progress.links.append(Link(step: step, callback: nil, isTransient: true))
        }
    }

    /// Appends a request as a step.
    public func addRequest(_ request: BaseRequest, callback: (@Sendable (ChainRequest, BaseRequest) -> Void)? = nil) {
        addStep(.request(request)) { chain, _ in callback?(chain, request) }
    }

    /// Appends a batch as a step, whose requests run concurrently.
    public func addBatch(_ batch: BatchRequest, callback: (@Sendable (ChainRequest, BatchRequest) -> Void)? = nil) {
        addStep(.batch(batch)) { chain, _ in callback?(chain, batch) }
    }

    /// The steps in the order in which they were added, including those added during the newest start, which the next start removes. Steps
    /// made by ``requestBuilder`` are not included.
    public var steps: [ChainStep] { progress.withLock { $0.links.map(\.step) } }
    /// The requests among the steps.
    public var requestArray: [BaseRequest] { steps.compactMap(\.request) }

    // MARK: Settings

    /// The delay before each step but the first, in seconds; 0 by default.
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

    /// Makes further steps when those that were added have run, for example to poll or to try another server. `nil` by default. Called on
    /// the callback queue.
    public var requestBuilder: Builder? {
        get { progress.withLock { $0.builder } }
        set { progress.withLock { $0.builder = newValue } }
    }

    /// The delegate notified of the end; held weakly. ``RequestGroup/stop()`` sets it to `nil`.
    public var delegate: (any ChainRequestDelegate)? {
        get { progress.withLock { $0.delegate } }
        set { progress.withLock { $0.delegate = newValue } }
    }

    /// Runs when the chain has succeeded, after the delegate; released afterwards.
    public var successCompletionBlock: CompletionBlock? {
        get { successBlock }
        set { successBlock = Self.erase(newValue) }
    }

    /// Runs when the chain has failed, after the delegate; released afterwards.
    public var failureCompletionBlock: CompletionBlock? {
        get { failureBlock }
        set { failureBlock = Self.erase(newValue) }
    }

    // MARK: Result

    /// The last step that succeeded; `nil` if none has.
    public var succeedStep: ChainStep? { progress.withLock { $0.succeeded } }
    /// The last step that failed; `nil` if none has.
    public var failedStep: ChainStep? { progress.withLock { $0.failed } }
    /// The last request that succeeded, for a batch its last request in order; `nil` if none has. A later failure does not reset it.
    public var succeedRequest: BaseRequest? { progress.withLock { $0.succeededRequest } }
    /// The last request that failed, for a batch the first one that failed; `nil` if none has. A later success does not reset it.
    public var failedRequest: BaseRequest? { progress.withLock { $0.failedRequest } }

    // MARK: RequestGroup

    override var firstAgent: RequestAgent? {
        switch progress.withLock({ $0.links.first ?? $0.remaining.first })?.step {
        case .request(let request)?: request.agent
        case .batch(let batch)?: batch.agent
        case .chain(let chain)?: chain.agent
        case nil: nil
        }
    }
    override var endingError: (any Error)? { progress.withLock { $0.failure } }
    override func clearDelegate() { delegate = nil }

    override func notifyDelegate(_ ending: RequestEnding) {
        if ending == .succeeded {
            delegate?.chainRequestFinished(self)
        } else if let failedStep {
            delegate?.chainRequestFailed(self, failedStep: failedStep)
        }
    }

    override func begin(_ run: Int) {
        progress.withLock { progress in
            progress.run = run
            progress.links.removeAll { $0.isTransient }
            progress.remaining = progress.links
            (progress.isOpen, progress.hasBegun) = (true, false)
            (progress.current, progress.last, progress.succeeded, progress.failed) = (nil, nil, nil, nil)
            (progress.succeededRequest, progress.failedRequest, progress.failure) = (nil, nil, nil)
        }
        onQueue(run) { self.next(run, after: .succeeded) }
    }

    /// Begins the next step, or finishes with the last one's outcome; on the callback queue.
    private func next(_ run: Int, after ending: RequestEnding) {
        let (builder, last, hasRemaining) = progress.withLock { ($0.builder, $0.last, !$0.remaining.isEmpty) }
        let built = hasRemaining ? nil : builder?(self, last)
        let wait = progress.withLock { progress -> Double? in
            guard progress.run == run else { return nil }
            if let built { progress.remaining.append(Link(step: built, callback: nil)) }
            guard !progress.remaining.isEmpty else {
                progress.isOpen = false
                return nil
            }
            defer { progress.hasBegun = true }
            return progress.hasBegun ? progress.requestInterval : 0
        }
        guard let wait else { return finish(run, ending) }
        guard wait > 0 else { return performNext(run) }
        // Once the deadline has passed, the step fails at once.
        let rest = deadline?.remaining.seconds ?? .infinity
        // The wait retains nothing: a chain that is stopped is released at once.
        agent.clock.schedule(min(wait, rest), agent.configuration.callbackQueue) { [weak self] in self?.performNext(run) }
    }

    private func performNext(_ run: Int) {
        guard isRunning(run) else { return }
        let link = progress.withLock { progress -> Link? in
            guard progress.run == run, !progress.remaining.isEmpty else { return nil }
            let link = progress.remaining.removeFirst()
            progress.current = link.step
            return link
        }
        if let link { perform(link.step.runnable, run) { self.stepCompleted(link, $0, run) } }
    }

    private func stepCompleted(_ link: Link, _ ending: RequestEnding, _ run: Int) {
        let hasSucceeded = ending == .succeeded
        let step = link.step
        let request = hasSucceeded ? step.succeededRequest : step.failedRequest
        let failure = hasSucceeded ? nil : step.error
        let isTooLate = deadline?.hasPassed ?? false
        let isComplete = progress.withLock { progress in
            guard progress.run == run else { return false }
            progress.current = nil
            progress.last = step
            if hasSucceeded {
                progress.succeeded = step
                progress.succeededRequest = request ?? progress.succeededRequest
            } else {
                (progress.failed, progress.failure) = (step, failure)
                progress.failedRequest = request ?? progress.failedRequest
            }
            return hasSucceeded ? progress.stoppedOnSuccess : progress.stoppedOnFailure || isTooLate
        }
        if hasSucceeded { link.callback?(self, step) }
        guard isRunning(run) else { return }
        if isComplete { progress.withLock { if $0.run == run { $0.isOpen = false } } }
        if isComplete { finish(run, hasSucceeded ? .succeeded : .failed) } else { next(run, after: hasSucceeded ? .succeeded : .failed) }
    }

    override func stopRequests(_ run: Int) {
        let current = progress.withLock { progress -> ChainStep? in
            guard progress.run == run else { return nil }
            defer {
                progress.current = nil
                progress.remaining = []
                progress.isOpen = false
            }
            return progress.current
        }
        current?.runnable.stop()
    }
}

// MARK: - async/await

extension ChainRequest {
    /// Starts the chain and awaits its end; if it is already running, awaits the end of that run. Returns after the callbacks have run.
    ///
    /// Cancelling the awaiting task stops the chain.
    ///
    /// - Returns: the last step that succeeded; `nil` if there is none.
    /// - Throws: the error of the last step; `CancellationError` if the chain was stopped.
    @discardableResult
    public func response() async throws -> ChainStep? {
        try await successfulEnding()
        return succeedStep
    }
}
