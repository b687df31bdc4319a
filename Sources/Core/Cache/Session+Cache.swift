// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

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
