// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// Receives the outcome of a batch, on the callback queue, before its completion blocks.
///
/// Both methods have defaults that do nothing. A method that only nearly matches a requirement's signature is a different method and is
/// never called; see ``RequestDelegate``.
public protocol BatchRequestDelegate: AnyObject, Sendable {
    /// Called when the batch has succeeded. Optional.
    func batchRequestFinished(_ batchRequest: BatchRequest)
    /// Called when a request has failed: ``BatchRequest/failedRequest``. Optional.
    func batchRequestFailed(_ batchRequest: BatchRequest)
}

/// Requests that run concurrently and succeed together.
///
/// The batch succeeds when all requests have succeeded, and fails with the first failure, which stops the others; with ``stoppedOnFailure``
/// set to `false` it waits for all. A request that is stopped individually counts as failed, with `CancellationError`. A batch without
/// requests succeeds.
public final class BatchRequest: RequestGroup, CompletableRequest, @unchecked Sendable {  // its own state is behind a lock
    /// Called with the batch when it has finished.
    public typealias CompletionBlock = @Sendable (BatchRequest) -> Void

    private struct Progress {
        var requests: [BaseRequest]
        var stoppedOnFailure = true
        weak var delegate: (any BatchRequestDelegate)?
        /// The indices of the requests in flight, in the start numbered `run`.
        var pending: Set<Int> = []
        var run = 0

        mutating func takePending() -> [BaseRequest] {
            defer { pending = [] }
            return pending.sorted().map { requests[$0] }
        }

        var failed: [BaseRequest] = []
        var endings: [Int: RequestEnding] = [:]
    }

    private let progress: Lock<Progress>

    /// Creates a batch; the requests are started in the given order. The start releases their own delegates and completion blocks: the
    /// batch handles their completion.
    public init(requestArray: [BaseRequest]) {
        progress = Lock(Progress(requests: requestArray))
        super.init()
    }

    // MARK: Settings

    /// The requests in order: results have the same indices.
    public var requestArray: [BaseRequest] { progress.withLock { $0.requests } }

    /// Appends a request; one added while the batch runs takes part from the next start on.
    public func addRequest(_ request: BaseRequest) {
        progress.withLock { $0.requests.append(request) }
    }

    /// Whether the first failure ends the batch; `true` by default.
    public var stoppedOnFailure: Bool {
        get { progress.withLock { $0.stoppedOnFailure } }
        set { progress.withLock { $0.stoppedOnFailure = newValue } }
    }

    /// The delegate notified of the end; held weakly. ``RequestGroup/stop()`` sets it to `nil`.
    public var delegate: (any BatchRequestDelegate)? {
        get { progress.withLock { $0.delegate } }
        set { progress.withLock { $0.delegate = newValue } }
    }

    /// Runs when the batch has succeeded, after the delegate; released afterwards.
    public var successCompletionBlock: CompletionBlock? {
        get { successBlock }
        set { successBlock = Self.erase(newValue) }
    }

    /// Runs when the batch has failed, after the delegate; released afterwards.
    public var failureCompletionBlock: CompletionBlock? {
        get { failureBlock }
        set { failureBlock = Self.erase(newValue) }
    }

    // MARK: Result

    /// The request that failed first; `nil` if none has failed.
    public var failedRequest: BaseRequest? { progress.withLock { $0.failed.first } }
    /// The failed requests, in the order in which they failed.
    public var failedRequestArray: [BaseRequest] { progress.withLock { $0.failed } }
    /// Whether all responses came from the cache.
    public var isDataFromCache: Bool {
        let requests = requestArray
        return !requests.isEmpty && requests.allSatisfy { ($0 as? CachedRequest)?.isDataFromCache ?? false }
    }

    // MARK: RequestGroup

    override var firstAgent: RequestAgent? { progress.withLock { $0.requests.first }?.agent }
    override var endingError: (any Error)? { failedRequest?.error }
    override func clearDelegate() { delegate = nil }

    override func notifyDelegate(_ ending: RequestEnding) {
        if ending == .succeeded { delegate?.batchRequestFinished(self) } else { delegate?.batchRequestFailed(self) }
    }

    override func begin(_ run: Int) {
        let (earlier, requests) = progress.withLock { progress in
            let earlier = progress.takePending()
            progress.pending = Set(progress.requests.indices)
            progress.run = run
            progress.failed = []
            progress.endings = [:]
            return (earlier, progress.requests)
        }
        // Started again before the last run's requests were stopped.
        for request in earlier { request.stop() }
        if requests.isEmpty { onQueue(run) { self.finish(run, .succeeded) } }
        for (index, request) in requests.enumerated() {
            guard isRunning(run) else { return }
            request.delegate = nil
            request.successCompletionBlock = nil
            request.failureCompletionBlock = nil
            perform(request, run) { self.requestCompleted(index, request, $0, run) }
        }
    }

    private func requestCompleted(_ index: Int, _ request: BaseRequest, _ ending: RequestEnding, _ run: Int) {
        let isComplete = progress.withLock { progress in
            guard progress.run == run, progress.pending.remove(index) != nil else { return false }
            progress.endings[index] = ending
            if ending != .succeeded { progress.failed.append(request) }
            return progress.pending.isEmpty || (progress.stoppedOnFailure && !progress.failed.isEmpty)
        }
        if isComplete { finish(run, failedRequest == nil ? .succeeded : .failed) }
    }

    override func stopRequests(_ run: Int) {
        let requests = progress.withLock { $0.run == run ? $0.takePending() : [] }
        for request in requests { request.stop() }
    }
}

// MARK: - async/await

extension BatchRequest {
    /// Starts the batch and awaits its end; if it is already running, awaits the end of that run. Returns after the callbacks have run.
    ///
    /// Cancelling the awaiting task stops the batch.
    ///
    /// - Returns: the requests, in order.
    /// - Throws: the error of the request that failed first; `CancellationError` if the batch was stopped.
    @discardableResult
    public func responses() async throws -> [BaseRequest] {
        try await successfulEnding()
        return requestArray
    }

    /// Starts the batch and awaits its end, for batches that continue after a failure.
    ///
    /// - Returns: for each request, in order, the request or its error; `CancellationError` if it was stopped.
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
