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

    /// What part the cache has in a start; ``CacheUse/whenValid`` by default. A subclass may override it, or one of the three below.
    open var cacheUse: CacheUse {
        get { cache.withLock { $0.use } }
        set { cache.withLock { $0.use = newValue } }
    }

    /// Whether a start does not read the cache: ``CacheUse/ignored``. `false` by default.
    open var ignoreCache: Bool {
        get { cacheUse == .ignored }
        set { setUse(.ignored, newValue) }
    }

    /// Whether a start may read the cache; the opposite of ``ignoreCache``, so `true` by default.
    open var useCacheResponse: Bool {
        get { !ignoreCache }
        set { ignoreCache = !newValue }
    }

    /// Whether a start hands over what is cached, and then asks the network: ``CacheUse/beforeNetwork``. `false` by default.
    open var preloadCache: Bool {
        get { cacheUse == .beforeNetwork }
        set { setUse(.beforeNetwork, newValue) }
    }

    /// What the four say together, of which a subclass may override any.
    private var useOfStart: CacheUse {
        if ignoreCache || !useCacheResponse { return .ignored }
        return preloadCache ? .beforeNetwork : cacheUse
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
        guard let start = claimStart() else { return }
        let use = useOfStart
        guard use != .ignored, resumableDownloadPath == nil else { return sendWithoutCache(start) }
        do {
            show(try readCache(), for: start)
        } catch {
            guard use == .only else { return sendWithoutCache(start) }
            show(nil, for: start)
            return deliverFromCache(start, failure: error)
        }
        if use == .beforeNetwork { startBeforeNetwork(start) } else { deliverFromCache(start) }
    }

    /// Asks the network, whatever is cached; what it says is cached.
    public func startWithoutCache() {
        if let start = claimStart() { sendWithoutCache(start) }
    }

    private func sendWithoutCache(_ start: Int) {
        show(nil, for: start)
        send(start)
    }

    /// Callbacks with what is cached, and the network's right behind. A stop finds a request that runs.
    private func startBeforeNetwork(_ start: Int) {
        toggleAccessoriesWillStart()
        let agent = agent
        guard let run = agent.makeRun(for: self, start: start) else { return }
        agent.configuration.callbackQueue.async { [self] in
            guard run.isRunning else { return }
            requestCompletePreprocessor()
            callBack(.succeeded, isStopped: { !run.isRunning })
            guard run.isRunning else { return }
            show(nil)
            agent.begin(run)
        }
    }

    /// Has the getters say what is cached, or, with `nil`, what the network brings: for a start only as long as that was not stopped.
    private func show(_ answer: RequestAnswer?, for start: Int? = nil) {
        let old = state.withLock { state -> RequestAnswer? in
            if let start, !state.holds(start) { return nil }
            return cache.withLock { cache in
                defer { cache.answer = answer }
                return cache.answer
            }
        }
        // What it holds is released outside of the lock.
        withExtendedLifetime(old) {}
    }

    /// What was cached is the network's predecessor, not its answer.
    override func networkAnswerWillBeDelivered() {
        show(nil)
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

    override var givenJSON: Any? { isDataFromCache ? nil : super.givenJSON }

    /// What was cached says; the outer `nil` if nothing was, the inner if it says nothing.
    private func cached<Value>(_ part: (RequestAnswer) -> Value?) -> Value?? {
        cache.withLock { $0.answer }.map(part)
    }
}
