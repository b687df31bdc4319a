// SPDX-License-Identifier: Apache-2.0
import CurlewCaching
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// A request whose responses are cached, for a time and with a version that the subclass defines.
///
/// If a valid response is cached, a start delivers it asynchronously with the same callbacks, but without notifying accessories and without
/// checks of status or shape. Otherwise the request is sent. Downloads are neither read from the cache nor written to it.
///
/// Responses are identified by method, base URL (the CDN URL where that is used), URL and argument, regardless of the order of the
/// argument's members, and by whom they were sent, as far as that is known before: fields with credentials, `Host`, and of the agent's
/// session and the options the fields with secrets, trust of the request's host, client certificate, addresses and routing. Other fields,
/// cookies, and what an interceptor, ``BaseRequest/filterUrlRequest(_:)`` or a ``UrlFilter`` adds are not part of the key: if a response
/// depends on the user by those, override ``cacheSensitiveData()``. Nothing is cached without sensitive data where the session answers
/// challenges, by its ``SessionConfiguration/credentialStorage`` or a closure, nor for a custom request with an `httpBodyStream`. What a
/// closure evaluates or resolves is a response of this session only, so that it is not found after the program's next start.
open class CachedRequest: BaseRequest, @unchecked Sendable {  // its own state is behind a lock
    /// How a start uses the cache.
    public enum CacheUse: Sendable, Hashable, CaseIterable {
        /// Delivers a valid cached response; without one the request is sent.
        case whenValid
        /// Sends the request; its response is cached nevertheless.
        case ignored
        /// Delivers a valid cached response; without one the request fails with a ``RequestCacheError``.
        case only
        /// Delivers a valid cached response, then sends the request, with the same callbacks a second time. The outcome is that of the
        /// network.
        case beforeNetwork
    }

    struct CacheState {
        var use = CacheUse.whenValid
        /// The cached response, which the getters return in place of the network's.
        var result: RequestResult?
        /// The key and the digest of the sensitive data when the request was sent; the user may have changed when the response arrives.
        var sent: (key: CacheKey?, digest: String?)?
    }

    let cache = Lock(CacheState())

    // MARK: Caching policy

    /// The time for which a response is valid, in seconds; −1, the default, disables the cache.
    ///
    /// Responses are stored if it is greater than 0. With 0 nothing is stored, and a response stored by another request is valid only
    /// within the same instant.
    open func cacheTimeInSeconds() -> Int { -1 }
    /// The version of the response's format, 0 by default: responses cached with another version are not used.
    open func cacheVersion() -> Int64 { 0 }
    /// The data a response depends on besides URL and argument, such as the user: responses cached with other data are not used. `nil` by
    /// default. Only a digest of it is stored.
    open func cacheSensitiveData() -> Any? { nil }
    /// Whether responses are written later, on a low-priority queue; `true` by default. If `false`, they are written before the callbacks.
    open func writeCacheAsynchronously() -> Bool { true }
    /// The store for responses; by default 256 MiB on disk, in the directory ``cacheDirectoryPath``.
    open func cacheStorage() -> any CacheStorage { ResponseCaches.storage(at: cacheDirectoryPath) }

    // MARK: Use of the cache

    /// How a start uses the cache; ``CacheUse/whenValid`` by default. A subclass may override it, or one of the three properties below.
    open var cacheUse: CacheUse {
        get { cache.withLock { $0.use } }
        set { cache.withLock { $0.use = newValue } }
    }

    /// Whether a start skips reading the cache: ``CacheUse/ignored``. `false` by default.
    open var ignoreCache: Bool {
        get { cacheUse == .ignored }
        set { setUse(.ignored, newValue) }
    }

    /// Whether a start may read the cache; the opposite of ``ignoreCache``, so `true` by default.
    open var useCacheResponse: Bool {
        get { !ignoreCache }
        set { ignoreCache = !newValue }
    }

    /// Whether a start delivers the cached response and then sends the request: ``CacheUse/beforeNetwork``. `false` by default.
    open var preloadCache: Bool {
        get { cacheUse == .beforeNetwork }
        set { setUse(.beforeNetwork, newValue) }
    }

    /// Combines the four properties, any of which a subclass may override.
    private var effectiveUse: CacheUse {
        if ignoreCache || !useCacheResponse { return .ignored }
        return preloadCache ? .beforeNetwork : cacheUse
    }

    private func setUse(_ use: CacheUse, _ isSet: Bool) {
        cache.withLock { cache in
            if isSet { cache.use = use } else if cache.use == use { cache.use = .whenValid }
        }
    }

    /// Whether the getters return a cached response: after a start that has found one, or ``loadCache()``, until the request is sent.
    public var isDataFromCache: Bool { cache.withLock { $0.result != nil } }

    // MARK: Starting

    /// Delivers the cached response, or notifies the accessories and sends the request, depending on ``cacheUse``. Has no effect on a
    /// running request.
    open override func start() {
        guard let start = claimStart() else { return }
        let use = effectiveUse
        guard use != .ignored, resumableDownloadPath == nil else { return sendWithoutCache(start) }
        do {
            show(try readCache(start.options.options), for: start)
        } catch {
            guard use == .only else { return sendWithoutCache(start) }
            show(nil, for: start)
            return deliverFromCache(start, failure: error)
        }
        if use == .beforeNetwork { startBeforeNetwork(start) } else { deliverFromCache(start) }
    }

    /// Sends the request even if a response is cached; the new response is cached.
    public func startWithoutCache() {
        if let start = claimStart() { sendWithoutCache(start) }
    }

    private func sendWithoutCache(_ start: RequestStart) {
        show(nil, for: start)
        send(start)
    }

    override func attemptIsBuilt(_ options: RequestOptions?) {
        guard cacheTimeInSeconds() > 0, resumableDownloadPath == nil else { return }
        let sent = (key(options), CacheMetadata.digest(of: cacheSensitiveData()))
        cache.withLock { $0.sent = sent }
    }

    /// Delivers the cached response, immediately followed by the network request. Both are one run, so that a stop in between finds the
    /// request running.
    private func startBeforeNetwork(_ start: RequestStart) {
        notify(of: start)
        let agent = agent
        guard let run = agent.makeRun(for: self, start: start) else { return }
        agent.configuration.callbackQueue.async { [self] in
            guard run.isRunning else { return }
            requestCompletePreprocessor()
            callBack(.succeeded) { run.isRunning }
            guard run.isRunning else { return }
            show(nil)
            agent.begin(run)
        }
    }

    /// Makes the getters return a cached response, or with `nil` the network's; for a claimed start only if it has not been stopped.
    private func show(_ result: RequestResult?, for start: RequestStart? = nil) {
        let old = state.withLock { state -> RequestResult? in
            if let start, !state.isPending(start) { return nil }
            return cache.withLock { cache in
                defer { cache.result = result }
                return cache.result
            }
        }
        // Released outside the lock, because releasing the objects may run arbitrary `deinit` code.
        withExtendedLifetime(old) {}
    }

    /// Makes the getters return the network's response in place of the cached one.
    override func stopReportingCachedResponse() {
        show(nil)
        super.stopReportingCachedResponse()
    }

    /// Writes the response to the cache. Overrides must call `super`.
    open override func requestCompletePreprocessor() {
        super.requestCompletePreprocessor()
        guard !isDataFromCache, let data = networkData else { return }
        if writeCacheAsynchronously() {
            guard let write = makeWrite(of: data) else { return }
            ResponseCaches.writingQueue.async(execute: write)
        } else {
            saveResponseDataToCacheFile(data)
        }
    }

    // MARK: Result

    /// The body, from the cache or the network.
    open override var responseData: Data? {
        get { cached { $0.data } ?? super.responseData }
        set { super.responseData = newValue }
    }
    /// The body as text.
    open override var responseString: String? {
        get { cached { $0.string } ?? super.responseString }
        set { super.responseString = newValue }
    }
    /// The object made from the body by the serializer.
    open override var responseObject: Any? {
        get { cached { $0.object } ?? super.responseObject }
        set { super.responseObject = newValue }
    }
    /// The JSON object, if the serializer is ``ResponseSerializerType/json``.
    open override var responseJSONObject: Any? {
        get { cached { $0.jsonObject } ?? super.responseJSONObject }
        set { super.responseJSONObject = newValue }
    }

    override var givenJSON: Any? { isDataFromCache ? nil : super.givenJSON }

    /// Returns a part of the cached response: the outer `nil` if there is none, the inner one if it lacks the part.
    private func cached<Value>(_ part: (RequestResult) -> Value?) -> Value?? {
        cache.withLock { $0.result }.map(part)
    }
}
