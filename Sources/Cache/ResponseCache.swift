// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A private cache of HTTP responses (RFC 9111), for `SessionConfiguration.cache`.
///
/// Sessions that are given the same object share its responses. So do several processes with stores in one directory (`.disk` of the product
/// CurlewCaching). Responses to requests with `Authorization` serve only requests with the same credentials, unless they are `public`.
/// Of the session's cookies their store and their names count, not their values: users who follow one another in one store need a cache each.
///
/// All members are thread-safe. Those that read or change the store block while it does, on disk for example; errors are the store's.
public final class ResponseCache: Sendable {
    /// A stored response.
    public struct Entry: Sendable, Hashable {
        /// The URL, without a fragment.
        public let url: String
        /// The status code.
        public let statusCode: Int
        /// The stored header fields. Cookies and fields of the connection are not stored.
        public let headers: HTTPHeaders
        /// When the response, or the last one that validated it, was received.
        public let responseDate: Date
        /// When it becomes stale (RFC 9111, section 4.2); in the past for a stale response.
        public let expirationDate: Date
        /// The tags in the field ``ResponseCache/tagHeader``, in order.
        public let tags: [String]
    }

    /// How often the cache was used in which way since it was created, by the sessions of this process.
    public struct Statistics: Sendable, Hashable {
        /// Responses served without an exchange, fresh ones and stale ones.
        public var hits = 0
        /// Those of the hits that were stale.
        public var stale = 0
        /// Those of the hits that waited for an equal request (``ResponseCache/coalescesMisses``).
        public var collapsed = 0
        /// Responses served after the host had validated them.
        public var validations = 0
        /// Requests that were forwarded although the cache was asked, and those that failed because they forbid that.
        public var misses = 0
        /// Requests for which the cache was not asked.
        public var bypasses = 0
        /// Responses stored, without those that a validation has updated.
        public var stores = 0
        /// Failures of the store; each is a miss, or a response that was not stored.
        public var failures = 0
    }

    /// The name of the response field with tags, separated by commas or spaces, for ``remove(tag:)``: `Cache-Tag` or `Surrogate-Key`, for
    /// example. `nil` without tags.
    public let tagHeader: String?
    /// The size of the largest body that is stored, in bytes.
    public let largestBody: Int
    /// Where the responses are stored.
    public let storage: any CacheStorage

    /// Whether equal requests that miss at the same time become one, in this process, and with a ``LeasingCacheStorage`` in all processes
    /// that share it.
    ///
    /// Requests are equal if their URLs and all their header fields are. The first one is sent; the others wait until its response is stored,
    /// and are served with it if the rules allow that. If it is not stored, because it failed or may not be, each of the others is sent as
    /// soon as that is known; if the first one is cancelled or suspended, another one is sent in its place. Each can be cancelled by itself.
    /// Streamed requests and downloads neither wait nor are waited for.
    public let coalescesMisses: Bool
    /// How long a process may take to load a response for all that share a ``LeasingCacheStorage``; the others then go on without it.
    public let leaseDuration: Duration

    package let store: VariantStore
    package let coalescer: MissCoalescer?
    private let counters = Lock(Statistics())

    /// Creates a cache over a store.
    ///
    /// - Parameters:
    ///   - storage: where responses are stored: one of the library's, or one's own.
    ///   - largestBody: in bytes; by default a tenth of the store's capacity; at most 32 MiB in a store that is no
    ///     ``StreamingCacheStorage``, because its bodies are collected in memory.
    ///   - tagHeader: the name of a response field with tags; none by default.
    ///   - coalescesMisses: whether equal requests that miss at the same time become one; `false` by default.
    ///   - leaseDuration: the longest time that other processes wait for a response; 15 seconds by default.
    public init(
        storage: any CacheStorage, largestBody: Int? = nil, tagHeader: String? = nil, coalescesMisses: Bool = false,
        leaseDuration: Duration = .seconds(15)
    ) {
        self.storage = storage
        let most = storage is any StreamingCacheStorage ? Int64.max : 32 << 20
        self.largestBody = largestBody ?? Int(clamping: min(storage.capacity / 10, most))
        self.tagHeader = tagHeader
        self.coalescesMisses = coalescesMisses
        self.leaseDuration = leaseDuration
        store = VariantStore(storage, tagHeader: tagHeader)
        coalescer = coalescesMisses ? MissCoalescer() : nil
    }

    /// A cache in this process' memory; its capacity is in bytes, 16 MiB by default.
    public static func memory(capacity: Int64 = 16 << 20) -> ResponseCache {
        ResponseCache(storage: MemoryCacheStorage(capacity: capacity))
    }

    // MARK: Leases

    /// Whether processes that share the store agree on which of them loads a response.
    package var hasLeases: Bool { coalescesMisses && store.leasing != nil }

    /// Claims the task of loading the response for a URL; `nil` if another process has it. Blocks.
    package func acquireLease(for url: String, in partition: String) throws -> CacheLease? {
        try store.leasing?.acquireLease(for: VariantStore.key(url, in: partition), duration: leaseDuration)
    }

    /// Ends a lease. Blocks.
    package func release(_ lease: CacheLease) throws { try store.leasing?.releaseLease(lease) }

    /// Waits until no process has the lease for a URL; `false` if one still has. Blocks.
    package func waitForLeaseEnd(of url: String, in partition: String, timeout: Duration) throws -> Bool {
        try store.leasing?.waitForLeaseEnd(of: VariantStore.key(url, in: partition), timeout: timeout) ?? true
    }

    /// A cache over a store of one's own.
    public static func storage(_ storage: any CacheStorage) -> ResponseCache { ResponseCache(storage: storage) }

    // MARK: Inspection

    /// How often the cache was used in which way.
    public var statistics: Statistics { counters.withLock { $0 } }

    package func count(_ change: (inout Statistics) -> Void) {
        counters.withLock { change(&$0) }
    }

    /// Returns all stored responses, in no order. Reads the whole store.
    public func entries() throws -> [Entry] {
        var found: [Entry] = []
        try store.forEachRecord { record in
            found += record.variants.map { entry($0.head) }
        }
        return found
    }

    private func entry(_ head: StoredResponse) -> Entry {
        let lifetime = head.remaining(at: head.responseTime)
        return Entry(
            url: head.url, statusCode: head.statusCode, headers: head.headers, responseDate: Date(timeIntervalSince1970: head.responseTime),
            expirationDate: Date(timeIntervalSince1970: head.responseTime + (lifetime.isFinite ? lifetime : 0)), tags: store.tags(of: head))
    }

    // MARK: Removing

    /// Removes the responses stored for a URL, all variants, of all users, and those for other URLs that `No-Vary-Search` lets answer
    /// requests for it; its fragment does not matter. Copies in the memory of all processes (``TieredCacheStorage``) go as well, also those
    /// of responses that the store has evicted. Does nothing for a URL, or a text that is none, for which nothing is stored.
    ///
    /// - Throws: what the store throws; ``/CurlewHTTP/CurlewError`` for another value than a text that can't be converted to a URL.
    public func remove(_ url: any URLConvertible) throws {
        let text: String
        do {
            text = try url.asURL().absoluteString
        } catch {
            // What a redirect has led to may be no URL for Foundation.
            guard let url = url as? String else { throw error }
            text = url
        }
        try remove(stored: text)
    }

    /// Removes the responses stored for a request's URL.
    package func remove(stored url: String) throws { try store.remove(StorageRules.identity(of: url)) }

    /// Removes all responses, and all copies in the memory of processes (``TieredCacheStorage``).
    public func removeAll() throws {
        try store.removeAll()
    }

    /// Removes the responses with a tag in the field ``tagHeader``, and with them the other variants of their URLs. Reads the whole store,
    /// unless that is a ``TaggingCacheStorage``. Copies in the memory of all processes (``TieredCacheStorage``) go as well, also those of
    /// responses that the store has evicted.
    ///
    /// - Returns: the number of URLs whose responses were removed from the store.
    @discardableResult
    public func remove(tag: String) throws -> Int {
        guard tagHeader != nil else { return 0 }
        var urls: Set<[UInt8]> = []
        try store.forEachRecord(tagged: tag) { record in
            if let url = url(of: record, where: { $0.tags.contains(tag) }) { urls.insert(url) }
        }
        let count = try remove(urls)
        // Last, so that nothing that has the tag can be copied from the store after it.
        try store.removeCopies(tagged: tag)
        return count
    }

    /// Removes the responses for which a closure returns `true`, and with them the other variants of their URLs. Reads the whole store, and the
    /// copies in the memory of this process (``TieredCacheStorage``), but not those that only other processes have of responses that the store
    /// has evicted.
    ///
    /// - Returns: the number of URLs whose responses were removed.
    @discardableResult
    public func remove(matching isRemoved: (Entry) -> Bool) throws -> Int {
        var urls: Set<[UInt8]> = []
        func visit(_ record: VariantRecord) {
            if let url = url(of: record, where: isRemoved) { urls.insert(url) }
        }
        try store.forEachRecord(visit)
        store.forEachCopy(visit)
        return try remove(urls)
    }

    /// The bytes of a record's URL if one of its responses is to be removed: several records, of different partitions, may have it.
    private func url(of record: VariantRecord, where isRemoved: (Entry) -> Bool) -> [UInt8]? {
        record.variants.contains { isRemoved(entry($0.head)) } ? record.variants.first.map { Array($0.head.url.utf8) } : nil
    }

    private func remove(_ urls: Set<[UInt8]>) throws -> Int {
        for url in urls { try store.removeOwn(String(decoding: url, as: UTF8.self)) }
        return urls.count
    }

    /// Removes all responses of an origin.
    package func remove(origin: HTTPOrigin) throws {
        try remove { HTTPOrigin(url: $0.url) == origin }
    }
}

// MARK: - CustomReflectable

extension ResponseCache.Entry: RedactedReflectable {
    /// The entry's parts, redacted.
    package var shownParts: KeyValuePairs<String, Any> {
        [
            "url": url.redactedURL, "statusCode": statusCode, "headers": headers, "responseDate": responseDate,
            "expirationDate": expirationDate, "tags": tags,
        ]
    }
}
