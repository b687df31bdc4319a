// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A private HTTP cache (RFC 9111) in front of another transport.
///
/// A transport rather than a step of every request, so that sessions without a cache have no overhead. The rules are `CacheRules` and
/// `StorageRules`, each request's story is a ``CachedTransfer``. Looks up, stores and delivers on its own queue, because the store may be on
/// disk; a store in memory is looked up on the caller's thread.
final class CachingTransport: InterceptingTransport {
    let base: any Transport
    let intercepted = InterceptedTransfers()
    let store: any ResponseStoring
    let queue = DispatchQueue(label: "curlew.cache", target: .global(qos: .utility))
    /// The time in seconds since 1970.
    let now: @Sendable () -> Double
    private let background = Lock(Background())

    /// The validations in the background.
    private struct Background {
        /// Negative, so that they are never those of the session's transfers.
        var lastID = 0
        var urls: Set<String> = []
    }

    init(_ base: any Transport, store: any ResponseStoring, now: @escaping @Sendable () -> Double) {
        self.base = base
        self.store = store
        self.now = now
    }

    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        guard request.isCacheable else { return forward(request, id: id, observer: observer) }
        let transfer = intercepted.insert(id) { remove in
            CachedTransfer(id: id, request: request, observer: observer, transport: self, willComplete: remove)
        }
        transfer.begin()
    }

    /// Forwards a request that is not cacheable to the base transport.
    private func forward(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        if request.cachePolicy == .returnCacheDataDontLoad {
            store.count(.miss, .onlyIfCached)
            return queue.async { observer.transfer(id, didComplete: .notInCache(request)) }
        }
        let reason: CacheReason = request.method == .get || request.method == .head ? .notCacheable : .method
        (request.source as? ExchangeSource)?.note(reason)
        base.start(request, id: id, observer: InvalidatingObserver(observer, request: request, reason: reason, transport: self))
    }

    /// Validates a stale response that was served (RFC 5861, section 3): one transfer for each URL and partition at a time, which ends with the session.
    func validateInBackground(_ request: TransferRequest, in partition: String) {
        // A URL has no space.
        let url = partition.isEmpty ? request.cacheURL : "\(partition) \(request.cacheURL)"
        let id = background.withLock { background -> Int? in
            guard background.urls.insert(url).inserted else { return nil }
            background.lastID -= 1
            return background.lastID
        }
        guard let id else { return }
        var request = request
        request.cachePolicy = .reloadRevalidatingCacheData
        if let source = request.source as? ExchangeSource { request.source = source.validation }
        let transfer = intercepted.insert(id) { remove in
            CachedTransfer(id: id, request: request, observer: DiscardingObserver(), transport: self, isInBackground: true) { [weak self] in
                remove()
                self?.background.withLock { _ = $0.urls.remove(url) }
            }
        }
        transfer.begin()
    }

    /// Removes what a response invalidates.
    func invalidate(by head: ResponseHead, to request: TransferRequest) {
        let mayInvalidate = !request.method.isSafe || head.contains("clear-site-data")
        guard mayInvalidate else { return }
        let received = StorageRules.Received(statusCode: head.statusCode, headers: head.headers, requestTime: 0, responseTime: 0)
        let result = StorageRules.invalidation(by: received, method: request.method, url: request.url) { reference in
            URL(string: request.url).flatMap { URL(string: reference, relativeTo: $0)?.absoluteString }
        }
        guard !result.isEmpty else { return }
        // The queue is serial: this runs before the lookup of any request made because of this response, unless that is in memory.
        let remove = { @Sendable [store] in
            for url in result.urls { store.remove(url) }
            if let origin = result.origin { store.remove(origin: origin) }
        }
        if store.isInMemory { remove() } else { queue.async(execute: remove) }
    }
}

extension TransferRequest {
    /// Whether the cache may serve or store the response: not one whose content codings are left undecoded, or whose connection is
    /// authenticated.
    fileprivate var isCacheable: Bool {
        (method == .get || method == .head) && body == nil && authentication == nil && options.decodesContent && url.withoutUserInfo == url
            // The URL does not tell the server.
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
    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction { .proceed }
    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { .proceed }
    func transfer(_ id: Int, didSend count: Int64) {}
    func transfer(_ id: Int, didComplete completion: TransferCompletion) {}
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
