// SPDX-License-Identifier: Apache-2.0
import CurlewCaching
import CurlewEncoding
import CurlewHTTP

// MARK: - Where

extension CachedRequest {
    /// The directory of the default ``cacheStorage()``: `LazyRequestCache` among the caches of this program
    /// (``DiskCacheStorage/defaultDirectory(named:program:)``), or what the configuration's filters make of that.
    ///
    /// It is made when it is needed; a file in its place is removed.
    public var cacheDirectoryPath: String {
        let path = DiskCacheStorage.defaultDirectory(named: ResponseCaches.directoryName).path
        return agent.configuration.cacheDirPathFilters.reduce(path) { $1.filterCacheDirPath($0, with: self) }
    }

    /// What the answer is found by.
    var cacheKey: CacheKey {
        if let custom = buildCustomUrlRequest() {
            return CacheKey("Custom", custom.httpMethod ?? "GET", custom.url?.absoluteString ?? "", (custom.httpBody ?? Data()).hexDigits)
        }
        let argument = cacheFileNameFilter(forRequestArgument: requestArgument())
        return CacheKey(
            "Method", requestMethodString, "Host", agent.baseUrl(of: self), "Url", requestUrl(), "Argument", CanonicalText.of(argument))
    }
}

// MARK: - Reading

extension CachedRequest {
    /// Reads the cached answer, which the getters say from then on, until the network is asked.
    ///
    /// Blocks while the disk does. May be called whenever the network's answer is not on its way: before the start, or when the request
    /// has failed.
    ///
    /// - Throws: ``RequestCacheError``, of the first of these that is not in order: the time to be cached, metadata, age, version, sensitive
    ///   data, the program's version, data.
    public func loadCache() throws {
        let answer = try readCache()
        cache.withLock { $0.answer = answer }
    }

    /// Whether a valid answer is cached. Reads what is known about it only.
    public var isResponseCached: Bool {
        (try? checkedMetadata(in: cacheStorage(), cacheKey)) != nil
    }

    func readCache() throws(RequestCacheError) -> RequestAnswer {
        guard cacheTimeInSeconds() >= 0 else { throw .invalidCacheTime }
        let (storage, key) = (cacheStorage(), cacheKey)
        // Another process may put a new entry there between the two looks; once more is enough for all but the unluckiest.
        for _ in 0..<2 {
            let (metadata, bytes) = try checkedMetadata(in: storage, key)
            guard let entry = try? storage.entry(for: key) else { throw .invalidCacheData }
            guard entry.metadata == bytes else { continue }
            do {
                return try makeAnswer(entry.body, metadata)
            } catch {
                try? storage.removeEntry(for: key)
                throw .invalidCacheData
            }
        }
        throw .invalidCacheData
    }

    /// The metadata, if it allows the entry to be used.
    private func checkedMetadata(in storage: any CacheStorage, _ key: CacheKey) throws(RequestCacheError) -> (CacheMetadata, Data) {
        let time = cacheTimeInSeconds()
        guard time >= 0 else { throw .invalidCacheTime }
        guard let bytes = try? storage.metadata(for: key) else { throw .invalidMetadata }
        guard let metadata = CacheMetadata(bytes) else {
            try? storage.removeEntry(for: key)
            throw .invalidMetadata
        }
        let age = Date().timeIntervalSince(metadata.creationDate)
        guard age >= 0, age <= TimeInterval(time) else { throw .expired }
        guard metadata.version == cacheVersion() else { throw .versionMismatch }
        guard metadata.sensitiveDataDigest == CacheMetadata.digest(of: cacheSensitiveData()) else { throw .sensitiveDataMismatch }
        guard metadata.appVersion == agent.configuration.appVersion else { throw .appVersionMismatch }
        return (metadata, bytes)
    }

    private func makeAnswer(_ data: Data, _ metadata: CacheMetadata) throws -> RequestAnswer {
        var answer = RequestAnswer()
        answer.data = data
        answer.givenString = String(data: data, encoding: String.Encoding(rawValue: metadata.stringEncoding))
        switch responseSerializerType() {
        case .http: answer.object = data
        case .xmlParser: answer.object = XMLParser(data: data)
        case .json:
            answer.jsonObject = try ResponseSerialization.json(data, removesNulls: agent.configuration.removeNullValues)
            answer.object = answer.jsonObject
        }
        return answer
    }
}

// MARK: - Writing

extension CachedRequest {
    /// Puts bytes into the cache as the answer of this request: its own, or those of another that has brought the same. Blocks.
    ///
    /// Does nothing if ``cacheTimeInSeconds()`` is not more than 0, or what the request has is from the cache itself. What the store says
    /// against it is logged.
    public func saveResponseDataToCacheFile(_ data: Data?) {
        guard !isDataFromCache, let data else { return }
        makeWrite(of: data)?()
    }

    /// What puts bytes into the cache, with all that the request says now; `nil` if they are not to be cached.
    func makeWrite(of data: Data) -> (@Sendable () -> Void)? {
        guard cacheTimeInSeconds() > 0, resumableDownloadPath == nil else { return nil }
        let configuration = agent.configuration
        let metadata = CacheMetadata(
            version: cacheVersion(), sensitiveData: cacheSensitiveData(), stringEncoding: state.withLock { $0.answer.encoding },
            creationDate: Date(), appVersion: configuration.appVersion)
        let (storage, key) = (cacheStorage(), cacheKey)
        return {
            do {
                try storage.store(CacheEntry(metadata: try metadata.data(), body: data), for: key)
            } catch {
                configuration.log("cache: \(error)")
            }
        }
    }
}
