// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Decides what of a response goes into the cache.
protocol CacheDecider {
    /// Calls `decided` once, with what is to be stored, `nil` for nothing; on any thread, at once where nobody has a say in it.
    func decide(aboutCaching proposed: CachedURLResponse, decided: @escaping @Sendable (CachedURLResponse?) -> Void)
}

/// A transfer that the cache has a part in: looked up, then given from the cache, confirmed, or loaded and stored.
final class CachedTransfer: TakenTransfer, TransferObserver {
    private enum Stage {
        /// Nobody else knows of it yet.
        case looking
        /// The other transport has it.
        case loading
        /// The answer is handed over.
        case giving(AnswerPump)
        /// The response is there, and what to store of it is being decided.
        case storing
        case over
    }

    private struct State {
        var stage = Stage.looking
        var end: (any Error)?
        var isSuspended = false
    }

    /// What is known of the response under way. Touched by one thread at a time: the other transport's, or the queue once that is done.
    private struct Loading {
        /// What is stored, when the host was asked whether it still holds.
        var asked: AnswerStore.Entry?
        var head: ResponseHead?
        var isConfirmed = false
        /// The body so far; `nil` where it is not to be stored.
        var body: Data?
        var requestTime = Date()
        var responseTime = Date()
    }

    private let id: Int
    private let request: TransferRequest
    private let observer: any TransferObserver
    private let base: any Transport
    private let store: AnswerStore
    private let queue: DispatchQueue
    private let willComplete: @Sendable () -> Void
    private let state = Lock(State())
    private let loading = Lock(Loading())

    /// - Parameters:
    ///   - queue: serial; where the cache is asked.
    ///   - willComplete: called before the last event.
    init(
        id: Int, request: TransferRequest, observer: any TransferObserver, base: any Transport, store: AnswerStore, queue: DispatchQueue,
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
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: load(asking: nil)
        default: queue.async { self.lookUp() }
        }
    }

    func end(with error: any Error) {
        let stage = state.withLock { state in
            if state.end == nil { state.end = error }
            return state.stage
        }
        switch stage {
        case .looking, .storing: queue.async { self.completeIfEnded() }
        case .loading: base.cancel(id)
        case .giving(let pump): pump.end(with: error)
        case .over: break
        }
    }

    func setSuspended(_ suspended: Bool) {
        let stage = state.withLock { state in
            state.isSuspended = suspended
            return state.stage
        }
        switch stage {
        case .loading: base.setSuspended(suspended, of: id)
        case .giving(let pump): pump.setSuspended(suspended)
        case .looking, .storing, .over: break
        }
    }

    func resumeReceiving() {
        switch state.withLock({ $0.stage }) {
        case .loading: base.resumeReceiving(id)
        case .giving(let pump): pump.resumeReceiving()
        case .looking, .storing, .over: break
        }
    }

    // MARK: Looking up, on the queue

    private func lookUp() {
        guard !completeIfEnded() else { return }
        let entry = store.entry(for: request)
        switch (request.cachePolicy, entry) {
        case (.returnCacheDataElseLoad, let entry?), (.returnCacheDataDontLoad, let entry?): give(entry)
        case (.returnCacheDataDontLoad, nil): fail()
        case (_, nil): CacheDirectives(request.headers).has("only-if-cached") ? fail() : load(asking: nil)
        case (.reloadRevalidatingCacheData, let entry?): follow(entry.answer.confirmation, entry)
        // The user asks by himself, and expects to be told.
        case (_, _?) where request.isConditional: load(asking: nil)
        case (_, let entry?): follow(entry.answer.use(for: request.headers, at: Date()), entry)
        }
    }

    private func follow(_ use: StoredAnswer.Use, _ entry: AnswerStore.Entry) {
        switch use {
        case .give: give(entry)
        case _ where CacheDirectives(request.headers).has("only-if-cached"): fail()
        case .confirm(let conditions): load(asking: (entry, conditions))
        case .pass: load(asking: nil)
        }
    }

    private func fail() {
        complete(TransferCompletion(error: CurlewError.notInCache(request), metrics: TransferMetrics()))
    }

    /// Completes it if it was cancelled while nobody else has it, who would.
    @discardableResult
    private func completeIfEnded() -> Bool {
        let end = state.withLock { state -> (any Error)? in
            switch state.stage {
            case .looking, .storing: state.end
            case .loading, .giving, .over: nil
            }
        }
        guard let end else { return false }
        complete(TransferCompletion(error: end, metrics: TransferMetrics()))
        return true
    }

    // MARK: Giving

    /// Hands over what is stored; after a confirmation with the cookies that came with it.
    private func give(_ entry: AnswerStore.Entry, metrics: TransferMetrics = TransferMetrics(), cookies: [String] = []) {
        let pump = AnswerPump(id: id, observer: observer, queue: queue) { [self] in
            state.withLock { $0.stage = .over }
            willComplete()
        }
        let end = state.withLock { state in
            state.stage = .giving(pump)
            return state.end
        }
        tellSuspension { pump.setSuspended($0) }
        if let end { pump.end(with: end) }
        let headers = HTTPHeaders(Array(entry.answer.headers) + cookies.map { HTTPHeader(name: "Set-Cookie", value: $0) })
        var metrics = metrics
        metrics.isFromCache = true
        pump.add(
            .head(ResponseHead(statusCode: entry.answer.statusCode, headers: headers)), .bytes(entry.data),
            .complete(TransferCompletion(error: nil, metrics: metrics)))
    }

    // MARK: Loading

    private func load(asking: (entry: AnswerStore.Entry, conditions: HTTPHeaders)?) {
        var request = request
        if let asking { request.headers.merge(asking.conditions) }
        loading.withLock { $0 = Loading(asked: asking?.entry) }
        let isWanted = state.withLock { state in
            // A cancellation from now on goes to the other transport.
            if state.end == nil { state.stage = .loading }
            return state.end == nil
        }
        guard isWanted else { return queue.async { self.completeIfEnded() } }
        base.start(request, id: id, observer: self)
        // It has not heard what another thread said before it knew the transfer.
        guard state.withLock({ $0.end }) == nil else { return base.cancel(id) }
        tellSuspension { base.setSuspended($0, of: id) }
    }

    /// Forwards a suspension from before the receiver knew the transfer. Repeats while another thread changes the state, because that
    /// thread's own call may have arrived first.
    private func tellSuspension(_ tell: (Bool) -> Void) {
        var told = false
        while case let isSuspended = state.withLock({ $0.isSuspended }), isSuspended != told {
            tell(isSuspended)
            told = isSuspended
        }
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        let isConfirmation = loading.withLock { loading in
            loading.head = head
            loading.responseTime = Date()
            loading.isConfirmed = head.statusCode == 304 && loading.asked != nil
            loading.body = mayStore(head) ? Data() : nil
            return loading.isConfirmed
        }
        return isConfirmation ? .proceed : observer.transfer(id, didReceive: head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        let isConfirmation = loading.withLock { loading in
            if let count = loading.body?.count {
                if count + bytes.count > store.largestBody { loading.body = nil } else { loading.body?.append(contentsOf: bytes) }
            }
            return loading.isConfirmed
        }
        return isConfirmation ? .proceed : observer.transfer(id, didReceive: bytes)
    }

    func transfer(_ id: Int, didSend count: Int64) {
        observer.transfer(id, didSend: count)
    }

    func transfer(_ id: Int, didComplete outcome: TransferCompletion) {
        let loading = loading.withLock { $0 }
        guard outcome.error == nil, let head = loading.head else { return complete(outcome) }
        if loading.isConfirmed, let asked = loading.asked {
            beginStoring { self.confirm(asked, head, loading, outcome) }
        } else if let body = loading.body {
            beginStoring { self.keep(body, head, loading, outcome) }
        } else {
            complete(outcome)
        }
    }

    private func mayStore(_ head: ResponseHead) -> Bool {
        !request.expectsLargeBody && (head.expectedBodyLength ?? 0) <= store.largestBody
            && StoredAnswer.mayStore(head, request: request.headers)
    }

    private func beginStoring(_ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.stage = .storing }
        queue.async { body() }
    }

    // MARK: Storing, on the queue

    /// The host says that what is stored still holds.
    private func confirm(_ asked: AnswerStore.Entry, _ head: ResponseHead, _ loading: Loading, _ outcome: TransferCompletion) {
        guard !completeIfEnded(), !isOver else { return }
        var entry = asked
        guard entry.answer.update(with: head.headers, requestTime: loading.requestTime, responseTime: loading.responseTime) else {
            // It speaks of another answer than the one that we have: ask for that.
            store.remove(request.url)
            return load(asking: nil)
        }
        if let proposed = store.proposal(entry, for: request) { store.store(proposed, proposed: proposed, for: request) }
        give(entry, metrics: outcome.metrics, cookies: head.headers.values(for: "Set-Cookie"))
    }

    /// Stores a response before the request learns of its end, so that the next one finds it.
    private func keep(_ body: Data, _ head: ResponseHead, _ loading: Loading, _ outcome: TransferCompletion) {
        let answer = StoredAnswer(
            statusCode: head.statusCode, headers: StoredAnswer.storable(head.headers), requestTime: loading.requestTime,
            responseTime: loading.responseTime)
        guard let proposed = store.proposal(AnswerStore.Entry(answer: answer, data: body), for: request) else { return complete(outcome) }
        guard let decider = observer as? any CacheDecider else { return write(proposed, proposed, outcome) }
        decider.decide(aboutCaching: proposed) { [self] chosen in
            queue.async { self.write(chosen, proposed, outcome) }
        }
    }

    private func write(_ chosen: CachedURLResponse?, _ proposed: CachedURLResponse, _ outcome: TransferCompletion) {
        if let chosen { store.store(chosen, proposed: proposed, for: request) }
        complete(outcome)
    }

    // MARK: The end

    private var isOver: Bool {
        state.withLock { state in
            if case .over = state.stage { true } else { false }
        }
    }

    /// Completes it, unless that has been done.
    private func complete(_ outcome: TransferCompletion) {
        let isFirst = state.withLock { state in
            if case .over = state.stage { return false }
            state.stage = .over
            return true
        }
        guard isFirst else { return }
        willComplete()
        observer.transfer(id, didComplete: outcome)
    }
}

extension TransferRequest {
    /// Whether the request asks by itself whether something has changed (RFC 9110, section 13.1).
    fileprivate var isConditional: Bool {
        headers.contains { header in
            ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"].contains { header.isNamed($0) }
        }
    }
}
