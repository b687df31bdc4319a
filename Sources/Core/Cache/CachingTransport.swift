// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Answers from a cache of Foundation's what that may answer, and has another transport do the rest (RFC 9111, as a private cache).
///
/// Looks up, stores and hands over on a queue of its own, as the cache may be on disk. Requests with `Authorization` or `Range` pass by.
final class CachingTransport: FrontTransport {
    let base: any Transport
    let taken = TakenTransfers()
    private let store: AnswerStore
    private let queue = DispatchQueue(label: "curlew.cache", target: .global(qos: .utility))

    init(_ base: any Transport, cache: URLCache) {
        self.base = base
        store = AnswerStore(cache: cache)
    }

    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        guard request.isCacheable else { return pass(request, id: id, observer: observer) }
        let transfer = taken.enter(id) { forget in
            CachedTransfer(id: id, request: request, observer: observer, base: base, store: store, queue: queue, willComplete: forget)
        }
        transfer.begin()
    }

    /// Has the other transport do what the cache has no answer to.
    private func pass(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        if request.cachePolicy == .returnCacheDataDontLoad {
            let pump = AnswerPump(id: id, observer: observer, queue: queue) {}
            return pump.end(with: CurlewError.notInCache(request))
        }
        guard !request.method.isSafe else { return base.start(request, id: id, observer: observer) }
        base.start(request, id: id, observer: InvalidatingObserver(observer, request: request, store: store, queue: queue))
    }
}

extension TransferRequest {
    /// Whether a cache may have a part in it: not where the answer is for one user, or only a part, or coded as it came.
    fileprivate var isCacheable: Bool {
        guard method == .get, body == nil, authentication == nil, options.decodesContent, url.withoutUserInfo == url else { return false }
        return !headers.contains { $0.isNamed("Authorization") || $0.isNamed("Range") }
    }
}

extension HTTPMethod {
    /// Whether the method changes nothing (RFC 9110, section 9.2.1).
    fileprivate var isSafe: Bool { [.get, .head, .options, .trace].contains(self) }
}

extension CurlewError {
    /// The cache has no answer to a request, and the network was not to be asked.
    static func notInCache(_ request: TransferRequest) -> CurlewError {
        let message = "The cache has no answer, and the request may not be sent"
        return .transferFailed(TransferFailure(kind: .notInCache, url: request.url, phase: .queued, message: message))
    }
}

/// Forgets what is stored for a URL once something was changed there (RFC 9111, section 4.4).
private final class InvalidatingObserver: TransferObserver {
    private let observer: any TransferObserver
    private let request: TransferRequest
    private let store: AnswerStore
    private let queue: DispatchQueue

    init(_ observer: any TransferObserver, request: TransferRequest, store: AnswerStore, queue: DispatchQueue) {
        self.observer = observer
        self.request = request
        self.store = store
        self.queue = queue
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        if (200..<400).contains(head.statusCode) {
            // Before any request that is made because of this response: the queue is serial.
            queue.async { [store, request] in
                for url in Self.changed(by: request.url, head) { store.remove(url) }
            }
        }
        return observer.transfer(id, didReceive: head)
    }

    /// The request's URL, and those of the same host that the response names.
    private static func changed(by url: String, _ head: ResponseHead) -> [String] {
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
