// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Decides what is stored of a response.
protocol CacheDecider {
    /// Calls `decided` once with the response to store, `nil` to store none; on any thread, and synchronously without a delegate closure.
    func decide(aboutCaching proposed: CachedURLResponse, decided: @escaping @Sendable (CachedURLResponse?) -> Void)
}

/// A transfer of a cacheable request: looked up, then served from the cache, revalidated, or loaded and stored.
final class CachedTransfer: InterceptedTransfer, TransferObserver {
    private enum Stage {
        /// The base transport does not know the transfer yet.
        case lookingUp
        /// The base transport runs the transfer.
        case loading
        /// The stored response is delivered.
        case serving(ResponsePump)
        /// The base transport has completed the transfer; what to store is being decided.
        case storing
        case complete
    }

    private struct State {
        var stage = Stage.lookingUp
        var failure: (any Error)?
        var isSuspended = false
    }

    /// The response being loaded. Accessed by one thread at a time: the base transport's, then the queue after completion.
    private struct Loading {
        /// The stale entry whose validators were sent; `nil` for an unconditional request.
        var revalidated: ResponseStore.Entry?
        /// The outcome, unless the entry is revalidated.
        var outcome = TransferMetrics.CacheOutcome.miss
        var head: ResponseHead?
        var isNotModified = false
        /// The body received so far; `nil` if the response is not stored.
        var body: Data?
        var requestTime = Date()
        var responseTime = Date()
    }

    private let id: Int
    private let request: TransferRequest
    private let observer: any TransferObserver
    private let base: any Transport
    private let store: ResponseStore
    private let queue: DispatchQueue
    private let willComplete: @Sendable () -> Void
    private let state = Lock(State())
    private let loading = Lock(Loading())

    /// - Parameters:
    ///   - queue: serial; the cache, which may block on disk, is read and written there.
    ///   - willComplete: called before the completion is delivered.
    init(
        id: Int, request: TransferRequest, observer: any TransferObserver, base: any Transport, store: ResponseStore, queue: DispatchQueue,
        willComplete: @escaping @Sendable () -> Void
    ) {
        self.id = id
        self.request = request
        self.observer = observer
        self.base = base
        self.store = store
        self.queue = queue
        self.willComplete = willComplete
    }

    // MARK: Any thread

    func begin() {
        switch request.cachePolicy {
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: load(revalidating: nil, as: .bypass)
        default: queue.async { self.lookUp() }
        }
    }

    func fail(with error: any Error) {
        let stage = state.withLock { state in
            if state.failure == nil { state.failure = error }
            return state.stage
        }
        switch stage {
        case .lookingUp, .storing: queue.async { self.completeIfFailed() }
        case .loading: base.cancel(id)
        case .serving(let pump): pump.fail(with: error)
        case .complete: break
        }
    }

    func setSuspended(_ suspended: Bool) {
        let stage = state.withLock { state in
            state.isSuspended = suspended
            return state.stage
        }
        switch stage {
        case .loading: base.setSuspended(suspended, of: id)
        case .serving(let pump): pump.setSuspended(suspended)
        case .lookingUp, .storing, .complete: break
        }
    }

    func resumeReceiving() {
        switch state.withLock({ $0.stage }) {
        case .loading: base.resumeReceiving(id)
        case .serving(let pump): pump.resumeReceiving()
        case .lookingUp, .storing, .complete: break
        }
    }

    // MARK: Looking up, on the queue

    private func lookUp() {
        guard !completeIfFailed() else { return }
        let entry = store.entry(for: request)
        switch (request.cachePolicy, entry) {
        case (.returnCacheDataElseLoad, let entry?), (.returnCacheDataDontLoad, let entry?):
            serve(entry, as: entry.response.isStale(at: Date()) ? .stale : .hit)
        case (.returnCacheDataDontLoad, nil): completeNotInCache()
        case (_, nil): CacheDirectives(request.headers).has("only-if-cached") ? completeNotInCache() : load(revalidating: nil)
        case (.reloadRevalidatingCacheData, let entry?) where !request.isConditional: apply(entry.response.revalidation, entry)
        // A request with its own validators expects the 304 that answers them.
        case (_, _?) where request.isConditional: load(revalidating: nil, as: .bypass)
        case (_, let entry?): apply(entry.response.use(for: request.headers, at: Date()), entry)
        }
    }

    private func apply(_ use: StoredResponse.Use, _ entry: ResponseStore.Entry) {
        switch use {
        case .serve: serve(entry, as: entry.response.isStale(at: Date()) ? .stale : .hit)
        case _ where CacheDirectives(request.headers).has("only-if-cached"): completeNotInCache()
        case .revalidate(let conditions): load(revalidating: (entry, conditions))
        case .reload: load(revalidating: nil)
        }
    }

    private func completeNotInCache() {
        complete(TransferCompletion(error: CurlewError.notInCache(request), metrics: TransferMetrics()))
    }

    /// Completes a failed or cancelled transfer in the stages in which neither the base transport nor a pump does.
    @discardableResult
    private func completeIfFailed() -> Bool {
        let failure = state.withLock { state -> (any Error)? in
            switch state.stage {
            case .lookingUp, .storing: state.failure
            case .loading, .serving, .complete: nil
            }
        }
        guard let failure else { return false }
        complete(TransferCompletion(error: failure, metrics: TransferMetrics()))
        return true
    }

    // MARK: Serving

    /// Delivers a stored response; after a revalidation, with the cookies of the 304.
    private func serve(
        _ entry: ResponseStore.Entry, as outcome: TransferMetrics.CacheOutcome, metrics: TransferMetrics = TransferMetrics(),
        cookies: [String] = []
    ) {
        let pump = ResponsePump(id: id, observer: observer, queue: queue) { [self] in
            state.withLock { $0.stage = .complete }
            willComplete()
        }
        let failure = state.withLock { state in
            state.stage = .serving(pump)
            return state.failure
        }
        forwardSuspension { pump.setSuspended($0) }
        if let failure { pump.fail(with: failure) }
        let headers = HTTPHeaders(Array(entry.response.headers) + cookies.map { HTTPHeader(name: "Set-Cookie", value: $0) })
        var metrics = metrics
        metrics.isFromCache = true
        metrics.cacheOutcome = outcome
        pump.add(
            .head(ResponseHead(statusCode: entry.response.statusCode, headers: headers)), .bytes(entry.data),
            .complete(TransferCompletion(error: nil, metrics: metrics)))
    }

    // MARK: Loading

    private func load(
        revalidating: (entry: ResponseStore.Entry, conditions: HTTPHeaders)?, as outcome: TransferMetrics.CacheOutcome = .miss
    ) {
        var request = request
        if let revalidating { request.headers.merge(revalidating.conditions) }
        loading.withLock { $0 = Loading(revalidated: revalidating?.entry, outcome: outcome) }
        let isWanted = state.withLock { state in
            // From here on a cancellation is forwarded to the base transport.
            if state.failure == nil { state.stage = .loading }
            return state.failure == nil
        }
        guard isWanted else { return queue.async { self.completeIfFailed() } }
        base.start(request, id: id, observer: self)
        // A call of another thread before `start` did not reach the base transport.
        guard state.withLock({ $0.failure }) == nil else { return base.cancel(id) }
        forwardSuspension { base.setSuspended($0, of: id) }
    }

    /// Forwards a suspension from before the receiver knew the transfer. Repeats while another thread changes the state, because that
    /// thread's own call may have arrived first.
    private func forwardSuspension(_ forward: (Bool) -> Void) {
        var forwarded = false
        while case let isSuspended = state.withLock({ $0.isSuspended }), isSuspended != forwarded {
            forward(isSuspended)
            forwarded = isSuspended
        }
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        let isNotModified = loading.withLock { loading in
            loading.head = head
            loading.responseTime = Date()
            loading.isNotModified = head.statusCode == 304 && loading.revalidated != nil
            loading.body = isStorable(head) ? Data() : nil
            return loading.isNotModified
        }
        return isNotModified ? .proceed : observer.transfer(id, didReceive: head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        let isNotModified = loading.withLock { loading in
            if let count = loading.body?.count {
                if count + bytes.count > store.largestBody { loading.body = nil } else { loading.body?.append(contentsOf: bytes) }
            }
            return loading.isNotModified
        }
        return isNotModified ? .proceed : observer.transfer(id, didReceive: bytes)
    }

    func transfer(_ id: Int, didSend count: Int64) {
        observer.transfer(id, didSend: count)
    }

    func transfer(_ id: Int, didComplete outcome: TransferCompletion) {
        let loading = loading.withLock { $0 }
        var metrics = outcome.metrics
        metrics.cacheOutcome = loading.outcome
        let outcome = TransferCompletion(error: outcome.error, metrics: metrics, trailers: outcome.trailers)
        guard outcome.error == nil, let head = loading.head else { return complete(outcome) }
        if loading.isNotModified, let revalidated = loading.revalidated {
            storeLater { self.freshen(revalidated, head, loading, outcome) }
        } else if let body = loading.body {
            storeLater { self.storeResponse(body, head, loading, outcome) }
        } else {
            complete(outcome)
        }
    }

    private func isStorable(_ head: ResponseHead) -> Bool {
        !request.expectsLargeBody && (head.expectedBodyLength ?? 0) <= store.largestBody
            && StoredResponse.isStorable(head, request: request.headers)
    }

    private func storeLater(_ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.stage = .storing }
        queue.async { body() }
    }

    // MARK: Storing, on the queue

    /// Updates the stored response from a 304, and serves it.
    private func freshen(_ stale: ResponseStore.Entry, _ head: ResponseHead, _ loading: Loading, _ outcome: TransferCompletion) {
        guard !completeIfFailed(), !isComplete else { return }
        var entry = stale
        guard entry.response.update(with: head.headers, requestTime: loading.requestTime, responseTime: loading.responseTime) else {
            // The 304's ETag is that of another representation: load that without conditions.
            store.remove(request.url)
            return load(revalidating: nil)
        }
        if let proposed = store.proposal(entry, for: request) { store.store(proposed, proposed: proposed, for: request) }
        serve(entry, as: .revalidated, metrics: outcome.metrics, cookies: head.headers.values(for: "Set-Cookie"))
    }

    /// Stores a response before its completion is delivered, so that a request made because of that finds it.
    private func storeResponse(_ body: Data, _ head: ResponseHead, _ loading: Loading, _ outcome: TransferCompletion) {
        let response = StoredResponse(
            statusCode: head.statusCode, headers: StoredResponse.storable(head.headers), requestTime: loading.requestTime,
            responseTime: loading.responseTime)
        let entry = ResponseStore.Entry(response: response, data: body)
        guard let proposed = store.proposal(entry, for: request) else { return complete(outcome) }
        guard let decider = observer as? any CacheDecider else { return write(proposed, proposed, outcome) }
        decider.decide(aboutCaching: proposed) { [self] chosen in
            queue.async { self.write(chosen, proposed, outcome) }
        }
    }

    private func write(_ chosen: CachedURLResponse?, _ proposed: CachedURLResponse, _ outcome: TransferCompletion) {
        if let chosen { store.store(chosen, proposed: proposed, for: request) }
        complete(outcome)
    }

    // MARK: Completion

    private var isComplete: Bool {
        state.withLock { state in
            if case .complete = state.stage { true } else { false }
        }
    }

    /// Delivers the completion, once.
    private func complete(_ outcome: TransferCompletion) {
        let isFirst = state.withLock { state in
            if case .complete = state.stage { return false }
            state.stage = .complete
            return true
        }
        guard isFirst else { return }
        willComplete()
        observer.transfer(id, didComplete: outcome)
    }
}

extension TransferRequest {
    /// Whether the request has conditions of its own (RFC 9110, section 13.1).
    fileprivate var isConditional: Bool {
        headers.contains { header in
            ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"].contains { header.isNamed($0) }
        }
    }
}
