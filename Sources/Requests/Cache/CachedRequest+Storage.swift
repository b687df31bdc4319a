// SPDX-License-Identifier: Apache-2.0
import CurlewCaching
import CurlewCore
import CurlewEncoding
import CurlewHTTP

// MARK: - Location

extension CachedRequest {
    /// The directory of the default ``cacheStorage()``: `LazyRequestCache` in the program's caches directory
    /// (``DiskCacheStorage/defaultDirectory(named:program:)``), or the path that the configuration's filters make of it.
    ///
    /// Created when needed; a file in its place is removed.
    public var cacheDirectoryPath: String {
        let path = DiskCacheStorage.defaultDirectory(named: ResponseCaches.directoryName).path
        return agent.configuration.cacheDirPathFilters.reduce(path) { $1.filterCacheDirPath($0, with: self) }
    }

    /// The key of the cached response, for a start by the caller; `nil` if it has none.
    var cacheKey: CacheKey? { key(.inGroup(requestOptions)) }

    /// The key of the cached response to a start with options. `nil` if something that decides on the response is not known: the body of a
    /// custom request that is a stream, or, unless the sensitive data identifies the user, the credentials with which the session answers a
    /// challenge.
    func key(_ options: RequestOptions?) -> CacheKey? {
        guard !agent.currentManager().answersChallenges || cacheSensitiveData() != nil else { return nil }
        if let custom = buildCustomUrlRequest() {
            guard custom.httpBodyStream == nil else { return nil }
            let parts = ["Custom", custom.httpMethod ?? "GET", custom.url?.absoluteString ?? "", (custom.httpBody ?? Data()).hexDigits]
            let sender = agent.currentManager().partitionParts(for: custom.url?.absoluteString ?? "", options)
            return CacheKey(parts + credentials(in: custom.allHTTPHeaderFields ?? [:]) + sender)
        }
        let argument = cacheFileNameFilter(forRequestArgument: requestArgument())
        let parts = [
            "Method", requestMethodString, "Host", agent.baseUrl(of: self), "Url", requestUrl(), "Argument", CanonicalText.of(argument),
        ]
        let fields = credentials(in: requestHeaderFieldValueDictionary() ?? [:], requestAuthorizationHeaderFieldArray())
        // The one to which the request is sent: a filter or a reference such as `//host/` may lead to another host than the base.
        let url = (try? agent.buildRequestUrl(self))?.absoluteString ?? requestUrl()
        return CacheKey(parts + fields + agent.currentManager().partitionParts(for: url, options))
    }
}

extension CachedRequest {
    /// The parts of a key that identify whose response it is: a digest of the request's own credentials and `Host`; empty without any.
    private func credentials(in headers: [String: String], _ user: [String]? = nil) -> [String] {
        let secrets = headers.filter { Redaction.current.hides(header: $0.key) || $0.key.equalsIgnoringASCIICase("Host") }
        let fields = secrets.map { [$0.key.lowercased(), $0.value] }.sorted { $0.lexicographicallyPrecedes($1) }.flatMap { $0 }
        let parts = fields + (user.map { ["user"] + $0 } ?? [])
        return parts.isEmpty ? [] : ["Credentials", CacheKey(parts).digest]
    }
}

// MARK: - Reading

extension CachedRequest {
    /// Loads the cached response, which the getters then return until a request is sent.
    ///
    /// Blocks on disk I/O. May be called while no network response is pending: before the start, or after a failure.
    ///
    /// - Throws: ``RequestCacheError`` for the first failed check, in this order: cache time, metadata, age, version, sensitive data, the
    ///   program's version, data.
    public func loadCache() throws {
        let result = try readCache(.inGroup(requestOptions))
        cache.withLock { $0.result = result }
    }

    /// Whether a valid response is cached. Reads only its metadata.
    public var isResponseCached: Bool {
        (try? checkedMetadata(in: cacheStorage(), cacheKey)) != nil
    }

    func readCache(_ options: RequestOptions?) throws(RequestCacheError) -> RequestResult {
        guard cacheTimeInSeconds() >= 0 else { throw .invalidCacheTime }
        let (storage, key) = (cacheStorage(), key(options))
        // Another process may replace the entry between the two reads; one retry makes a second replacement unlikely.
        for _ in 0..<2 {
            let (metadata, bytes) = try checkedMetadata(in: storage, key)
            guard let key, let entry = try? storage.entry(for: key) else { throw .invalidCacheData }
            guard entry.metadata == bytes else { continue }
            do {
                return try makeResult(entry.body, metadata)
            } catch {
                try? storage.removeEntry(for: key)
                throw .invalidCacheData
            }
        }
        throw .invalidCacheData
    }

    /// Returns the metadata if it permits using the entry.
    private func checkedMetadata(in storage: any CacheStorage, _ key: CacheKey?) throws(RequestCacheError) -> (CacheMetadata, Data) {
        let time = cacheTimeInSeconds()
        guard time >= 0 else { throw .invalidCacheTime }
        guard let key, let bytes = try? storage.metadata(for: key) else { throw .invalidMetadata }
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

    private func makeResult(_ data: Data, _ metadata: CacheMetadata) throws -> RequestResult {
        var result = RequestResult()
        result.data = data
        result.givenString = EncodedText(data, encoding: String.Encoding(rawValue: metadata.stringEncoding)).text
        switch responseSerializerType() {
        case .http: result.object = data
        case .xmlParser: result.object = try ResponseSerialization.xmlParser(data)
        case .json:
            result.jsonObject = try ResponseSerialization.json(data, removesNulls: agent.configuration.removeNullValues)
            result.object = result.jsonObject
        }
        return result
    }
}

// MARK: - Writing

extension CachedRequest {
    /// Stores bytes in the cache as the response to this request: its own, or those of another request with the same content. Blocks on
    /// disk I/O.
    ///
    /// Does nothing if ``cacheTimeInSeconds()`` is not greater than 0, the request's response came from the cache itself, or it is none of
    /// those that are cached (``CachedRequest``). Errors of the store are logged.
    public func saveResponseDataToCacheFile(_ data: Data?) {
        guard !isDataFromCache, let data else { return }
        makeWrite(of: data)?()
    }

    /// Returns a closure that stores bytes with the key with which the request was sent, or else its current one; `nil` if they are not to be
    /// cached.
    func makeWrite(of data: Data) -> (@Sendable () -> Void)? {
        guard cacheTimeInSeconds() > 0, resumableDownloadPath == nil else { return nil }
        let configuration = agent.configuration
        let sent = cache.withLock { $0.sent }
        guard let key = sent.map(\.key) ?? cacheKey else { return nil }
        let metadata = CacheMetadata(
            version: cacheVersion(), sensitiveDataDigest: sent.map(\.digest) ?? CacheMetadata.digest(of: cacheSensitiveData()),
            stringEncoding: state.withLock { $0.result.encoding }, creationDate: Date(), appVersion: configuration.appVersion)
        let storage = cacheStorage()
        return {
            do {
                try storage.store(CacheEntry(metadata: try metadata.data(), body: data), for: key)
            } catch {
                configuration.log("cache: \(error)")
            }
        }
    }
}
