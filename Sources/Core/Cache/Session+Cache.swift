// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension Session {
    /// Returns the cached response for a request's URL; `nil` if there is none, or the session has no cache.
    ///
    /// Unlike `URLCache` on Linux this distinguishes URLs by their query. It reads the cache itself: a response that another session has stored
    /// is returned too, also if a request of this session would not be served with it. Thread-safe; blocks, as the cache may be on disk.
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

extension URLCache {
    /// The response that a session has stored in the cache for a URL, or the program itself. May wait for a disk, as all of these.
    package func response(storedFor url: URL) -> CachedURLResponse? { URLCacheStore(cache: self).cached(url.absoluteString) }

    /// Stores a response for a URL, where a session finds it. It is then one for that URL, also if it was made with another.
    package func store(_ response: CachedURLResponse, for url: URL) {
        let stored = response.moved(to: url)
        URLCacheStore(cache: self).store(stored, proposed: stored, for: TransferRequest(url: url.absoluteString))
    }

    /// Removes the response for a URL.
    package func removeResponse(storedFor url: URL) { URLCacheStore(cache: self).remove(url.absoluteString) }
}

extension CachedURLResponse {
    /// The same with another URL: what is stored under a URL is found only if it is its own, as Foundation's cache on Linux confuses some.
    fileprivate func moved(to url: URL) -> CachedURLResponse {
        guard response.url.map({ StorageRules.identity(of: $0.absoluteString) }) != StorageRules.identity(of: url.absoluteString) else {
            return self
        }
        let moved: URLResponse?
        if let response = response as? HTTPURLResponse {
            let headers = HTTPHeaders(response).dictionary
            moved = HTTPURLResponse(url: url, statusCode: response.statusCode, httpVersion: "HTTP/1.1", headerFields: headers)
        } else {
            moved = URLResponse(
                url: url, mimeType: response.mimeType, expectedContentLength: Int(clamping: response.expectedContentLength),
                textEncodingName: response.textEncodingName)
        }
        return moved.map { CachedURLResponse(response: $0, data: data, userInfo: userInfo, storagePolicy: storagePolicy) } ?? self
    }
}

extension SessionManager {
    /// What distinguishes the sender of a request, beside its own fields: the session, with its fields, the partition by the request's
    /// options, and the cookies that are added. `nil` if an interceptor, a closure or a storage that answers challenges, or a subclass may add
    /// more, which is known only when a request is sent.
    package func senderIdentity(of request: URLRequest, _ options: RequestOptions?) -> String? {
        guard !isSubclassed, interceptor == nil, options?.interceptor == nil, !answersChallenges,
            let url = request.url?.absoluteString
        else { return nil }
        let sent = sent(url, HTTPHeaders(request.allHTTPHeaderFields ?? [:]), options) { transfer in
            transfer.handlesCookies = request.httpShouldHandleCookies
            transfer.mainDocumentURL = request.mainDocumentURL?.absoluteString
        }
        return "\(session.token) \(sent.partition) \(sent.headers["Cookie"] ?? "")"
    }

    /// Whether a closure or the session's storage may answer a challenge with credentials that are not known before.
    package var answersChallenges: Bool {
        session.configuration.credentialStorage != nil
            || delegate.closures.withLock { $0.taskDidReceiveChallenge != nil || $0.sessionDidReceiveChallenge != nil }
    }

    /// Returns the responder to requests for a URL, as far as the options and the host's trust policy decide it
    /// (``TransferRequest/responder``).
    package func responder(to url: URL, _ options: RequestOptions?) -> String {
        sent(url.absoluteString, [:], options) { $0.handlesCookies = false }.responder
    }

    /// What the session's configuration adds to the key of a response that is stored for longer than the session: its partition, and its
    /// `Authorization`, and the classes that may answer in place of the network; empty for most sessions. Cookies don't count.
    package func partitionParts(for url: String, _ options: RequestOptions?) -> [String] {
        let sent = sent(url, session.configuration.headers, options) { $0.handlesCookies = false }
        let parts = (sent.partition, sent.headers["Authorization"])
        let classes = session.configuration.protocolClasses.map { String(reflecting: $0) }
        return (parts.0.isEmpty ? [] : ["Partition", parts.0]) + (parts.1.map { ["Authorization", CacheKey($0).digest] } ?? [])
            + (classes.isEmpty ? [] : ["Classes"] + classes)
    }

    /// The request that would be sent first.
    private func sent(
        _ url: String, _ headers: HTTPHeaders, _ options: RequestOptions?, _ change: (inout TransferRequest) -> Void
    ) -> TransferRequest {
        var transfer = TransferRequest(url: url, method: .get, headers: headers, body: nil, prepared: session.options)
        change(&transfer)
        options?.apply(to: &transfer.options)
        if let signer = session.signer(for: options) { transfer.signing = RequestSigning(signer, body: nil) }
        return session.firstExchange(of: transfer)
    }
}

extension Session {
    /// The request as it is sent first, but for credentials for a challenge: over TLS if its host is known to want that, with cookies and
    /// the host's trust policy. May wait for a disk, as stores may be in files.
    func firstExchange(of request: consuming TransferRequest) -> TransferRequest {
        var first = request
        if let url = hsts?.upgraded(first.url) { first.url = url }
        return outgoing(first)
    }
}
