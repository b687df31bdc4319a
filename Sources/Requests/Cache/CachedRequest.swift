// SPDX-License-Identifier: Apache-2.0
import CurlewCaching
import CurlewEncoding
import CurlewHTTP

/// A request whose answers are kept, for a time and by a version that the subclass says.
///
/// A start whose answer is cached and valid hands that over, asynchronously and with the same callbacks, but with no word to accessories;
/// no check of status or shape runs. Else the network is asked. Downloads are neither read from the cache nor written to it.
///
/// Answers are found by method, base URL (the CDN's where that is used), URL and argument, whatever order the argument's members have.
/// Header fields do not count: where a cached answer depends on who asks, ``cacheSensitiveData()`` says so.
open class CachedRequest: BaseRequest, @unchecked Sendable {  // what it adds is behind a lock
    /// What part the cache has in a start.
    public enum CacheUse: Sendable, Hashable, CaseIterable {
        /// A valid answer is handed over; without one the network is asked.
        case whenValid
        /// The network is asked; what it says is cached nevertheless.
        case ignored
        /// A valid answer is handed over; without one the request fails, with a ``RequestCacheError``.
        case only
        /// A valid answer is handed over, and then the network is asked, with the same callbacks a second time. The end is the network's.
        case beforeNetwork
    }

    struct CacheState {
        var use = CacheUse.whenValid
        /// What the getters say in place of what the network has brought.
        var answer: RequestAnswer?
        /// Counts starts from the cache that the network follows; `nil` unless one waits for its cached answer to be handed over.
        var preload: Int?
        var preloads = 0
    }

    let cache = Lock(CacheState())

    // MARK: What is cached

    /// For how long an answer is valid, in seconds; −1, the default, for no cache.
    ///
    /// Answers are stored if it is more than 0. With 0 nothing is stored, and what was stored by others is valid within the same moment.
    open func cacheTimeInSeconds() -> Int { -1 }
    /// The version of the answer's form, 0 by default: one that was cached with another is not used.
    open func cacheVersion() -> Int64 { 0 }
    /// What an answer depends on beside URL and argument, such as the user: one that was cached with another is not used. `nil` by default.
    /// Only a digest of it is stored.
    open func cacheSensitiveData() -> Any? { nil }
    /// Whether answers are written later, on a queue of low priority; by default `true`. With `false` they are written before the
    /// callbacks.
    open func writeCacheAsynchronously() -> Bool { true }
    /// Where answers are kept; by default a store of 256 MiB on disk, in the directory ``cacheDirectoryPath``.
    open func cacheStorage() -> any CacheStorage { ResponseCaches.storage(at: cacheDirectoryPath) }

    // MARK: How it is used

    /// What part the cache has in a start; ``CacheUse/whenValid`` by default.
    public var cacheUse: CacheUse {
        get { cache.withLock { $0.use } }
        set { cache.withLock { $0.use = newValue } }
    }

    /// Whether a start does not read the cache: ``CacheUse/ignored``. `false` by default.
    public var ignoreCache: Bool {
        get { cacheUse == .ignored }
        set { setUse(.ignored, newValue) }
    }

    /// Whether a start may read the cache; the opposite of ``ignoreCache``, so `true` by default.
    public var useCacheResponse: Bool {
        get { !ignoreCache }
        set { ignoreCache = !newValue }
    }

    /// Whether a start hands over what is cached, and then asks the network: ``CacheUse/beforeNetwork``. `false` by default.
    public var preloadCache: Bool {
        get { cacheUse == .beforeNetwork }
        set { setUse(.beforeNetwork, newValue) }
    }

    private func setUse(_ use: CacheUse, _ isSet: Bool) {
        cache.withLock { cache in
            if isSet { cache.use = use } else if cache.use == use { cache.use = .whenValid }
        }
    }

    /// Whether the getters say what was cached: after a start that has found it, or ``loadCache()``, until the network is asked.
    public var isDataFromCache: Bool { cache.withLock { $0.answer != nil } }

    // MARK: Starting

    /// Hands over what is cached, or tells the accessories and asks the network, as ``cacheUse`` says. A request that runs is left alone.
    open override func start() {
        let use = cacheUse
        guard !isUnderWay, cache.withLock({ $0.preload }) == nil else { return }
        guard use != .ignored, resumableDownloadPath == nil else { return startWithoutCache() }
        do {
            try loadCache()
        } catch {
            return use == .only ? deliverFailure(error) : startWithoutCache()
        }
        if use == .beforeNetwork { startBeforeNetwork() } else { deliverFromCache() }
    }

    /// Asks the network, whatever is cached; what it says is cached.
    public func startWithoutCache() {
        guard !isUnderWay else { return }
        clearCache()
        super.start()
    }

    /// Ends the request: no callback follows, also none with what is cached.
    open override func stop() {
        cache.withLock { $0.preload = nil }
        super.stop()
    }

    /// Callbacks with what is cached, and the network's right behind.
    private func startBeforeNetwork() {
        let number = cache.withLock { cache in
            cache.preloads += 1
            cache.preload = cache.preloads
            return cache.preloads
        }
        // Until the network is asked a stop finds a request that has not begun, not one that is over.
        state.withLock {
            $0.stage = .idle
            $0.isStopped = false
        }
        toggleAccessoriesWillStart()
        // An accessory may have stopped it.
        guard cache.withLock({ $0.preload == number }) else { return }
        deliverFromCache(isFinal: false)
        agent.configuration.callbackQueue.async { [self] in
            let isWanted = cache.withLock { cache in
                guard cache.preload == number else { return false }
                cache.preload = nil
                cache.answer = nil
                return true
            }
            if isWanted { agent.addRequest(self) }
        }
    }

    /// The end of a start that may not ask the network; on the callback queue, with no word to accessories.
    private func deliverFailure(_ error: any Error) {
        clearCache()
        guard let run = agent.makeRun(for: self) else { return }
        fail(error)
        agent.configuration.callbackQueue.async { [self] in
            guard run.claimDelivery() else { return }
            requestFailedPreprocessor()
            callBack(.failed, isStopped: { self.isCancelled })
            run.end(.failed)
        }
    }

    private func clearCache() {
        let old = cache.withLock { cache in
            defer {
                cache.answer = nil
                cache.preload = nil
            }
            return cache.answer
        }
        withExtendedLifetime(old) {}
    }

    /// What was cached is the network's predecessor, not its answer.
    override func networkAnswerWillBeDelivered() {
        clearCache()
        super.networkAnswerWillBeDelivered()
    }

    /// Writes the answer to the cache. Overriding it calls `super`.
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

    // MARK: What it brought

    /// The body that was cached, or that the network has brought.
    open override var responseData: Data? {
        get { cached { $0.data } ?? super.responseData }
        set { super.responseData = newValue }
    }
    /// The body as text.
    open override var responseString: String? {
        get { cached { $0.string } ?? super.responseString }
        set { super.responseString = newValue }
    }
    /// What the serializer has made of the body.
    open override var responseObject: Any? {
        get { cached { $0.object } ?? super.responseObject }
        set { super.responseObject = newValue }
    }
    /// The JSON, if that is what the serializer makes.
    open override var responseJSONObject: Any? {
        get { cached { $0.jsonObject } ?? super.responseJSONObject }
        set { super.responseJSONObject = newValue }
    }

    /// What was cached says; the outer `nil` if nothing was, the inner if it says nothing.
    private func cached<Value>(_ part: (RequestAnswer) -> Value?) -> Value?? {
        cache.withLock { $0.answer }.map(part)
    }
}
