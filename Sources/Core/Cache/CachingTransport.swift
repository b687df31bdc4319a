// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A private HTTP cache (RFC 9111) over a `URLCache`, in front of another transport.
///
/// A transport rather than a step of every request, so that sessions without a `URLCache` have no overhead. Looks up, stores and delivers
/// on its own queue, because the cache may be on disk. Requests with `Authorization` or `Range` bypass it.
final class CachingTransport: InterceptingTransport {
    let base: any Transport
    let intercepted = InterceptedTransfers()
    private let store: ResponseStore
    let queue = DispatchQueue(label: "curlew.cache", target: .global(qos: .utility))

    init(_ base: any Transport, cache: URLCache) {
        self.base = base
        store = ResponseStore(cache: cache)
    }

    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        guard request.isCacheable else { return forward(request, id: id, observer: observer) }
        let transfer = intercepted.insert(id) { remove in
            CachedTransfer(id: id, request: request, observer: observer, base: base, store: store, queue: queue, willComplete: remove)
        }
        transfer.begin()
    }

    /// Forwards a request that is not cacheable to the base transport.
    private func forward(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        if request.cachePolicy == .returnCacheDataDontLoad {
            let pump = ResponsePump(id: id, observer: observer, queue: queue) {}
            return pump.fail(with: CurlewError.notInCache(request))
        }
        guard !request.method.isSafe else { return base.start(request, id: id, observer: observer) }
        base.start(request, id: id, observer: InvalidatingObserver(observer, request: request, store: store, queue: queue))
    }
}

extension TransferRequest {
    /// Whether the cache may serve or store the response: not one for a single user, a partial one, or one that is not decoded.
    fileprivate var isCacheable: Bool {
        guard method == .get, body == nil, authentication == nil, options.decodesContent, url.withoutUserInfo == url else { return false }
        return !headers.contains { $0.isNamed("Authorization") || $0.isNamed("Range") }
    }
}

extension HTTPMethod {
    /// Whether the method is safe (RFC 9110, section 9.2.1).
    fileprivate var isSafe: Bool { [.get, .head, .options, .trace].contains(self) }
}

extension CurlewError {
    /// The cache has no response to a request that may not use the network.
    static func notInCache(_ request: TransferRequest) -> CurlewError {
        let message = "The cache has no response, and the cache policy forbids loading one"
        return .transferFailed(TransferFailure(kind: .notInCache, url: request.url, phase: .queued, message: message))
    }
}

/// Invalidates the stored responses of a URL after an unsafe method succeeded (RFC 9111, section 4.4).
private final class InvalidatingObserver: TransferObserver {
    private let observer: any TransferObserver
    private let request: TransferRequest
    private let store: ResponseStore
    private let queue: DispatchQueue

    init(_ observer: any TransferObserver, request: TransferRequest, store: ResponseStore, queue: DispatchQueue) {
        self.observer = observer
        self.request = request
        self.store = store
        self.queue = queue
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        if (200..<400).contains(head.statusCode) {
            // The queue is serial: this runs before the lookup of any request made because of this response.
            queue.async { [store, request] in
                for url in Self.invalidated(by: request.url, head) { store.remove(url) }
            }
        }
        return observer.transfer(id, didReceive: head)
    }

    /// The request's URL, and the URLs of the same host and port in `Location` and `Content-Location`.
    private static func invalidated(by url: String, _ head: ResponseHead) -> [String] {
        guard let base = URL(string: url) else { return [] }
        let named = ["Location", "Content-Location"].compactMap { head.value(for: $0) }.compactMap { URL(string: $0, relativeTo: base) }
        return [url] + named.filter { $0.host == base.host && $0.port == base.port }.map(\.absoluteString)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        observer.transfer(id, didReceive: bytes)
    }

    func transfer(_ id: Int, didSend count: Int64) {
        observer.transfer(id, didSend: count)
    }

    func transfer(_ id: Int, didComplete outcome: TransferCompletion) {
        observer.transfer(id, didComplete: outcome)
    }
}
