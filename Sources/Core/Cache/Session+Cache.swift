// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension Session {
    /// What the session's cache has for a request's URL; `nil` without a cache.
    ///
    /// Unlike `URLCache` on Linux it tells URLs apart by their query. Any thread; blocks, as the cache may be on disk.
    public func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        answers(to: request).flatMap { $0.store.cached($0.url) }
    }

    /// Removes what the session's cache has for a request's URL. Any thread; blocks, as the cache may be on disk.
    public func removeCachedResponse(for request: URLRequest) {
        if let (store, url) = answers(to: request) { store.remove(url) }
    }

    private func answers(to request: URLRequest) -> (store: AnswerStore, url: String)? {
        guard let cache = configuration.urlCache, let url = request.url else { return nil }
        return (AnswerStore(cache: cache), url.absoluteString)
    }
}
