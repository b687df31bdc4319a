// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Decides what is stored of a response.
package protocol CacheDecider: Sendable {
    /// Calls `decided` once with the response to store, `nil` to store none; on any thread, and synchronously without a delegate closure.
    func decide(aboutCaching proposed: CachedURLResponse, decided: @escaping @Sendable (CachedURLResponse?) -> Void)
    /// Whether it may decide for something other than the proposed response. May take locks.
    var decidesAboutCaching: Bool { get }
}

/// A transfer of a cacheable request: looked up, then served from the cache, validated, or loaded and stored.
///
/// The look-up and the calls of its handle are here; `CachedTransfer+Loading` has the events of the base transport, `CachedTransfer+Storing`
/// what becomes of them.
final class CachedTransfer: TransferHandle {
    enum Stage {
        case made
        /// The base transport does not have the transfer yet; it may wait for an equal one.
        case lookingUp
        /// The base transport loads the response, or a pump delivers the stored one.
        case receiving(any TransferHandle)
        /// The base transport has completed the transfer; what to store is being decided.
        case storing
        case complete

        var handle: (any TransferHandle)? {
            if case .receiving(let handle) = self { handle } else { nil }
        }
    }

    struct State {
        var stage = Stage.made
        /// Why it was ended; the first reason counts.
        var failure: (any Error)?
        var isSuspended = false
        /// Others wait for the response.
        var flight: MissCoalescer.Flight?
        /// Other processes wait for it.
        var lease: CacheLease?

        var isComplete: Bool {
            if case .complete = stage { true } else { false }
        }
    }

    /// The response being loaded. Accessed by one thread at a time: the base transport's, then the queue after completion.
    struct Loading {
        /// What was stored when the request was sent.
        var stored = StoredResponses.none
        /// The index of the stored response whose validators were sent; `nil` for a request without conditions of the cache.
        var validated: Int?
        /// The index of the stored response that may be served in place of an error.
        var fallback: Int?
        /// The outcome, unless a stored response is served.
        var outcome = TransferMetrics.CacheOutcome.miss
        var reason = CacheReason.notStored
        /// The response, as far as the rules need it.
        var received: StorageRules.Received?
        /// The head under which the response is stored; `nil` if it is not.
        var head: StoredResponse?
        /// The head to deliver with the body.
        var delivered: ResponseHead?
        /// Whether the response is kept from the observer: it validates a stored one, or the fallback takes its place.
        var isWithheld = false
        /// The body received so far.
        var sink = StorageSink.none
        /// Whether the URL was invalidated while the response was loaded.
        var isOutdated = false
        var requestTime = 0.0
    }

    let id: Int
    let request: TransferRequest
    let cacheRequest: CacheRequest
    let observer: any TransferObserver
    let transport: CachingTransport
    let state = Lock(State())
    let loading = Lock(Loading())
    let isInBackground: Bool

    var store: any ResponseStoring { transport.store }

    /// - Parameter isInBackground: whether the transfer validates a response that was served already.
    init(id: Int, request: TransferRequest, observer: any TransferObserver, transport: CachingTransport, isInBackground: Bool = false) {
        self.id = id
        self.request = request
        cacheRequest = CacheRequest(
            method: request.method, headers: request.headers, mode: .init(request.cachePolicy), partition: request.partition)
        self.observer = observer
        self.transport = transport
        self.isInBackground = isInBackground
    }

    // MARK: Any thread

    // The calls of handles are made inside of the lock, so that they get them in the order in which this one has got them.

    func start() {
        let (isFirst, isRefused) = state.withLock { state in
            guard case .made = state.stage else { return (false, false) }
            state.stage = .lookingUp
            guard !transport.running.insert(self) else { return (true, false) }
            state.failure = CurlewError.sessionInvalidated
            return (true, true)
        }
        guard isFirst else { return }
        // A refused one completes before this returns.
        let isInPlace = isRefused || store.isInMemory || cacheRequest.mode == .ignoresStored
        if isInPlace { lookUp() } else { transport.queue.async { self.lookUp() } }
    }

    func cancel() {
        let wasMade = state.withLock { state in
            guard case .made = state.stage else { return false }
            state.stage = .complete
            return true
        }
        if wasMade { observer.completeUnstarted(id) } else { fail(with: .cancelled) { $0.cancel() } }
    }

    /// Ends the transfer with its session.
    func shutDown() {
        fail(with: .sessionInvalidated) { $0.endWithSession() }
    }

    private func fail(with error: CurlewError, _ end: (any TransferHandle) -> Void) {
        let isOnQueue = state.withLock { state in
            guard state.failure == nil else { return false }
            state.failure = error
            state.stage.handle.map(end)
            return state.stage.handle == nil
        }
        if isOnQueue { transport.queue.async { self.completeIfFailed() } }
    }

    func setSuspended(_ suspended: Bool) {
        state.withLock { state in
            state.isSuspended = suspended
            state.stage.handle?.setSuspended(suspended)
        }
        // Others don't wait for a request that may stay suspended.
        if suspended { endFlight(.abandoned) }
    }

    func resumeReceiving() {
        state.withLock { $0.stage.handle?.resumeReceiving() }
    }

    // MARK: Looking up

    /// - Parameter wait: how the equal request ended for which this one has waited; `nil` if it has not waited.
    func lookUp(after wait: MissCoalescer.Outcome? = nil) {
        guard !completeIfFailed(), !isComplete else { return }
        // Of those that are not cacheable only the ones that may not be sent get here.
        if cacheRequest.mode == .storedOnly, !request.isCacheable { return completeNotInCache() }
        let stored = cacheRequest.mode == .ignoresStored ? StoredResponses.none : store.find(request, in: cacheRequest.partition)
        let now = transport.now()
        let decision = decide(stored, now: now)
        if serveEquivalent(inPlaceOf: stored, decision, now: now) { return }
        let fallback = CacheRules.fallback(for: cacheRequest, stored.heads, now: now)
        switch decision {
        case .serve(let index, let delivery, let reason, let isStale, let validates):
            guard let served = Served(stored[index], delivery, now: now) else {
                // Evicted since, or a range that the body does not have.
                return load(Loading(stored: stored, reason: delivery == .whole ? .notStored : .otherRange))
            }
            if let wait, wait == .stored, !isStale {
                serve(served, as: .hit, .collapsed)
            } else {
                serve(served, as: isStale ? .stale : .hit, reason)
            }
            if validates { transport.validateInBackground(request, in: cacheRequest.partition) }
        case .validate(let index, let conditions, let reason):
            let start = Loading(stored: stored, validated: index, fallback: fallback, reason: reason)
            loadOnce(start, conditions: conditions, after: wait)
        case .complete: load(Loading(stored: stored, fallback: fallback, reason: .otherRange))
        case .forward(let decided, let isBypass):
            let reason = stored.hasFailed && decided == .notStored ? .storeFailed : decided
            let start = Loading(stored: stored, fallback: fallback, outcome: isBypass ? .bypass : .miss, reason: reason)
            if isBypass { load(start) } else { loadOnce(start, after: wait) }
        case .fail: completeNotInCache()
        }
    }

    /// How the request is answered. An observer that decides what is stored can't be asked about a validation in the background, as its
    /// request may have ended by then: nothing is served to it before the validation.
    private func decide(_ stored: StoredResponses, now: Double) -> CacheDecision {
        let decision = CacheRules.decide(cacheRequest, stored.heads, now: now)
        guard case .serve(_, _, _, isStale: _, validates: true) = decision, store.asks(observer) else { return decision }
        return CacheRules.decide(cacheRequest, stored.heads, now: now, validatesInBackground: false)
    }

    private func completeNotInCache() {
        store.count(.miss, .onlyIfCached)
        complete(.notInCache(request))
    }

    /// Serves what is stored for a URL that differs from the request's in nothing that distinguishes it (`No-Vary-Search`), if the request
    /// selects nothing that is stored for its own. A response that would have to be validated is not used, nor any for a request with
    /// conditions: validators are compared within one URL.
    private func serveEquivalent(inPlaceOf stored: StoredResponses, _ decision: CacheDecision, now: Double) -> Bool {
        if case .serve = decision { return false }
        guard cacheRequest.mode != .ignoresStored, !cacheRequest.hasPreconditions, !cacheRequest.isConditional, cacheRequest.ifRange == nil,
            CacheRules.allSelected(cacheRequest, stored.heads).isEmpty
        else { return false }
        let others = store.findEquivalents(request, in: cacheRequest.partition)
        guard !others.heads.isEmpty,
            case .serve(let index, let delivery, let reason, let isStale, let validates) = decide(others, now: now),
            let served = Served(others[index], delivery, now: now)
        else { return false }
        serve(served, as: isStale ? .stale : .hit, reason)
        if validates { transport.validateInBackground(request, in: cacheRequest.partition) }
        return true
    }

    /// Completes a failed or cancelled transfer in the stages in which neither the base transport nor a pump does.
    @discardableResult
    func completeIfFailed() -> Bool {
        let failure = state.withLock { state -> (any Error)? in
            switch state.stage {
            case .lookingUp, .storing: state.failure
            case .made, .receiving, .complete: nil
            }
        }
        guard let failure else { return false }
        complete(TransferCompletion(error: failure, metrics: TransferMetrics()))
        return true
    }

    // MARK: Serving

    private static let securityField = "Strict-Transport-Security"

    /// Delivers a stored response; after a validation, with the cookies and `Strict-Transport-Security` of the 304, in place of an error
    /// with those of the error.
    ///
    /// - Parameter received: the fields of that 304 or error.
    func serve(
        _ served: Served, as outcome: TransferMetrics.CacheOutcome, _ reason: CacheReason, metrics: TransferMetrics = TransferMetrics(),
        received: HTTPHeaders = HTTPHeaders()
    ) {
        let pump = ResponsePump(
            id: id, observer: observer, queue: transport.queue, willComplete: { [self] in enter(.complete) },
            didComplete: { [self] in transport.running.remove(self) })
        let (isOver, failure) = state.withLock { state in
            // A cancellation may have completed the transfer on the queue meanwhile.
            guard !state.isComplete else { return (true, state.failure) }
            if state.isSuspended { pump.setSuspended(true) }
            state.stage = .receiving(pump)
            return (false, state.failure)
        }
        guard !isOver else { return }
        store.count(outcome, reason)
        endFlight(outcome == .stale ? .notStored : .stored)
        if let failure { pump.fail(with: failure) }
        var headers = served.headers
        for cookie in received.values(for: "Set-Cookie") { headers.append(name: "Set-Cookie", value: cookie) }
        let security = received.values(for: Self.securityField).first
        if let security { headers[Self.securityField] = security }
        var metrics = metrics
        metrics.isFromCache = true
        metrics.cacheOutcome = outcome
        metrics.cacheReason = reason
        metrics.cacheDetail.timeToLive = served.timeToLive
        var head = ResponseHead(statusCode: served.statusCode, headers: headers)
        head.hasStoredSecurity = security == nil
        pump.add(
            [
                .head(head),
                cacheRequest.method == .head ? .bytes(Data()) : served.body, .complete(TransferCompletion(error: nil, metrics: metrics)),
            ], inPlace: store.isInMemory)
    }

    // MARK: Loading

    /// Sends the request, with conditions of the cache if there are some.
    func load(_ start: Loading, conditions: HTTPHeaders = HTTPHeaders()) {
        var start = start
        start.requestTime = transport.now()
        loading.withLock { $0 = start }
        var request = request
        (request.source as? ExchangeSource)?.note(isInBackground ? .staleWhileRevalidate : start.reason)
        if !conditions.isEmpty { request.headers.merge(conditions) }
        if cacheRequest.mode == .revalidates, !isInBackground, !request.headers.contains(where: { $0.isNamed("Cache-Control") }) {
            request.headers.append(name: "Cache-Control", value: "max-age=0")
        }
        let handle = transport.base.makeTransfer(request, id: id, observer: self)
        let isWanted = state.withLock { state in
            guard state.failure == nil else { return false }
            if state.isSuspended { handle.setSuspended(true) }
            state.stage = .receiving(handle)
            return true
        }
        if isWanted { handle.start() } else { transport.queue.async { self.completeIfFailed() } }
    }

    // MARK: Completion

    var isComplete: Bool { state.withLock { $0.isComplete } }

    /// Enters a stage. Returns the former one, whose handle is not to be released inside of the lock.
    @discardableResult
    func enter(_ stage: Stage) -> Stage {
        state.withLock { state in
            defer { state.stage = stage }
            return state.stage
        }
    }

    /// Delivers the completion, once.
    func complete(_ outcome: TransferCompletion) {
        if case .complete = enter(.complete) { return }
        // If a response was stored, or could not be, the flight has ended before.
        endFlight(.abandoned)
        observer.transfer(id, didComplete: outcome)
        transport.running.remove(self)
    }
}

/// What is delivered of a stored response.
struct Served {
    let statusCode: Int
    let headers: HTTPHeaders
    let body: ResponsePump.Event
    /// The remaining freshness lifetime in seconds, of a response that is served without validation.
    var timeToLive: Int32?

    /// `nil` if the body is gone, or does not have the range.
    ///
    /// - Parameter now: for the `Age` of a response that is served without validation (RFC 9111, section 4); `nil` for a validated one.
    init?(_ stored: StoredResponses.Element, _ delivery: CacheDelivery, now: Double?) {
        let head = stored.head
        var headers = now == nil ? head.headers : CacheRules.unvalidatedFields(of: head)
        if let now {
            let age = head.age(at: now)
            headers["Age"] = String(Int(min(age, Double(CacheDirectives.longest))))
            timeToLive = Int32(clamping: Int(max(min(head.lifetime - age, 1e9), -1e9).rounded(.down)))
        }
        switch delivery {
        case .notModified:
            statusCode = 304
            for name in ["Content-Length", "Content-Encoding", "Content-Type"] { headers.remove(name: name) }
            body = .bytes(Data())
        case .whole:
            guard head.part == nil, let bytes = ServedBytes(stored) else { return nil }
            statusCode = head.statusCode
            body = bytes.event(0, bytes.count)
        case .range(let wanted):
            guard let bytes = ServedBytes(stored), let range = wanted.resolved(total: head.part?.total ?? bytes.count) else { return nil }
            let offset = range.first - (head.part?.offset ?? 0)
            guard offset >= 0, offset + range.count <= bytes.count else { return nil }
            statusCode = 206
            headers["Content-Range"] = "bytes \(range.first)-\(range.last)/\(head.part?.total ?? bytes.count)"
            headers["Content-Length"] = String(range.count)
            body = bytes.event(offset, range.count)
        }
        self.headers = headers
    }
}
