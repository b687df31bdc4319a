// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension Session {
    /// Returns the cached response for a request's URL; `nil` if there is none, or the session has no cache.
    ///
    /// Unlike `URLCache` on Linux this distinguishes URLs by their query. Thread-safe; blocks, as the cache may be on disk.
    public func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        store(for: request).flatMap { $0.store.cached($0.url) }
    }

    /// Removes the cached response for a request's URL. Thread-safe; blocks, as the cache may be on disk.
    public func removeCachedResponse(for request: URLRequest) {
        if let (store, url) = store(for: request) { store.remove(url) }
    }

    private func store(for request: URLRequest) -> (store: URLCacheStore, url: String)? {
        guard let cache = configuration.urlCache, let url = request.url else { return nil }
        return (URLCacheStore(cache: cache), url.absoluteString)
    }
}

extension SessionManager {
    /// What distinguishes the sender of a request, beside its own fields: the session, with its fields, and the cookies that it adds. `nil` if
    /// an interceptor may add more, which is known only when a request is sent.
    package func senderIdentity(of request: URLRequest) -> String? {
        guard interceptor == nil, let url = request.url?.absoluteString else { return nil }
        let sent = session.outgoing(TransferRequest(url: url, headers: HTTPHeaders(request.allHTTPHeaderFields ?? [:])))
        return "\(session.token) \(sent.headers["Cookie"] ?? "")"
    }
}
