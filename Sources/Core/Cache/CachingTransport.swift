// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A private HTTP cache (RFC 9111) in front of another transport.
///
/// A transport rather than a step of every request, so that sessions without a cache have no overhead. The rules are `CacheRules` and
/// `StorageRules`, each request is a ``CachedTransfer``. Looks up, stores and delivers on its own queue, because the store may be on disk;
/// a store in memory is looked up on the caller's thread.
final class CachingTransport: ForwardingTransport {
    let base: any Transport
    /// Those that the base transport does not run alone.
    let running = RunningTransfers<CachedTransfer>()
    let store: any ResponseStoring
    let queue = DispatchQueue(label: "curlew.cache", target: .global(qos: .utility))
    /// The time in seconds since 1970.
    let now: @Sendable () -> Double
    /// The session's timeouts, which bound what is loaded for all.
    private let limits: TransferOptions
    /// The URLs of the validations in the background, with their partitions.
    private let validations = Lock(Set<String>())

    init(_ base: any Transport, store: any ResponseStoring, limits: TransferOptions, now: @escaping @Sendable () -> Double) {
        self.base = base
        self.limits = limits
        self.store = store
        self.now = now
    }

    func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        // One that may not be sent fails as one to which there is no response.
        guard request.isCacheable || request.cachePolicy == .returnCacheDataDontLoad else {
            let reason: CacheReason = request.method == .get || request.method == .head ? .notCacheable : .method
            // Of the request, whether or not it is sent.
            (request.source as? ExchangeSource)?.note(reason)
            let observer = InvalidatingObserver(observer, request: request, reason: reason, transport: self)
            return base.makeTransfer(request, id: id, observer: observer)
        }
        return CachedTransfer(id: id, request: request, observer: observer, transport: self)
    }

    func shutDown() { running.shutDown(with: base) { $0.shutDown() } }

    /// Waits for the base transport and the transfers, then for the cache's writes.
    func waitUntilShutDown() async { await running.waitUntilShutDown(with: base, queue: queue) }

    /// Validates a stale response that was served (RFC 5861, section 3): one transfer for each URL and partition at a time, which ends with
    /// the session, and not with the request or by its limits.
    func validateInBackground(_ request: TransferRequest, in partition: String) {
        // A URL has no space.
        let url = partition.isEmpty ? request.cacheURL : "\(partition) \(request.cacheURL)"
        guard validations.withLock({ $0.insert(url).inserted }) else { return }
        var request = request
        request.cachePolicy = .reloadRevalidatingCacheData
        request.setLimits(limits)
        if let source = request.source as? ExchangeSource { request.source = source.validation }
        let observer = DiscardingObserver { [validations] in validations.withLock { _ = $0.remove(url) } }
        // No task has the number 0.
        CachedTransfer(id: 0, request: request, observer: observer, transport: self, isInBackground: true).start()
    }

    /// Removes what a response invalidates.
    func invalidate(by head: ResponseHead, to request: TransferRequest) {
        let mayInvalidate = !request.method.isSafe || head.contains("clear-site-data")
        guard mayInvalidate else { return }
        let received = StorageRules.Received(statusCode: head.statusCode, headers: head.headers, requestTime: 0, responseTime: 0)
        let result = StorageRules.invalidation(by: received, method: request.method, url: request.url) { reference in
            URL(string: request.url).flatMap { reference.resolved(against: $0)?.absoluteString }
        }
        guard !result.isEmpty else { return }
        // What was requested before may be older than the change, and must not be stored after it.
        for transfer in running.all where result.concerns(transfer.request.cacheURL) {
            transfer.dropResponse()
        }
        // The queue is serial: this runs before the lookup of any request made because of this response, unless that is in memory.
        let remove = { @Sendable [store] in
            for url in result.urls { store.remove(url) }
            if let origin = result.origin { store.remove(origin: origin) }
        }
        if store.isInMemory { remove() } else { queue.async(execute: remove) }
    }
}

extension StorageRules.Invalidation {
    /// Whether the responses for a URL are removed.
    fileprivate func concerns(_ url: String) -> Bool { urls.contains(url) || origin.map { HTTPOrigin(url: url) == $0 } ?? false }
}

extension TransferRequest {
    /// Whether the cache may serve or store the response: not one whose content codings are left undecoded, or whose connection is
    /// authenticated.
    var isCacheable: Bool {
        (method == .get || method == .head) && body == nil && authentication == nil && options.decodesContent && url.withoutUserInfo == url
            // The URL does not identify the server.
            && unixSocket == nil
    }
}

extension CurlewError {
    /// The cache has no response to a request that may not use the network.
    static func notInCache(_ request: TransferRequest) -> CurlewError {
        let message = "The cache has no response, and the cache policy forbids loading one"
        return .transferFailed(TransferFailure(kind: .notInCache, url: request.url, phase: .queued, message: message))
    }
}

extension TransferCompletion {
    /// The end of a request to which the cache has no response, and that may not use the network.
    static func notInCache(_ request: TransferRequest) -> TransferCompletion {
        var metrics = TransferMetrics()
        metrics.cacheOutcome = .miss
        metrics.cacheReason = .onlyIfCached
        return TransferCompletion(error: CurlewError.notInCache(request), metrics: metrics)
    }
}

/// The observer of a validation in the background: its result is stored, and of no other interest.
private final class DiscardingObserver: TransferObserver {
    private let didEnd: @Sendable () -> Void

    init(didEnd: @escaping @Sendable () -> Void) { self.didEnd = didEnd }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction { .proceed }
    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { .proceed }
    func transfer(_ id: Int, didSend count: Int64) {}
    func transfer(_ id: Int, didComplete completion: TransferCompletion) { didEnd() }
}

/// Invalidates stored responses (RFC 9111, section 4.4), and reports that the cache was bypassed.
private final class InvalidatingObserver: TransferObserver {
    private let observer: any TransferObserver
    private let request: TransferRequest
    private let reason: CacheReason
    private let transport: CachingTransport

    init(_ observer: any TransferObserver, request: TransferRequest, reason: CacheReason, transport: CachingTransport) {
        self.observer = observer
        self.request = request
        self.reason = reason
        self.transport = transport
    }

    func transfer(_ id: Int, didReceiveInterim head: ResponseHead) {
        observer.transfer(id, didReceiveInterim: head)
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        transport.invalidate(by: head, to: request)
        return observer.transfer(id, didReceive: head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        observer.transfer(id, didReceive: bytes)
    }

    func transfer(_ id: Int, didSend count: Int64) {
        observer.transfer(id, didSend: count)
    }

    func transfer(_ id: Int, didComplete outcome: TransferCompletion) {
        transport.store.count(.bypass, reason)
        var metrics = outcome.metrics
        metrics.cacheOutcome = .bypass
        metrics.cacheReason = reason
        observer.transfer(id, didComplete: TransferCompletion(error: outcome.error, metrics: metrics, trailers: outcome.trailers))
    }
}
