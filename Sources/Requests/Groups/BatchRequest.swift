// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// Is told how a batch ended, on the callback queue, before its blocks. Both methods have defaults, as those of ``RequestDelegate``.
public protocol BatchRequestDelegate: AnyObject, Sendable {
    /// All requests have succeeded. Optional.
    func batchRequestFinished(_ batchRequest: BatchRequest)
    /// A request has failed: ``BatchRequest/failedRequest``. Optional.
    func batchRequestFailed(_ batchRequest: BatchRequest)
}

/// Requests that are sent at once, and succeed together.
///
/// It has succeeded when all have, and failed with the first that fails, which stops the others; with ``stoppedOnFailure`` false it waits
/// for all. A request that is stopped by itself counts as failed, with `CancellationError`. Without requests it succeeds.
public final class BatchRequest: RequestGroup, @unchecked Sendable {  // what it adds is behind a lock
    /// Is given the batch when it is over.
    public typealias CompletionBlock = @Sendable (BatchRequest) -> Void

    private struct Progress {
        var requests: [BaseRequest]
        var stoppedOnFailure = true
        weak var delegate: (any BatchRequestDelegate)?
        /// The places of the requests that are on their way, in the start with the number.
        var pending: Set<Int> = []
        var run = 0
        var failed: [BaseRequest] = []
        var endings: [Int: RequestEnding] = [:]
    }

    private let progress: Lock<Progress>

    /// Makes a batch; the requests are started in their order. Their own delegates and completion blocks are let go of at the start, as the
    /// batch takes their place.
    public init(requestArray: [BaseRequest]) {
        progress = Lock(Progress(requests: requestArray))
        super.init()
    }

    // MARK: What the user sets

    /// The requests, in their order: results are found by their places.
    public var requestArray: [BaseRequest] { progress.withLock { $0.requests } }

    /// Adds a request behind the others; one that is added while the batch runs takes part in the next start.
    public func addRequest(_ request: BaseRequest) {
        progress.withLock { $0.requests.append(request) }
    }

    /// Whether the first failure ends the batch; `true` by default.
    public var stoppedOnFailure: Bool {
        get { progress.withLock { $0.stoppedOnFailure } }
        set { progress.withLock { $0.stoppedOnFailure = newValue } }
    }

    /// Is told of the end; not kept alive. ``RequestGroup/stop()`` sets it to `nil`.
    public var delegate: (any BatchRequestDelegate)? {
        get { progress.withLock { $0.delegate } }
        set { progress.withLock { $0.delegate = newValue } }
    }

    /// Runs when the batch has succeeded, behind the delegate; released then.
    public var successCompletionBlock: CompletionBlock? {
        get { successBlock }
        set { successBlock = Self.block(newValue) }
    }

    /// Runs when the batch has failed, behind the delegate; released then.
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
            if let group = group as? BatchRequest { block(group) }
        }
    }

    // MARK: What it brought

    /// The request that failed first; `nil` if none has.
    public var failedRequest: BaseRequest? { progress.withLock { $0.failed.first } }
    /// The requests that failed, in the order in which they did.
    public var failedRequestArray: [BaseRequest] { progress.withLock { $0.failed } }
    /// Whether all answers are from the cache.
    public var isDataFromCache: Bool {
        let requests = requestArray
        return !requests.isEmpty && requests.allSatisfy { ($0 as? CachedRequest)?.isDataFromCache ?? false }
    }

    // MARK: RequestGroup

    override var firstAgent: RequestAgent? { progress.withLock { $0.requests.first }?.agent }
    override var endingError: (any Error)? { failedRequest?.error }
    override func clearDelegate() { delegate = nil }

    override func tellDelegate(_ ending: RequestEnding) {
        if ending == .succeeded { delegate?.batchRequestFinished(self) } else { delegate?.batchRequestFailed(self) }
    }

    override func begin(_ run: Int) {
        let requests = progress.withLock { progress in
            progress.pending = Set(progress.requests.indices)
            progress.run = run
            progress.failed = []
            progress.endings = [:]
            return progress.requests
        }
        if requests.isEmpty { onQueue(run) { self.conclude(run, .succeeded) } }
        for (index, request) in requests.enumerated() {
            guard isRunning(run) else { return }
            request.delegate = nil
            request.successCompletionBlock = nil
            request.failureCompletionBlock = nil
            request.start { ending in self.onQueue(run) { self.requestEnded(index, request, ending, run) } }
        }
    }

    private func requestEnded(_ index: Int, _ request: BaseRequest, _ ending: RequestEnding, _ run: Int) {
        let isOver = progress.withLock { progress in
            guard progress.run == run, progress.pending.remove(index) != nil else { return false }
            progress.endings[index] = ending
            if ending != .succeeded { progress.failed.append(request) }
            return progress.pending.isEmpty || (progress.stoppedOnFailure && !progress.failed.isEmpty)
        }
        if isOver { conclude(run, failedRequest == nil ? .succeeded : .failed) }
    }

    override func stopRequests() {
        let requests = progress.withLock { progress in
            defer { progress.pending = [] }
            return progress.pending.sorted().map { progress.requests[$0] }
        }
        for request in requests { request.stop() }
    }
}

// MARK: - Starting

extension BatchRequest {
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
    ///   - filter: asked when its turn has come; `false` leaves the batch out, with no callback.
    ///   - completion: runs at either end.
    public func startSynchronously(filter: (@Sendable () -> Bool)? = nil, completion: CompletionBlock? = nil) {
        startSynchronously(filter: filter, success: completion, failure: completion)
    }

    /// The same with a block for each end.
    public func startSynchronously(filter: (@Sendable () -> Bool)? = nil, success: CompletionBlock?, failure: CompletionBlock?) {
        startInTurn(filter, success: Self.block(success), failure: Self.block(failure))
    }

    /// Starts, and waits for the end. Callbacks run before. Of a batch that runs already, its end is waited for.
    ///
    /// Cancelling the waiting task stops the batch.
    ///
    /// - Returns: the requests, in their order.
    /// - Throws: why the first of those that failed has; `CancellationError` when it was stopped.
    @discardableResult
    public func responses() async throws -> [BaseRequest] {
        try await successfulEnding()
        return requestArray
    }

    /// Starts, and waits for the end, whatever it is: for batches that go on past a failure.
    ///
    /// - Returns: for each request, in their order, the request or why it failed; `CancellationError` if it was stopped.
    public func results() async -> [Result<BaseRequest, any Error>] {
        if !Task.isCancelled { _ = await ending() }
        let (requests, endings) = progress.withLock { ($0.requests, $0.endings) }
        return requests.enumerated().map { index, request in
            switch endings[index] {
            case .succeeded?: .success(request)
            case .failed?: .failure(request.error ?? CancellationError())
            case .stopped?, nil: .failure(CancellationError())
            }
        }
    }
}
